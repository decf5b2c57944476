"""Resizes of TVM's: image.resize1d, resize2d, resize3d, dyn.image.resize2d and crop_and_resize.

In: types, attributes, arrays. Out: types, arrays, `Call` nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from relay_hw.errors import EvalError, TypeCheckError
from relay_hw.ir.expr import Call, Constant, Expr, FusionPattern, Op, TypeRelation
from relay_hw.ir.types import ANY, TensorType, Type
from relay_hw.op.base import Array, Attrs, Ints, call, out_type, permutation, rule, same_dim, show, spread
from relay_hw.op.dynamic_shape import numbers, vector_length
from relay_hw.op.gradients.accumulate import by_expansion
from relay_hw.op.gradients.common import inverse, moved, one_argument, ops, reshaped, sizes, zeros
from relay_hw.op.gradients.selection import pixels_of_cells
from relay_hw.op.resample import COORDINATES, Axis, ResizeAttrs, resampled, resize, resize_matrix
from relay_hw.support.names import one_of

METHODS = ("nearest_neighbor", "linear", "cubic")
ROUNDINGS = ("", "round", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
LAYOUTS = ("NCW", "NCHW", "NCDHW")
# A place that is a whole number but for errors of floats counts as that number where it is rounded down or up.
_TOLERANCE = 1e-5


@dataclass(frozen=True, slots=True)
class ScalingAttrs(Attrs):
    """`size` has a number for each spatial axis; `roi` their beginnings, then their ends, for tf_crop_and_resize."""

    size: tuple[int, ...] | None = None
    roi: tuple[float, ...] | None = None
    layout: str = "NCHW"
    method: str = "linear"
    coordinate_transformation_mode: str = "half_pixel"
    rounding_method: str = "round"
    cubic_alpha: float = -0.5
    cubic_exclude: int = 0
    extrapolation_value: float = 0.0
    out_dtype: str | None = None


@dataclass(frozen=True, slots=True)
class Resize1DAttrs(ScalingAttrs):
    layout: str = "NCW"


@dataclass(frozen=True, slots=True)
class Resize2DAttrs(ScalingAttrs):
    """Of dyn.image.resize2d too, whose size and roi are arguments."""


@dataclass(frozen=True, slots=True)
class Resize3DAttrs(ScalingAttrs):
    layout: str = "NCDHW"


RECORDS = (Resize1DAttrs, Resize2DAttrs, Resize3DAttrs)


@dataclass(frozen=True, slots=True)
class CropAndResizeAttrs(Attrs):
    crop_size: tuple[int, ...] | None = None
    layout: str = "NCHW"
    method: str = "bilinear"
    extrapolation_value: float = 0.0
    out_dtype: str | None = None


def _spatial(name: str, layout: str, canonical: str) -> tuple[int, ...]:
    """The axes of the letters of `canonical` behind N and C."""
    permutation(name, layout, canonical)
    return tuple(layout.index(letter) for letter in canonical[2:])


def _check_words(name: str, attrs: ScalingAttrs) -> None:
    for what, legal in (
        ("method", METHODS),
        ("coordinate_transformation_mode", COORDINATES),
        ("rounding_method", ROUNDINGS),
    ):
        if getattr(attrs, what) not in legal:
            raise TypeCheckError(one_of(f"the {what} of {name}", legal, repr(getattr(attrs, what))))


def _static_relation(name: str, canonical: str) -> TypeRelation:
    @rule(name, 1)
    def relation(attrs: ScalingAttrs, x: TensorType) -> Type:
        axes = _spatial(name, attrs.layout, canonical)
        _check_words(name, attrs)
        size = attrs.size or ()
        if x.rank != len(canonical) or len(size) != len(axes) or any(count < 1 for count in size):
            raise TypeCheckError(
                f"{name} must get {attrs.layout} data and {len(axes)} positive sizes, not {show(x)} and {size}"
            )
        if attrs.roi is not None and len(attrs.roi) not in (0, 2 * len(axes)):
            raise TypeCheckError(f"the roi of {name} must have {2 * len(axes)} numbers, not {len(attrs.roi)}")
        shape = list(x.shape)
        for axis, count in zip(axes, size, strict=True):
            shape[axis] = count
        return TensorType(shape, attrs.out_dtype or x.dtype)

    return relation


def _weights(attrs: ScalingAttrs) -> ResizeAttrs:
    """The same in the words of the weights that all resizes share."""
    is_aligned = attrs.coordinate_transformation_mode == "align_corners"
    rounding = attrs.rounding_method or ("round" if is_aligned else "floor")
    return ResizeAttrs(
        method=attrs.method.removesuffix("_neighbor"),
        coordinates=attrs.coordinate_transformation_mode,
        rounding="round_prefer_ceil" if rounding == "round" else rounding,
        cubic_alpha=attrs.cubic_alpha,
        exclude_outside=bool(attrs.cubic_exclude),
        extrapolation=attrs.extrapolation_value,
    )


def _axes_of(attrs: ScalingAttrs, shape: Sequence[int], axes: Sequence[int], size: Sequence[int]) -> list[Axis]:
    """The resized axes, with the part of each that `roi` names."""
    roi = attrs.roi or (0.0,) * len(axes) + (1.0,) * len(axes)
    parts = zip(axes, size, roi[: len(axes)], roi[len(axes) :], strict=True)
    return [Axis(shape[axis], count, count / shape[axis], begin, end) for axis, count, begin, end in parts]


def _resized(attrs: ScalingAttrs, x: Array, axes: Sequence[int], size: Sequence[int], dtype: str) -> Array:
    weights = _weights(attrs)
    value = x if weights.method == "nearest" else x.astype(np.float64)
    return resampled(weights, value, axes, _axes_of(attrs, x.shape, axes, size), _TOLERANCE).astype(dtype)


def _matrix(attrs: ResizeAttrs, axis: Axis) -> Array:
    """The weights of the old elements for each new one, as _resized uses them."""
    matrix, outside = resize_matrix(attrs, axis, _TOLERANCE)
    return np.where(outside[:, None], 0, matrix)


def _slope(call: Call, x: Expr, g: Expr) -> Expr:
    """The adjoint times the transposed weights along each resized axis."""
    attrs, old, new = call.attrs, sizes(call, x), sizes(call, call)
    axes = _spatial("image.resize", attrs.layout, LAYOUTS[len(old) - 3])
    dtype, shape = x.tensor_type.dtype, list(new)
    for axis, one in zip(axes, _axes_of(attrs, old, axes, attrs.size), strict=True):
        weight = Constant(_matrix(_weights(attrs), one).T.astype(dtype))
        order = [*(at for at in range(len(old)) if at != axis), axis]
        lines = reshaped(moved(g, order), (-1, shape[axis]))
        shape[axis] = old[axis]
        wide = reshaped(ops().nn.dense(lines, weight), [shape[at] for at in order])
        g = moved(wide, inverse(order))
    return g


def _resize_op(rank: int) -> Op:
    name, canonical = f"image.resize{rank}d", LAYOUTS[rank - 1]

    def reference(attrs: ScalingAttrs, values: Sequence[Array], result: Type) -> Array:
        axes = _spatial(name, attrs.layout, canonical)
        return _resized(attrs, np.asarray(values[0]), axes, attrs.size or (), out_type(result).dtype)

    doc = f"images of {rank} spatial axes resampled to a size"
    relation = _static_relation(name, canonical)
    return Op(
        name,
        1,
        relation,
        reference,
        attrs_type=RECORDS[rank - 1],
        pattern=FusionPattern.INJECTIVE,
        gradient=one_argument(_slope),
        doc=doc,
    )


RESIZE1D, RESIZE2D, RESIZE3D = map(_resize_op, (1, 2, 3))


@rule("dyn.image.resize2d", 3)
def _dyn_type(attrs: Resize2DAttrs, x: TensorType, size: TensorType, roi: TensorType) -> Type:
    name = "dyn.image.resize2d"
    axes = _spatial(name, attrs.layout, "NCHW")
    _check_words(name, attrs)
    if x.rank != 4 or vector_length(name, "size", size) != 2:
        raise TypeCheckError(f"{name} must get data of 4 axes and two sizes, not {show(x)} and {show(size)}")
    shape = [ANY if axis in axes else dim for axis, dim in enumerate(x.shape)]
    return TensorType(shape, attrs.out_dtype or x.dtype)


def _dyn(attrs: Resize2DAttrs, values: Sequence[Array], result: Type) -> Array:
    size, roi = numbers(values[1]), tuple(float(value) for value in np.ravel(values[2]))
    if any(count < 1 for count in size):
        raise EvalError(f"the sizes of dyn.image.resize2d must be positive, not {tuple(size)}")
    fixed = replace(attrs, roi=roi if len(roi) == 4 else None)
    axes = _spatial("dyn.image.resize2d", attrs.layout, "NCHW")
    return _resized(fixed, np.asarray(values[0]), axes, size, out_type(result).dtype)


def _dyn_expr(attrs: Resize2DAttrs, x: Expr, size: Expr, roi: Expr) -> Expr:
    """The same by the operator for any axes, which has a gradient."""
    axes = _spatial("dyn.image.resize2d", attrs.layout, "NCHW")
    shared = replace(_weights(attrs), axes=axes, by_sizes=True)
    return resize(x, roi, size, shared)


DYN_RESIZE2D = Op(
    "dyn.image.resize2d",
    3,
    _dyn_type,
    _dyn,
    attrs_type=Resize2DAttrs,
    gradient=by_expansion(_dyn_expr),
    doc="images resampled to a run-time size",
)


@rule("image.crop_and_resize", 3)
def _crop_type(attrs: CropAndResizeAttrs, x: TensorType, boxes: TensorType, indices: TensorType) -> Type:
    name = "image.crop_and_resize"
    axes = _spatial(name, attrs.layout, "NCHW")
    size = attrs.crop_size or ()
    if x.rank != 4 or len(size) != 2 or min(size) < 1:
        raise TypeCheckError(f"{name} must get data of 4 axes and two positive sizes, not {show(x)} and {size}")
    if boxes.rank != 2 or not same_dim(boxes.shape[1], 4) or indices.rank != 1:
        raise TypeCheckError(f"{name} must get boxes (R, 4) and indices (R,), not {show(boxes)} and {show(indices)}")
    if attrs.method not in ("bilinear", "nearest_neighbor"):
        raise TypeCheckError(f"the method of {name} must be bilinear or nearest_neighbor, not {attrs.method}")
    shape = [boxes.shape[0], *x.shape[1:]]
    shape[attrs.layout.index("N")], shape[attrs.layout.index("C")] = boxes.shape[0], x.shape[attrs.layout.index("C")]
    for axis, count in zip(axes, size, strict=True):
        shape[axis] = count
    return TensorType(shape, attrs.out_dtype or x.dtype)


def _crop(attrs: CropAndResizeAttrs, values: Sequence[Array], result: Type) -> Array:
    x, boxes, indices = (np.asarray(value) for value in values)
    ty, size = out_type(result), attrs.crop_size or ()
    axes, batch = _spatial("image.crop_and_resize", attrs.layout, "NCHW"), attrs.layout.index("N")
    shared = ScalingAttrs(
        size,
        layout=attrs.layout,
        method="linear" if attrs.method == "bilinear" else attrs.method,
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=attrs.extrapolation_value,
    )
    crops = [
        _resized(replace(shared, roi=tuple(box.tolist())), np.take(x, [int(index)], batch), axes, size, ty.dtype)
        for box, index in zip(boxes, indices, strict=True)
    ]
    if crops:
        return np.concatenate(crops, axis=batch)
    return np.zeros([0 if axis == batch else int(dim) for axis, dim in enumerate(ty.shape)], ty.dtype)  # type: ignore[arg-type]


def _crop_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Each pixel gets its weights in the crops of its image; boxes get none."""
    _, boxes, indices = call.args
    attrs = replace(call.attrs, extrapolation_value=0.0)
    of_pixels = lambda images: Call(CROP_AND_RESIZE, (images, boxes, ops().zeros_like(indices)), attrs)  # noqa: E731
    return pixels_of_cells(call, adjoint, indices, of_pixels), zeros(boxes), zeros(indices)


