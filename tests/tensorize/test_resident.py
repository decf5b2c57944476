"""Weights that stay: one launch loads them, every other one is faster and right, and nothing overwrites them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from relay_hw.accel.isa.program import Program, SectionKind
from relay_hw.accel.isa.spec import Mem, Op
from relay_hw.accel.isa.stream import decode_instructions, encode_instructions
from relay_hw.accel.sim.cycle import CycleDevice
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.errors import TensorizeError
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Function
from relay_hw.ir.module import IRModule
from relay_hw.tensorize import Segment, compile_function
from relay_hw.tensorize.compile import TOPS
from relay_hw.tensorize.emit.check import check_program
from relay_hw.tensorize.target import Target
from tests.targets import target_for

CONSTANT = (Mem.WGT, Mem.PRM, Mem.UOP)


def network(kit: SimpleNamespace, config: Target, channels: int = 16, layers: int = 3) -> Function:
    build = kit.Regions(5, config)
    x = build.input(channels, 6, 6)
    for _ in range(layers):
        x = build.conv(x, channels, (3, 3), padding=(1, 1, 1, 1))
    return build.function(build.dense(x, 10))


def constant_loads(instructions: object) -> list[Mem]:
    return [Mem(v["mem"]) for op, v in instructions if op is Op.LOAD and v["mem"] in CONSTANT]  # type: ignore[attr-defined]


def resident_stream(program: Program) -> list[tuple[Op, dict[str, int]]]:
    assert program.resident is not None
    return decode_instructions(program.resident.data or b"")


def check_launches(kit: SimpleNamespace, function: Function, segment: Segment, config: Target, order: int) -> None:
    """Three launches behind one resident launch, units in random order, equal to the interpreter."""
    device = FunctionalDevice(config, order)
    device.load(segment.program)
    device.launch(SectionKind.RESIDENT)
    main = replace(segment, program=_without(segment.program))
    rng = np.random.default_rng(order)
    for _ in range(3):
        values = [rng.integers(-128, 128, p.type_annotation.static_shape).astype(np.int8) for p in function.params]
        (found,) = kit.run(main, values, config, device=device)
        np.testing.assert_array_equal(found, np.asarray(evaluate(IRModule.from_expr(function), values)))


def _without(program: Program) -> Program:
    """The same program for readers that would launch the resident stream."""
    return replace(program, sections=tuple(s for s in program.sections if s.kind is not SectionKind.RESIDENT))


@pytest.mark.parametrize("name", ["default", "tiny", "ecp5", "wide"])
def test_all_constants_stay_where_they_fit(kit: SimpleNamespace, name: str) -> None:
    config = target_for(name)
    function = network(kit, config, layers=1)
    segment = compile_function(function, config, "a")
    assert set(constant_loads(resident_stream(segment.program))) == set(CONSTANT)
    assert not constant_loads(segment.program.instructions)
    check_launches(kit, function, segment, config, order=3)


def test_later_launches_are_faster(kit: SimpleNamespace) -> None:
    config = target_for("default")
    function = network(kit, config, channels=64)
    cycles: list[int | None] = []
    for resident in (True, False):
        segment = compile_function(function, config, "a", resident=resident)
        assert (segment.program.resident is not None) == resident
        device = CycleDevice(config, data=False)
        device.load(segment.program)
        if resident:
            first = device.launch(SectionKind.RESIDENT)
            assert first.cycles is not None and first.cycles < 25_000
            assert first.counters["WRITE_BYTES"] == first.counters["GEMM_UOPS"] == 0
        cycles.append(device.launch().cycles)
        assert device.launch().cycles == cycles[-1]
    stays, streams = cycles
    assert stays is not None and streams is not None and stays < 0.9 * streams


def test_part_stays_where_not_all_fits(kit: SimpleNamespace) -> None:
    """A dense layer of twice the weight memory is bound by its weights; half of them need not be loaded again."""
    config = target_for("default")
    build = kit.Regions(2, config)
    function = build.function(build.dense(build.input(1024, 1, 1), 512))
    segment = compile_function(function, config, "a")
    stays = constant_loads(resident_stream(segment.program))
    streams = constant_loads(segment.program.instructions)
    assert Mem.WGT in stays and Mem.WGT in streams
    assert segment.cycles < 0.85 * compile_function(function, config, "a", resident=False).cycles
    check_launches(kit, function, segment, config, order=1)


def test_time_steps_share_their_weights(kit: SimpleNamespace) -> None:
    """The same dense layer applied four times is loaded once."""
    config = target_for("default")
    build = kit.Regions(4, config)
    x = build.input(128)
    step = build.dense(x, 128)
    assert isinstance(step, Call)
    value = step
    for _ in range(3):
        value = Call(step.op, [value])
    function = build.function(value)
    segment = compile_function(function, config, "a")
    loads = [v for op, v in resident_stream(segment.program) if op is Op.LOAD and v["mem"] == Mem.WGT]
    assert sum(v["z"] * v["y"] * v["x"] for v in loads) * config.granule_bytes == 128 * 128
    assert not constant_loads(segment.program.instructions)
    check_launches(kit, function, segment, config, order=7)


def changed(program: Program, kind: SectionKind, instructions: list[tuple[Op, dict[str, int]]]) -> Program:
    data = encode_instructions(instructions)
    sections = tuple(replace(s, data=data) if s.kind is kind else s for s in program.sections)
    return replace(program, sections=sections)


def test_check_refuses_programs_that_overwrite_what_stays(kit: SimpleNamespace) -> None:
    config = target_for("tiny")
    program = compile_function(network(kit, config, layers=1), config, "a").program
    main = list(program.instructions)
    at = next(i for i, (op, v) in enumerate(main) if op is Op.LOAD and v["mem"] == Mem.INP)
    kept = next(v for op, v in resident_stream(program) if op is Op.LOAD and v["mem"] == Mem.WGT)
    main[at] = (Op.LOAD, {**kept, "wait": main[at][1]["wait"], "set": main[at][1]["set"]})
    with pytest.raises(TensorizeError, match=r"must not write wgt 0, which the resident stream loaded"):
        check_program(changed(program, SectionKind.PROGRAM, main), config)


def test_check_refuses_programs_that_miss_what_should_stay(kit: SimpleNamespace) -> None:
    config = target_for("tiny")
    program = compile_function(network(kit, config, layers=1), config, "a").program
    stream = resident_stream(program)
    kept = [item for item in stream if item[0] is not Op.LOAD or item[1]["mem"] != Mem.WGT]
    words = [*kept[:-1], *[kept[0]] * (len(stream) - len(kept)), kept[-1]]
    with pytest.raises(TensorizeError, match=r"must read wgt .* only after it was written"):
        check_program(changed(program, SectionKind.RESIDENT, words), config)
    with pytest.raises(TensorizeError, match="resident stream must end with finish"):
        check_program(changed(program, SectionKind.RESIDENT, stream[:-1] + stream[:1]), config)


def test_the_fastest_with_resident_constants_need_not_be_among_the_fastest_without(
    kit: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a slow memory, loads of weights outweigh what schedules differ in; where they stay, they do not."""
    config, pad = target_for("ecp5", "ulx3s"), (1, 1, 1, 1)
    build = kit.Regions(5, config)
    x = build.input(16, 24, 24)
    x = build.conv(build.conv(x, 16, padding=pad), 16, padding=pad, residual=x)
    skip = build.conv(x, 32, (1, 1), strides=(2, 2))
    x = build.conv(build.conv(x, 32, strides=(2, 2), padding=pad), 32, padding=pad, residual=skip)
    function = build.function(x)
    found: dict[int, int] = {}
    for tops in (2, TOPS, 99):
        monkeypatch.setattr("relay_hw.tensorize.compile.TOPS", tops)
        found[tops] = compile_function(function, config, "a").cycles
    assert found[TOPS] == found[99] < found[2]
