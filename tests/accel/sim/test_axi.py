"""What AXI leaves to a memory, and what a broken one does: programs end, or end with the fault that ISA.md names.

The suite of all modes takes minutes: `make test-axi`. A sample runs with the others.
"""

from __future__ import annotations

import functools
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from relay_hw.accel.isa.config import INSTRUCTION_BYTES, load_config
from relay_hw.accel.isa.errors import ConfigError, Fault, FaultCode
from relay_hw.accel.isa.program import Program
from relay_hw.accel.isa.randprog import random_program
from relay_hw.accel.isa.spec import Mem, Op
from relay_hw.accel.sim.cycle import CycleDevice
from relay_hw.accel.sim.dram_timing import MemoryModel, WriteOrder, memory_model
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.accel.sim.registers import ProtocolError
from relay_hw.accel.sim.rtl_device import RtlDevice, Simulation, Sources
from relay_hw.accel.sim.rtl_model import Answer, Channel
from relay_hw.accel.sim.verilator import RTL_DIR
from tests.accel.sim.beats import beats_of
from tests.accel.sim.timed_programs import timed_program

TINY = load_config("tiny")
# A memory that is full most of the time, so that addresses wait.
BUSY = MemoryModel(latency=20, read_outstanding=2, write_outstanding=1)
PROGRAMS, SAMPLE = 500, 4
# STATUS of a launch that the watchdog stopped and whose bursts have not ended; of one whose bursts have.
STUCK = FaultCode.WATCHDOG << 8 | 0b101
STOPPED = FaultCode.WATCHDOG << 8 | 0b100


@functools.lru_cache(maxsize=32)
def rtl(memory: MemoryModel, stall_seed: int | None = None) -> RtlDevice:
    return RtlDevice(TINY, memory, Simulation(stall_seed=stall_seed))


@functools.lru_cache(maxsize=PROGRAMS)
def expected(seed: int) -> tuple[Program, np.ndarray]:
    """The program of a seed, and the window that it leaves."""
    program, device = random_program(TINY, seed, 5 + seed % 60), FunctionalDevice(TINY)
    device.load(program)
    device.launch()
    return program, device.read(0, program.window_bytes)


def wrong_bytes(device: RtlDevice, seed: int) -> Iterator[str]:
    """Launch the program of a seed; what is wrong in the window behind it."""
    program, window = expected(seed)
    device.load(program)
    device.launch()
    wrong = np.flatnonzero(device.read(0, program.window_bytes) != window)
    if wrong.size:
        yield f"seed {seed}: byte {wrong[0]}"


# memories that keep the rules


def in_order(order: WriteOrder, seed: int) -> Iterator[str]:
    """Bytes of a random program, cycles and counters of it and of one that races."""
    memory = replace(BUSY, write_order=order)
    device, model = rtl(memory), CycleDevice(TINY, memory, data=False)
    yield from wrong_bytes(device, seed)
    for program in (expected(seed)[0], timed_program(TINY, 4 * seed + 1)):
        device.load(program)
        model.load(program)
        found, wanted = model.launch().counters, device.launch().counters
        yield from (f"seed {seed}: {key} {found[key]}, not {n}" for key, n in wanted.items() if found[key] != n)


def any_order(seed: int, stall_seed: int | None = None) -> RtlDevice:
    """A device on a memory whose order differs from seed to seed."""
    return rtl(replace(BUSY, write_order=WriteOrder(seed % len(WriteOrder))), stall_seed)


