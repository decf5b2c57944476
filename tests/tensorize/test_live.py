"""Entries of a memory that are taken while steps are put in order."""

from __future__ import annotations

from relay_hw.accel.isa.spec import Mem
from relay_hw.tensorize.commands import Buffer, Step
from relay_hw.tensorize.schedule.live import Live


def _step(*buffers: tuple[str, int]) -> Step:
    return Step(0, "step", tuple(Buffer((name,), Mem.ACC, entries) for name, entries in buffers), ())


STEPS = [_step(("sum", 6)), _step(("sum", 6), ("next", 4)), _step(("large", 7)), _step(("next", 4))]


def test_a_buffer_lives_from_its_first_step_to_its_last() -> None:
    live = Live(STEPS, Mem.ACC, 10)
    live.place(0)
    assert live.fits(1) and not live.fits(2)
    live.place(1)
    # The sum is over, `next` is not.
    assert not live.fits(2) and live.fits(3)
    live.place(3)
    assert live.fits(2)


def test_other_memories_do_not_count() -> None:
    live = Live(STEPS, Mem.INP, 0)
    assert all(live.fits(number) for number in range(len(STEPS)))
