"""Convolutions of one to three spatial axes and their transposes: any stride, padding, dilation, groups and layout.

Integers accumulate exactly and wrap around to the output type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op, Solver
from relay_hw.ir.types import ANY, Dim, TensorType, Type
from relay_hw.op.base import (
    Array,
    Attrs,
    Ints,
    call,
    expect,
    full_padding,
    ints,
    make_op,
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


AnyConv = Conv2DAttrs | Conv2DTransposeAttrs
SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


@dataclass(frozen=True, slots=True)
class _Problem:
    """A convolution's sizes with data as NC + spatial and weight as OI (or IO) + spatial."""

    batch: Dim
    in_channels: Dim
    out_channels: Dim
    sizes: tuple[Dim, ...]
    kernel: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]


def _check(name: str, attrs: AnyConv, rank: int) -> None:
    for what in ("strides", "dilation"):
        given = getattr(attrs, what)
        if len(given) != rank or min(given) < 1:
            raise TypeCheckError(f"{what} of {name} must be {rank} positive numbers, not {given}")
    if attrs.groups < 1:
        raise TypeCheckError(f"groups of {name} must be at least 1, not {attrs.groups}")


def _problem(
    name: str, attrs: AnyConv, rank: int, transposed: bool, types: Sequence[Type], solver: Solver
) -> _Problem | None:
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
    return _Problem(plain[0], plain[1], out_channels, tuple(plain[2:]), sizes, before, after)


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


def _relation(name: str, rank: int, transposed: bool):
    def relation(types: Sequence[Type], attrs: AnyConv, solver: Solver) -> Type | None:
        problem = _problem(name, attrs, rank, transposed, types, solver)
        if problem is None:
            return None
        spatial = _transposed_sizes(attrs, problem) if transposed else _sizes(attrs, problem)
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


def _sizes(attrs: AnyConv, p: _Problem) -> tuple[Dim, ...]:
    parts = zip(p.sizes, p.kernel, attrs.strides, p.before, p.after, attrs.dilation, strict=True)
    return tuple(window_size(*part) for part in parts)