def stalled(seed: int) -> Iterator[str]:
    """Every channel waits at random."""
    yield from wrong_bytes(any_order(seed, 1 + seed // len(WriteOrder) % 4), seed)


# memories that answer with an error, or not at all


def answered(answer: Answer, seed: int) -> Iterator[str]:
    """A beat of some transfer, or of the program, is answered badly: a fault of an instruction that has it."""
    rng, (program, _), device = random.Random(seed), expected(seed), any_order(seed)
    touched = {index: beats_of(TINY, op, v) for index, (op, v) in enumerate(program.instructions)}
    index = rng.choice([index for index, beats in touched.items() if beats])
    fetched = rng.random() < 0.2
    offset = program.code.offset + INSTRUCTION_BYTES * index if fetched else rng.choice(sorted(touched[index]))
    device.load(program)
    device.inject_error(offset + rng.randrange(TINY.bus_bytes), answer)
    try:
        device.launch()
        yield f"seed {seed}: {answer.name} at byte {offset} was not caught"
    except Fault as fault:
        is_store = program.instructions[fault.index][0] is Op.STORE
        right = FaultCode.AXI_WRITE if is_store and not fetched else FaultCode.AXI_READ
        if fault.code is not right or (fault.index != index if fetched else offset not in touched[fault.index]):
            yield f"seed {seed}: {answer.name} at byte {offset} is {fault.code.name} of {fault.index}"
    device.inject_error(None)
    yield from wrong_bytes(device, seed)


def silent(seed: int) -> Iterator[str]:
    """Some channels die in mid-run: a watchdog's fault that stays until they live again, or until the chip's reset."""
    rng, (program, _), device = random.Random(seed), expected(seed), any_order(seed)
    device.load(program)
    cycles = device.launch().cycles
    assert cycles is not None
    device.load(program)
    core, model = device.core, device.model
    core.launch(program.code, cycles + 100)
    model.advance(rng.randrange(cycles))
    model.silence(Channel(rng.randrange(1, 1 << len(Channel))))
    if not model.run(cycles + 500).done:
        yield f"seed {seed}: the watchdog did not stop it"
    status, index = core.get("STATUS"), core.get("FAULT_INDEX")
    # What was under way may have needed none of those channels.
    if status not in (STUCK, STOPPED, 0b010):
        yield f"seed {seed}: STATUS {status:#x}"
    if status & 0b100 and index >= program.count:
        yield f"seed {seed}: FAULT_INDEX {index}"
    core.put("CONTROL", 2)
    if core.get("STATUS") != (STUCK if status == STUCK else 0):
        yield f"seed {seed}: STATUS {core.get('STATUS'):#x} after CONTROL's reset"
    if rng.random() < 0.5:
        model.reset()
    model.silence(Channel(0))
    model.advance(1000)
    if core.get("STATUS"):
        yield f"seed {seed}: STATUS {core.get('STATUS'):#x} when all channels live"
    yield from wrong_bytes(device, seed)


MODES: dict[str, Callable[[int], Iterator[str]]] = {
    **{order.name: functools.partial(in_order, order) for order in WriteOrder},
    "STALLS": stalled,
    **{answer.name: functools.partial(answered, answer) for answer in Answer},
    "SILENT": silent,
}


@pytest.mark.parametrize("mode", MODES)
def test_sample(mode: str) -> None:
    assert [text for seed in range(SAMPLE) for text in MODES[mode](seed)] == []


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_all(mode: str) -> None:
    different = [text for seed in range(PROGRAMS) for text in MODES[mode](seed)]
    print(f"\n{mode}: {PROGRAMS} random programs (seeds 0 to {PROGRAMS - 1})", end=" ")
    assert different == []


@pytest.mark.parametrize("order", WriteOrder)
def test_cycles_of_a_store_in_each_order(order: WriteOrder) -> None:
    """By hand, as on TIMING.md's page: the first beat is on the bus three edges behind the acceptance."""
    beats, latency = 6, 100
    device = rtl(MemoryModel(write_order=order))
    device.load(Program.build(TINY, [(Op.STORE, {"mem": Mem.OUT, "z": 3}), (Op.FINISH, {})]))
    # of the first beat, behind the acceptance; of the response, behind the last beat
    first, response = {
        WriteOrder.ADDRESS_FIRST: (3, latency),
        WriteOrder.DATA_SHOWN: (4, latency),
        WriteOrder.DATA_FIRST: (3, 1 + latency),
        WriteOrder.ANY: (3, latency),
    }[order]
    assert device.launch().cycles == 110 + first + beats + response + 2


def test_an_sdram_has_its_own_order() -> None:
    with pytest.raises(ConfigError, match="write_order must not be chosen with SDRAM, not DATA_FIRST"):
        replace(memory_model("ulx3s"), write_order=WriteOrder.DATA_FIRST)


@pytest.mark.parametrize("channel", Channel)
def test_a_channel_that_never_answers_holds_the_core_until_the_chips_reset(channel: Channel) -> None:
    """Code and index of the watchdog can be read; CONTROL's reset and launches wait, as ISA.md says."""
    device, (program, window) = RtlDevice(TINY, BUSY), expected(1)
    device.load(program)
    core, model = device.core, device.model
    model.silence(channel)
    core.launch(program.code, 5000)
    assert model.run(10_000).done
    assert core.get("STATUS") == STUCK and core.get("FAULT_INDEX") < program.count
    for control in (2, 1):
        core.put("CONTROL", control)
        assert core.get("STATUS") == STUCK
    model.reset()
    assert core.get("STATUS") == 0 and core.get("CYCLES") == 0
    model.silence(Channel(0))
    device.load(program)
    assert device.launch().counters == _counters_of_a_new_device(1, None)
    assert (device.read(0, program.window_bytes) == window).all()


def test_a_driver_says_that_the_bus_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relay_hw.accel.sim.registers._IDLE_POLLS", 10)
    device = RtlDevice(TINY, BUSY, Simulation(watchdog=5000))
    device.load(expected(1)[0])
    device.model.silence(Channel.B)
    with pytest.raises(ProtocolError, match=f"not STATUS {STUCK:#x}: the bus never ended its bursts"):
        device.launch()


@functools.lru_cache(maxsize=8)
def _counters_of_a_new_device(seed: int, stall_seed: int | None) -> dict[str, int]:
    device = RtlDevice(TINY, BUSY, Simulation(stall_seed=stall_seed))
    device.load(expected(seed)[0])
    return dict(device.launch().counters)


@pytest.mark.parametrize("stall_seed", [None, 3])
def test_a_reset_in_mid_run_leaves_no_state(stall_seed: int | None) -> None:
    """Neither in the core nor in the memory: counters are those of a new device, stalls at random too."""
    device, program = RtlDevice(TINY, BUSY, Simulation(stall_seed=stall_seed)), expected(3)[0]
    wanted = _counters_of_a_new_device(3, stall_seed)
    for cycles in [0, 1, wanted["CYCLES"] + 500, *range(50, wanted["CYCLES"], wanted["CYCLES"] // 20)]:
        device.load(program)
        device.core.launch(program.code, 0)
        device.model.advance(cycles)
        device.model.reset()
        device.load(program)
        assert device.launch().counters == wanted, f"after a reset at {cycles}"


@pytest.mark.long
@pytest.mark.parametrize("channel", ["aw", "ar"])
def test_a_core_with_another_id_is_caught(channel: str, tmp_path: Path) -> None:
    rtl_dir = tmp_path / "rtl"
    shutil.copytree(RTL_DIR, rtl_dir)
    top = rtl_dir / "vta_top.v"
    right = f"assign m_axi_{channel}id    = 1'b0;"
    assert right in top.read_text()
    top.write_text(top.read_text().replace(right, f"assign m_axi_{channel}id    = 1'b1;"))
    device = RtlDevice(TINY, model=Sources(rtl_dir))
    device.load(expected(1)[0])
    with pytest.raises(ProtocolError, match=f"{channel.upper()}: id must be 0, not 1"):
        device.launch()
