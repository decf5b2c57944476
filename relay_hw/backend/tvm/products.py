"""Convolutions of any rank, layout, groups and stride, and matrix products, in TVM's tensor expressions (TE).

In: TE tensors, sizes, a tile. Out: a TE tensor; `PRODUCT` and `WINDOW` are blocks that `schedule` can tile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.backend.tvm.api import te, tirx
from relay_hw.backend.tvm.machine import Tile
from relay_hw.backend.tvm.scalars import narrow

PRODUCT = "product"  # lanes are output channels, each input element is used for all of them
WINDOW = "window"  # lanes are neighbouring columns, each weight is used for all of them
STAGE = "stage"
JOIN = "join"  # sums of products that were computed in chunks
FLOAT32_EXACT, FLOAT64_EXACT = 1 << 24, 1 << 53
MOST_CHUNKS = 32


@dataclass(frozen=True, slots=True)
class Sums:
    """Products are added up in `dtype`, in `chunks` parts of the input channels that are added up as integers."""

    dtype: str
    chunks: int = 1


@dataclass(frozen=True, slots=True)
class Convolution:
    """A convolution of data N C *S with weight O I *K, each under the axes given.

    `axes`: where N, C and the spatial axes lie in the data; `out_axes`: in the result. `insert`: distance of data
    elements, between which zeros are put first. `offset` is subtracted from the data before it is padded.
    `sums`: how the products are added up; `out`: the element type of the result.
    """

    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    insert: tuple[int, ...]
    groups: int
    axes: tuple[int, ...]
    out_axes: tuple[int, ...]
    sums: Sums
    out: str
    offset: int = 0

    @property
    def work(self) -> str:
        """The element type of data and weights where they are multiplied."""
        return self.sums.dtype


def exact_sums(depth: int, bound: Callable[[int], int]) -> Sums | None:
    """How to sum integer products exactly in floats; None if impossible.

    `bound(chunks)`: the largest absolute value of a partial sum where `depth` input channels are split in that many.
    """
    for chunks in range(1, MOST_CHUNKS + 1):
        if depth % chunks == 0 and bound(chunks) <= FLOAT32_EXACT:
            return Sums("float32", chunks)
    return Sums("float64") if bound(1) <= FLOAT64_EXACT else None


def magnitude(dtype: str) -> int:
    """The largest absolute value of an integer type."""
    info = np.iinfo(dtype)
    return max(int(info.max), -int(info.min))


def pack(weight: NDArray[Any], groups: int, lanes: int) -> NDArray[Any]:
    """O I *K -> (groups * blocks) I *K lanes; each group's channels are padded with zeros to whole blocks."""
    out, *rest = weight.shape
    blocks = -(-(out // groups) // lanes)
    padded = np.zeros((groups, blocks * lanes, *rest), weight.dtype)
    padded[:, : out // groups] = weight.reshape(groups, out // groups, *rest)
    return np.ascontiguousarray(np.moveaxis(padded.reshape(groups * blocks, lanes, *rest), 1, -1))


def pack_te(weight: Callable[..., Any], shape: Sequence[int], groups: int, lanes: int) -> Any:
    """`pack` at run time: `weight(o, i, *k)` gives an element, `shape` is O I *K."""
    out, *rest = shape
    each = out // groups
    blocks = -(-each // lanes)

    def element(block: Any, *index: Any) -> Any:
        inner, lane = index[:-1], index[-1]
        channel = tirx.floormod(block, blocks) * lanes + lane
        value = weight(tirx.floordiv(block, blocks) * each + channel, *inner)
        return value if each % lanes == 0 else tirx.if_then_else(channel < each, value, tirx.const(0, value.ty.dtype))

    return te.compute((groups * blocks, *rest, lanes), element, name=STAGE)


def sizes_out(c: Convolution, sizes: Sequence[int], kernel: Sequence[int]) -> tuple[int, ...]:
    """Spatial sizes of the result."""
    rows = zip(sizes, c.insert, c.before, c.after, kernel, c.dilation, c.strides, strict=True)
    return tuple(((s - 1) * i + b + a - (k - 1) * d) // t + 1 for s, i, b, a, k, d, t in rows)


def _staged(c: Convolution, data: Any, shape: Sequence[int], phases: int) -> Any:
    """Data N C *S padded to spatial `shape`, in `c.work`; the last axis split in (phase, position) for `phases` > 1."""
    plain = [int(data.shape[axis]) for axis in c.axes]

    def element(*index: Any) -> Any:
        spatial = list(index[2:])
        if phases > 1:
            spatial[-2:] = [spatial[-1] * phases + spatial[-2]]
        places, inside = [], []
        for at, before, insert, size in zip(spatial, c.before, c.insert, plain[2:], strict=True):
            place = at - before
            if insert > 1:
                inside.append(tirx.EQ(tirx.floormod(place, insert), 0))
                place = tirx.floordiv(place, insert)
            inside += [place >= 0, place < size]
            places.append(place)
        value = element_at(data, c.axes, [*index[:2], *places]).astype(c.work)
        if c.offset:
            value = value - tirx.const(c.offset, c.work)
        return tirx.if_then_else(tirx.all(*inside), value, tirx.const(0, c.work))

    lead = [*plain[:2], *shape[:-1]]
    last = [phases, -(-shape[-1] // phases)] if phases > 1 else [shape[-1]]
    return te.compute((*lead, *last), element, name=STAGE)


def element_at(tensor: Any, axes: Sequence[int], index: Sequence[Any]) -> Any:
    """Element of `tensor` whose axis `axes[k]` has `index[k]`."""
    placed = sorted(zip(axes, index, strict=True), key=lambda pair: pair[0])
    return tensor(*(at for _, at in placed))


def _covered(c: Convolution, sizes: Sequence[int], kernel: Sequence[int], out: Sequence[int]) -> list[int]:
    """Spatial sizes that windows at `out` places read."""
    rows = zip(out, c.strides, kernel, c.dilation, strict=True)
    read = [(o - 1) * t + (k - 1) * d + 1 for o, t, k, d in rows]
    return read


def convolution(data: Any, packed: Any, c: Convolution, channels: int, tile: Tile) -> Any:
    """`packed` from `pack`; result of `channels` channels. Columns are computed in whole tiles."""
    plain = [int(data.shape[axis]) for axis in c.axes]
    total, depth, *kernel = (int(d) for d in packed.shape[:-1])
    out = sizes_out(c, plain[2:], kernel)
    columns = -(-out[-1] // tile.pixels) * tile.pixels
    read = _covered(c, plain[2:], kernel, [*out[:-1], columns])
    direct = not (any(c.before) or c.offset or max(c.insert) > 1) and str(data.dtype) == c.work
    direct = direct and all(r <= s for r, s in zip(read, plain[2:], strict=True))
    axes = c.axes if direct else tuple(range(len(plain)))
    source = data if direct else _staged(c, data, read, 1)
    per_group = total // c.groups
    chunks = c.sums.chunks
    part = depth // chunks
    reduce = [te.reduce_axis((0, extent), f"r{k}") for k, extent in enumerate((part, *kernel))]

    def element(n: Any, block: Any, chunk: Any, *index: Any) -> Any:
        spatial, lane = index[:-1], index[-1]
        inner = chunk * part + reduce[0]
        channel = inner if c.groups == 1 else tirx.floordiv(block, per_group) * depth + inner
        places = [y * t + r * d for y, t, r, d in zip(spatial, c.strides, reduce[1:], c.dilation, strict=True)]
        value = element_at(source, axes, [n, channel, *places])
        return te.sum(value.astype(c.work) * packed(block, inner, *reduce[1:], lane).astype(c.work), axis=reduce)

    shape = (plain[0], total, chunks, *out[:-1], columns, tile.lanes)
    product = te.compute(shape, element, name=PRODUCT, attrs=_attrs(tile, 1))
    total_sum = _joined(product, 2, chunks)
    each = channels // c.groups

    def place(*index: Any) -> Any:
        n, o, *spatial = (index[axis] for axis in c.out_axes)
        inner = o if c.groups == 1 else tirx.floormod(o, each)
        block = tirx.floordiv(inner, tile.lanes)
        if c.groups > 1:
            block = tirx.floordiv(o, each) * per_group + block
        return narrowed(total_sum(n, block, *spatial, tirx.floormod(inner, tile.lanes)), c.out)

    return te.compute(_result_shape(c, [plain[0], channels, *out]), place, name="unpack")


def windows(data: Any, weight: Any, c: Convolution, weight_axes: Sequence[int], lanes: int) -> Any:
    """A convolution of many groups: `weight` has O, I and the kernel at `weight_axes`; columns in whole vectors."""
    plain = [int(data.shape[axis]) for axis in c.axes]
    channels, depth, *kernel = (int(weight.shape[axis]) for axis in weight_axes)
    out = sizes_out(c, plain[2:], kernel)
    columns = -(-out[-1] // lanes) * lanes
    phases = c.strides[-1]
    read = _covered(c, plain[2:], kernel, [*out[:-1], columns])
    source = _staged(c, data, read, phases)
    reduce = [te.reduce_axis((0, extent), f"r{k}") for k, extent in enumerate((depth, *kernel))]
    each = channels // c.groups

    def element(n: Any, o: Any, *spatial: Any) -> Any:
        channel = o if depth == 1 and each == 1 else tirx.floordiv(o, each) * depth + reduce[0]
        rows = zip(spatial[:-1], c.strides, reduce[1:], c.dilation, strict=False)
        places = [y * t + r * d for y, t, r, d in rows]
        step = reduce[-1] * c.dilation[-1]
        last = [tirx.floormod(step, phases), spatial[-1] + tirx.floordiv(step, phases)] if phases > 1 else None
        value = source(n, channel, *places, *(last or [spatial[-1] + step]))
        return te.sum(value * element_at(weight, weight_axes, [o, *reduce]).astype(c.work), axis=reduce)

    shape = (plain[0], channels, *out[:-1], columns)
    inner = te.compute(shape, element, name=WINDOW, attrs={"lanes": lanes, "own": int(each == depth == 1)})

    def place(*index: Any) -> Any:
        return narrowed(inner(*(index[axis] for axis in c.out_axes)), c.out)

    return te.compute(_result_shape(c, [plain[0], channels, *out]), place, name="unpack")


@dataclass(frozen=True, slots=True)
class Product:
    """A product of matrices: columns of its result, whether the left one is `transposed`, how products are added up,
    the element type of the result, and the tile of the loops."""

    channels: int
    transposed: bool
    sums: Sums
    out: str
    tile: Tile


def matmul(left: Any, packed: Any, given: Product) -> Any:
    """left *B M K (K M if transposed) times `packed` [*B] blocks K lanes; result *B M channels."""
    channels, transposed, sums = given.channels, given.transposed, given.sums
    out, tile = given.out, given.tile
    *batch, rows, depth = (int(d) for d in left.shape)
    if transposed:
        rows, depth = depth, rows
    padded = -(-rows // tile.pixels) * tile.pixels
    lead, work = len(packed.shape) - 3, sums.dtype
    blocks = int(packed.shape[lead])

    def read(*index: Any) -> Any:
        *b, m, k = index
        return left(*b, *((k, m) if transposed else (m, k)))

    source = read
    if padded != rows or str(left.dtype) != work:
        zero = tirx.const(0, work)
        source = te.compute(
            (*batch, padded, depth),
            lambda *i: tirx.if_then_else(i[-2] < rows, read(*i).astype(work), zero),
            name=STAGE,
        )
    part = depth // sums.chunks
    term = te.reduce_axis((0, part), "r0")

    def element(*index: Any) -> Any:
        *b, block, chunk, m, lane = index
        k = chunk * part + term
        right = packed(*b[len(b) - lead :], block, k, lane) if lead else packed(block, k, lane)
        return te.sum(source(*b, m, k) * right.astype(work), axis=[term])

    shape = (*batch, blocks, sums.chunks, padded, tile.lanes)
    product = te.compute(shape, element, name=PRODUCT, attrs=_attrs(tile, len(batch)))

    total = _joined(product, len(batch) + 1, sums.chunks)

    def place(*index: Any) -> Any:
        *b, m, n = index
        return narrowed(total(*b, tirx.floordiv(n, tile.lanes), m, tirx.floormod(n, tile.lanes)), out)

    return te.compute((*batch, rows, channels), place, name="unpack")


def pack_matrix(right: Any, transposed: bool, lanes: int) -> Any:
    """`right` *B K N (N K if `transposed`) -> *B blocks K lanes."""
    *batch, depth, channels = (int(d) for d in right.shape)
    if transposed:
        depth, channels = channels, depth
    blocks = -(-channels // lanes)

    def element(*index: Any) -> Any:
        *b, block, k, lane = index
        n = block * lanes + lane
        value = right(*b, *((n, k) if transposed else (k, n)))
        return value if channels % lanes == 0 else tirx.if_then_else(n < channels, value, tirx.const(0, right.dtype))

    return te.compute((*batch, blocks, depth, lanes), element, name=STAGE)


def _attrs(tile: Tile, lead: int) -> dict[str, int]:
    return {"pixels": tile.pixels, "vectors": tile.vectors, "lead": lead}


def _result_shape(c: Convolution, plain: Sequence[int]) -> tuple[int, ...]:
    shape = [0] * len(plain)
    for axis, size in zip(c.out_axes, plain, strict=True):
        shape[axis] = size
    return tuple(shape)


def _joined(product: Any, position: int, chunks: int) -> Callable[..., Any]:
    """Elements of `product` without its axis `position`, over which partial sums of integers are added up."""
    if chunks == 1:
        return lambda *index: product(*index[:position], 0, *index[position:])
    chunk = te.reduce_axis((0, chunks), "chunk")
    shape = [int(size) for size in product.shape]

    def element(*index: Any) -> Any:
        # At most 2**24 each: as many as there are fit.
        return te.sum(product(*index[:position], chunk, *index[position:]).astype("int32"), axis=[chunk])

    return te.compute((*shape[:position], *shape[position + 1 :]), element, name=JOIN)


def narrowed(value: Any, dtype: str) -> Any:
    """A sum in its result type: integers that came as floats wrap around."""
    found = str(value.ty.dtype)
    if found == dtype:
        return value
    if dtype.startswith("float"):
        return value.astype(dtype)
    # Sums are whole numbers below 2**53.
    whole = value.astype("int32" if found == "float32" else "int64") if found.startswith("float") else value
    return narrow(whole, dtype)