CROP_AND_RESIZE = Op(
    "image.crop_and_resize",
    3,
    _crop_type,
    _crop,
    attrs_type=CropAndResizeAttrs,
    gradient=_crop_gradient,
    doc="boxes of images, each resampled to one size",
)


def _build_resize(op: Op, rank: int):
    def build(
        data: Expr,
        size: Ints,
        roi: Sequence[float] | None = None,
        layout: str = LAYOUTS[rank - 1],
        method: str = "linear",
        coordinate_transformation_mode: str = "half_pixel",
        rounding_method: str = "",
        cubic_alpha: float = -0.5,
        cubic_exclude: int = 0,
        extrapolation_value: float = 0.0,
        out_dtype: str | None = None,
    ) -> Call:
        attrs = RECORDS[rank - 1](
            spread(size, rank), None if roi is None else tuple(map(float, roi)), layout, method,
            coordinate_transformation_mode, rounding_method, cubic_alpha, int(cubic_exclude),
            float(extrapolation_value), out_dtype,
        )  # fmt: skip
        return call(op, (data,), attrs)

    build.__doc__ = "`data` with its spatial axes resampled to `size`."
    build.__name__ = f"resize{rank}d"
    return build


resize1d = _build_resize(RESIZE1D, 1)


resize2d = _build_resize(RESIZE2D, 2)


resize3d = _build_resize(RESIZE3D, 3)


def crop_and_resize(
    data: Expr,
    boxes: Expr,
    box_indices: Expr,
    crop_size: Ints,
    layout: str,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> Call:
    """The `boxes` (y1, x1, y2, x2 in parts of the image) of the images `box_indices`, each of `crop_size`."""
    attrs = CropAndResizeAttrs(spread(crop_size, 2), layout, method, float(extrapolation_value), out_dtype)
    return call(CROP_AND_RESIZE, (data, boxes, box_indices), attrs)


OPS = (RESIZE1D, RESIZE2D, RESIZE3D, DYN_RESIZE2D, CROP_AND_RESIZE)
