"""Regions of images as grids of cells: onnx.roi_align, vision.roi_align, vision.roi_pool.

In: types, attributes, arrays. Out: types, arrays, `Call` nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

import numpy as np

from relay_hw.errors import TypeCheckError, UnsupportedError
from relay_hw.ir.expr import Call, Expr, Op
from relay_hw.ir.types import TensorType, Type
from relay_hw.op import dynamic_shape
from relay_hw.op.base import Array, Attrs, Ints, call, out_type, rule, same_dim, same_dtype, show, spread
from relay_hw.op.gradients.common import ops, zeros
from relay_hw.op.gradients.selection import identity, pixels_of_cells, size_of


@dataclass(frozen=True, slots=True)
class RoiAlignAttrs(Attrs):
    pooled_size: tuple[int, ...] = (1, 1)
    spatial_scale: float = 1.0
    sample_ratio: int = 0
    mode: str = "avg"
    half_pixel: bool = True


@dataclass(frozen=True, slots=True)
class RegionAttrs(Attrs):
    pooled_size: tuple[int, ...]
    spatial_scale: float
    sample_ratio: int = -1
    layout: str = "NCHW"
    mode: str = "avg"


@dataclass(frozen=True, slots=True)
class RegionPoolAttrs(Attrs):
    pooled_size: tuple[int, ...]
    spatial_scale: float
    layout: str = "NCHW"


@rule("onnx.roi_align", 3)
def _roi_type(attrs: RoiAlignAttrs, x: TensorType, rois: TensorType, batch: TensorType) -> Type:
    if x.rank != 4 or rois.rank != 2 or not same_dim(rois.shape[1], 4) or batch.rank != 1:
        raise TypeCheckError(f"onnx.roi_align must get images, (R, 4) and (R,), not {x}, {rois} and {batch}")
    same_dtype("onnx.roi_align", x, rois)
    return TensorType((rois.shape[0], x.shape[1], *attrs.pooled_size), x.dtype)


def _roi_taps(attrs: RoiAlignAttrs, begin: float, end: float, count: int, size: int) -> tuple[Array, Array, Array]:
    """(low places, high places, weights of the high ones), a row a cell; weight NaN where a sample lies outside."""
    offset = 0.5 if attrs.half_pixel else 0.0
    first, last = begin * attrs.spatial_scale - offset, end * attrs.spatial_scale - offset
    length = last - first if attrs.half_pixel else max(last - first, 1.0)
    samples = attrs.sample_ratio if attrs.sample_ratio > 0 else max(ceil(length / count), 1)
    step = length / count
    place = first + np.arange(count)[:, None] * step + (np.arange(samples)[None, :] + 0.5) * step / samples
    outside = (place < -1) | (place > size)
    place = np.clip(place, 0, size - 1)
    low = np.minimum(place.astype(np.int64), size - 1)
    return low, np.minimum(low + 1, size - 1), np.where(outside, np.nan, place - low)


def _samples(attrs: RoiAlignAttrs, image: Array, box: Array) -> list[Array]:
    """The four weighted neighbours of every sample of a box, each as (C, rows, samples, columns, samples)."""
    (x1, y1, x2, y2), (rows, columns) = box, attrs.pooled_size
    y_low, y_high, y_part = _roi_taps(attrs, y1, y2, rows, image.shape[1])
    x_low, x_high, x_part = _roi_taps(attrs, x1, x2, columns, image.shape[2])
    parts: list[Array] = []
    for ys, wy in ((y_low, 1 - y_part), (y_high, y_part)):
        for xs, wx in ((x_low, 1 - x_part), (x_high, x_part)):
            weight = wy[:, :, None, None] * wx[None, None]
            picked = image[:, ys[:, :, None, None], xs[None, None]]
            parts.append(picked * np.where(np.isnan(weight), 0, weight))
    return parts


def _roi_align(attrs: RoiAlignAttrs, values: Sequence[Array], result: Type) -> Array:
    x, rois, batch = (np.asarray(value) for value in values)
    found = np.zeros((len(rois), x.shape[1], *attrs.pooled_size))
    for number, box in enumerate(rois.astype(np.float64)):
        parts = _samples(attrs, x[int(batch[number])].astype(np.float64), box)
        if attrs.mode == "max":
            found[number] = np.max(np.stack(parts), axis=0).max(axis=(2, 4))
        else:
            found[number] = np.sum(parts, axis=0).mean(axis=(2, 4))
    return found.astype(out_type(result).dtype)


def _roi_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Each pixel's weight in a cell is what an image of ones at that pixel gives; regions get none."""
    (x, rois, batch), attrs, op = call.args, call.attrs, ops()
    if attrs.mode != "avg":
        raise UnsupportedError(f"the gradient of onnx.roi_align must be of mode avg, not {attrs.mode}", call.span)
    rows, columns = size_of(x, 2), size_of(x, 3)
    count = rows * columns
    images = dynamic_shape.reshape(identity(count, x), op.stack([op.const(1, "int64"), count, rows, columns], 0))
    weights = roi_align_of(images, rois, op.zeros_like(batch), attrs)
    shares = op.einsum([adjoint, weights], "rcij,rpij->rcp")
    shape = op.stack([size_of(rois, 0), size_of(x, 1), rows, columns], 0)
    shares = dynamic_shape.reshape(shares, shape, allowzero=True)
    return op.scatter_nd(zeros(x), op.expand_dims(batch, 0), shares, "add"), zeros(rois), zeros(batch)


