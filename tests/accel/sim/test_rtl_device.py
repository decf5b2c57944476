"""The Verilog against the functional simulator: the same bytes and the same faults, whatever the bus does."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from relay_hw.accel.isa.alu import AluOp
from relay_hw.accel.isa.asm import assemble_file
from relay_hw.accel.isa.config import ROW_BUFFER_BYTES, AccelConfig, load_config
from relay_hw.accel.isa.errors import AccelError, Fault, FaultCode, ProgramError
from relay_hw.accel.isa.program import Program, Section, SectionKind, WindowPlan
from relay_hw.accel.isa.randprog import random_program
from relay_hw.accel.isa.records import encode_uops
from relay_hw.accel.isa.spec import Mem, Op
from relay_hw.accel.sim.bounds import cycle_bound
from relay_hw.accel.sim.device import Device
from relay_hw.accel.sim.dram_timing import MemoryModel, memory_model
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.accel.sim.registers import COUNTERS
from relay_hw.accel.sim.rtl_device import RtlDevice, Simulation
from tests.accel.isa.runner import PROGRAMS, run_asm
from tests.accel.sim.timed_programs import REGION, timed_program

TINY = load_config("tiny")
TINY_PROGRAMS = tuple(path for path in PROGRAMS if assemble_file(path).config == "tiny")
GRANULE = TINY.granule_bytes


@functools.lru_cache(maxsize=16)
def rtl(config: AccelConfig, stall_seed: int | None = None) -> RtlDevice:
    return RtlDevice(config, run=Simulation(stall_seed=stall_seed))


def window_after(device: Device, program: Program, data: np.ndarray | None = None) -> np.ndarray:
    device.load(program)
    if data is not None:
        device.write(0, data)
    device.launch()
    return device.read(0, program.window_bytes)


def assert_same_window(device: Device, program: Program, data: np.ndarray | None = None) -> None:
    expected = window_after(FunctionalDevice(device.config), program, data)
    found = window_after(device, program, data)
    different = np.flatnonzero(expected != found)
    assert not different.size, f"byte {different[0]:#x}: {found[different[0]]}, not {expected[different[0]]}"


def copy_program(config: AccelConfig = TINY, at: int = 4096) -> Program:
    """Requantizes nothing: stores what OUT holds, after a load from `at`."""
    load = (Op.LOAD, {"mem": Mem.INP, "dram": at, "z": 4, "set": 1})
    store = (Op.STORE, {"mem": Mem.OUT, "dram": 8192, "z": 4, "wait": 0})
    code = [load, (Op.GEMM, {"wait": 1, "uop_end": 1}), store, (Op.FINISH, {})]
    return Program.build(config, code, WindowPlan(window_bytes=16384, program_offset=0))


@pytest.mark.parametrize("path", PROGRAMS, ids=[path.stem for path in PROGRAMS])
def test_programs_of_the_instruction_set(path: Path) -> None:
    stats = run_asm(path, rtl)
    if stats is None:
        return
    assert set(stats.counters) == set(COUNTERS) and stats.cycles == stats.counters["CYCLES"] > 0
    functional = run_asm(path, FunctionalDevice)
    assert functional is not None
    assert {key: stats.counters[key] for key in functional.counters} == dict(functional.counters)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
@pytest.mark.parametrize("path", TINY_PROGRAMS, ids=[path.stem for path in TINY_PROGRAMS])
def test_programs_under_random_stalls(path: Path, seed: int) -> None:
    run_asm(path, lambda config: rtl(config, seed))


@pytest.mark.parametrize("seed", range(30))
def test_random_programs_on_tiny(seed: int) -> None:
    program = random_program(TINY, seed, 30)
    assert_same_window(rtl(TINY), program)
    assert_same_window(rtl(TINY, 1 + seed % 7), program)


@pytest.mark.parametrize("name", ["default", "ecp5", "w4", "wide"])
@pytest.mark.parametrize("seed", range(50, 56))
def test_random_programs_on_larger_configurations(name: str, seed: int) -> None:
    assert_same_window(rtl(load_config(name)), random_program(load_config(name), seed, 40))


@pytest.mark.parametrize("seed", [0, 1, 2, 4, 5, 8])
def test_transfers_of_every_shape(seed: int) -> None:
    """Those programs race in OUT and the accumulator, so only what their LOADs and faults do is looked at."""
    program = timed_program(TINY, seed)
    loads = [(op, {**values, "wait": 0, "set": 0}) for op, values in program.instructions if op is Op.LOAD]
    data = np.random.default_rng(seed).integers(0, 256, REGION).astype(np.uint8)
    for op, values in loads:
        if values["mem"] != Mem.ACC:
            continue
        # The accumulator comes out through the output stage, entry by entry.
        entries = TINY.acc_depth // 4
        first = values["sram"]
        show = {"form": 2, "iter_in": entries, "acc_in": 1, "dst_in": 1, "clip_lo": -128, "clip_hi": 127}
        code = [
            (op, {**values, "set": 1}),
            (Op.REQUANT, {**show, "iter_out": 1, "acc_base": first, "wait": 1, "set": 2}),
            (Op.STORE, {"mem": Mem.OUT, "dram": REGION, "z": entries * TINY.out_bytes // GRANULE, "wait": 2}),
            (Op.FINISH, {}),
        ]
        assert_same_window(
            fresh(), Program.build(TINY, code, WindowPlan(window_bytes=4 * REGION, program_offset=3 * REGION)), data
        )


def test_a_tall_image_is_read_as_one_run() -> None:
    """Rows as long as they may be and one behind another: more beats than any scratchpad holds."""
    config, rows, row = load_config("ecp5"), 1024, ROW_BUFFER_BYTES
    gather = {"y": rows, "x": 1, "pitch": config.bus_bytes // config.inp_bytes, "run": 1, "row_bytes": row}
    code = [(Op.GATHER, {**gather, "y_stride": row}), (Op.FINISH, {})]
    device = rtl(config)
    device.load(Program.build(config, code, WindowPlan(window_bytes=rows * row + 4096, program_offset=rows * row)))
    assert device.launch().counters["READ_BYTES"] == rows * row


def fresh() -> RtlDevice:
    """A device whose scratchpads are zero, as those of a new functional simulator."""
    return RtlDevice(TINY)


def test_time_does_not_depend_on_the_way_the_model_is_clocked() -> None:
    for seed in (None, 3, 5):
        stats = []
        for settle in (False, True):
            device = RtlDevice(TINY, run=Simulation(stall_seed=seed, settle=settle))
            device.load(random_program(TINY, 7, 60))
            stats.append(dict(device.launch().counters))
        assert stats[0] == stats[1]


def test_time_does_not_depend_on_data() -> None:
    program = random_program(TINY, 11, 40)
    inputs = [s for s in program.sections if s.kind is SectionKind.INPUT]
    assert inputs
    seen: set[tuple[int, ...]] = set()
    for seed in range(3):
        rtl(TINY).load(program)
        for section in inputs:
            rtl(TINY).write(section.offset, np.random.default_rng(seed).integers(0, 256, section.size, np.uint8))
        seen.add(tuple(rtl(TINY).launch().counters.values()))
    assert len(seen) == 1


def test_launches_repeat_and_scratchpads_survive() -> None:
    device = fresh()
    load = Program.build(
        TINY, [(Op.LOAD, {"mem": Mem.ACC, "z": 4, "expand": 1}), (Op.FINISH, {})], WindowPlan(window_bytes=4096)
    )
    show = {"form": 2, "iter_in": 16, "acc_in": 1, "dst_in": 1, "clip_lo": -128, "clip_hi": 127, "set": 1}
    store = (Op.STORE, {"mem": Mem.OUT, "dram": 0, "z": 4, "wait": 1})
    read = Program.build(
        TINY, [(Op.REQUANT, show), store, (Op.FINISH, {})], WindowPlan(window_bytes=4096, program_offset=1024)
    )
    device.load(load)
    data = load.code.data
    assert data is not None
    first, second = device.launch(), device.launch()
    assert first.counters == second.counters
    device.load(read)
    device.launch()
    assert device.read(0, 64).tobytes() == data[:64]


@pytest.mark.parametrize("seed", [None, 2, 6])
def test_error_response_of_a_read_is_a_fault_of_its_load(seed: int | None) -> None:
    device = RtlDevice(TINY, run=Simulation(stall_seed=seed))
    program = copy_program()
    device.load(program)
    device.inject_error(4096 + 24)
    with pytest.raises(Fault) as told:
        device.launch()
    assert (told.value.code, told.value.index) == (FaultCode.AXI_READ, 0)
    device.inject_error(4096 + 4 * GRANULE)  # one past what is read
    device.launch()


@pytest.mark.parametrize("seed", [None, 2, 6])
def test_error_response_of_a_write_and_of_a_fetch_are_faults(seed: int | None) -> None:
    device = RtlDevice(TINY, run=Simulation(stall_seed=seed))
    device.load(copy_program())
    for offset, code, index in ((8192 + 8, FaultCode.AXI_WRITE, 2), (3 * 32 + 5, FaultCode.AXI_READ, 3)):
        device.inject_error(offset)
        with pytest.raises(Fault) as told:
            device.launch()
        assert (told.value.code, told.value.index) == (code, index)
        device.inject_error(None)
        assert device.launch().cycles is not None


def test_a_write_that_meets_a_load_in_a_bank_is_a_fault_of_the_load() -> None:
    """One entry is written a cycle later each time: it meets every beat of a LOAD, and none of its neighbours."""
    config = load_config("default")
    device, bank = rtl(config), config.acc_bank_depth
    uops = Section("uops", SectionKind.UOPS, 0, GRANULE, encode_uops(0, [0, 0], [0, 0], [0, 0]).tobytes())
    alu = {"alu_op": AluOp.ADD, "use_imm": 1, "uop_end": 1}
    met = 0
    for slots in range(64, 192):
        loads = [
            (Op.LOAD, {"mem": Mem.ACC, "sram": at * bank, "dram": 1024, "z": z}) for at, z in ((1, 64), (0, 4), (2, 4))
        ]
        code = [(Op.LOAD, {"mem": Mem.UOP, "z": 1, "set": 1}), *loads]
        code += [(Op.ALU, {**alu, "iter_in": slots, "dst_base": 3 * bank, "wait": 1}), (Op.ALU, alu), (Op.FINISH, {})]
        device.load(Program.build(config, code, WindowPlan([uops], window_bytes=16384, program_offset=4096)))
        try:
            device.launch()
        except Fault as fault:
            assert (fault.code, fault.index) == (FaultCode.ACC_BANK, 2)
            met += 1
    assert met == 4 * config.granule_bytes // config.bus_bytes


def test_launch_after_a_fault_gives_the_right_bytes() -> None:
    device = fresh()
    program = random_program(TINY, 3, 30)
    bad = Program.build(TINY, [(Op.LOAD, {"mem": Mem.INP, "dram": 1 << 20, "z": 1}), (Op.FINISH, {})])
    for _ in range(2):
        device.load(bad)
        with pytest.raises(Fault, match="instruction 0: DRAM_RANGE: reported by the core"):
            device.launch()
        assert_same_window(device, program)


def test_launch_that_hangs_is_a_watchdog_fault() -> None:
    program = Program.build(TINY, [(Op.GEMM, {"wait": 1, "uop_end": 1}), (Op.FINISH, {})])
    device = fresh()
    device.load(program)
    with pytest.raises(Fault) as told:
        device.launch()
    assert told.value.code is FaultCode.WATCHDOG
    short = RtlDevice(TINY, run=Simulation(watchdog=50))
    short.load(copy_program())
    with pytest.raises(Fault, match="WATCHDOG"):
        short.launch()


@pytest.mark.parametrize("memory", [MemoryModel(), MemoryModel(1000, 1, 1, 1), memory_model("ulx3s,rcd=20")])
def test_watchdog_never_ends_an_honest_launch(memory: MemoryModel) -> None:
    device = RtlDevice(TINY, memory)
    for program in (timed_program(TINY, 2), random_program(TINY, 1, 60), copy_program()):
        assert program.code.data is not None
        device.load(program)
        cycles = device.launch().cycles
        assert cycles is not None and cycles < cycle_bound(TINY, memory, program.code.data)


def test_wrong_configuration_and_broken_windows_are_refused() -> None:
    device = rtl(TINY)
    with pytest.raises(ProgramError, match="program must be made for configuration tiny"):
        device.load(copy_program(load_config("default")))
    huge = Program.build(TINY, [(Op.FINISH, {})], WindowPlan(window_bytes=0xC000_1000))
    with pytest.raises(ProgramError, match="window must be at most 3221225472 bytes for the RTL device"):
        device.load(huge)
    device.load(copy_program())
    with pytest.raises(ProgramError, match=r"window access must lie in \[0, 16384\)"):
        device.read(16380, 8)
    with pytest.raises(AccelError, match="a program must be loaded before it is launched"):
        RtlDevice(TINY).launch()


def test_core_of_another_configuration_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(TINY, name="other", queue_depth=16)
    built = rtl(TINY)
    monkeypatch.setattr("relay_hw.accel.sim.rtl_device.build_library", lambda *_, **__: _library_of(built))
    device = RtlDevice(other)
    with pytest.raises(ProgramError, match=f"core register CONFIG_HASH must be {other.hash32:#010x}"):
        device.load(copy_program(other))


def _library_of(device: RtlDevice) -> Path:
    return device.model.library


def test_waves_show_the_run(tmp_path: Path) -> None:
    with pytest.raises(AccelError, match=r"wave file must end in \.fst or \.vcd, not trace\.txt"):
        RtlDevice(TINY, run=Simulation(waves="trace.txt"))
    program = random_program(TINY, 5, 5)
    path = tmp_path / "run.fst"
    device = RtlDevice(TINY, run=Simulation(waves=path))
    device.load(program)
    traced = device.launch()
    device.close()
    rtl(TINY).load(program)
    assert traced.counters == rtl(TINY).launch().counters
    # FST begins with a header block of 329 bytes.
    assert path.read_bytes()[:9] == b"\x00" + (329).to_bytes(8, "big") and path.stat().st_size > 10_000
    with pytest.raises(AccelError, match=r"wave file .*none.run\.fst must be writable"):
        RtlDevice(TINY, run=Simulation(waves=tmp_path / "none" / "run.fst"))


def test_the_last_bytes_of_the_window_can_be_read_and_written() -> None:
    load = (Op.LOAD, {"mem": Mem.INP, "dram": 8192 - GRANULE, "z": 1})
    store = (Op.STORE, {"mem": Mem.OUT, "dram": 8192 - GRANULE, "z": 1})
    program = Program.build(TINY, [load, store, (Op.FINISH, {})], WindowPlan(window_bytes=8192, program_offset=0))
    rtl(TINY).load(program)
    counters = rtl(TINY).launch().counters
    assert counters["READ_BYTES"] == counters["WRITE_BYTES"] == GRANULE