def _transposed_sizes(attrs: AnyConv, p: _Problem) -> tuple[Dim, ...]:
    assert isinstance(attrs, Conv2DTransposeAttrs)
    extra = spread(attrs.output_padding, len(p.kernel))
    parts = zip(p.sizes, p.kernel, attrs.strides, p.before, p.after, attrs.dilation, extra, strict=True)
    return tuple(
        (size - 1) * stride - before - after + (kernel - 1) * dilation + 1 + more if isinstance(size, int) else ANY
        for size, kernel, stride, before, after, dilation, more in parts
    )


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
    else:
        gathered = np.empty((n, c, prod(kernel), *out), work)
        for number, view in taps(x, kernel, strides, dilation, out):
            gathered[:, :, number] = view
        columns = gathered.reshape(n, groups, depth, area)
    return narrow(np.matmul(w.reshape(groups, o // groups, depth), columns).reshape(n, o, *out), out_dtype)


def _depthwise(x: Array, w: Array, strides: Sequence[int], dilation: Sequence[int], out: Sequence[int]) -> Array:
    n, c = x.shape[:2]
    many = w.shape[0] // c
    factors = w.reshape(c, many, -1, *(1,) * len(out))
    total = np.zeros((n, c, many, *out), x.dtype)
    for number, view in taps(x, w.shape[2:], strides, dilation, out):
        total += view[:, :, None] * factors[:, :, number]
    return total.reshape(n, c * many, *out)


def _plain(name: str, attrs: AnyConv, rank: int, transposed: bool, values: Sequence[Array]) -> tuple[Array, Array]:
    """Data as NC + spatial and weight as OI (or IO) + spatial."""
    x, w = np.asarray(values[0]), np.asarray(values[1])
    order = ("IO" if transposed else "OI") + SPATIAL[rank]
    data = x.transpose(permutation(name, attrs.data_layout, "NC" + SPATIAL[rank]))
    return data, w.transpose(permutation(name, attrs.kernel_layout, order))


def _laid_out(name: str, attrs: AnyConv, rank: int, value: Array) -> Array:
    return value.transpose(permutation(name, "NC" + SPATIAL[rank], attrs.out_layout or attrs.data_layout))


def _conv(name: str, rank: int, attrs_type: type) -> Op:
    def meaning(attrs: Conv2DAttrs, values: Sequence[Array], result: Type) -> Array:
        x, w = _plain(name, attrs, rank, False, values)
        before, after = split_padding(name, attrs.padding, rank)
        padded = pad_spatial(x, before, after)
        value = convolve(padded, w, attrs.strides, attrs.dilation, attrs.groups, out_type(result).dtype)
        return _laid_out(name, attrs, rank, value)

    return make_op(
        name,
        2,
        _relation(name, rank, False),
        meaning,
        attrs=attrs_type,
        pattern=FusionPattern.OUT_ELEMWISE_FUSABLE,
        doc="sums of products of the weight with every window of the data",
    )


def _conv_transpose(name: str, rank: int, attrs_type: type) -> Op:
    def meaning(attrs: Conv2DTransposeAttrs, values: Sequence[Array], result: Type) -> Array:
        x, w = _plain(name, attrs, rank, True, values)
        value = _transposed(name, attrs, x, w, out_type(result).dtype)
        return _laid_out(name, attrs, rank, value)

    return make_op(
        name,
        2,
        _relation(name, rank, True),
        meaning,
        attrs=attrs_type,
        pattern=FusionPattern.OUT_ELEMWISE_FUSABLE,
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


CONV1D = _conv("nn.conv1d", 1, Conv1DAttrs)
CONV2D = _conv("nn.conv2d", 2, Conv2DAttrs)
CONV3D = _conv("nn.conv3d", 3, Conv3DAttrs)
CONV1D_TRANSPOSE = _conv_transpose("nn.conv1d_transpose", 1, Conv1DTransposeAttrs)
CONV2D_TRANSPOSE = _conv_transpose("nn.conv2d_transpose", 2, Conv2DTransposeAttrs)
CONV3D_TRANSPOSE = _conv_transpose("nn.conv3d_transpose", 3, Conv3DTransposeAttrs)


def _sizes_of(kernel_size: Ints | None, rank: int) -> tuple[int, ...] | None:
    return None if kernel_size is None else spread(kernel_size, rank)


def conv1d(
    data: Expr,
    weight: Expr,
    strides: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Ints | None = None,
    data_layout: str = "NCW",
    kernel_layout: str = "OIW",
    out_layout: str = "",
    out_dtype: str | None = None,
) -> Call:
    """Convolution over one spatial axis."""
    attrs = Conv1DAttrs(
        spread(strides, 1), full_padding(padding, 1), spread(dilation, 1), groups, channels,
        _sizes_of(kernel_size, 1), data_layout, kernel_layout, out_layout, out_dtype,
    )  # fmt: skip
    return call(CONV1D, (data, weight), attrs)


def conv2d(
    data: Expr,
    weight: Expr,
    strides: Ints = (1, 1),
    padding: Ints = (0, 0),
    dilation: Ints = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Ints | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str | None = None,
) -> Call:
    """Convolution over two spatial axes; padding is (top, left, bottom, right) or shorter."""
    attrs = Conv2DAttrs(
        spread(strides, 2), full_padding(padding, 2), spread(dilation, 2), groups, channels,
        _sizes_of(kernel_size, 2), data_layout, kernel_layout, out_layout, out_dtype,
    )  # fmt: skip
    return call(CONV2D, (data, weight), attrs)


def conv3d(
    data: Expr,
    weight: Expr,
    strides: Ints = (1, 1, 1),
    padding: Ints = (0, 0, 0),
    dilation: Ints = (1, 1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Ints | None = None,
    data_layout: str = "NCDHW",
    kernel_layout: str = "OIDHW",
    out_layout: str = "",
    out_dtype: str | None = None,
) -> Call:
    """Convolution over three spatial axes."""
    attrs = Conv3DAttrs(
        spread(strides, 3), full_padding(padding, 3), spread(dilation, 3), groups, channels,
        _sizes_of(kernel_size, 3), data_layout, kernel_layout, out_layout, out_dtype,
    )  # fmt: skip
    return call(CONV3D, (data, weight), attrs)


def conv1d_transpose(
    data: Expr,
    weight: Expr,
    strides: Ints = (1,),
    padding: Ints = (0,),
    dilation: Ints = (1,),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Ints | None = None,
    data_layout: str = "NCW",
    kernel_layout: str = "IOW",
    out_layout: str = "",
    output_padding: Ints = (0,),
    out_dtype: str | None = None,
) -> Call:
    """Transposed convolution over one spatial axis."""
    attrs = Conv1DTransposeAttrs(
        channels, _sizes_of(kernel_size, 1), spread(strides, 1), spread(output_padding, 1), full_padding(padding, 1),
        spread(dilation, 1), groups, data_layout, kernel_layout, out_layout, out_dtype,
    )  # fmt: skip
    return call(CONV1D_TRANSPOSE, (data, weight), attrs)


def conv2d_transpose(
    data: Expr,
    weight: Expr,
    strides: Ints = (1, 1),
    padding: Ints = (0, 0),
    dilation: Ints = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Ints | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "IOHW",
    out_layout: str = "",
    output_padding: Ints = (0, 0),
    out_dtype: str | None = None,
) -> Call:
    """Transposed convolution over two spatial axes; the weight is [in, out / groups, height, width]."""
    attrs = Conv2DTransposeAttrs(
        channels, _sizes_of(kernel_size, 2), spread(strides, 2), spread(output_padding, 2), full_padding(padding, 2),
        spread(dilation, 2), groups, data_layout, kernel_layout, out_layout, out_dtype,
    )  # fmt: skip
    return call(CONV2D_TRANSPOSE, (data, weight), attrs)


def conv3d_transpose(
    data: Expr,
    weight: Expr,
    strides: Ints = (1, 1, 1),
    padding: Ints = (0, 0, 0),
    dilation: Ints = (1, 1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Ints | None = None,
    data_layout: str = "NCDHW",
    kernel_layout: str = "IODHW",
    out_layout: str = "",
    output_padding: Ints = (0, 0, 0),
    out_dtype: str | None = None,
) -> Call:
    """Transposed convolution over three spatial axes."""
    attrs = Conv3DTransposeAttrs(
        channels, _sizes_of(kernel_size, 3), spread(strides, 3), spread(output_padding, 3), full_padding(padding, 3),
        spread(dilation, 3), groups, data_layout, kernel_layout, out_layout, out_dtype,
    )  # fmt: skip
    return call(CONV3D_TRANSPOSE, (data, weight), attrs)


def kernel_ints(kernel_size: Ints | None) -> tuple[int, ...] | None:
    """A kernel size as builders store it."""
    return ints(kernel_size)


OPS = (CONV1D, CONV2D, CONV3D, CONV1D_TRANSPOSE, CONV2D_TRANSPOSE, CONV3D_TRANSPOSE)
