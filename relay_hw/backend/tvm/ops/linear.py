"""Convolutions, transposed convolutions and matrix products in register tiles, exact in integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.backend.flat import FlatCall
from relay_hw.backend.tvm import products
from relay_hw.backend.tvm.api import relax_op as rx
from relay_hw.backend.tvm.api import te
from relay_hw.backend.tvm.machine import choose_tile
from relay_hw.backend.tvm.ops.base import FLOATS, Arg, Context, Lowering, constant, dtype_of, reshape, shape_of, tensor
from relay_hw.backend.tvm.products import Convolution, Sums
from relay_hw.op.base import permutation, split_padding, spread
from relay_hw.op.conv import SPATIAL

# Groups of fewer output channels than this have their lanes along a row of the image.
FEW_CHANNELS = 4


def find_sums(args: Sequence[Arg], depth: int, area: int, weight: NDArray[Any] | None, low: int = 0) -> Sums | None:
    """How to sum products over `depth` channels and `area` kernel positions; None if no way is exact.

    `weight`: O, I, ... where it is known; `low`: how far the data's zero point widens its range.
    """
    kinds = [dtype_of(arg) for arg in args]
    if any(kind in FLOATS for kind in kinds):
        return Sums("float64" if "float64" in kinds else "float32")
    if "bool" in kinds:
        return None
    most = products.magnitude(kinds[0]) + low
    if weight is None:
        return products.exact_sums(depth, lambda chunks: most * (depth // chunks) * area * products.magnitude(kinds[1]))
    sizes = np.abs(weight.astype(np.float64)).reshape(weight.shape[0], depth, -1)

    def bound(chunks: int) -> int:
        parts = sizes.reshape(weight.shape[0], chunks, -1).sum(axis=2)
        return most * int(parts.max(initial=0.0))

    return products.exact_sums(depth, bound)


def geometry(call: FlatCall, rank: int, transposed: bool, kernel: Sequence[int], sums: Sums) -> Convolution:
    """The convolution that a call asks for; a transposed one is one of data with zeros between."""
    a, name = call.attrs, call.op.name
    before, after = split_padding(name, a.padding, rank)
    ones = (1,) * rank
    strides, dilation = spread(a.strides, rank), spread(a.dilation, rank)
    insert = ones
    if transposed:
        extra = spread(a.output_padding, rank)
        reach = [(k - 1) * d for k, d in zip(kernel, dilation, strict=True)]
        before = tuple(r - b for r, b in zip(reach, before, strict=True))
        after = tuple(r - f + e for r, f, e in zip(reach, after, extra, strict=True))
        strides, insert = ones, strides
    plain = "NC" + SPATIAL[rank]
    axes = permutation(name, a.data_layout, plain)
    out_axes = permutation(name, a.out_layout or a.data_layout, plain)
    out = tensor(call.type).dtype
    return Convolution(strides, dilation, before, after, insert, a.groups, axes, out_axes, sums, out)


def weight_shape(shape: Sequence[int], axes: Sequence[int], groups: int, transposed: bool) -> tuple[int, ...]:
    """O, I of a group, *K of a weight whose O and I (I and O if `transposed`) and kernel lie at `axes`."""
    first, second, *kernel = (shape[axis] for axis in axes)
    return (second * groups, first // groups, *kernel) if transposed else (first, second, *kernel)


def plain_weight(weight: NDArray[Any], axes: Sequence[int], groups: int, transposed: bool) -> NDArray[Any]:
    """A weight as O, I of a group, *K; that of a transposed convolution turned around."""
    plain = weight.transpose(axes)
    if not transposed:
        return plain
    inputs, each, *kernel = plain.shape
    parts = plain.reshape(groups, inputs // groups, each, *kernel).swapaxes(1, 2)
    turned = parts.reshape(groups * each, inputs // groups, *kernel)
    return turned[(slice(None), slice(None), *(slice(None, None, -1) for _ in kernel))]


def _convolution(rank: int, transposed: bool) -> Lowering:
    def lower(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
        a, out = call.attrs, tensor(call.type)
        axes = permutation(call.op.name, a.kernel_layout, ("IO" if transposed else "OI") + SPATIAL[rank])
        shape = weight_shape(shape_of(args[1]), axes, a.groups, transposed)
        known = ctx.constant(call.args[1])
        weight = None if known is None else plain_weight(known, axes, a.groups, transposed)
        sums = find_sums(args, shape[1], prod(shape[2:]), weight)
        if sums is None:
            return None
        c = geometry(call, rank, transposed, shape[2:], sums)
        if transposed and weight is None:
            args, axes = _turned(ctx, args, axes, a.groups, shape), tuple(range(rank + 2))
        return on_cpu(ctx, c, args, Kernel(weight, axes, shape), out.static_shape)

    return lower


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """The weight of a convolution: its plain form where it is known; else the axes where it has O, I and the kernel.

    `shape`: of the plain form.
    """

    weight: NDArray[Any] | None
    axes: Sequence[int]
    shape: Sequence[int]

    @classmethod
    def known(cls, weight: NDArray[Any]) -> Kernel:
        """A weight in its plain form."""
        return cls(weight, range(weight.ndim), weight.shape)


def on_cpu(ctx: Context, c: Convolution, args: Sequence[Arg], kernel: Kernel, result: Sequence[int]) -> Arg:
    """A convolution whose result is `result` in its layout."""
    weight, axes, shape = kernel.weight, kernel.axes, kernel.shape
    columns = result[c.out_axes[-1]]
    each = shape[0] // c.groups
    if c.groups > 1 and each < FEW_CHANNELS and c.sums.chunks == 1:
        lanes = min(ctx.machine.lanes, 1 << max(0, columns - 1).bit_length())
        if weight is None:
            return ctx.te(lambda x, w: products.windows(x, w, c, axes, lanes), *args)
        return ctx.te(
            lambda x, w: products.windows(x, w, c, range(len(axes)), lanes), args[0], constant(contiguous(weight))
        )
    tile = choose_tile(columns, each, ctx.machine)
    if weight is not None:
        packed = constant(products.pack(weight, c.groups, tile.lanes))
        return ctx.te(lambda x, w: products.convolution(x, w, c, shape[0], tile), args[0], packed)

    def build(x: Any, w: Any) -> Any:
        plain = products.pack_te(lambda *i: products.element_at(w, axes, i), shape, c.groups, tile.lanes)
        return products.convolution(x, plain, c, shape[0], tile)

    return ctx.te(build, *args)


def contiguous(array: NDArray[Any]) -> NDArray[Any]:
    """The array in row-major order."""
    return np.ascontiguousarray(array)


def _turned(
    ctx: Context, args: Sequence[Arg], axes: Sequence[int], groups: int, shape: Sequence[int]
) -> tuple[Arg, Arg]:
    """The weight of a transposed convolution as O I *K, turned around, at run time."""
    each = shape[0] // groups

    def build(w: Any) -> Any:
        def element(o: Any, i: Any, *k: Any) -> Any:
            back = [size - 1 - at for size, at in zip(shape[2:], k, strict=True)]
            return products.element_at(w, axes, [o // each * shape[1] + i, o % each, *back])

        return te.compute(shape, element, name="turned")

    return args[0], ctx.emit(ctx.te(build, args[1]))


def _accumulates(args: Sequence[Arg], out: str) -> bool:
    """Float in float out, or int8 in int32 out: what Relax's own product computes as numpy does."""
    kinds = {dtype_of(arg) for arg in args}
    return (kinds == {out} and out in ("float32", "float64")) or (kinds <= {"int8", "uint8"} and out == "int32")


