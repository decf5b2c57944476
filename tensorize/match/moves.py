"""Matches operators that only move elements to copies of channel blocks: slices, joins, heads of attention, upsampling.

In: a composite of such operators. Out: `MoveKernel`. The operators themselves are asked where each element comes from,
so that any chain of them is one layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.errors import TensorizeError
from relay_hw.ir.expr import Call, Constant, Expr, Function, Op, Tuple
from relay_hw.tensorize.kernel import Image, Move, MoveKernel, SelectKernel, SwapKernel
from relay_hw.tensorize.layout import image_of, pixel_bytes
from relay_hw.tensorize.match.reading import check_products, need, var_type

Index = NDArray[np.int64]

Moved = MoveKernel | SwapKernel | SelectKernel

# Addresses of different inputs are so far apart that no run of blocks spans two.
_APART = 1 << 40
# Distances of rows and columns of one copy that are tried: upsampling by two repeats every other one.
_STEPS = (1, 2, 3, 4)
_MOST = 64


def read_moves(composite: Function, config: AccelConfig) -> tuple[Moved, tuple[int, ...]]:
    """The copies that the composite makes, and the shape of its result. Raises TensorizeError with the reason."""
    sources, target, places, shape = _read(composite, config)
    blocks = _blocks(places, config)
    if blocks is None:
        swapped = _swapped(places, sources, target, config)
        if swapped is not None:
            return swapped, shape
        picks = _picks(places, sources, config)
        if picks is not None:
            return SelectKernel(tuple(sources), target, picks), shape
        what = f"channels must move in whole blocks of {config.channel_align} that start at a multiple of it"
        raise TensorizeError(what, composite.span)
    moves = [move for first, part in _runs(blocks, config) for move in _moves(part, first, config)]
    need(len(moves) <= _MOST, f"elements must move in at most {_MOST} copies, not {len(moves)}", composite)
    return MoveKernel(tuple(sources), target, tuple(moves)), shape


def read_order(composite: Function, config: AccelConfig) -> tuple[SelectKernel | None, tuple[int, ...]]:
    """The order that the composite gives the channels of its only parameter, None where it moves pixels, too; and the
    shape of its result. Raises TensorizeError.
    """
    sources, target, places, shape = _read(composite, config)
    picks = _picks(places, sources, config) if target == sources[0] else None
    return None if picks is None else SelectKernel(tuple(sources), target, picks), shape


def _read(composite: Function, config: AccelConfig) -> tuple[list[Image], Image, Index, tuple[int, ...]]:
    """Sizes of operands and result; where each element [H, W, C] of the result comes from; its logical shape."""
    sources = [_image(var_type(var).static_shape, var) for var in composite.params]
    for var in composite.params:
        dtype = var_type(var).dtype
        need(dtype == "int8", f"activation must be int8, not {dtype}", var)
    addresses: dict[Expr, Index] = {
        var: _addresses(number, image, var_type(var).static_shape, config)
        for number, (var, image) in enumerate(zip(composite.params, sources, strict=True))
    }
    found = _evaluate(composite.body, addresses)
    target = _image(found.shape, composite)
    return sources, target, _as_pixels(found, target), found.shape


def _image(shape: Sequence[int], at: Expr) -> Image:
    need(len(shape) != 4 or shape[0] == 1, f"batch must be 1, not {shape[:1]}", at)
    return image_of(shape)


def _as_pixels(values: Index, image: Image) -> Index:
    """[H, W, C] of a tensor in its logical shape."""
    if values.ndim == 4:
        return values[0].transpose(1, 2, 0)
    return values.reshape(image.height, image.width, image.channels)


def _addresses(number: int, image: Image, shape: Sequence[int], config: AccelConfig) -> Index:
    """For each element of a source, in its logical shape, where its byte lies."""
    row, col, channel = np.indices((image.height, image.width, image.channels))
    places = number * _APART + (row * image.width + col) * pixel_bytes(image, config) + channel
    return places.transpose(2, 0, 1)[None] if len(shape) == 4 else places.reshape(tuple(shape))


def _evaluate(body: Expr, known: Mapping[Expr, Index]) -> Index:
    """The operators on addresses instead of values: what they move is where it came from."""
    memo: dict[Expr, Index | tuple[Index, ...]] = dict(known)

    def value(expr: Expr) -> Index | tuple[Index, ...]:
        if expr not in memo:
            match expr:
                case Tuple(fields=fields):
                    memo[expr] = tuple(_array(value(field)) for field in fields)
                case Call(op=Op() as op, args=args, attrs=attrs):
                    memo[expr] = np.asarray(op.reference(attrs, [value(arg) for arg in args], expr.type))
                case Constant():
                    raise TensorizeError("a constant must be no part of what is moved", expr.span)
                case _:
                    raise TensorizeError(f"composite must only move elements, not {type(expr).__name__}", expr.span)
        return memo[expr]

    return _array(value(body))


def _array(value: Index | tuple[Index, ...]) -> Index:
    assert isinstance(value, np.ndarray)
    return value


def _blocks(places: Index, config: AccelConfig) -> Index | None:
    """[H, W, blocks] addresses of the target's channel blocks; None where one comes in parts."""
    step = config.channel_align
    inside = np.arange(places.shape[2], dtype=np.int64) % step
    begins = places[:, :, ::step]
    whole = bool((places == np.repeat(begins, step, axis=2)[:, :, : places.shape[2]] + inside).all())
    return begins if whole and not (begins % _APART % step).any() else None


