"""The cycle simulator equals the Verilog in every counter, on programs, random programs and memory models."""

from __future__ import annotations

import functools
import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from relay_hw.accel.isa.alu import AluOp
from relay_hw.accel.isa.asm import assemble_file
from relay_hw.accel.isa.config import AccelConfig, load_config
from relay_hw.accel.isa.errors import AccelError, DeadlockError, Fault, FaultCode
from relay_hw.accel.isa.program import Program
from relay_hw.accel.isa.spec import Form, Mem, Op, Unit
from relay_hw.accel.sim.bounds import cycle_bound
from relay_hw.accel.sim.cycle import CycleDevice
from relay_hw.accel.sim.dram_timing import MEMORY_MODELS, MemoryModel
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.accel.sim.rtl_device import RtlDevice
from tests.accel.isa.runner import PROGRAMS
from tests.accel.sim.timed_programs import REGION, timed_program

STANDARD, NARROW = MEMORY_MODELS["standard"], MEMORY_MODELS["narrow"]
TINY = load_config("tiny")
# Every limit of the bus at its smallest, and queues that fill at once.
SMALLEST = replace(
    TINY, name="smallest", burst_beats=2, read_outstanding=1, write_outstanding=1, queue_depth=2, out_lanes=1
)


@functools.lru_cache(maxsize=8)
def rtl(config: AccelConfig, memory: MemoryModel) -> RtlDevice:
    return RtlDevice(config, memory)


def counters(device: CycleDevice | RtlDevice, program: Program) -> dict[str, int] | str:
    """Counters, or what ended the launch: a program without end is a watchdog fault in hardware."""
    device.load(program)
    try:
        return dict(device.launch().counters)
    except DeadlockError:
        return "never ends"
    except Fault as fault:
        return "never ends" if fault.code is FaultCode.WATCHDOG else f"{fault.code.name} {fault.index}"


def assert_equal(config: AccelConfig, memory: MemoryModel, program: Program, data: bool = False) -> None:
    expected = counters(rtl(config, memory), program)
    found = counters(CycleDevice(config, memory, data), program)
    if isinstance(expected, str) or isinstance(found, str):
        assert found == expected
        return
    assert {k: (found[k], expected[k]) for k in expected if found[k] != expected[k]} == {}
    assert found.keys() == expected.keys()


@pytest.mark.parametrize("memory", [STANDARD, NARROW], ids=["standard", "narrow"])
@pytest.mark.parametrize("path", PROGRAMS, ids=[path.stem for path in PROGRAMS])
def test_programs_of_the_instruction_set(path: Path, memory: MemoryModel) -> None:
    program = assemble_file(path)
    assert_equal(load_config(program.config), memory, program, data=True)


@pytest.mark.parametrize("memory", [STANDARD, NARROW], ids=["standard", "narrow"])
@pytest.mark.parametrize("seed", range(40))
def test_random_programs_on_tiny(seed: int, memory: MemoryModel) -> None:
    assert_equal(TINY, memory, timed_program(TINY, seed))


@pytest.mark.parametrize("seed", range(100, 120))
def test_random_programs_on_odd_memories(seed: int) -> None:
    odd = (MemoryModel(1), MemoryModel(13, 1, 1, 2), MemoryModel(2, 1, 2, 1), MemoryModel(40, 1, 64, 64))
    assert_equal(TINY, odd[seed % 4], timed_program(TINY, seed))


@pytest.mark.parametrize("name", ["default", "ecp5", "w4", "wide"])
@pytest.mark.parametrize("seed", range(200, 212))
def test_random_programs_on_larger_configurations(name: str, seed: int) -> None:
    config = load_config(name)
    assert_equal(config, (STANDARD, NARROW)[seed % 2], timed_program(config, seed))


@pytest.mark.parametrize("seed", range(300, 312))
def test_random_programs_on_the_smallest_bus(seed: int) -> None:
    assert_equal(SMALLEST, STANDARD, timed_program(SMALLEST, seed))


