"""ONNX Resize and Upsample: weighted sums of shifts for whole factors, of gathers for others, else one operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from relay_hw import op
from relay_hw.errors import InputError
from relay_hw.frontend.onnx.node import Arguments, Array, Converter, Known, Node
from relay_hw.ir.expr import Expr
from relay_hw.ir.types import Any
from relay_hw.op import const, nn
from relay_hw.op.resample import (
    COORDINATES,
    METHODS,
    POLICIES,
    ROUNDINGS,
    ResizeAttrs,
    resize,
    resize_matrix,
    resized_axes,
)

Matrix = NDArray[np.float64]
# More neighbours than these are a matrix product.
MOST_TAPS = 4
# Elements between two old ones that are computed by shifts of the whole; gathers otherwise.
MOST_PHASES = 4
# Weight matrices that exist at the same time: compared, sorted, transposed.
_COPIES = 4


def _method(node: Node) -> str:
    # The first Upsample called it so.
    mode: str = node.attr("mode", "nearest")
    return "linear" if mode == "bilinear" else mode


def _check(node: Node, known: Known) -> str | None:
    attrs = _attrs(node, 0)
    for name, value, legal in (
        ("mode", attrs.method, METHODS),
        ("coordinate_transformation_mode", attrs.coordinates, COORDINATES),
        ("nearest_mode", attrs.rounding, ROUNDINGS),
        ("keep_aspect_ratio_policy", attrs.policy, POLICIES),
    ):
        if value not in legal:
            return f"{name} must be {' or '.join(legal)}, not {value}"
    return None


def _is_late(node: Node) -> bool:
    return node.operator == "Resize" and node.opset >= 11


def _attrs(node: Node, rank: int) -> ResizeAttrs:
    late = _is_late(node)
    return ResizeAttrs(
        axes=tuple(axis % rank for axis in node.attr("axes")) if rank and node.attr("axes") else tuple(range(rank)),
        by_sizes=late and node.has_input(3),
        method=_method(node),
        coordinates=node.attr("coordinate_transformation_mode", "half_pixel" if late else "asymmetric"),
        rounding=node.attr("nearest_mode", "round_prefer_floor" if late else "floor"),
        cubic_alpha=node.attr("cubic_coeff_a", -0.75),
        exclude_outside=bool(node.attr("exclude_outside", 0)),
        extrapolation=node.attr("extrapolation_value", 0.0),
        antialias=bool(node.attr("antialias", 0)),
        policy=node.attr("keep_aspect_ratio_policy", "stretch"),
    )


def _resize(node: Node, args: Arguments) -> Expr:
    attrs = _attrs(node, args.rank(args[0]))
    if node.attr("scales") is not None:
        wanted: Expr | None = const(np.array(node.attr("scales"), np.float32))
        known = np.array(node.attr("scales"))
    else:
        index = (3 if attrs.by_sizes else 2) if _is_late(node) else 1
        wanted, known = args.get(index), args.array(index)
    if wanted is None or (known is not None and np.size(known) != len(attrs.axes)):
        raise InputError(f"{node.operator} must have a scale for each of {len(attrs.axes)} axes", node.span)
    attrs, wanted, known = _changed(args, attrs, wanted, known, index_of_sizes=3)
    crop = _is_late(node) and attrs.coordinates == "tf_crop_and_resize"
    given = args.array(1) if crop else None
    roi = np.zeros(0) if given is None else np.ravel(given)
    if known is None or not args.is_static(args[0]) or (crop and not np.size(roi)):
        places = args[1] if crop else const(np.zeros(0, np.float32))
        return resize(args[0], places, wanted, attrs)
    return _resized(node, args, attrs, [float(value) for value in np.ravel(known)], roi.tolist())


def _changed(
    args: Arguments, attrs: ResizeAttrs, wanted: Expr, known: Array | None, index_of_sizes: int
) -> tuple[ResizeAttrs, Expr, Array | None]:
    """Drop axes that keep their size, so that they stay static if others are dynamic."""
    dims = args.dims(args[0])
    if args.is_static(args[0]) or attrs.policy != "stretch" or attrs.coordinates == "tf_crop_and_resize":
        return attrs, wanted, known
    goals = args.open_ints(index_of_sizes) if attrs.by_sizes else None
    if not attrs.by_sizes and known is not None:
        places = [at for at, scale in enumerate(np.ravel(known)) if scale != 1]
    elif goals is not None:
        pairs = zip((dims[axis] for axis in attrs.axes), goals, strict=True)
        places = [at for at, (old, new) in enumerate(pairs) if isinstance(new, Any) or old != new]
    else:
        return attrs, wanted, known
    chosen = const(np.array(places, np.int64))
    part = None if known is None else np.ravel(known)[places]
    return replace(attrs, axes=tuple(attrs.axes[at] for at in places)), op.take(wanted, chosen, 0), part


def _resized(node: Node, args: Arguments, attrs: ResizeAttrs, wanted: Sequence[float], roi: Sequence[float]) -> Expr:
    """Resize by constant factors, axis after axis."""
    shape = args.shape(args[0])
    if any(want <= 0 for want in wanted):
        raise InputError(f"scales and sizes of {node.operator} must be positive, not {list(wanted)}", node.span)
    axes = resized_axes(attrs, shape, wanted, roi)
    for axis in axes:
        args.reserve((axis.count, axis.size, _COPIES), "float64", passes=True)
    rows = [resize_matrix(attrs, axis) for axis in axes]
    if attrs.method == "nearest":
        counts = [_repeats(matrix) for matrix, _ in rows]
        if len(shape) == 4 and attrs.axes == (0, 1, 2, 3) and counts[:2] == [1, 1] and None not in counts:
            return nn.upsampling(args[0], counts[2] or 1, counts[3] or 1)
    value, dtype = args[0], args.dtype(args[0])
    exact = attrs.method == "nearest" or dtype.startswith("float")
    value = value if exact else op.cast(value, "float32")
    for axis, (matrix, _) in zip(attrs.axes, rows, strict=True):
        if not np.array_equal(matrix, np.eye(matrix.shape[1])):
            value = _along(value, matrix, axis, args)
    for axis, (_, outside) in zip(attrs.axes, rows, strict=True):
        if np.any(outside):
            beyond = const(outside.reshape(-1, *(1,) * (len(shape) - 1 - axis)))
            value = op.where(beyond, args.scalar(attrs.extrapolation, value), value)
    if exact:
        return op.copy(value) if value is args[0] else value
    return op.cast(op.round(value), dtype)


def _repeats(matrix: Matrix) -> int | None:
    """How often every element is repeated; None if not all are repeated alike."""
    count = len(matrix) // matrix.shape[1]
    return count if np.array_equal(matrix, np.eye(matrix.shape[1]).repeat(count, 0)) else None


def _along(value: Expr, matrix: Matrix, axis: int, args: Arguments) -> Expr:
    """Compute each new element of the axis as a weighted sum of old ones."""
    rank = args.rank(value)
    taps = int(np.max(np.count_nonzero(matrix, axis=1), initial=1))
    if taps > MOST_TAPS:
        order = (*(at for at in range(rank) if at != axis), axis)
        product = nn.dense(op.transpose(value, order), const(matrix.astype(args.dtype(value))), len(matrix))
        return op.transpose(product, [order.index(at) for at in range(rank)])
    phases = _phases(matrix) if taps > 1 else None
    if phases is not None:
        return _interleaved([_shifted_sum(value, phase, axis, args) for phase in phases], axis, args)
    places = np.argsort(matrix == 0, axis=1, kind="stable")[:, :taps]
    weights = np.take_along_axis(matrix, places, 1)
    parts: list[Expr] = []
    for tap in range(taps):
        part = op.take(value, const(places[:, tap].astype(np.int64)), axis)
        if not np.all(weights[:, tap] == 1):
            weight = weights[:, tap].reshape(-1, *(1,) * (rank - 1 - axis))
            part = op.multiply(part, const(weight.astype(args.dtype(value))))
        parts.append(part)
    total = parts[0]
    for part in parts[1:]:
        total = op.add(total, part)
    return total


# Weights of neighbours by their distance, where those beyond the edge are the edge.
Phase = Mapping[int, float]


def _phases(matrix: Matrix) -> list[Phase] | None:
    """For a whole factor what the elements at each place between two old ones are made of; None for other factors."""
    count, size = matrix.shape
    factor = count // size
    if count != factor * size or not 1 < factor <= MOST_PHASES or size < 2:
        return None
    found = [_phase(matrix[first::factor]) for first in range(factor)]
    phases = [phase for phase in found if phase is not None]
    return phases if len(phases) == factor else None


def _phase(matrix: Matrix) -> Phase | None:
    """The weights by distance that a square matrix has in its middle, if they give all of its rows."""
    size = len(matrix)
    middle = size // 2
    phase = {int(place) - middle: float(matrix[middle, place]) for place in np.flatnonzero(matrix[middle])}
    whole = np.zeros_like(matrix)
    for distance, weight in phase.items():
        np.add.at(whole, (np.arange(size), np.clip(np.arange(size) + distance, 0, size - 1)), weight)
    return phase if np.allclose(whole, matrix, rtol=0, atol=1e-12) else None


def _shifted_sum(value: Expr, phase: Phase, axis: int, args: Arguments) -> Expr:
    parts: list[Expr] = []
    for distance, weight in phase.items():
        part = _shifted(value, distance, axis, args)
        parts.append(part if weight == 1 else op.multiply(part, args.scalar(weight, value)))
    total = parts[0]
    for part in parts[1:]:
        total = op.add(total, part)
    return total


def _shifted(value: Expr, distance: int, axis: int, args: Arguments) -> Expr:
    """Each element's neighbour at a distance, the edge for those beyond it."""
    size = args.shape(value)[axis]
    kept = op.strided_slice(value, (max(distance, 0),), (size + min(distance, 0),), axes=(axis,))
    if distance == 0:
        return value
    edge = 0 if distance < 0 else size - 1
    beyond = [op.strided_slice(value, (edge,), (edge + 1,), axes=(axis,))] * abs(distance)
    return op.concatenate([*beyond, kept] if distance < 0 else [kept, *beyond], axis)


def _interleaved(parts: Sequence[Expr], axis: int, args: Arguments) -> Expr:
    """Elements of all parts in turns."""
    shape = args.shape(parts[0])
    apart = [op.reshape(part, (*shape[: axis + 1], 1, *shape[axis + 1 :])) for part in parts]
    whole = (*shape[:axis], len(parts) * shape[axis], *shape[axis + 1 :])
    return op.reshape(op.concatenate(apart, axis + 1), whole)


CONVERTERS = (Converter("Resize", _resize, _check), Converter("Upsample", _resize, _check))
