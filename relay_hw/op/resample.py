"""Resampling of axes by weights of neighbours: onnx.resize, and the weights that other resizes share.

In: types, attributes, arrays. Out: types, arrays, `Call` nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import floor
from string import ascii_lowercase

import numpy as np

from relay_hw.errors import EvalError, TypeCheckError, UnsupportedError
from relay_hw.ir.expr import Call, Expr, Op
from relay_hw.ir.types import ANY, TensorType, Type
from relay_hw.op.base import Array, Attrs, call, rule
from relay_hw.op.gradients.common import ops, zeros
from relay_hw.op.gradients.selection import identity, size_of
from relay_hw.support.names import one_of

COORDINATES = (
    *("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"),
    *("tf_half_pixel_for_nn", "tf_crop_and_resize"),
)
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
METHODS = ("nearest", "linear", "cubic")
POLICIES = ("stretch", "not_larger", "not_smaller")


@dataclass(frozen=True, slots=True)
class ResizeAttrs(Attrs):
    """`axes` are those that the scales or sizes are of; `by_sizes` says which of the two they are."""

    axes: tuple[int, ...] = ()
    by_sizes: bool = False
    method: str = "nearest"
    coordinates: str = "half_pixel"
    rounding: str = "round_prefer_floor"
    cubic_alpha: float = -0.75
    exclude_outside: bool = False
    extrapolation: float = 0.0
    antialias: bool = False
    policy: str = "stretch"


@dataclass(frozen=True, slots=True)
class Axis:
    """One resized axis: sizes before and after, factor, and region of interest."""

    size: int
    count: int
    scale: float
    begin: float = 0.0
    end: float = 1.0


def resized_axes(attrs: ResizeAttrs, shape: Sequence[int], wanted: Sequence[float], roi: Sequence[float]) -> list[Axis]:
    """The axes of `attrs`, resized to or by `wanted`. `roi` holds all beginnings, then all ends, or nothing."""
    sizes = [shape[axis] for axis in attrs.axes]
    if attrs.by_sizes:
        scales = [want / size for want, size in zip(wanted, sizes, strict=True)]
        counts = [int(want) for want in wanted]
        if attrs.policy != "stretch":
            scales = [(min if attrs.policy == "not_larger" else max)(scales)] * len(scales)
            counts = [floor(scale * size + 0.5) for scale, size in zip(scales, sizes, strict=True)]
    else:
        scales = [float(want) for want in wanted]
        counts = [floor(scale * size) for scale, size in zip(scales, sizes, strict=True)]
    parts = [(0.0, 1.0)] * len(sizes)
    if len(roi) == 2 * len(sizes):
        parts = [(float(roi[at]), float(roi[at + len(sizes)])) for at in range(len(sizes))]
    rows = zip(sizes, counts, scales, parts, strict=True)
    return [Axis(size, count, scale, *part) for size, count, scale, part in rows]


def _spots(attrs: ResizeAttrs, axis: Axis) -> Array:
    """The source coordinate of each new element."""
    at = np.arange(axis.count, dtype=np.float64)
    width = axis.scale * axis.size
    match attrs.coordinates:
        case "asymmetric":
            return at / axis.scale
        case "align_corners":
            return at * (axis.size - 1) / (width - 1) if width != 1 else at * 0
        case "pytorch_half_pixel":
            return (at + 0.5) / axis.scale - 0.5 if axis.count > 1 else at * 0
        case "tf_half_pixel_for_nn":
            return (at + 0.5) / axis.scale
        case "half_pixel_symmetric":
            return axis.size / 2 * (1 - axis.count / width) + (at + 0.5) / axis.scale - 0.5
        case "tf_crop_and_resize":
            span = (axis.end - axis.begin) * (axis.size - 1)
            inner = at * span / (width - 1) if width != 1 else at * 0 + span / 2
            return inner + axis.begin * (axis.size - 1)
        case _:
            return (at + 0.5) / axis.scale - 0.5


def cubic(x: Array, a: float) -> Array:
    """Keys' weights of elements that are `x` away."""
    x = np.abs(x)
    near = (a + 2) * x**3 - (a + 3) * x**2 + 1
    far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def _coefficients(attrs: ResizeAttrs, ratio: Array, scale: float, tolerance: float) -> tuple[int, Array]:
    """The first neighbour, counted from the element before the place, and the weights of all, a row a place."""
    column = ratio[:, None]
    if attrs.method == "nearest":
        after = {
            "round_prefer_floor": ratio > 0.5,
            "round_prefer_ceil": ratio >= 0.5,
            "floor": ratio >= 1 - tolerance,
            "ceil": ratio > tolerance,
        }[attrs.rounding]
        return 0, np.stack([~after, after], axis=1).astype(np.float64)
    reach = 1 if attrs.method == "linear" else 2
    narrow = min(scale, 1.0) if attrs.antialias else 1.0
    first = floor(-reach / narrow) + 1
    distance = (np.arange(first, 2 - first) - column) * narrow
    is_linear = attrs.method == "linear"
    weights = np.clip(1 - np.abs(distance), 0, 1) if is_linear else cubic(distance, attrs.cubic_alpha)
    return first, weights / weights.sum(axis=1, keepdims=True) if attrs.antialias else weights


