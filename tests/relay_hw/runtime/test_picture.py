"""Pictures of launches: their cycles are those of the profile, their memories hold what programs write."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from relay_hw.accel.sim.causes import Cause
from relay_hw.accel.sim.cycle import CycleDevice
from relay_hw.accel.sim.dram_timing import memory_model
from relay_hw.report import Picture, Report
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.models import load_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.runtime.picture import _joined, _used
from relay_hw.runtime.profile import profile
from tests.relay_hw.small_models import images, save_branches

SMALL = CompileOptions(config="tiny", host_target="numpy")


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    folder = tmp_path_factory.mktemp("picture")
    model = load_model(save_branches(folder / "net.onnx"))
    built = compile_model(model.mod, SMALL, params=model.params, calibration={"image": images(4, 2)})
    return built.save(Path(folder) / "build")


@pytest.fixture(scope="module")
def report(artifact: Artifact) -> Report:
    return profile(artifact, CycleDevice(artifact.config, memory_model("standard"), data=False), "cycle")


@pytest.fixture
def picture(report: Report) -> Picture:
    (found,) = report.pictures
    return found


def test_all_cycles_are_those_of_the_profile(report: Report, picture: Picture) -> None:
    spent = picture.spent
    assert sum(spent.lengths) == picture.cycles == report.cycles
    by_layer, by_cause = Counter[int](), Counter[tuple[int, str]]()
    for cycles, layer, which in zip(spent.lengths, spent.layers, spent.which, strict=True):
        kind = spent.kinds[which]
        by_layer[layer] += cycles
        by_cause[layer, Cause.FILL if kind.fill else kind.cause] += cycles
    for number, row in enumerate(report.layers):
        assert by_layer[number] == row.cycles
        for cause, cycles in row.stalls.items():
            if cause is Cause.LANES:
                array = by_cause[number, Cause.PRODUCTS]
                assert abs(array * (1000 - picture.useful[number]) / 1000 - cycles) <= array / 1000
            else:
                assert by_cause[number, cause] == cycles, (row.name, cause)


def test_instructions_are_those_of_the_program(artifact: Artifact, picture: Picture) -> None:
    ran = picture.instructions
    program = artifact.programs[picture.function]
    assert len(ran.ops) == program.count - 1  # FINISH runs on no unit
    assert all(a <= b < c <= picture.cycles for a, b, c in zip(ran.asked, ran.starts, ran.ends, strict=True))
    for index, (_, values) in enumerate(program.instructions[:-1]):
        assert (ran.takes[index], ran.gives[index]) == (values["wait"], values["set"])
    for number, row in enumerate(artifact.manifest.layers):
        assert ran.layers.count(number) == sum(min(end, program.count - 1) - begin for begin, end in row.ranges)


def test_pads_hold_no_more_than_they_have(picture: Picture) -> None:
    assert [pad.name for pad in picture.pads] == ["inp", "wgt", "acc", "out", "uop", "prm", "tab", "cof"]
    for pad in picture.pads:
        assert len(pad.used) == picture.parts and (pad.name not in ("tab", "cof")) <= max(pad.used) <= 1000
        boxes = sorted(zip(pad.rows, pad.begins, pad.lengths, strict=True))
        for (row, begin, length), (other, next_begin, _) in pairwise(boxes):
            assert row != other or begin + length <= next_begin
        assert all(b + n <= picture.parts for b, n in zip(pad.begins, pad.lengths, strict=True))


def test_transfers_are_the_bytes_that_layers_move(report: Report, picture: Picture) -> None:
    ends = [section.offset + section.size for section in picture.sections]
    # Transfers are whole beats, so the last one of a section may reach behind its last byte.
    assert all(
        picture.sections[transfer.section].offset <= transfer.begin < ends[transfer.section]
        for transfer in picture.transfers
    )
    kinds = {picture.sections[transfer.section].kind for transfer in picture.transfers if transfer.is_written}
    assert "output" in kinds and kinds <= {"output", "scratch"}
    written = {transfer.layer for transfer in picture.transfers if transfer.is_written}
    assert written == {k for k, row in enumerate(report.layers) if row.traffic.activations_written}


def test_used_is_the_mean_of_each_part() -> None:
    import numpy as np

    # 4 entries in cycles 0 to 10, 2 more from 5 to 20.
    found = _used(np.array([4, 2]), np.array([[0, 10], [5, 20]]), 20, 4)
    assert found.tolist() == [4.0, 6.0, 2.0, 2.0]


def test_transfers_that_touch_are_one() -> None:
    assert list(_joined([(0, 8, 1, 2), (8, 16, 3, 4), (32, 40, 5, 6)])) == [(0, 16, 1, 4), (32, 40, 5, 6)]
    many = [(100 * k, 100 * k + 10, k, k) for k in range(100)]
    assert 1 <= len(list(_joined(many))) <= 24