ROI_ALIGN = Op(
    "onnx.roi_align",
    3,
    _roi_type,
    _roi_align,
    attrs_type=RoiAlignAttrs,
    gradient=_roi_gradient,
    doc="regions of images sampled on a grid of cells",
)


def roi_align_of(data: Expr, rois: Expr, batch_indices: Expr, attrs: RoiAlignAttrs) -> Call:
    """Each region (x1, y1, x2, y2) of its image as cells: the mean or the largest of the samples in a cell."""
    return call(ROI_ALIGN, (data, rois, batch_indices), attrs)


def _regions_type(name: str):
    """(images, rows of image number, x1, y1, x2, y2) -> a grid of cells for each row."""

    @rule(name, 2)
    def relation(attrs: RegionAttrs | RegionPoolAttrs, x: TensorType, rois: TensorType) -> Type:
        if attrs.layout not in ("NCHW", "NHWC"):
            raise TypeCheckError(f"the layout of {name} must be NCHW or NHWC, not {attrs.layout}")
        if x.rank != 4 or rois.rank != 2 or not same_dim(rois.shape[1], 5):
            raise TypeCheckError(f"{name} must get images of 4 axes and regions (R, 5), not {show(x)} and {show(rois)}")
        if len(attrs.pooled_size) != 2 or min(attrs.pooled_size) < 1:
            raise TypeCheckError(f"pooled_size of {name} must be two positive sizes, not {attrs.pooled_size}")
        if isinstance(attrs, RegionAttrs) and attrs.mode not in ("avg", "max"):
            raise TypeCheckError(f"the mode of {name} must be avg or max, not {attrs.mode}")
        channels = x.shape[attrs.layout.index("C")]
        sizes = dict(zip("NCHW", (rois.shape[0], channels, *attrs.pooled_size), strict=True))
        return TensorType([sizes[letter] for letter in attrs.layout], x.dtype)

    return relation


def _images_first(attrs: RegionAttrs | RegionPoolAttrs, values: Sequence[Array]) -> tuple[Array, Array]:
    """The images as NCHW, and the regions."""
    x = np.asarray(values[0])
    return (x.transpose(0, 3, 1, 2) if attrs.layout == "NHWC" else x), np.asarray(values[1])


def _laid_out(attrs: RegionAttrs | RegionPoolAttrs, found: Array, result: Type) -> Array:
    return (found.transpose(0, 2, 3, 1) if attrs.layout == "NHWC" else found).astype(out_type(result).dtype)


