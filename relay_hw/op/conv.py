"""Convolutions of one to three spatial axes: any stride, padding, dilation, groups and layout.

Integers accumulate exactly and wrap around to the output type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any as AnyValue

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op, Solver, TypeRelation
from relay_hw.ir.types import ANY, Dim, TensorType, Type
from relay_hw.op.base import (
    ANCHOR,
    Array,
    Attrs,
    Ints,
    call,
    expect,
    full_padding,
    narrow,
    out_type,
    pad_spatial,
    permutation,
    show_shape,
    split_padding,
    spread,
    sum_dtype,
    taps,
    tensor,
    window_size,
)
from relay_hw.op.gradients.accumulate import by_expansion
from relay_hw.op.gradients.common import (
    inverse,
    known_type,
    moved,
    ops,
    reshaped,
    sizes,
)
from relay_hw.op.gradients.convolution import ConvCall, back, to_weight
from relay_hw.op.gradients.windows import Geometry, convolved

__all__ = ["conv1d", "conv2d", "conv3d"]


@dataclass(frozen=True, slots=True)
class Conv2DAttrs(Attrs):
    strides: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0)
    dilation: tuple[int, ...] = (1, 1)
    groups: int = 1
    channels: int | None = None
    kernel_size: tuple[int, ...] | None = None
    data_layout: str = "NCHW"
    kernel_layout: str = "OIHW"
    out_layout: str = ""
    out_dtype: str | None = None


@dataclass(frozen=True, slots=True)
class Conv1DAttrs(Conv2DAttrs):
    strides: tuple[int, ...] = (1,)
    padding: tuple[int, ...] = (0, 0)
    dilation: tuple[int, ...] = (1,)
    data_layout: str = "NCW"
    kernel_layout: str = "OIW"


@dataclass(frozen=True, slots=True)
class Conv3DAttrs(Conv2DAttrs):
    strides: tuple[int, ...] = (1, 1, 1)
    padding: tuple[int, ...] = (0, 0, 0)
    dilation: tuple[int, ...] = (1, 1, 1)
    data_layout: str = "NCDHW"
    kernel_layout: str = "OIDHW"


ConvAttrs = AnyValue  # the attributes of a convolution or of its transpose

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}

# Fewer windows than these make a narrow product.
_FEW = 64


@dataclass(frozen=True, slots=True)
class Problem:
    """Sizes of a convolution with data as NC + spatial and weight as OI (or IO) + spatial."""

    batch: Dim
    in_channels: Dim
    out_channels: Dim
    sizes: tuple[Dim, ...]
    kernel: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]


Sizes = Callable[[ConvAttrs, Problem], tuple[Dim, ...]]


def _check(name: str, attrs: ConvAttrs, rank: int) -> None:
    for what in ("strides", "dilation"):
        given = getattr(attrs, what)
        if len(given) != rank or min(given) < 1:
            raise TypeCheckError(f"{what} of {name} must be {rank} positive numbers, not {given}")
    if attrs.groups < 1:
        raise TypeCheckError(f"groups of {name} must be at least 1, not {attrs.groups}")


def _problem(
    name: str, attrs: ConvAttrs, rank: int, transposed: bool, types: Sequence[Type], solver: Solver
) -> Problem | None:
    data, weight = tensor(name, types, 0), tensor(name, types, 1)
    if data is None:
        return None
    _check(name, attrs, rank)
    if data.rank != rank + 2:
        raise TypeCheckError(f"the data of {name} must have {rank + 2} axes, not {show_shape(data.shape)}")
    plain = [data.shape[axis] for axis in permutation(name, attrs.data_layout, "NC" + SPATIAL[rank])]
    order = permutation(name, attrs.kernel_layout, ("IO" if transposed else "OI") + SPATIAL[rank])
    if weight is not None and weight.rank != rank + 2:
        raise TypeCheckError(f"the weight of {name} must have {rank + 2} axes, not {show_shape(weight.shape)}")
    known = None if weight is None else [weight.shape[axis] for axis in order]
    kernel = attrs.kernel_size or (None if known is None else known[2:])
    out_channels: Dim | None = attrs.channels
    if out_channels is None and known is not None:
        out_channels = _times(known[1], attrs.groups) if transposed else known[0]
    if kernel is None or out_channels is None:
        return None
    if len(kernel) != rank or not all(isinstance(size, int) and size > 0 for size in kernel):
        raise TypeCheckError(f"kernel_size of {name} must be {rank} positive numbers, not {tuple(kernel)}")
    sizes = tuple(int(size) for size in kernel)  # type: ignore[arg-type]
    channels = _per_group(name, attrs.groups, plain[1], out_channels, transposed, known)
    wanted = list(channels) + list(sizes)
    shape = [wanted[order.index(axis)] for axis in range(rank + 2)]
    expect(name, solver, "weight", types[1], TensorType(shape, data.dtype if weight is None else weight.dtype))
    before, after = split_padding(name, attrs.padding, rank)
    return Problem(plain[0], plain[1], out_channels, tuple(plain[2:]), sizes, before, after)


def _times(dim: Dim, factor: int) -> Dim:
    return dim * factor if isinstance(dim, int) else ANY


def _per_group(
    name: str, groups: int, inputs: Dim, outputs: Dim, transposed: bool, known: Sequence[Dim] | None
) -> tuple[Dim, Dim]:
    """The two channel axes of the weight: (O, I / groups), or (I, O / groups) if transposed."""
    for what, dim in (("input", inputs), ("output", outputs)):
        if isinstance(dim, int) and dim % groups:
            raise TypeCheckError(f"{what} channels of {name} must be a multiple of its {groups} groups, not {dim}")
    whole, split = (inputs, outputs) if transposed else (outputs, inputs)
    if isinstance(split, int):
        return whole, split // groups
    return whole, known[1] if known is not None else ANY


def conv_relation(name: str, rank: int, transposed: bool, sizes: Sizes) -> TypeRelation:
    """The relation of a convolution, or of its transpose; `sizes` gives the spatial result."""

    def relation(types: Sequence[Type], attrs: ConvAttrs, solver: Solver) -> Type | None:
        problem = _problem(name, attrs, rank, transposed, types, solver)
        if problem is None:
            return None
        spatial = sizes(attrs, problem)
        if any(isinstance(size, int) and size < 1 for size in spatial):
            raise TypeCheckError(
                f"the kernel {problem.kernel} of {name} must fit into the padded data, "
                f"not into {show_shape(problem.sizes)}"
            )
        layout = attrs.out_layout or attrs.data_layout
        inverse = permutation(name, "NC" + SPATIAL[rank], layout)
        plain = (problem.batch, problem.out_channels, *spatial)
        data = types[0]
        assert isinstance(data, TensorType)
        return TensorType([plain[axis] for axis in inverse], attrs.out_dtype or data.dtype)

    return relation


def _sizes(attrs: ConvAttrs, p: Problem) -> tuple[Dim, ...]:
    parts = zip(p.sizes, p.kernel, attrs.strides, p.before, p.after, attrs.dilation, strict=True)
    return tuple(window_size(*part) for part in parts)


def convolve(x: Array, w: Array, strides: Sequence[int], dilation: Sequence[int], groups: int, out_dtype: str) -> Array:
    """Convolution of padded data x[N, C, *S] with w[O, C / groups, *K]; result [N, O, *] in `out_dtype`."""
    kernel = w.shape[2:]
    parts = zip(x.shape[2:], kernel, strides, dilation, strict=True)
    out = tuple((size - (k - 1) * d - 1) // s + 1 for size, k, s, d in parts)
    n, c, o, depth, area = x.shape[0], x.shape[1], w.shape[0], prod(w.shape[1:]), prod(out)
    work = sum_dtype(x, w, depth, out_dtype)
    x, w = x.astype(work, copy=False), w.astype(work, copy=False)
    if groups == c and groups > 1:
        return narrow(_depthwise(x, w, strides, dilation, out), out_dtype)
    if prod(kernel) == 1:
        columns = next(taps(x, kernel, strides, dilation, out))[1].reshape(n, groups, depth, area)
    elif prod(kernel) > area:
        return narrow(_few_windows(x, w.reshape(groups, o // groups, depth), strides, dilation, out, kernel), out_dtype)
    else:
        gathered = np.empty((n, c, prod(kernel), *out), work)
        for number, view in taps(x, kernel, strides, dilation, out):
            gathered[:, :, number] = view
        columns = gathered.reshape(n, groups, depth, area)
    if groups == 1 and n > 1 and area < _FEW:
        # As gradients of weights are: one product of all samples together instead of a narrow one for each.
        together = np.tensordot(w.reshape(o, depth), columns[:, 0], (1, 1))
        return narrow(together.swapaxes(0, 1).reshape(n, o, *out), out_dtype)
    return narrow(np.matmul(w.reshape(groups, o // groups, depth), columns).reshape(n, o, *out), out_dtype)


def _few_windows(
    x: Array, rows: Array, strides: Sequence[int], dilation: Sequence[int], out: Sequence[int], kernel: Sequence[int]
) -> Array:
    """Convolution window by window, if there are fewer windows than kernel elements: weight gradients, whole maps.

    `rows` is the weight as [groups, channels of a group, products of a sum].
    """
    groups, many, depth = rows.shape
    found = np.empty((len(x), groups * many, *out), x.dtype)
    for position in np.ndindex(*out):
        spans = zip(position, kernel, strides, dilation, strict=True)
        window = x[(slice(None), slice(None), *(slice(p * s, p * s + (k - 1) * d + 1, d) for p, k, s, d in spans))]
        if groups == 1:
            found[(slice(None), slice(None), *position)] = window.reshape(len(x), depth) @ rows[0].T
        else:
            parts = np.matmul(rows, window.reshape(len(x), groups, depth, 1))
            found[(slice(None), slice(None), *position)] = parts.reshape(len(x), groups * many)
    return found


def _depthwise(x: Array, w: Array, strides: Sequence[int], dilation: Sequence[int], out: Sequence[int]) -> Array:
    n, c = x.shape[:2]
    many = w.shape[0] // c
    factors = w.reshape(c, many, -1, *(1,) * len(out))
    total = np.zeros((n, c, many, *out), x.dtype)
    part = np.empty_like(total)
    for number, view in taps(x, w.shape[2:], strides, dilation, out):
        total += np.multiply(view[:, :, None], factors[:, :, number], out=part)
    return total.reshape(n, c * many, *out)


def plain_args(
    name: str, attrs: ConvAttrs, rank: int, transposed: bool, values: Sequence[Array]
) -> tuple[Array, Array]:
    """Data as NC + spatial and weight as OI (or IO) + spatial."""
    x, w = np.asarray(values[0]), np.asarray(values[1])
    order = ("IO" if transposed else "OI") + SPATIAL[rank]
    data = x.transpose(permutation(name, attrs.data_layout, "NC" + SPATIAL[rank]))
    return data, w.transpose(permutation(name, attrs.kernel_layout, order))


def laid_out(name: str, attrs: ConvAttrs, rank: int, value: Array) -> Array:
    """Convert NC + spatial to the layout of the result."""
    return value.transpose(permutation(name, "NC" + SPATIAL[rank], attrs.out_layout or attrs.data_layout))


def _gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The data's adjoint is a transposed convolution with the weight."""
    if any(known_type(arg) is None for arg in call.args):
        sizes(call, call.args[1])
        return _gradient_by_taps(call, adjoint)
    p = ConvCall.of(call, "OI")
    x, w = call.args
    g = moved(adjoint, p.out_order)
    parts = zip(
        p.data_shape[2:], p.out_shape[2:], p.weight_shape[2:], p.attrs.strides, p.attrs.dilation, p.before, p.after,
        strict=True,
    )  # fmt: skip
    rest = tuple(n - ((o - 1) * s + (k - 1) * d + 1 - b - a) for n, o, k, s, d, b, a in parts)
    transpose = getattr(ops().nn, f"conv{p.rank}d_transpose")
    to_x = transpose(g, moved(w, p.weight_order), output_padding=rest, **p.geometry)
    to_w = to_weight(p, moved(x, p.data_order), p.data_shape, g, p.out_shape)
    return back(to_x, p.data_order, x, call), back(to_w, p.weight_order, w, call)


