"""Says which tap of a convolution a wrong sum has otherwise: left out, twice, at another pixel, with other weights.

In: the convolution, the terms inside of its layer, an element of its result, numbers of sums that instructions made
instead. Out: `Tap`, or None where several things differ at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw.ir.expr import Call, Expr, Op
from relay_hw.tensorize.validate.convolutions import four, pair
from relay_hw.tensorize.validate.meaning import Value
from relay_hw.tensorize.validate.terms import INT8, PRIME, Numbers, Terms, product

Place = tuple[int, int]
# Channels whose products a sum may lack: all, or as many as some array multiplies at once.
_BLOCKS = (64, 32, 16, 8, 4)


@dataclass(frozen=True, slots=True)
class Tap:
    """What differs, as a part of a sentence, and the number of the sum that has it."""

    what: str
    number: int


@dataclass(frozen=True, slots=True)
class _Window:
    """What one result is the sum of: `pixels` [depth, height, width] of numbers, padding included, `weights`
    [depth, taps].

    `places`: the pixels under the taps. `inside`: where no padding is. `corner`: the first pixel that is none.
    """

    pixels: Numbers
    weights: Numbers
    taps: Sequence[Place]
    places: Sequence[Place]
    inside: Numbers
    corner: Place


@dataclass(frozen=True, slots=True)
class _Block:
    """Channels that are multiplied at once: `sums` [taps, blocks, height, width] of the block's weights and whatever
    pixels, `swapped` [taps, taps] of pixels under the one tap and weights of the other one. `of`: which they are."""

    number: int
    size: int
    sums: Numbers
    swapped: Numbers
    totals: Numbers
    of: str


def wrong_tap(call: Call, inside: Mapping[Expr, Value], element: tuple[int, ...], found: Numbers) -> Tap | None:
    """What differs in a sum among `found` from the one of `element`."""
    right, found = int(_terms(inside, call).numbers[element]), np.unique(found)
    window = _window(call, _terms(inside, call.args[0]), _terms(inside, call.args[1]).low, element)
    for block in _blocks(window):
        tap = next(_differences(window, block, right, found), None)
        if tap is not None:
            return tap
    return None


def _differences(window: _Window, block: _Block, right: int, found: Numbers) -> Iterator[Tap]:
    for at, (tap, place) in enumerate(zip(window.taps, window.places, strict=True)):
        own = int(block.sums[at, block.number][place])
        rest = (right - own) % PRIME
        for number, what in ((rest, "is missing"), ((right + own) % PRIME, "is there twice")):
            if own and number in found:
                yield Tap(f"tap {tap}{block.of} {what}", number)
        numbers = (rest + block.sums[at]) % PRIME
        for other, *there in np.argwhere(np.isin(numbers, found) & (block.sums[at] != own)).tolist():
            places = [_from_corner(window, one) for one in (there, place)]
            channels = "" if other == block.number else f" from channel {other * block.size} on"
            what = f"tap {tap}{block.of} has pixel {places[0]} of its input{channels}, not {places[1]}"
            yield Tap(what, int(numbers[other, there[0], there[1]]))
        numbers = (rest + block.swapped[at]) % PRIME
        for other in np.flatnonzero(np.isin(numbers, found) & (block.swapped[at] != own)).tolist():
            yield Tap(f"tap {tap}{block.of} has the weights of tap {window.taps[other]}", int(numbers[other]))
    yield from _other_padding(window, block, right, found)


def _other_padding(window: _Window, block: _Block, right: int, found: Numbers) -> Iterator[Tap]:
    """Another number under all taps that lie in padding, or under those of one row of the kernel."""
    outer = [at for at, place in enumerate(window.places) if not window.inside[place]]
    rows = [[at for at in outer if window.taps[at][0] == row] for row in sorted({window.taps[at][0] for at in outer})]
    more = np.arange(INT8[0] - INT8[1], INT8[1] - INT8[0] + 1)
    for part in (outer, *rows):
        numbers = (right + more * int(block.totals[part].sum())) % PRIME
        for at in np.flatnonzero(np.isin(numbers, found) & (numbers != right)).tolist():
            under = ", ".join(str(window.taps[tap]) for tap in part)
            size = f"{abs(int(more[at]))} too {'large' if more[at] > 0 else 'small'}"
            yield Tap(f"the padding under taps {under}{block.of} is {size}", int(numbers[at]))


def _window(call: Call, data: Terms, weights: Numbers, element: tuple[int, ...]) -> _Window:
    attrs, (_, output, row, column) = call.attrs, element
    padding, strides, dilation = four(attrs.padding), pair(attrs.strides), pair(attrs.dilation)
    around = ((padding[0], padding[2]), (padding[1], padding[3]))
    depth, group = weights.shape[1], output // (weights.shape[0] // int(attrs.groups))
    image = data[0, group * depth : (group + 1) * depth]
    taps = [(y, x) for y in range(weights.shape[2]) for x in range(weights.shape[3])]
    places = [(row * strides[0] + y * dilation[0], column * strides[1] + x * dilation[1]) for y, x in taps]
    inside = np.pad((image.low != image.high).any(axis=0), around)
    top, left = _pad_before(call.args[0])
    own = weights[output].astype(np.int64).reshape(depth, -1)
    pixels = np.pad(image.numbers, ((0, 0), *around))
    return _Window(pixels, own, taps, places, inside, (padding[0] + top, padding[1] + left))


def _blocks(window: _Window) -> Iterator[_Block]:
    """The whole depth first, then smaller and smaller parts of it."""
    depth, height, width = window.pixels.shape
    for size in (depth, *(size for size in _BLOCKS if size < depth)):
        count = -(-depth // size)
        more = count * size - depth
        pixels = np.pad(window.pixels, ((0, more), (0, 0), (0, 0))).reshape(count, size, -1)
        for number in range(count):
            own = np.pad(window.weights, ((0, more), (0, 0)))[number * size : (number + 1) * size]
            sums = product(pixels.transpose(0, 2, 1), own).transpose(2, 0, 1).reshape(-1, count, height, width)
            under = np.stack([pixels[number].reshape(size, height, width)[:, y, x] for y, x in window.places])
            of = "" if count == 1 else f" of input channels from {number * size} on"
            yield _Block(number, size, sums, product(under, own), own.sum(axis=0), of)


def _pad_before(data: Expr) -> Place:
    """Rows and columns that an operator in front puts before the image."""
    if not isinstance(data, Call) or not isinstance(data.op, Op) or data.op.name != "nn.pad":
        return (0, 0)
    _, _, (top, _), (left, _) = data.attrs.pad_width
    return (int(top), int(left))


def _from_corner(window: _Window, place: Sequence[int]) -> Place:
    return (place[0] - window.corner[0], place[1] - window.corner[1])


def _terms(inside: Mapping[Expr, Value], expr: Expr) -> Terms:
    value = inside[expr]
    assert isinstance(value, Terms)
    return value