def _dense(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    return _product(ctx, call, args, False, True)


def _matmul(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    return _product(ctx, call, args, call.attrs.transpose_a, call.attrs.transpose_b)


def _product(ctx: Context, call: FlatCall, args: Sequence[Arg], swap_a: bool, swap_b: bool) -> Arg | None:
    out, left, right = tensor(call.type), args[0], args[1]
    depth = shape_of(right)[-1 if swap_b else -2]
    weight = ctx.constant(call.args[1]) if len(shape_of(right)) == 2 else None
    if weight is not None and not swap_b:
        weight = weight.T
    sums = find_sums(args, depth, 1, weight)
    if sums is None:
        return None
    if not ctx.machine.is_cpu:
        return _relax_product(ctx, args, swap_a, swap_b, out.dtype)
    if len(shape_of(left)) == 1:
        left = reshape(ctx, left, (1, depth))
    *lead, rows, channels = out.static_shape if len(out.static_shape) > 1 else (1, *out.static_shape)
    if lead and not swap_a and len(shape_of(right)) == 2:
        # One weight for all: the leading axes are rows.
        left, lead, rows = reshape(ctx, left, (prod(lead) * rows, depth)), [], prod(lead) * rows
    if len(lead) > 1 or any(size not in shape_of(left)[:-2] for size in lead):
        return None
    tile = choose_tile(rows, channels, ctx.machine)
    product = products.Product(channels, swap_a, sums, out.dtype, tile)
    if weight is not None:
        packed = constant(products.pack(contiguous(weight), 1, tile.lanes))
        value = ctx.te(lambda x, w: products.matmul(x, w, product), left, packed)
    else:
        value = ctx.te(
            lambda x, w: products.matmul(x, products.pack_matrix(w, swap_b, tile.lanes), product), left, right
        )
    return value if (*lead, rows, channels) == out.static_shape else reshape(ctx, ctx.emit(value), out.static_shape)


def _relax_product(ctx: Context, args: Sequence[Arg], swap_a: bool, swap_b: bool, out: str) -> Arg | None:
    if not _accumulates(args, out):
        return None
    pairs = zip(args, (swap_a, swap_b), strict=True)
    left, right = (ctx.builder.normalize(_swap_last(arg)) if flag else arg for arg, flag in pairs)
    return rx.matmul(left, right, out_dtype=out)


def _swap_last(expr: Any) -> Any:
    axes = list(range(len(shape_of(expr))))
    return rx.permute_dims(expr, axes[:-2] + [axes[-1], axes[-2]])


LOWERINGS: Mapping[str, Lowering] = MappingProxyType(
    {f"nn.conv{rank}d": _convolution(rank, False) for rank in SPATIAL}
    | {f"nn.conv{rank}d_transpose": _convolution(rank, True) for rank in SPATIAL}
    | {"nn.dense": _dense, "nn.matmul": _matmul, "nn.batch_matmul": _matmul}
)
