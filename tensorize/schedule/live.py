"""Counts the entries of one memory that live buffers take while steps are put in order.

In: steps, a memory and its depth. Out: whether a step's new buffers have room.
"""

from __future__ import annotations

from collections.abc import Sequence

from relay_hw.accel.isa.spec import Mem
from relay_hw.tensorize.commands import Key, Step


class Live:
    """Entries that are free behind the steps that are placed: a buffer lives from its first step to its last one."""

    def __init__(self, steps: Sequence[Step], mem: Mem, depth: int) -> None:
        self._buffers = [{b.key: b.entries for b in step.buffers if b.mem is mem} for step in steps]
        self._uses: dict[Key, int] = {}
        for own in self._buffers:
            for key in own:
                self._uses[key] = self._uses.get(key, 0) + 1
        self._left = dict(self._uses)
        self._free = depth

    def fits(self, number: int) -> bool:
        """True where the buffers that the step is the first to use have room."""
        return self._new(number) <= self._free

    def _new(self, number: int) -> int:
        return sum(size for key, size in self._buffers[number].items() if self._left[key] == self._uses[key])

    def place(self, number: int) -> None:
        """The step comes next."""
        self._free -= self._new(number)
        for key, size in self._buffers[number].items():
            self._left[key] -= 1
            if not self._left[key]:
                self._free += size
