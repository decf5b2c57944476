"""What GEMM does to terms: sums of products, sums of taps, and maxima.

In: memories, fields of the instruction, its index. A destination's products are added as one matrix product, for all
destinations together that take the same weights. Raises Failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce

import numpy as np
from typing_extensions import assert_never

from relay_hw.accel.isa.config import TAPS
from relay_hw.accel.isa.spec import GemmMode, Mem, Nibble
from relay_hw.tensorize.validate.loops import Issues, alike, issues, remaining
from relay_hw.tensorize.validate.memories import Failure, Memories
from relay_hw.tensorize.validate.terms import (
    PRIME,
    Numbers,
    Terms,
    constants,
    magnitude,
    maximum,
    mix,
    plus,
    product,
    wide_product,
)

Values = Mapping[str, int]
# Products whose operands are gathered at once.
_AT_ONCE = 1 << 15


def gemm(state: Memories, v: Values, index: int) -> None:
    """acc[dst] += inp[src] . wgt[wgt] for each micro-op, or what `mode` says instead of the product."""
    found = issues(state, v, ("acc", "inp", "wgt"), index)
    state.entries(Mem.ACC, found.dst, index)
    mode = GemmMode(v["mode"])
    for group in alike(remaining(found)):
        match mode:
            case GemmMode.MATMUL | GemmMode.ENTRY:
                entries = 1 if mode is GemmMode.ENTRY else state.config.operand_entries
                _sums(state, group, entries, Nibble(v["nibble"]), index)
            case GemmMode.TAPS:
                _taps(state, group, Nibble(v["nibble"]), index)
            case GemmMode.MAX:
                _maxima(state, group, index)
            case _:
                assert_never(mode)


def _sums(state: Memories, group: Issues, entries: int, nibble: Nibble, index: int) -> None:
    state.entries(Mem.INP, group.src + (entries - 1), index)
    state.entries(Mem.WGT, group.wgt, index)
    for same, weights in _by_weights(group.wgt):
        for begin in range(0, same.size, max(1, _AT_ONCE // weights.size)):
            part = group[same[begin : begin + max(1, _AT_ONCE // weights.size)]]
            _accumulate(state, part, *_product(state, part.src, weights, entries, nibble))


def _by_weights(tiles: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
    """(destinations, the tiles that all of them take), of tiles [destinations, micro-ops]."""
    factors = mix(np.arange(1, tiles.shape[1] + 1, dtype=np.uint64))
    names = (tiles.astype(np.uint64) * factors).sum(axis=1, dtype=np.uint64)
    order = np.argsort(names, kind="stable")
    for same in np.split(order, np.flatnonzero(np.diff(names[order])) + 1):
        yield same, tiles[same[0]]


def _accumulate(state: Memories, group: Issues, terms: Terms, reach: Numbers) -> None:
    """Add `terms` to destinations, which are apart, or overwrite those whose first micro-op says so.

    `reach`: what the products that were added up to `terms` are in size, all together.
    """
    dst = group.dst[:, 0]
    kept = ~group.fresh[:, 0]
    if kept.any():
        before = state.acc[dst]
        old = Terms(*(np.where(kept[:, None], part, 0) for part in (before.numbers, before.low, before.high)))
        terms = plus(terms, old)
        reach = reach + np.where(kept[:, None], state.reach[dst], 0)
    state.write_acc(dst, terms, reach)


def _product(state: Memories, src: Numbers, tiles: Numbers, entries: int, nibble: Nibble) -> tuple[Terms, Numbers]:
    """[destinations, lanes] sums of products of entries [destinations, micro-ops] with the same tiles; their reach."""
    lanes = state.config.inp_lanes
    places = (src[:, :, None] * lanes + np.arange(entries * lanes)).reshape(src.shape[0], -1)
    left = state.bytes[Mem.INP][places]
    right = _tiles(state, tiles)
    if (right.low == right.high).all():
        weights = _weights(state, right.low, nibble)[:, :, : entries * lanes]
        columns = weights.transpose(0, 2, 1).reshape(-1, weights.shape[1])
        if (left.low == left.high).all():
            return _selected(left.low.astype(np.int64), constants(columns))
        return _constant_product(left, columns, entries * lanes)
    if state.config.wgt_bits != 8:
        raise Failure("activations must be no weights of fewer than 8 bits")
    columns = right.transpose(0, 2, 1).reshape(-1, right.shape[1])
    if (left.low == left.high).all():
        return _selected(left.low.astype(np.int64), columns)
    bound = 128 * 128 * places.shape[1]
    numbers = wide_product(left.numbers, columns.numbers)
    found = Terms(numbers, np.full(numbers.shape, -bound), np.full(numbers.shape, bound))
    return found, found.high


def _selected(left: Numbers, right: Terms) -> tuple[Terms, Numbers]:
    """Products of constants [n, k], such as an identity matrix, and activations that lie as weights [k, m]."""
    up, down = (part.astype(np.float64) for part in (np.maximum(left, 0), np.minimum(left, 0)))
    low, high = up @ right.low + down @ right.high, up @ right.high + down @ right.low
    found = Terms(product(right.numbers.T, left.T).T, low.astype(np.int64), high.astype(np.int64))
    return found, ((up - down) @ magnitude(right)).astype(np.int64)


def _constant_product(left: Terms, weights: Numbers, lanes: int) -> tuple[Terms, Numbers]:
    """Bounds are those of whole operands of `lanes` numbers, which is enough and takes a sixteenth of the time."""
    numbers = product(left.numbers, weights)
    low = left.low.reshape(left.shape[0], -1, lanes).min(axis=2).astype(np.float64)
    high = left.high.reshape(left.shape[0], -1, lanes).max(axis=2).astype(np.float64)
    tiles = weights.reshape(-1, lanes, weights.shape[1])
    up, down = (part.sum(axis=1).astype(np.float64) for part in (np.maximum(tiles, 0), np.minimum(tiles, 0)))
    found = Terms(numbers, (low @ up + high @ down).astype(np.int64), (high @ up + low @ down).astype(np.int64))
    return found, (np.maximum(np.abs(low), np.abs(high)) @ (up - down)).astype(np.int64)


def _tiles(state: Memories, tiles: Numbers) -> Terms:
    """[..., block_out, bytes] of entries of WGT."""
    config = state.config
    return state.bytes[Mem.WGT].reshape(config.wgt_depth, config.block_out, -1)[tiles]


def _weights(state: Memories, data: Numbers, nibble: Nibble) -> Numbers:
    """int64 weights [..., n] of the bytes that hold them."""
    if state.config.wgt_bits == 8:
        return data.astype(np.int64)
    word = data.astype(np.int64) & 0xFF
    both = np.stack([word & 15, word >> 4], axis=-1).reshape(*data.shape[:-1], -1)
    signed = both - ((both & 8) << 1)
    match nibble:
        case Nibble.WHOLE:
            return signed
        case Nibble.LOW:
            return both
        case Nibble.HIGH:
            return signed * 16
        case _:
            assert_never(nibble)


def _lines(state: Memories, src: Numbers, tap: int, index: int) -> Terms:
    """[..., block_out] bytes of the line `tap` behind the one of each part."""
    config = state.config
    if (src % config.block_parts).any():
        raise Failure(f"instruction {index} must read parts of inp at multiples of {config.block_parts}")
    begin = src * config.part_bytes + tap * config.line_bytes
    inp = state.bytes[Mem.INP]
    return inp[state.inside(begin[..., None] + np.arange(config.block_out), inp.shape[0], "byte of inp", index)]


def _taps(state: Memories, group: Issues, nibble: Nibble, index: int) -> None:
    """Four lines times four weights of each channel."""
    groups = state.config.tap_groups
    state.entries(Mem.WGT, group.wgt // groups, index)
    right = _tiles(state, group.wgt // groups)
    if (right.low != right.high).any():
        raise Failure(f"instruction {index} must take weights of taps that are constants of the program")
    weights = _weights(state, right.low, nibble)
    of_group = weights.reshape(*weights.shape[:-1], groups, TAPS)
    chosen = np.take_along_axis(of_group, (group.wgt % groups)[..., None, None, None], axis=-2)[..., 0, :]
    parts = [_scaled(_lines(state, group.src, tap, index), chosen[..., tap]) for tap in range(TAPS)]
    reach = np.add.reduce([magnitude(part).sum(axis=1) for part in parts])
    total = reduce(plus, parts)
    numbers = total.numbers.sum(axis=1) % PRIME
    _accumulate(state, group, Terms(numbers, total.low.sum(axis=1), total.high.sum(axis=1)), reach)


def _scaled(left: Terms, weights: Numbers) -> Terms:
    low, high = left.low * weights, left.high * weights
    return Terms(left.numbers * weights % PRIME, np.minimum(low, high), np.maximum(low, high))


def _maxima(state: Memories, group: Issues, index: int) -> None:
    """The largest of those of four lines that the mask names, and of what was there."""
    mask = group.wgt
    if mask.min() < 1 or mask.max() >= 1 << TAPS:
        raise Failure(f"instruction {index} must have masks of taps from 1 to {(1 << TAPS) - 1}")
    # A line that no mask names stands for the first one that is named: repeated members do not count.
    first = np.array([(bits & -bits).bit_length() - 1 for bits in range(1 << TAPS)])[mask]
    parts: list[Terms] = []
    for tap in range(TAPS):
        used = (mask >> tap & 1) != 0
        if used.any():
            shift = np.where(used, tap, first) * state.config.line_parts
            parts.append(_lines(state, group.src + shift, 0, index))
    members = _stacked([part[:, at] for part in parts for at in range(mask.shape[1])])
    write_maxima(state, group.dst[:, 0], members, group.fresh[:, 0])


def write_maxima(state: Memories, dst: Numbers, members: Terms, fresh: Numbers) -> None:
    """Make accumulators, which are apart, maxima of `members` [n, destinations, lanes] and of what they hold."""
    for entry in dst[~fresh].tolist():
        state.maxima.setdefault(entry, state.acc[entry][None])
    older = max((state.maxima[entry].shape[0] for entry in dst[~fresh].tolist()), default=0)
    if older:
        # Where there are fewer older members than elsewhere, a member stands for the missing ones.
        fill = members[:1].numbers.astype(np.int64), members[:1].low.astype(np.int64), members[:1].high.astype(np.int64)
        before = Terms(*(np.repeat(part, older, axis=0) for part in fill))
        for at, (entry, new) in enumerate(zip(dst.tolist(), fresh.tolist(), strict=True)):
            if not new:
                found = state.maxima[entry]
                before.put((slice(0, found.shape[0]), at), found)
        members = _stacked([*_unstacked(members), *_unstacked(before)])
    state.write_acc(dst, maximum(members))
    for at, entry in enumerate(dst.tolist()):
        state.maxima[entry] = members[:, at]


def _stacked(parts: list[Terms]) -> Terms:
    return Terms(
        np.stack([part.numbers for part in parts]),
        np.stack([part.low for part in parts]),
        np.stack([part.high for part in parts]),
    )


def _unstacked(terms: Terms) -> list[Terms]:
    return [terms[at] for at in range(terms.shape[0])]