@pytest.mark.parametrize("seed", [1, 4, 5])
def test_time_does_not_depend_on_data(seed: int) -> None:
    program = timed_program(TINY, seed)
    device = rtl(TINY, STANDARD)
    seen: set[tuple[int, ...]] = set()
    for data_seed in range(3):
        device.load(program)
        device.write(0, np.random.default_rng(data_seed).integers(0, 256, REGION).astype(np.uint8))
        seen.add(tuple(device.launch().counters.values()))
    assert len(seen) == 1


def test_hold_of_requant_costs_cycles_where_it_must() -> None:
    def program(**values: int) -> Program:
        fields = {"form": Form.PASS, "dst": 1, "iter_out": 1, "iter_in": 9, "clip_lo": -128, "clip_hi": 127}
        return Program.build(TINY, [(Op.REQUANT, fields | values), (Op.FINISH, {})])

    apart = counters(CycleDevice(TINY), program(acc_in=1, dst_in=1))
    chained = counters(CycleDevice(TINY), program(acc_in=1, dst_in=1, dst_base=1))
    assert isinstance(apart, dict) and isinstance(chained, dict)
    # Each of the eight later vectors waits until the one before is written: 9 cycles behind its last slot.
    slots = TINY.block_out // TINY.out_lanes
    assert chained["CYCLES"] - apart["CYCLES"] == 8 * (9 + slots - 1 - slots)
    for values in ({"acc_in": 1, "dst_in": 1}, {"acc_in": 1, "dst_in": 1, "dst_base": 1}, {"dst_base": 3, "acc_in": 1}):
        assert_equal(TINY, STANDARD, program(**values))


@pytest.mark.parametrize("seed", range(40))
def test_no_launch_takes_longer_than_its_bound(seed: int) -> None:
    config = (TINY, SMALLEST, load_config("default"))[seed % 3]
    memory = (STANDARD, NARROW, MemoryModel(300, 1, 1, 1))[seed % 2]
    device, program = CycleDevice(config, memory, data=False), timed_program(config, seed)
    found = counters(device, program)
    assert isinstance(found, str) or found["CYCLES"] < cycle_bound(config, memory, program.code.data or b"")


def test_held_vectors_are_in_the_bound() -> None:
    config = load_config("default")
    held = {"form": Form.PASS, "dst": 1, "iter_out": 100, "iter_in": 100}
    program = Program.build(config, [(Op.REQUANT, held), (Op.FINISH, {})])
    found = counters(CycleDevice(config, data=False), program)
    assert isinstance(found, dict) and found["CYCLES"] > 70_000
    assert found["CYCLES"] < cycle_bound(config, STANDARD, program.code.data or b"")


@pytest.mark.parametrize("use_imm", [0, 1])
def test_multiplications_of_the_alu_are_in_the_bound(use_imm: int) -> None:
    config = load_config("default")
    many = {"alu_op": AluOp.MUL, "use_imm": use_imm, "iter_out": 100, "iter_in": 100, "uop_end": 10}
    program = Program.build(config, [(Op.ALU, many), (Op.FINISH, {})])
    found = counters(CycleDevice(config, data=False), program)
    assert isinstance(found, dict) and found["CYCLES"] > 200_000
    assert found["CYCLES"] < cycle_bound(config, STANDARD, program.code.data or b"")