def _region_align(attrs: RegionAttrs, values: Sequence[Array], result: Type) -> Array:
    x, rois = _images_first(attrs, values)
    shared = RoiAlignAttrs(attrs.pooled_size, attrs.spatial_scale, max(attrs.sample_ratio, 0), attrs.mode, False)
    found = np.zeros((len(rois), x.shape[1], *attrs.pooled_size))
    for number, row in enumerate(rois.astype(np.float64)):
        samples = np.sum(_samples(shared, x[int(row[0])].astype(np.float64), row[1:]), axis=0)
        found[number] = samples.max(axis=(2, 4)) if attrs.mode == "max" else samples.mean(axis=(2, 4))
    return _laid_out(attrs, found, result)


def _region_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Each pixel gets its weights in the cells of its image; regions get none."""
    (_, rois), attrs, op = call.args, call.attrs, ops()
    if attrs.mode != "avg":
        raise UnsupportedError(f"the gradient of vision.roi_align must be of mode avg, not {attrs.mode}", call.span)
    numbers = op.cast(op.squeeze(op.strided_slice(rois, (0,), (1,), axes=(1,)), 1), "int64")
    corners = op.strided_slice(rois, (1,), (5,), axes=(1,))
    first = op.concatenate([op.zeros_like(op.expand_dims(op.cast_like(numbers, rois), 1)), corners], 1)
    of_pixels = lambda images: Call(REGION_ALIGN, (images, first), attrs)  # noqa: E731
    return pixels_of_cells(call, adjoint, numbers, of_pixels), zeros(rois)


REGION_ALIGN = Op(
    "vision.roi_align",
    2,
    _regions_type("vision.roi_align"),
    _region_align,
    attrs_type=RegionAttrs,
    gradient=_region_gradient,
    doc="regions of images sampled on a grid of cells; the mean or the largest sample of each",
)


def roi_align(
    data: Expr,
    rois: Expr,
    pooled_size: Ints,
    spatial_scale: float,
    sample_ratio: int = -1,
    layout: str = "NCHW",
    mode: str = "avg",
) -> Call:
    """The regions `rois` (image number, x1, y1, x2, y2) as cells. A cell has `sample_ratio` samples along each axis."""
    attrs = RegionAttrs(spread(pooled_size, 2), float(spatial_scale), sample_ratio, layout, mode)
    return call(REGION_ALIGN, (data, rois), attrs)


def _bounds(begin: float, end: float, count: int, size: int) -> list[tuple[int, int]]:
    """The first pixel of each cell along an axis, and the one behind its last."""
    first, last = floor(begin + 0.5), floor(end + 0.5)
    step = max(last - first + 1, 1) / count
    clip = lambda place: min(max(place, 0), size)  # noqa: E731
    return [(clip(floor(at * step) + first), clip(ceil((at + 1) * step) + first)) for at in range(count)]


def _region_pool(attrs: RegionPoolAttrs, values: Sequence[Array], result: Type) -> Array:
    x, rois = _images_first(attrs, values)
    found = np.zeros((len(rois), x.shape[1], *attrs.pooled_size), x.dtype)
    for number, row in enumerate(rois.astype(np.float64)):
        x1, y1, x2, y2 = (row[1:] * attrs.spatial_scale).tolist()
        rows = _bounds(y1, y2, attrs.pooled_size[0], x.shape[2])
        columns = _bounds(x1, x2, attrs.pooled_size[1], x.shape[3])
        for i, (top, bottom) in enumerate(rows):
            for j, (left, right) in enumerate(columns):
                if bottom > top and right > left:
                    found[number, :, i, j] = x[int(row[0]), :, top:bottom, left:right].max(axis=(1, 2))
    return _laid_out(attrs, found, result)


REGION_POOL = Op(
    "vision.roi_pool",
    2,
    _regions_type("vision.roi_pool"),
    _region_pool,
    attrs_type=RegionPoolAttrs,
    doc="regions of images cut into a grid of cells; the largest pixel of each, 0 for an empty one",
)


def roi_pool(data: Expr, rois: Expr, pooled_size: Ints, spatial_scale: float, layout: str = "NCHW") -> Call:
    """The regions `rois` (image number, x1, y1, x2, y2) as cells, each with its largest pixel."""
    return call(REGION_POOL, (data, rois), RegionPoolAttrs(spread(pooled_size, 2), float(spatial_scale), layout))


OPS = (ROI_ALIGN, REGION_ALIGN, REGION_POOL)
