"""The memories of the symbolic machine: the DRAM window and the scratchpads, as terms.

In: a program and its configuration. Out: `Memories` before the first launch: sections with data hold constants, and
everything else is unknown, so that a result that depends on it is no result of the network's inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.program import Program
from relay_hw.accel.isa.spec import Mem
from relay_hw.accel.isa.state import depth, scratch_bytes
from relay_hw.errors import TensorizeError
from relay_hw.tensorize.validate.terms import INT32, PRIME, Numbers, Terms, key, magnitude, unknown

# Scratchpads of bytes; accumulators are sums.
_BYTES = tuple(mem for mem in Mem if mem is not Mem.ACC)


class Failure(TensorizeError):
    """An instruction that does what no program may do."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """What one instruction of the output stage does: sums and their reach, with bias, and the results."""

    sums: Terms
    totals: Terms
    reach: int
    results: Terms


Watch = Callable[[int, Vectors], None]


def ignore(index: int, vectors: Vectors) -> None:
    """Watch nothing."""


@dataclass(slots=True)
class Memories:
    """DRAM and scratchpads of bytes [bytes], accumulators [entries, lanes]. A byte is a constant where its bounds meet.

    `maxima`: for accumulators that hold a maximum, its members [members, lanes]. `reach`: for each accumulator what no
    partial sum of it exceeds in size, whatever the order of its products. `watch` is told what the output stage does.
    """

    config: AccelConfig
    dram: Terms
    bytes: dict[Mem, Terms]
    acc: Terms
    reach: Numbers
    maxima: dict[int, Terms] = field(default_factory=dict[int, Terms])
    watch: Watch = ignore

    @classmethod
    def of(cls, program: Program, config: AccelConfig) -> Memories:
        """Before anything ran."""
        dram = _garbage("dram", program.window_bytes)
        for section in program.sections:
            if section.data is not None:
                values = np.frombuffer(section.data, np.int8)
                dram.low[section.offset : section.end] = values
                dram.high[section.offset : section.end] = values
        scratch = {mem: _garbage(mem.name, scratch_bytes(config, mem)) for mem in _BYTES}
        acc = unknown(key("acc"), (config.acc_depth, config.block_out), INT32)
        return cls(config, dram, scratch, acc, magnitude(acc))

    def fetch(self, places: Numbers, index: int) -> Terms:
        """Bytes of the DRAM window."""
        self.inside(places, self.dram.shape[0], "byte of the window", index)
        return known(self.dram[places])

    def constants(self, mem: Mem, begin: int, end: int, index: int) -> Numbers:
        """int8 [end - begin] bytes of a scratchpad, which must be constants of the program."""
        part = self.bytes[mem][begin:end]
        if (part.low != part.high).any():
            raise Failure(f"instruction {index} must read {mem.name.lower()} where it holds constants of the program")
        return np.ascontiguousarray(part.low)

    def entries(self, mem: Mem, entries: Numbers, index: int) -> Numbers:
        """The same entries, after a check that the scratchpad has them."""
        return self.inside(entries, depth(self.config, mem), f"entry of {mem.name.lower()}", index)

    def inside(self, places: Numbers, size: int, what: str, index: int) -> Numbers:
        """The same places. Raises Failure where one lies outside of `size`."""
        if places.min() < 0 or places.max() >= size:
            wrong = int(places.max() if places.max() >= size else places.min())
            raise Failure(f"instruction {index} must use a {what} below {size}, not {wrong}")
        return places

    def write_acc(self, entries: Numbers, terms: Terms, reach: Numbers | None = None) -> None:
        """Write accumulators; what maxima they held is gone. `reach`: of sums; by default that of the terms."""
        self.acc.put(entries, terms)
        self.reach[entries] = magnitude(terms) if reach is None else reach
        if self.maxima:
            for entry in np.unique(entries).tolist():
                self.maxima.pop(entry, None)

    def write_lanes(self, begin: int, terms: Terms, index: int) -> None:
        """Write consecutive lanes of accumulators, the last entry perhaps in part."""
        lanes = begin + np.arange(terms.shape[0])
        self.inside(lanes, self.reach.size, "lane of acc", index)
        self.acc.reshape(-1).put(lanes, terms)
        self.reach.reshape(-1)[lanes] = magnitude(terms)
        for entry in np.unique(lanes // self.config.block_out).tolist() if self.maxima else ():
            self.maxima.pop(entry, None)


def known(part: Terms) -> Terms:
    """Bytes of DRAM with the numbers of constants filled in: sections are not touched before they are read."""
    numbers = np.where(part.low == part.high, part.low.astype(np.int32) % np.int32(PRIME), part.numbers)
    return Terms(numbers, part.low, part.high)


def _garbage(name: str, size: int) -> Terms:
    """Bytes that nobody wrote yet."""
    numbers = unknown(key("garbage", name), (size,)).numbers.astype(np.int32)
    return Terms(numbers, np.full(size, -128, np.int8), np.full(size, 127, np.int8))


def constant_bytes(value: int, shape: Sequence[int]) -> Terms:
    """Bytes that are all `value`."""
    return Terms(
        np.full(shape, value % PRIME, np.int32), np.full(shape, value, np.int8), np.full(shape, value, np.int8)
    )