@pytest.mark.parametrize(
    ("instructions", "cycles"),
    [
        ([], 109),
        ([(Op.LOAD, {"mem": Mem.INP, "z": 5})], 110 + 102 + 10 + 1),
        ([(Op.GEMM, {"uop_end": 7})], 110 + 7 + 11),
        ([(Op.REQUANT, {"iter_in": 3})], 110 + 3 * TINY.block_out // TINY.out_lanes + 9),
        ([(Op.STORE, {"mem": Mem.OUT, "z": 3})], 110 + 3 + 6 + 100 + 2),
        ([(Op.ROW, {"rows": 5, "columns": 9})], 110 + 8 * 48 + 5),
    ],
)
def test_table_of_the_timing_page(instructions: list[tuple[Op, dict[str, int]]], cycles: int) -> None:
    program = Program.build(TINY, [*instructions, (Op.FINISH, {})])
    found = counters(CycleDevice(TINY, data=False), program)
    assert isinstance(found, dict) and found["CYCLES"] == cycles
    assert_equal(TINY, STANDARD, program)


def test_data_are_those_of_the_functional_simulator() -> None:
    program = timed_program(TINY, 2)
    data = np.random.default_rng(0).integers(0, 256, REGION).astype(np.uint8)
    windows = []
    for device in (CycleDevice(TINY), FunctionalDevice(TINY)):
        device.load(program)
        device.write(0, data)
        device.launch()
        windows.append(device.read(0, program.window_bytes))
    assert (windows[0] == windows[1]).all()


@pytest.mark.parametrize("seed", range(20, 24))
def test_spans_add_up_to_the_counters(seed: int) -> None:
    program = timed_program(TINY, seed)
    device = CycleDevice(TINY, data=False)
    device.load(program)
    stats = device.launch()
    assert [span.index for span in device.timing.spans] == list(range(program.count - 1))
    for unit in Unit:
        mine = [span for span in device.timing.spans if span.unit is unit]
        busy = {cycle for span in mine for cycle in range(span.start + 1, span.end + 1)}
        assert len(busy) == stats.counters[f"{unit.name}_BUSY"]
        assert sum(span.start - span.asked for span in mine) == stats.counters[f"{unit.name}_TOKEN"]
        assert all(a.start < b.start and a.end < b.end for a, b in itertools.pairwise(mine))
    # After the last tokens FINISH waits an edge more.
    works = device.timing.works
    assert stats.cycles == max(span.end + (3 if works[span.index].gives else 2) for span in device.timing.spans)


def test_second_launch_takes_the_same_time_and_a_changed_program_another() -> None:
    device = CycleDevice(TINY)
    with pytest.raises(AccelError, match="a program must be loaded before it is launched"):
        device.launch()
    program = Program.build(TINY, [(Op.GEMM, {"uop_end": 7}), (Op.FINISH, {})])
    device.load(program)
    first = device.launch()
    assert first.cycles == device.launch().cycles == 128
    longer = Program.build(TINY, [(Op.GEMM, {"uop_end": 9}), (Op.FINISH, {})])
    assert longer.code.data is not None
    device.write(program.code.offset, np.frombuffer(longer.code.data, np.uint8))
    assert device.launch().cycles == 130


def test_programs_that_never_end_and_faults_are_named() -> None:
    device = CycleDevice(TINY, data=False)
    device.load(Program.build(TINY, [(Op.GEMM, {"uop_end": 7, "wait": 0b101}), (Op.FINISH, {})]))
    with pytest.raises(DeadlockError, match=r"compute at instruction 0 \(gemm\) for s0,s2"):
        device.launch()
    device.load(Program.build(TINY, [(Op.GEMM, {"uop_end": 7})]))
    with pytest.raises(Fault, match="instruction 1: ILLEGAL_OPCODE: program must end with finish"):
        device.launch()
    device.load(Program.build(TINY, [(Op.FINISH, {}), (Op.FINISH, {})]))
    with pytest.raises(Fault, match="instruction 0: ILLEGAL_FIELD: finish must be the last instruction"):
        device.launch()


def test_millions_of_cycles_take_no_time_per_cycle() -> None:
    gemm = (Op.GEMM, {"iter_out": 1000, "iter_in": 1000, "uop_end": 512})
    device = CycleDevice(TINY, data=False)
    device.load(Program.build(TINY, [gemm, (Op.FINISH, {})]))
    stats = device.launch()
    assert stats.cycles == 110 + 512_000_000 + 11 and stats.seconds < 1
