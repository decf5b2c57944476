"""The micro-ops of GEMM and ALU, in order: which entries each one uses, and how results of one entry are joined.

In: fields of an instruction and the micro-op memory. Out: `Issues`, flat arrays with an element for each micro-op of
each trip of the two loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from relay_hw.accel.isa.spec import Mem
from relay_hw.tensorize.validate.memories import Failure, Memories
from relay_hw.tensorize.validate.terms import Numbers

Values = Mapping[str, int]
_INDICES = 1 << 16
_UOP_BYTES = 8


@dataclass(frozen=True, slots=True)
class Issues:
    """Indices of micro-ops as they run: destination and sources. `fresh` ones do not read the destination."""

    dst: Numbers
    src: Numbers
    wgt: Numbers
    fresh: Numbers

    def __getitem__(self, where: Numbers) -> Issues:
        return Issues(self.dst[where], self.src[where], self.wgt[where], self.fresh[where])


def looped(v: Values, names: tuple[str, str, str], uop: Numbers) -> Numbers:
    """[iter_out, iter_in, micro-ops] indices; `names`: fields of the base and of both steps ("" for no step)."""
    base, outer, inner = (v[name] if name else 0 for name in names)
    trips = np.arange(v["iter_out"])[:, None, None] * outer + np.arange(v["iter_in"])[None, :, None] * inner
    return (base + trips + uop) % _INDICES


def issues(state: Memories, v: Values, operands: tuple[str, str, str], index: int) -> Issues:
    """The micro-ops of an instruction; `operands`: what its fields call destination and sources."""
    begin, end = v["uop_begin"], v["uop_end"]
    if not begin < end <= state.config.uop_depth:
        raise Failure(f"instruction {index} must use micro-ops below {state.config.uop_depth}, not {begin} to {end}")
    data = state.constants(Mem.UOP, begin * _UOP_BYTES, end * _UOP_BYTES, index)
    halves = data.view("<u2").reshape(-1, 4).astype(np.int64)
    found = [
        looped(v, (f"{name}_base", f"{name}_out", f"{name}_in"), halves[:, at]) if name else np.zeros(1, np.int64)
        for at, name in enumerate(operands)
    ]
    fresh = (halves[:, 3] & 1).astype(np.bool_) & bool(v.get("overwrite"))
    shape = found[0].shape
    dst, src, wgt = (np.broadcast_to(indices, shape).reshape(-1) for indices in found)
    return Issues(dst, src, wgt, np.broadcast_to(fresh, shape).reshape(-1))


def remaining(found: Issues) -> Issues:
    """Without the micro-ops whose results a later one overwrites, sorted by destination, in order for each."""
    order = np.argsort(found.dst.astype(np.uint16), kind="stable")
    found = found[order]
    if not found.fresh.any():
        return found
    position = np.arange(order.size)
    starts, group = _starts(found.dst)
    last = np.maximum.reduceat(np.where(found.fresh, position, 0), starts)
    return found[position >= last[group]]


def alike(found: Issues) -> Iterator[Issues]:
    """[destinations, micro-ops] of destinations that have as many; in: `remaining`."""
    starts, _ = _starts(found.dst)
    counts = np.diff(np.append(starts, found.dst.size))
    for count in np.unique(counts).tolist():
        yield found[starts[counts == count][:, None] + np.arange(count)]


def _starts(sorted_entries: Numbers) -> tuple[Numbers, Numbers]:
    """Where each run of equal numbers begins, and the number of the run of each element."""
    begins = np.diff(sorted_entries, prepend=-1) != 0
    return np.flatnonzero(begins), np.cumsum(begins) - 1
