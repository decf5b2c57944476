"""Transposed convolutions of one to three spatial axes: the adjoints of the convolutions in conv.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from relay_hw.ir.expr import Call, Expr, FusionPattern, Op, TypeRelation
from relay_hw.ir.types import ANY, Dim, Type
from relay_hw.op.base import (
    ANCHOR,
    Array,
    Attrs,
    Ints,
    call,
    full_padding,
    out_type,
    pad_spatial,
    permutation,
    split_padding,
    spread,
)
from relay_hw.op.conv import ConvAttrs, Problem, conv_relation, convolve, kernel_sizes, laid_out, plain_args
from relay_hw.op.gradients.accumulate import by_expansion
from relay_hw.op.gradients.common import (
    inverse,
    known_type,
    moved,
    ops,
    reshaped,
    sizes,
)
from relay_hw.op.gradients.convolution import SPATIAL, ConvCall, back, first, to_weight
from relay_hw.op.gradients.windows import Geometry, convolved, spaced

__all__ = ["conv1d_transpose", "conv2d_transpose", "conv3d_transpose"]


@dataclass(frozen=True, slots=True)
class Conv2DTransposeAttrs(Attrs):
    channels: int | None = None
    kernel_size: tuple[int, ...] | None = None
    strides: tuple[int, ...] = (1, 1)
    output_padding: tuple[int, ...] = (0, 0)
    padding: tuple[int, ...] = (0, 0)
    dilation: tuple[int, ...] = (1, 1)
    groups: int = 1
    data_layout: str = "NCHW"
    kernel_layout: str = "IOHW"
    out_layout: str = ""
    out_dtype: str | None = None


@dataclass(frozen=True, slots=True)
class Conv1DTransposeAttrs(Conv2DTransposeAttrs):
    strides: tuple[int, ...] = (1,)
    output_padding: tuple[int, ...] = (0,)
    padding: tuple[int, ...] = (0,)
    dilation: tuple[int, ...] = (1,)
    data_layout: str = "NCW"
    kernel_layout: str = "IOW"


@dataclass(frozen=True, slots=True)
class Conv3DTransposeAttrs(Conv2DTransposeAttrs):
    strides: tuple[int, ...] = (1, 1, 1)
    output_padding: tuple[int, ...] = (0, 0, 0)
    padding: tuple[int, ...] = (0, 0, 0)
    dilation: tuple[int, ...] = (1, 1, 1)
    data_layout: str = "NCDHW"
    kernel_layout: str = "IODHW"


def _transposed_sizes(attrs: ConvAttrs, p: Problem) -> tuple[Dim, ...]:
    assert isinstance(attrs, Conv2DTransposeAttrs)
    extra = spread(attrs.output_padding, len(p.kernel))
    parts = zip(p.sizes, p.kernel, attrs.strides, p.before, p.after, attrs.dilation, extra, strict=True)
    return tuple(
        (size - 1) * stride - before - after + (kernel - 1) * dilation + 1 + more if isinstance(size, int) else ANY
        for size, kernel, stride, before, after, dilation, more in parts
    )


def transpose_relation(name: str, rank: int) -> TypeRelation:
    """The relation of a transposed convolution."""
    return conv_relation(name, rank, True, _transposed_sizes)


def transpose_sums(name: str, rank: int, attrs: Conv2DTransposeAttrs, values: Sequence[Array], dtype: str) -> Array:
    """The transposed convolution of data and weight, in the attributes' layouts."""
    x, w = plain_args(name, attrs, rank, True, values)
    return laid_out(name, attrs, rank, _transposed(name, attrs, x, w, dtype))


def _gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The data's adjoint is the corresponding convolution."""
    if any(known_type(arg) is None for arg in call.args):
        sizes(call, call.args[1])
        return _gradient_by_taps(call, adjoint)
    p = ConvCall.of(call, "IO")
    x, w = call.args
    g = moved(adjoint, p.out_order)
    convolution = getattr(ops().nn, f"conv{p.rank}d")
    to_x = convolution(g, moved(w, p.weight_order), **p.geometry)
    # An output padding of a stride or more gives the convolution windows without any input.
    more = any(extra >= stride for extra, stride in zip(p.attrs.output_padding, p.attrs.strides, strict=True))
    to_x = first(to_x, p.data_shape) if more else to_x
    to_w = to_weight(p, g, p.out_shape, moved(x, p.data_order), p.data_shape)
    return back(to_x, p.data_order, x, call), back(to_w, p.weight_order, w, call)