def resize_matrix(attrs: ResizeAttrs, axis: Axis, tolerance: float = 0.0) -> tuple[Array, Array]:
    """The weights of the old elements for each new one (a row), and which new ones are outside of the axis.

    `tolerance`: how far from a whole number a place counts as that number where it is rounded down or up.
    """
    places = _spots(attrs, axis)
    # The place lies behind the element `base`, at most 1.
    base = np.ceil(places).astype(np.int64) - 1
    first, weights = _coefficients(attrs, places - base, axis.scale, tolerance)
    index = base[:, None] + first + np.arange(weights.shape[1])
    if attrs.exclude_outside and attrs.method != "nearest":
        weights = np.where((index < 0) | (index >= axis.size), 0, weights)
        weights = weights / weights.sum(axis=1, keepdims=True)
    matrix = np.zeros((axis.count, axis.size))
    rows = np.broadcast_to(np.arange(axis.count)[:, None], index.shape)
    np.add.at(matrix, (rows, np.clip(index, 0, axis.size - 1)), weights)
    outside = (places < 0) | (places > axis.size - 1)
    return matrix, outside if attrs.coordinates == "tf_crop_and_resize" else np.zeros_like(outside)


def resampled(
    attrs: ResizeAttrs, value: Array, numbers: Sequence[int], axes: Sequence[Axis], tolerance: float = 0.0
) -> Array:
    """`value` with its axes `numbers` resized as `axes` say, one after the other; see `resize_matrix`."""
    outside = np.zeros((1,) * value.ndim, bool)
    for number, axis in zip(numbers, axes, strict=True):
        matrix, beyond = resize_matrix(attrs, axis, tolerance)
        if attrs.method == "nearest":
            value = np.take(value, np.argmax(matrix, axis=1), axis=number)
        else:
            value = np.moveaxis(np.tensordot(matrix, value, (1, number)), 0, number)
        outside = outside | beyond.reshape([-1 if at == number else 1 for at in range(value.ndim)])
    return np.where(outside, attrs.extrapolation, value) if np.any(outside) else value


def check_resize(attrs: ResizeAttrs) -> None:
    """Raise TypeCheckError for unknown modes of resize."""
    for what, given, legal in (
        ("method", attrs.method, METHODS),
        ("coordinates", attrs.coordinates, COORDINATES),
        ("rounding", attrs.rounding, ROUNDINGS),
        ("policy", attrs.policy, POLICIES),
    ):
        if given not in legal:
            raise TypeCheckError(one_of(f"{what} of onnx.resize", legal, given))


@rule("onnx.resize", 3)
def _resize_type(attrs: ResizeAttrs, x: TensorType, roi: TensorType, wanted: TensorType) -> Type:
    check_resize(attrs)
    return TensorType([ANY if axis in attrs.axes else dim for axis, dim in enumerate(x.shape)], x.dtype)


def _resize(attrs: ResizeAttrs, values: Sequence[Array], result: Type) -> Array:
    x, roi, wanted = np.asarray(values[0]), np.ravel(values[1]), np.ravel(values[2])
    if len(wanted) != len(attrs.axes) or np.any(wanted <= 0):
        raise EvalError(f"onnx.resize must get a positive number for each of axes {attrs.axes}, not {wanted}")
    value = x if x.dtype.kind != "f" or attrs.method == "nearest" else x.astype(np.float64)
    axes = resized_axes(attrs, x.shape, wanted.tolist(), roi.tolist())
    value = resampled(attrs, value, attrs.axes, axes)
    return (np.rint(value) if x.dtype.kind != "f" and value.dtype.kind == "f" else value).astype(x.dtype)


def _resize_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The adjoint times each axis's weights, which are what resizing an identity matrix gives; sizes get none."""
    (x, roi, wanted), attrs, op = call.args, call.attrs, ops()
    if attrs.policy != "stretch":
        raise UnsupportedError(f"the gradient of onnx.resize must be of policy stretch, not {attrs.policy}", call.span)
    letters = ascii_lowercase[: x.tensor_type.rank]
    for number, axis in enumerate(attrs.axes):
        count = len(attrs.axes)
        part = op.strided_slice(roi, (number,), (2 * count,), (count,))
        one = replace(attrs, axes=(0,), extrapolation=0.0)
        weights = resize(identity(size_of(x, axis), x), part, op.strided_slice(wanted, (number,), (number + 1,)), one)
        new = letters.replace(letters[axis], "Z")
        adjoint = op.einsum([adjoint, weights], f"{letters},{letters[axis]}Z->{new}")
    return op.reshape_like(adjoint, x), zeros(roi), zeros(wanted)


RESIZE = Op(
    "onnx.resize",
    3,
    _resize_type,
    _resize,
    attrs_type=ResizeAttrs,
    gradient=_resize_gradient,
    doc="axes resampled by run-time factors or to run-time sizes",
)


def resize(data: Expr, roi: Expr, wanted: Expr, attrs: ResizeAttrs) -> Call:
    """`data` resized by the scales, or to the sizes, in `wanted`."""
    return call(RESIZE, (data, roi, wanted), attrs)


OPS = (RESIZE,)
