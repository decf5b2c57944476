"""The SDRAM model by itself: cycles worked out by hand, and what must hold for any traffic."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw.accel.isa.config import AccelConfig, load_config
from relay_hw.accel.isa.program import Program, WindowPlan
from relay_hw.accel.isa.spec import Op
from relay_hw.accel.sim.cycle import CycleDevice
from relay_hw.accel.sim.cycle.channels import NEVER
from relay_hw.accel.sim.cycle.sdram import Chip
from relay_hw.accel.sim.dram_timing import MemoryModel, Sdram

TINY = load_config("tiny")
# From the cycle in which a beat gets the chip to that on the bus: four columns, nine cycles of latency, a register.
TO_BUS = 14
Burst = tuple[int, int]


def model(**sizes: int) -> MemoryModel:
    return MemoryModel(9, 1, 1, 1, Sdram(**sizes))


# The ULX3S' chip at 80 MHz.
PLAIN = model()


def read(chip: Chip, bursts: list[Burst], late: int = 0) -> list[int]:
    """Cycles in which the beats of bursts (place, beats) had the chip; each is sampled `late` cycles later."""
    found: list[int] = []
    waiting = list(bursts)
    while True:
        if waiting and chip.reads.free != NEVER:
            chip.reads.take(chip.reads.free, *waiting.pop(0), False)
        while chip.reads.line:
            there, beats, _, apart = chip.reads.line.popleft()
            for beat in range(there, there + beats * apart, apart):
                found.append(beat - TO_BUS)
                chip.reads.finish(chip.reads.address(beat) + late)
        if chip.time == NEVER:
            assert not waiting
            return found
        chip.decide()


def steps(found: list[int]) -> list[int]:
    return [after - before for before, after in itertools.pairwise(found)]


def test_the_first_beat_opens_a_row() -> None:
    # Taken in 0, handshake in 1, seen in 2; the bank machine looks, opens and waits: 3.
    assert read(Chip(TINY, PLAIN), [(0, 1)]) == [5]


def test_a_row_streams_without_a_pause() -> None:
    assert set(steps(read(Chip(TINY, PLAIN), [(0, 64), (512, 64)]))) == {4}


@pytest.mark.parametrize(
    ("bursts", "last"),
    [
        # Another bank with its row closed, then open; a row behind another one of its bank, of another bank.
        ([(0, 1), (1024, 1)], 4 + 3 + 3),
        ([(0, 1), (1024, 1), (0, 1)], 4 + 3),
        ([(0, 1), (4096, 1)], 4 + 5),
        ([(0, 1), (1024, 1), (4096, 1)], 4 + 3 + 5),
        # In the middle of a burst.
        ([(1016, 2)], 4 + 3 + 3),
    ],
)
def test_steps_between_banks_and_rows(bursts: list[Burst], last: int) -> None:
    assert steps(read(Chip(TINY, PLAIN), bursts))[-1] == last


def test_a_refresh_closes_all_rows() -> None:
    found = steps(read(Chip(TINY, PLAIN), [(0, 64), (512, 64), (0, 64)]))
    assert set(found) == {4, 4 + 12 + 3} and found.count(19) == 1
    # It counts from the first handshake, in cycle 1: the last beat before it is decided in cycle 625 at the latest.
    assert found.index(19) == (626 - 5) // 4


def test_beats_that_nobody_samples_hold_the_chip() -> None:
    found = read(Chip(TINY, model(read_buffer=16, refresh_every=65535)), [(0, 12)], late=100)
    # Two in the registers before the bus and two in the buffer: the third leaves the buffer in the cycle behind the
    # first one's sampling, and behind that the fifth goes on.
    assert found[4] == found[0] + TO_BUS + 100 + 2
    assert min(steps(found)[3:]) > 90


def test_reads_and_writes_take_turns() -> None:
    chip = Chip(TINY, PLAIN)
    chip.reads.take(0, 0, 4, False)
    chip.writes.store(0, [64, 128], [4, 4])
    order: list[str] = []
    while chip.time != NEVER:
        if chip.reads.free != NEVER and len(order) < 8:
            chip.reads.take(chip.reads.free, 0, 4, False)
        chip.decide()
        if chip.reads.line:
            there, beats, _, apart = chip.reads.line.popleft()
            chip.reads.finish(there + (beats - 1) * apart, beats)
            order += ["r"] * beats
        else:
            order.append("w")
    assert "".join(order[:16]) == "rrrrwwwwrrrrwwww"
    assert len(chip.writes.ended) == 1


def test_a_program_by_hand() -> None:
    device = CycleDevice(TINY, PLAIN, data=False)
    device.load(Program.build(TINY, [(Op.FINISH, {})], WindowPlan(window_bytes=4096, program_offset=1024)))
    # The first beat of four is sampled in 5 + 14, the last one 12 cycles later; see TIMING.md for the five behind it.
    assert device.launch().cycles == 5 + 14 + 12 + 5
    assert device.launch().cycles == 36


sizes = st.fixed_dictionaries(
    {
        "column_bytes": st.sampled_from([1, 2, 4, 8]),
        "row_bytes": st.sampled_from([16, 64, 1024]),
        "banks": st.sampled_from([1, 2, 4]),
        "rp": st.integers(0, 4),
        "rcd": st.integers(0, 4),
        "bank_switch": st.integers(0, 4),
        "refresh": st.integers(0, 40),
        "refresh_every": st.integers(100, 700),
        "read_buffer": st.sampled_from([1, 8, 64, 128]),
    }
)
traffic = st.lists(st.tuples(st.integers(0, 1000).map(lambda n: 8 * n), st.integers(1, 20)), min_size=1, max_size=12)


@settings(deadline=None, max_examples=80)
@given(sizes=sizes, bursts=traffic, late=st.integers(0, 30))
def test_any_reads(sizes: dict[str, int], bursts: list[Burst], late: int) -> None:
    """Every beat has the chip to itself; columns bound the time from below, the worst of every beat from above."""
    memory = replace(model(**sizes), latency=TO_BUS - 1 - max(1, 8 // sizes["column_bytes"]))
    chip = Chip(TINY, memory)
    found = read(chip, bursts, late)
    assert memory.sdram is not None
    beat = memory.sdram.beat_cycles(TINY)
    assert len(found) == sum(beats for _, beats in bursts)
    assert all(step >= beat for step in steps(found))
    worst = beat + sizes["bank_switch"] + 1 + sizes["rcd"] + sizes["rp"] + TO_BUS + late + 4
    share = sizes["refresh_every"] / (sizes["refresh_every"] - sizes["refresh"])
    assert found[-1] <= 20 + (len(found) * worst + 10) * share + 2 * sizes["refresh"]


@settings(deadline=None, max_examples=40)
@given(bursts=traffic, buffer=st.sampled_from([1, 8, 128]), outstanding=st.sampled_from([1, 2, 16]))
def test_any_writes(bursts: list[Burst], buffer: int, outstanding: int) -> None:
    """Responses come in order, one a cycle, none before all its beats had the chip."""
    config: AccelConfig = replace(TINY, write_outstanding=outstanding)
    chip = Chip(config, model(write_buffer=buffer))
    # No refresh: it counts from the first read.
    for number, (place, beats) in enumerate(bursts):
        chip.writes.store(5 * number, [place], [beats])
    while chip.time != NEVER:
        chip.decide()
    ended = chip.writes.ended
    assert len(ended) == len(bursts) and all(step >= 1 for step in steps(ended))
    beats = 0
    for response, (_, count) in zip(ended, bursts, strict=True):
        beats += count
        assert response >= 4 * beats
    assert chip.writes.ready != NEVER
