"""Tests vta_sems against sixteen counters: priority, all or nothing, gives and takes in one cycle, overflow."""

from __future__ import annotations

import cocotb

from relay_hw.accel.isa.config import SEMAPHORE_MAX, SEMAPHORES
from relay_hw.accel.isa.spec import Unit
from relay_hw.accel.sim.bench.common import Dut, get, rng, settle, start, step

UNITS = len(Unit)
IDLE = dict.fromkeys(("want_i", "wait_i", "give_i", "set_i"), 0)


def joined(masks: list[int]) -> int:
    return sum(mask << (SEMAPHORES * unit) for unit, mask in enumerate(masks))


def mask_of(bits: list[int]) -> int:
    return sum(1 << bit for bit in bits)


@cocotb.test()
async def counts_like_sixteen_semaphores(dut: Dut) -> None:
    random, counts = rng(), [0] * SEMAPHORES
    await start(dut, **IDLE)
    granted_together = refused = 0
    for _ in range(800):
        few = lambda: mask_of(random.sample(range(4), random.randrange(3)))  # noqa: E731
        want, give = [random.random() < 0.6 for _ in range(UNITS)], [random.random() < 0.35 for _ in range(UNITS)]
        waits, sets = [few() for _ in range(UNITS)], [few() for _ in range(UNITS)]
        dut.want_i.value, dut.wait_i.value = mask_of([u for u in range(UNITS) if want[u]]), joined(waits)
        dut.give_i.value, dut.set_i.value = mask_of([u for u in range(UNITS) if give[u]]), joined(sets)
        await settle()
        used, expected = 0, 0
        for unit in range(UNITS):
            free = sum((counts[s] > 0) << s for s in range(SEMAPHORES)) & ~used
            if want[unit] and not waits[unit] & ~free:
                expected |= 1 << unit
                used |= waits[unit]
            elif want[unit]:
                refused += 1
        assert get(dut.grant_o) == expected, f"counts {counts}, want {want}, waits {waits}"
        granted_together += bin(expected).count("1") > 1
        assert not get(dut.overflow_o)
        for s in range(SEMAPHORES):
            counts[s] += sum(give[u] and sets[u] >> s & 1 for u in range(UNITS)) - (used >> s & 1)
        assert max(counts) < SEMAPHORE_MAX
        await step(dut)
    assert granted_together > 50 and refused > 50


@cocotb.test()
async def overflow_names_those_who_gave(dut: Dut) -> None:
    def give(givers: list[int]) -> None:
        dut.give_i.value, dut.set_i.value = mask_of(givers), joined([1 << 5, 1 << 5, 1 << 5, 1 << 6, 1 << 5])

    trials = [([0], 0), ([0, 1], 0), ([1, 2], 1), ([0, 2], 1), ([0, 1, 2], 2), ([3], 0), ([0, 1], 2)]
    trials += [([4], 0), ([0, 1, 2, 4], 3), ([0, 1, 2, 4], 4)]
    for givers, room in trials:
        await start(dut, **IDLE)
        for _ in range(SEMAPHORE_MAX - room):
            give([0])
            await step(dut)
            assert not get(dut.overflow_o)
        give(givers)
        await step(dut)
        give([])
        await settle()
        assert get(dut.soon_o) and not get(dut.overflow_o)
        await step(dut)
        expected = mask_of([unit for unit in givers if unit != 3]) if len(givers) > room and givers != [3] else 0
        assert get(dut.overflow_o) == expected, f"{givers} gave where there is room for {room}"
        assert not get(dut.soon_o)
        await step(dut)
        assert not get(dut.overflow_o)


@cocotb.test()
async def a_take_in_the_same_cycle_makes_room(dut: Dut) -> None:
    await start(dut, **IDLE)
    for _ in range(SEMAPHORE_MAX):
        dut.give_i.value, dut.set_i.value = 0b0001, joined([1 << 5, 0, 0, 0])
        await step(dut)
    dut.want_i.value, dut.wait_i.value = 0b0010, joined([0, 1 << 5, 0, 0])
    await settle()
    assert get(dut.grant_o) == 0b0010
    await step(dut)
    dut.want_i.value = dut.give_i.value = 0
    for _ in range(3):
        await step(dut)
        assert not get(dut.overflow_o)