def _swapped(places: Index, sources: Sequence[Image], target: Image, config: AccelConfig) -> SwapKernel | None:
    """Matrices whose columns become rows; None where rows of the input are no runs of whole blocks."""
    blocks = _blocks(places.transpose(0, 2, 1), config)
    if blocks is None or len(sources) != 1:
        return None
    steps = blocks - blocks[:, :1, :1]
    if (steps != steps[0]).any() or not _is_even(steps[:1], config):
        return None
    check_products(config)
    row = int(steps[0, 1, 0]) if blocks.shape[1] > 1 else 0
    identity = Image(1, config.block_in, config.block_in)
    return SwapKernel(sources[0], identity, target, tuple(blocks[:, 0, 0].tolist()), row)


def _picks(places: Index, sources: Sequence[Image], config: AccelConfig) -> tuple[tuple[int, int], ...] | None:
    """For each channel the input and its channel, where every pixel keeps its place; else None."""
    first = places[0, 0]
    number = first // _APART
    pixels = np.array([pixel_bytes(image, config) for image in sources], np.int64)[number]
    height, width = places.shape[:2]
    if any((image.height, image.width) != (height, width) for image in sources) or (first % _APART >= pixels).any():
        return None
    pixel = np.arange(height * width, dtype=np.int64).reshape(height, width, 1)
    if not (places == first + pixel * pixels).all():
        return None
    return tuple(zip(number.tolist(), (first % _APART).tolist(), strict=True))


def _runs(blocks: Index, config: AccelConfig) -> Iterator[tuple[int, Index]]:
    """Channel blocks that follow each other in every pixel, with the number of the first."""
    follows = (np.diff(blocks, axis=2) == config.channel_align).all(axis=(0, 1))
    cuts = [0, *(np.flatnonzero(~follows) + 1).tolist(), blocks.shape[2]]
    for begin, end in pairwise(cuts):
        yield begin, blocks[:, :, begin:end]


def _moves(blocks: Index, block: int, config: AccelConfig) -> list[Move]:
    """Copies of boxes whose addresses step evenly, for the fewest phases of rows and columns that give such boxes."""
    best: list[Move] | None = None
    for down, right in sorted(product(_STEPS, _STEPS), key=lambda steps: (steps[0] * steps[1], steps)):
        if down > blocks.shape[0] or right > blocks.shape[1]:
            continue
        found: list[Move] = []
        for y, x in product(range(down), range(right)):
            for first, box in _boxes(blocks[y::down, x::right], (0, 0, 0), config, _MOST):
                place = (y + first[0] * down, x + first[1] * right)
                found.append(_move(place, (down, right), block + first[2], box))
                if len(found) > _MOST:
                    break
        if best is None or len(found) < len(best):
            best = found
    assert best is not None
    return best


def _boxes(
    blocks: Index, first: tuple[int, int, int], config: AccelConfig, most: int
) -> Iterator[tuple[tuple[int, int, int], Index]]:
    """Even boxes that cover `blocks`; at most about `most`, since more are refused."""
    stack = [(first, blocks)]
    count = 0
    while stack and count <= most:
        at, box = stack.pop()
        if _is_even(box, config):
            count += 1
            yield at, box
            continue
        axis, cut = max(((axis, _prefix(box, axis, config)) for axis in (2, 1, 0)), key=lambda item: item[1] > 0)
        cut = max(cut, 1)
        if box.shape[axis] == 1:
            axis = int(np.argmax(box.shape))
        head, tail = np.split(box, [cut], axis=axis)
        behind = tuple(place + (cut if a == axis else 0) for a, place in enumerate(at))
        stack.append(((behind[0], behind[1], behind[2]), tail))
        stack.append((at, head))


def _prefix(box: Index, axis: int, config: AccelConfig) -> int:
    """How many slices along `axis` are even together; 0 where not even one is."""
    count = 0
    while count < box.shape[axis] - 1 and _is_even(np.take(box, range(count + 1), axis=axis), config):
        count += 1
    return count


def _is_even(box: Index, config: AccelConfig) -> bool:
    """True where one LOAD can bring the box: blocks follow each other, rows and columns step evenly, and forwards.

    No block comes twice: results that stay on chip have one place each.
    """
    base = box[0, 0, 0]
    row = box[1, 0, 0] - base if box.shape[0] > 1 else 1
    col = box[0, 1, 0] - base if box.shape[1] > 1 else 1
    rows, cols, blocks = (np.arange(size, dtype=np.int64) for size in box.shape)
    steps = (rows * row)[:, None, None] + (cols * col)[:, None] + blocks * config.channel_align
    even = bool((box == base + steps).all())
    return even and min(row, col) > 0 and bool((box // _APART == base // _APART).all())


def _move(first: tuple[int, int], step: tuple[int, int], block: int, box: Index) -> Move:
    base = int(box[0, 0, 0])
    return Move(
        source=base // _APART,
        begin=base % _APART,
        row_stride=int(box[1, 0, 0]) - base if box.shape[0] > 1 else 0,
        col_stride=int(box[0, 1, 0]) - base if box.shape[1] > 1 else 0,
        size=(box.shape[0], box.shape[1], box.shape[2]),
        first=first,
        step=step,
        block=block,
    )
