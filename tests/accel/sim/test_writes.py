"""Cycles beside OUTPUT's writes of INP, against counting them one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from relay_hw.accel.sim.cycle.writes import InpWrites

# Gap before a progression, its step and count.
PROGRESSIONS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4), st.integers(1, 6)), max_size=5)


@given(PROGRESSIONS, st.integers(0, 60), st.integers(1, 40), st.integers(-5, 90))
def test_steps_take_the_cycles_without_writes(
    progressions: list[tuple[int, int, int]], cycle: int, count: int, last: int
) -> None:
    writes, taken_by_output, at = InpWrites(), set[int](), 0
    for gap, step, number in progressions:
        first = at + gap
        writes.add(first, step, number)
        taken_by_output |= {first + step * k for k in range(number)}
        at = first + step * (number - 1)
    free = [c for c in range(cycle, last + 1) if c not in taken_by_output][:count]
    taken, seen = writes.take(cycle, count, last)
    assert taken == len(free)
    if taken == count:
        assert seen == free[-1] + 1
    else:
        assert seen == max(cycle, last + 1)