def _taps_expr(attrs: Conv2DTransposeAttrs, x: Expr, w: Expr) -> Expr:
    """The data, spaced out by the stride, convolved with the flipped weight; their sizes only run time knows."""
    op, rank, dtype = ops(), x.tensor_type.rank - 2, x.tensor_type.dtype
    letters, name, groups = SPATIAL[rank], f"nn.conv{rank}d_transpose", attrs.groups
    order = permutation(name, attrs.kernel_layout, "IO" + letters)
    inputs, outputs, *kernel = (w.tensor_type.static_shape[axis] for axis in order)
    weight = moved(w, order)
    for axis in range(2, 2 + rank):
        weight = op.reverse(weight, axis)
    weight = op.transpose(reshaped(weight, (groups, inputs // groups, outputs, prod(kernel))), (0, 2, 1, 3))
    strides, dilation = spread(attrs.strides, rank), spread(attrs.dilation, rank)
    rows = zip(kernel, dilation, *split_padding(name, attrs.padding, rank), strides,
               spread(attrs.output_padding, rank), strict=True)  # fmt: skip
    ends = [((k - 1) * d - b, (k - 1) * d - a + extra - (s - 1)) for k, d, b, a, s, extra in rows]
    before, after = (tuple(side) for side in zip(*ends, strict=True))
    data = spaced(moved(x, permutation(name, attrs.data_layout, "NC" + letters)), strides, dtype)
    found = convolved(data, weight, Geometry(tuple(kernel), (1,) * rank, dilation, before, after), groups, dtype)
    order = permutation(name, attrs.out_layout or attrs.data_layout, "NC" + letters)
    return op.cast(moved(found, inverse(order)), attrs.out_dtype or dtype)


_gradient_by_taps = by_expansion(_taps_expr)


def _conv_transpose(name: str, rank: int, attrs_type: type) -> Op:
    def reference(attrs: Conv2DTransposeAttrs, values: Sequence[Array], result: Type) -> Array:
        return transpose_sums(name, rank, attrs, values, out_type(result).dtype)

    return Op(
        name,
        2,
        transpose_relation(name, rank),
        reference,
        attrs_type=attrs_type,
        gradient=_gradient,
        pattern=FusionPattern.OUT_ELEMWISE_FUSABLE,
        traits=ANCHOR,
        doc="the adjoint of convolution: every data element spreads the weight",
    )


def _transposed(name: str, attrs: Conv2DTransposeAttrs, x: Array, w: Array, dtype: str) -> Array:
    """Convolve the data, spaced out by the stride, with the flipped weight."""
    rank, kernel = x.ndim - 2, w.shape[2:]
    before, after = split_padding(name, attrs.padding, rank)
    extra = spread(attrs.output_padding, rank)
    spaced = np.zeros(
        x.shape[:2] + tuple((d - 1) * s + 1 for d, s in zip(x.shape[2:], attrs.strides, strict=True)), x.dtype
    )
    spaced[(slice(None), slice(None), *(slice(None, None, s) for s in attrs.strides))] = x
    reach = [(k - 1) * d for k, d in zip(kernel, attrs.dilation, strict=True)]
    heads = [r - b for r, b in zip(reach, before, strict=True)]
    tails = [r - a + e for r, a, e in zip(reach, after, extra, strict=True)]
    spaced = _pad_or_crop(spaced, heads, tails)
    groups, inputs, outputs = attrs.groups, w.shape[0], w.shape[1]
    flipped = w[(slice(None), slice(None), *(slice(None, None, -1) for _ in kernel))]
    grouped = flipped.reshape(groups, inputs // groups, outputs, *kernel).swapaxes(1, 2)
    weight = grouped.reshape(groups * outputs, inputs // groups, *kernel)
    return convolve(spaced, weight, (1,) * rank, attrs.dilation, groups, dtype)


def _pad_or_crop(x: Array, heads: Sequence[int], tails: Sequence[int]) -> Array:
    cropped = x[
        (slice(None), slice(None))
        + tuple(slice(max(-h, 0), d - max(-t, 0)) for h, d, t in zip(heads, x.shape[2:], tails, strict=True))
    ]
    return pad_spatial(cropped, [max(h, 0) for h in heads], [max(t, 0) for t in tails])


CONV1D_TRANSPOSE = _conv_transpose("nn.conv1d_transpose", 1, Conv1DTransposeAttrs)

CONV2D_TRANSPOSE = _conv_transpose("nn.conv2d_transpose", 2, Conv2DTransposeAttrs)

CONV3D_TRANSPOSE = _conv_transpose("nn.conv3d_transpose", 3, Conv3DTransposeAttrs)


def _builder(op: Op, record: type, rank: int, layouts: tuple[str, str], doc: str) -> Callable[..., Call]:
    """Relay's builder of a transposed convolution: `layouts` are the default ones of data and kernel."""

    def build(
        data: Expr,
        weight: Expr,
        strides: Ints = 1,
        padding: Ints = 0,
        dilation: Ints = 1,
        groups: int = 1,
        channels: int | None = None,
        kernel_size: Ints | None = None,
        data_layout: str = layouts[0],
        kernel_layout: str = layouts[1],
        out_layout: str = "",
        output_padding: Ints = 0,
        out_dtype: str | None = None,
    ) -> Call:
        attrs = record(
            channels, kernel_sizes(kernel_size, rank), spread(strides, rank), spread(output_padding, rank),
            full_padding(padding, rank), spread(dilation, rank), groups, data_layout, kernel_layout, out_layout,
            out_dtype,
        )  # fmt: skip
        return call(op, (data, weight), attrs)

    build.__doc__ = doc
    build.__name__ = op.name.rsplit(".", 1)[-1]
    return build


conv1d_transpose = _builder(
    CONV1D_TRANSPOSE, Conv1DTransposeAttrs, 1, ("NCW", "IOW"), "Transposed convolution over one spatial axis."
)

conv2d_transpose = _builder(
    CONV2D_TRANSPOSE, Conv2DTransposeAttrs, 2, ("NCHW", "IOHW"),
    "Transposed convolution over two spatial axes; the weight is [in, out / groups, height, width].",
)  # fmt: skip

conv3d_transpose = _builder(
    CONV3D_TRANSPOSE, Conv3DTransposeAttrs, 3, ("NCDHW", "IODHW"), "Transposed convolution over three spatial axes."
)

OPS = (
    CONV1D_TRANSPOSE,
    CONV2D_TRANSPOSE,
    CONV3D_TRANSPOSE,
)
