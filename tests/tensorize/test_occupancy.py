"""Lives of values in scratchpads, beside a walk that follows every entry by itself."""

from __future__ import annotations

import numpy as np
import pytest

from relay_hw.accel.isa.config import AccelConfig, load_config
from relay_hw.accel.isa.program import Program
from relay_hw.accel.isa.spec import Mem, Op
from relay_hw.accel.isa.stream import decode_instructions
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.models import load_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.tensorize.emit.footprint import UopMemory, accesses
from relay_hw.tensorize.emit.occupancy import NOBODY, RESIDENT, occupancy
from tests.relay_hw.small_models import images, save_branches

Life = tuple[int, int, int]


@pytest.fixture(scope="module", params=["tiny", "default"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Program, AccelConfig]:
    model = load_model(save_branches(tmp_path_factory.mktemp("net") / "net.onnx"))
    built = compile_model(
        model.mod,
        CompileOptions(config=request.param, host_target="numpy"),
        params=model.params,
        calibration={"image": images(4, 2)},
    )
    (segment,) = built.segments.values()
    return segment.program, load_config(request.param)


def lives_by_entry(program: Program, config: AccelConfig) -> dict[Mem, list[Life]]:
    """(entry, writer, last user), entry by entry."""
    uops = UopMemory(program, config)
    open_lives: dict[tuple[Mem, int], Life] = {}
    found: dict[Mem, list[Life]] = {mem: [] for mem in Mem}
    streams = [("resident", program.resident)] if program.resident is not None else []
    for what, section in (*streams, ("program", program.code)):
        for index, (op, values) in enumerate(decode_instructions(section.data or b"")):
            if op is Op.FINISH:
                continue
            touched = [one for one in accesses(index, op, values, uops.words, config) if isinstance(one.memory, Mem)]
            read = {(one.memory, int(cell)) for one in touched if not one.write for cell in one.cells}
            written = {(one.memory, int(cell)) for one in touched if one.write for cell in one.cells}
            for key in read if what == "program" else ():
                entry, writer, _ = open_lives[key]
                open_lives[key] = (entry, writer, index)
            for mem, entry in written - (read if what == "program" else set()):
                if (mem, entry) in open_lives and what == "program":
                    found[mem].append(open_lives[mem, entry])
                fresh = (entry, index, index) if what == "program" else (entry, RESIDENT, NOBODY)
                open_lives[mem, entry] = fresh
            uops.run(op, values)
    for (mem, _), life in open_lives.items():
        found[mem].append(life)
    return found


def test_lives_are_those_of_every_entry(made: tuple[Program, AccelConfig]) -> None:
    program, config = made
    wanted = lives_by_entry(program, config)
    for mem, rows in occupancy(program, config).items():
        got = [(entry, writer, last) for begin, end, writer, last in rows.tolist() for entry in range(begin, end)]
        assert sorted(got) == sorted(wanted[mem]), mem
        assert (rows[:, 0] < rows[:, 1]).all() and rows.dtype == np.int64


def test_weights_that_stay_are_there_before_the_launch(made: tuple[Program, AccelConfig]) -> None:
    program, config = made
    weights = occupancy(program, config)[Mem.WGT]
    assert (weights[:, 2] == RESIDENT).any() == (program.resident is not None)