def _taps_expr(attrs: Conv2DAttrs, x: Expr, w: Expr) -> Expr:
    """A convolution of data whose sizes only run time knows."""
    rank, dtype = x.tensor_type.rank - 2, x.tensor_type.dtype
    letters, name = SPATIAL[rank], f"nn.conv{rank}d"
    order = permutation(name, attrs.kernel_layout, "OI" + letters)
    outputs, inputs, *kernel = (w.tensor_type.static_shape[axis] for axis in order)
    weight = reshaped(moved(w, order), (attrs.groups, outputs // attrs.groups, inputs, prod(kernel)))
    windows = (spread(attrs.strides, rank), spread(attrs.dilation, rank))
    geometry = Geometry(tuple(kernel), *windows, *split_padding(name, attrs.padding, rank))
    data = moved(x, permutation(name, attrs.data_layout, "NC" + letters))
    found = convolved(data, weight, geometry, attrs.groups, dtype)
    order = permutation(name, attrs.out_layout or attrs.data_layout, "NC" + letters)
    return ops().cast(moved(found, inverse(order)), attrs.out_dtype or dtype)


_gradient_by_taps = by_expansion(_taps_expr)


def _conv(name: str, rank: int, attrs_type: type) -> Op:
    def reference(attrs: Conv2DAttrs, values: Sequence[Array], result: Type) -> Array:
        x, w = plain_args(name, attrs, rank, False, values)
        before, after = split_padding(name, attrs.padding, rank)
        padded = pad_spatial(x, before, after)
        value = convolve(padded, w, attrs.strides, attrs.dilation, attrs.groups, out_type(result).dtype)
        return laid_out(name, attrs, rank, value)

    return Op(
        name,
        2,
        conv_relation(name, rank, False, _sizes),
        reference,
        attrs_type=attrs_type,
        gradient=_gradient,
        pattern=FusionPattern.OUT_ELEMWISE_FUSABLE,
        traits=ANCHOR,
        doc="sums of products of the weight with every window of the data",
    )


CONV1D = _conv("nn.conv1d", 1, Conv1DAttrs)

CONV2D = _conv("nn.conv2d", 2, Conv2DAttrs)

CONV3D = _conv("nn.conv3d", 3, Conv3DAttrs)


def kernel_sizes(kernel_size: Ints | None, rank: int) -> tuple[int, ...] | None:
    """A kernel size as builders store it."""
    return None if kernel_size is None else spread(kernel_size, rank)


def _builder(op: Op, record: type, rank: int, layouts: tuple[str, str], doc: str) -> Callable[..., Call]:
    """Relay's builder of a convolution: `layouts` are the default ones of data and kernel."""

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
        out_dtype: str | None = None,
    ) -> Call:
        attrs = record(
            spread(strides, rank), full_padding(padding, rank), spread(dilation, rank), groups, channels,
            kernel_sizes(kernel_size, rank), data_layout, kernel_layout, out_layout, out_dtype,
        )  # fmt: skip
        return call(op, (data, weight), attrs)

    build.__doc__ = doc
    build.__name__ = op.name.rsplit(".", 1)[-1]
    return build


conv1d = _builder(CONV1D, Conv1DAttrs, 1, ("NCW", "OIW"), "Convolution over one spatial axis.")

conv2d = _builder(
    CONV2D, Conv2DAttrs, 2, ("NCHW", "OIHW"),
    "Convolution over two spatial axes; padding is (top, left, bottom, right) or shorter.",
)  # fmt: skip

conv3d = _builder(CONV3D, Conv3DAttrs, 3, ("NCDHW", "OIDHW"), "Convolution over three spatial axes.")

OPS = (
    CONV1D,
    CONV2D,
    CONV3D,
)
