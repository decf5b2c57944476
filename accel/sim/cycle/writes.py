"""When OUTPUT writes INP, so that LOAD's steps can give way.

In: progressions of cycles. Out: the cycles between them.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

# A slot in the first stage of OUTPUT during cycle t is in the last one, where its vector is written, during t + DEPTH.
DEPTH = 8


@dataclass(slots=True)
class InpWrites:
    """Cycles in which OUTPUT writes INP: progressions, each behind the one before."""

    firsts: list[int] = field(default_factory=list[int])
    steps: list[int] = field(default_factory=list[int])
    lasts: list[int] = field(default_factory=list[int])

    def add(self, first: int, step: int, count: int) -> None:
        """`count` writes, the first in cycle `first`, one every `step` cycles."""
        self.firsts.append(first)
        self.steps.append(step)
        self.lasts.append(first + step * (count - 1))

    def take(self, cycle: int, count: int, last: int) -> tuple[int, int]:
        """Take `count` cycles without a write from `cycle` on, none behind `last`: how many, and the first not seen."""
        taken, at = 0, bisect_left(self.lasts, cycle)
        while taken < count and cycle <= last:
            if at == len(self.lasts) or cycle < self.firsts[at]:
                until = last + 1 if at == len(self.lasts) else min(self.firsts[at], last + 1)
                free = min(count - taken, until - cycle)
                taken, cycle = taken + free, cycle + free
                continue
            step, final = self.steps[at], self.lasts[at]
            if cycle > final:
                at += 1
            elif step == 1:
                cycle = min(final, last) + 1
            elif phase := (cycle - self.firsts[at]) % step:
                free = min(count - taken, step - phase, last + 1 - cycle)
                taken, cycle = taken + free, cycle + free
            else:
                periods = min((count - taken) // (step - 1), (min(final, last) - cycle) // step)
                taken += periods * (step - 1)
                cycle += periods * step if periods else 1
        return taken, cycle
