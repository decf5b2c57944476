"""Semantics of GEMM's modes taps and max: four neighbouring lines of INP, channel by channel, into an accumulator.

Micro-ops take effect one after the other; since sums and maxima commute, only what overwrites keeps its place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.config import TAPS, AccelConfig
from relay_hw.accel.isa.errors import Fault, FaultCode
from relay_hw.accel.isa.loops import INDEX_MASK, Index, Values, check_parts, check_range, indices
from relay_hw.accel.isa.nibbles import unpack_nibbles
from relay_hw.accel.isa.spec import GemmMode, Mem, Nibble
from relay_hw.accel.isa.state import AccelState

Int32 = NDArray[np.int32]

# int32 sums of products of one piece stay under this many bytes.
_PIECE_BYTES = 1 << 24
_LOWEST = np.iinfo(np.int32).min


def taps_piece(state: AccelState, v: Values, uops: Index, index: int) -> None:
    """One piece of a GEMM in mode taps or max. Raises Fault for indices outside a scratchpad."""
    config = state.config
    where = indices(v, "acc_base", "acc_out", "acc_in", uops & INDEX_MASK)
    source = indices(v, "inp_base", "inp_out", "inp_in", (uops >> 16) & INDEX_MASK)
    taps = indices(v, "wgt_base", "wgt_out", "wgt_in", (uops >> 32) & INDEX_MASK)
    check_range(config.acc_depth, where, Mem.ACC, index)
    check_parts(config, source, index)
    is_max = v["mode"] == GemmMode.MAX
    highest = int((source // config.line_parts + _last_tap(config, taps, is_max, index)).max())
    if highest >= config.inp_lines:
        raise Fault(FaultCode.SRAM_RANGE, index, f"inp line {highest} is outside {config.inp_lines}")
    overwriting = ((uops >> 48) & 1).astype(np.bool_) & bool(v["overwrite"])
    first = np.broadcast_to(overwriting, where.shape).reshape(-1)
    where, source, taps = where.reshape(-1), source.reshape(-1), taps.reshape(-1)
    step = max(1, _PIECE_BYTES // (4 * config.block_out))
    for begin in range(0, where.size, step):
        part = slice(begin, begin + step)
        if is_max:
            values = _maxima(state, source[part], taps[part])
        else:
            values = _sums(state, source[part], taps[part], Nibble(v["nibble"]))
        _merge(state.acc, where[part], values, first[part], np.maximum if is_max else np.add)


def _last_tap(config: AccelConfig, taps: Index, is_max: bool, index: int) -> Index:
    """Lines that each micro-op reads beyond its first."""
    if not is_max:
        check_range(config.wgt_depth, taps // config.tap_groups, Mem.WGT, index)
        return np.full_like(taps, TAPS - 1)
    if taps.min() < 1 or taps.max() >= 1 << TAPS:
        wrong = int(taps[(taps < 1) | (taps >= 1 << TAPS)][0])
        raise Fault(FaultCode.SRAM_RANGE, index, f"mask of taps must be from 1 to {(1 << TAPS) - 1}, not {wrong}")
    return np.array([bits.bit_length() - 1 for bits in range(1 << TAPS)])[taps]


def _lines(state: AccelState, source: Index, tap: int) -> NDArray[np.int8]:
    """int8 [n, block_out]: the block of tap's line. Lines past the end (never used) repeat the last one."""
    config = state.config
    part = np.minimum(source + tap * config.line_parts, config.inp_parts - config.block_parts)
    return state.inp_blocks[part // config.block_parts]


def _sums(state: AccelState, source: Index, taps: Index, nibble: Nibble) -> Int32:
    config = state.config
    weights = state.wgt.reshape(config.wgt_depth, config.block_out, config.tap_groups, -1)
    stored = weights[taps // config.tap_groups, :, taps % config.tap_groups]
    group = (stored if config.wgt_bits == 8 else unpack_nibbles(stored.view(np.uint8), nibble)).astype(np.int32)
    total = _lines(state, source, 0) * group[:, :, 0]
    for tap in range(1, TAPS):
        total += _lines(state, source, tap) * group[:, :, tap]
    return total


def _maxima(state: AccelState, source: Index, mask: Index) -> Int32:
    best = np.full((source.size, state.config.block_out), -128, np.int8)
    for tap in range(TAPS):
        used = np.where((mask >> tap & 1)[:, None] != 0, _lines(state, source, tap), np.int8(-128))
        np.maximum(best, used, out=best)
    return best.astype(np.int32)


def _merge(acc: Int32, where: Index, values: Int32, first: NDArray[np.bool_], merge: np.ufunc) -> None:
    """Merge values into their entries; an entry's last overwriting value drops what came before it."""
    fresh = np.zeros(acc.shape[0], np.bool_)
    if first.any():
        last = np.full(acc.shape[0], -1, np.int64)
        np.maximum.at(last, where[first], np.flatnonzero(first))
        keep = np.arange(where.size) >= last[where]
        where, values = where[keep], values[keep]
        fresh = last >= 0
    order = np.argsort(where.astype(np.uint16), kind="stable")
    entries = where[order]
    starts = np.flatnonzero(np.diff(entries, prepend=-1))
    total: Int32 = values[order]
    if starts.size < entries.size:
        total = merge.reduceat(total, starts, axis=0, dtype=np.int32)
        entries = entries[starts]
    kept = ~fresh[entries]
    total[kept] = merge(total[kept], acc[entries[kept]])
    acc[entries] = total
