"""Non-maximum suppression: onnx.non_max_suppression, and the forms of TVM's `vision.*`.

In: types, attributes, arrays. Out: types, arrays, `Call` nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, Op
from relay_hw.ir.types import ANY, TensorType, TupleType, Type
from relay_hw.op.base import Array, Attrs, as_expr, call, product, rule, same_dim, show


@dataclass(frozen=True, slots=True)
class BoxAttrs(Attrs):
    center_point_box: bool = False


@dataclass(frozen=True, slots=True)
class ValidCountsAttrs(Attrs):
    """`score_threshold` is kept for text that holds it: the argument counts."""

    score_threshold: float | None = None
    id_index: int = 0
    score_index: int = 1


@dataclass(frozen=True, slots=True)
class SuppressionAttrs(Attrs):
    force_suppress: bool = False
    top_k: int = -1
    coord_start: int = 2
    score_index: int = 1
    id_index: int = 0
    return_indices: bool = True
    invalid_to_bottom: bool = False


@dataclass(frozen=True, slots=True)
class AllClassAttrs(Attrs):
    output_format: str = "onnx"


@rule("onnx.non_max_suppression", 5)
def _boxes_type(
    attrs: BoxAttrs, boxes: TensorType, scores: TensorType, count: TensorType, iou: TensorType, least: TensorType
) -> Type:
    if boxes.rank != 3 or scores.rank != 3 or not same_dim(boxes.shape[2], 4):
        raise TypeCheckError(f"boxes and scores must be (N, B, 4) and (N, C, B), not {boxes} and {scores}")
    return TensorType((ANY, 3), "int64")


def _corners(boxes: Array, center: bool) -> Array:
    """y1, x1, y2, x2 with the smaller ones first; of given centers and sizes, or of any two opposite corners."""
    if center:
        middle, half = boxes[:, :2], boxes[:, 2:] / 2
        return np.concatenate([(middle - half)[:, ::-1], (middle + half)[:, ::-1]], axis=1)
    first, second = boxes[:, :2], boxes[:, 2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=1)


def overlap(box: Array, others: Array) -> Array:
    """Intersection over union of one box and others, all as y1, x1, y2, x2."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    common = np.prod(np.maximum(sides, 0), axis=1)
    areas = np.prod(others[:, 2:] - others[:, :2], axis=1)
    union = np.prod(box[2:] - box[:2]) + areas - common
    return np.divide(common, union, out=np.zeros_like(common), where=union > 0)


def _kept(boxes: Array, scores: Array, count: int, iou: float, least: float) -> list[int]:
    order = [int(at) for at in np.argsort(-scores, kind="stable") if scores[at] > least]
    kept: list[int] = []
    for at in order:
        if len(kept) >= count:
            break
        if not kept or np.all(overlap(boxes[at], boxes[kept]) <= iou):
            kept.append(at)
    return kept


def _non_max_suppression(attrs: BoxAttrs, values: Sequence[Array], result: Type) -> Array:
    boxes, scores, count, iou, least = (np.asarray(value) for value in values)
    rows: list[tuple[int, int, int]] = []
    for batch in range(boxes.shape[0]):
        corners = _corners(boxes[batch], attrs.center_point_box)
        for group in range(scores.shape[1]):
            limits = int(np.ravel(count)[0]), float(np.ravel(iou)[0]), float(np.ravel(least)[0])
            rows += [(batch, group, at) for at in _kept(corners, scores[batch, group], *limits)]
    return np.array(rows, np.int64).reshape(-1, 3)


NON_MAX_SUPPRESSION = Op(
    "onnx.non_max_suppression",
    5,
    _boxes_type,
    _non_max_suppression,
    attrs_type=BoxAttrs,
    doc="rows (batch, class, box) of the best boxes, without those that overlap a better one of their class too much",
)


def boxes_kept(boxes: Expr, scores: Expr, count: Expr, iou: Expr, least: Expr, center_point_box: bool = False) -> Call:
    """The boxes kept: at most `count` a class, overlap at most `iou`, score above `least`."""
    return call(NON_MAX_SUPPRESSION, (boxes, scores, count, iou, least), BoxAttrs(center_point_box))


def _check_rows(name: str, x: TensorType, places: Sequence[int]) -> None:
    if x.rank != 3:
        raise TypeCheckError(f"the data of {name} must be (N, B, numbers of a box), not {show(x)}")
    length = x.shape[2]
    if isinstance(length, int) and any(place >= length for place in places):
        raise TypeCheckError(f"the places in a row of {name} must be below {length}, not {tuple(places)}")


@rule("vision.get_valid_counts", 2)
def _counts_type(attrs: ValidCountsAttrs, x: TensorType, least: TensorType) -> Type:
    _check_rows("vision.get_valid_counts", x, (attrs.id_index, attrs.score_index))
    return TupleType([TensorType(x.shape[:1], "int32"), x, TensorType(x.shape[:2], "int32")])


def _get_valid_counts(attrs: ValidCountsAttrs, values: Sequence[Array], result: Type) -> tuple[Array, ...]:
    x, least = np.asarray(values[0]), float(np.ravel(values[1])[0])
    is_valid = x[:, :, attrs.score_index] > least
    if attrs.id_index >= 0:
        is_valid &= x[:, :, attrs.id_index] >= 0
    rows, places = np.full_like(x, -1), np.full(x.shape[:2], -1, np.int32)
    for batch, kept in enumerate(map(np.flatnonzero, is_valid)):
        rows[batch, : len(kept)], places[batch, : len(kept)] = x[batch, kept], kept
    return is_valid.sum(axis=1).astype(np.int32), rows, places


GET_VALID_COUNTS = Op(
    "vision.get_valid_counts",
    2,
    _counts_type,
    _get_valid_counts,
    attrs_type=ValidCountsAttrs,
    doc="how many boxes score above a threshold; those in front, -1 behind them; their places",
)


def get_valid_counts(data: Expr, score_threshold: Expr | float, id_index: int = 0, score_index: int = 1) -> Call:
    """(counts, boxes, places) of the boxes of `data` above `score_threshold`; of a class, with `id_index`."""
    return call(
        GET_VALID_COUNTS, (data, as_expr(score_threshold, "float32")), ValidCountsAttrs(None, id_index, score_index)
    )


@rule("vision.non_max_suppression", 5)
def _suppression_type(
    attrs: SuppressionAttrs, x: TensorType, counts: TensorType, places: TensorType, most: TensorType, iou: TensorType
) -> Type:
    name = "vision.non_max_suppression"
    _check_rows(name, x, (attrs.coord_start + 3, attrs.score_index, attrs.id_index))
    if attrs.coord_start < 0 or attrs.score_index < 0:
        raise TypeCheckError(
            f"coord_start and score_index of {name} must be at least 0, not {attrs.coord_start} and {attrs.score_index}"
        )
    if counts.rank != 1 or places.rank != 2:
        raise TypeCheckError(f"{name} must get counts (N,) and places (N, B), not {show(counts)} and {show(places)}")
    if not attrs.return_indices:
        return x
    return TupleType([TensorType(x.shape[:2], "int32"), TensorType((x.shape[0], 1), "int32")])


def _survivors(attrs: SuppressionAttrs, rows: Array, most: int, iou: float) -> list[int]:
    """The rows, best first, that no kept one of their class overlaps by `iou` or more; `most` of them at most."""
    corners = _corners(rows[:, attrs.coord_start : attrs.coord_start + 4], False)
    alive = rows[:, attrs.score_index] > 0
    kept: list[int] = []
    for at in range(len(rows)):
        if not alive[at] or 0 < most <= len(kept):
            continue
        kept.append(at)
        others = overlap(corners[at], corners) >= iou
        if attrs.id_index >= 0 and not attrs.force_suppress:
            others &= rows[:, attrs.id_index] == rows[at, attrs.id_index]
        alive &= ~others
    return kept


def _suppress(attrs: SuppressionAttrs, values: Sequence[Array], result: Type) -> Array | tuple[Array, ...]:
    x, counts, places = (np.asarray(value) for value in values[:3])
    most, iou = int(np.ravel(values[3])[0]), float(np.ravel(values[4])[0])
    boxes, found = np.full_like(x, -1), np.full(x.shape[:2], -1, np.int32)
    totals = np.zeros((len(x), 1), np.int32)
    for batch, count in enumerate(counts.tolist()):
        order = np.argsort(-x[batch, :count, attrs.score_index], kind="stable")
        order = order[: attrs.top_k] if attrs.top_k > 0 else order
        kept = _survivors(attrs, x[batch, order], most, iou)
        totals[batch] = len(kept)
        found[batch, : len(kept)] = places[batch, order[kept]]
        where = np.arange(len(kept)) if attrs.invalid_to_bottom else np.array(kept, int)
        boxes[batch, where] = x[batch, order[kept]]
    return (found, totals) if attrs.return_indices else boxes


SUPPRESSION = Op(
    "vision.non_max_suppression",
    5,
    _suppression_type,
    _suppress,
    attrs_type=SuppressionAttrs,
    doc="the best boxes without those that overlap a better one of their class; places and counts, or boxes",
)


def non_max_suppression(
    data: Expr,
    valid_count: Expr,
    indices: Expr,
    max_output_size: Expr | int = -1,
    iou_threshold: Expr | float = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    return_indices: bool = True,
    invalid_to_bottom: bool = False,
) -> Call:
    """Of the first `valid_count` rows of `data` the best ones that overlap less than `iou_threshold`.

    Returns (their `indices`, how many) or, without `return_indices`, the rows sorted by score, -1 where one is dropped.
    """
    attrs = SuppressionAttrs(
        force_suppress, top_k, coord_start, score_index, id_index, return_indices, invalid_to_bottom
    )
    limits = as_expr(max_output_size, "int32"), as_expr(iou_threshold, "float32")
    return call(SUPPRESSION, (data, valid_count, indices, *limits), attrs)


@rule("vision.all_class_non_max_suppression", 5)
def _all_class_type(
    attrs: AllClassAttrs, boxes: TensorType, scores: TensorType, most: TensorType, iou: TensorType, least: TensorType
) -> Type:
    name = "vision.all_class_non_max_suppression"
    if boxes.rank != 3 or scores.rank != 3 or not same_dim(boxes.shape[2], 4):
        raise TypeCheckError(
            f"{name} must get boxes (N, B, 4) and scores (N, C, B), not {show(boxes)} and {show(scores)}"
        )
    batch, rows = scores.shape[0], product(scores.shape[1:])
    match attrs.output_format:
        case "onnx":
            return TupleType([TensorType((product(scores.shape), 3), "int64"), TensorType((1,), "int64")])
        case "tensorflow":
            found, values = TensorType((batch, rows, 2), "int64"), TensorType((batch, rows), scores.dtype)
            return TupleType([found, values, TensorType((batch,), "int64")])
        case other:
            raise TypeCheckError(f"output_format of {name} must be onnx or tensorflow, not {other}")


def _all_class(attrs: AllClassAttrs, values: Sequence[Array], result: Type) -> tuple[Array, ...]:
    scores = np.asarray(values[1])
    count = int(np.ravel(values[2])[0])
    given = [values[0], scores, np.int64(count if count >= 0 else scores.shape[2]), *values[3:]]
    rows = _non_max_suppression(BoxAttrs(), given, result)
    batch, classes, boxes = scores.shape
    if attrs.output_format == "onnx":
        found = np.zeros((scores.size, 3), np.int64)
        found[: len(rows)] = rows
        return found, np.array([len(rows)])
    places, best = np.zeros((batch, classes * boxes, 2), np.int64), np.zeros((batch, classes * boxes), scores.dtype)
    totals = np.bincount(rows[:, 0], minlength=batch).astype(np.int64)
    for number, total in enumerate(totals.tolist()):
        part = rows[rows[:, 0] == number]
        places[number, :total], best[number, :total] = part[:, 1:], scores[number, part[:, 1], part[:, 2]]
    return places, best, totals


ALL_CLASS = Op(
    "vision.all_class_non_max_suppression",
    5,
    _all_class_type,
    _all_class,
    attrs_type=AllClassAttrs,
    doc="the boxes kept of every class in a tensor of known size, and how many they are",
)


def all_class_non_max_suppression(
    boxes: Expr,
    scores: Expr,
    max_output_boxes_per_class: Expr | int = -1,
    iou_threshold: Expr | float = -1.0,
    score_threshold: Expr | float = -1.0,
    output_format: str = "onnx",
) -> Call:
    """Rows (image, class, box) of the boxes kept, and their number; or, as TensorFlow has it, one list an image."""
    limits = (
        as_expr(max_output_boxes_per_class, "int64"),
        as_expr(iou_threshold, "float32"),
        as_expr(score_threshold, "float32"),
    )
    return call(ALL_CLASS, (boxes, scores, *limits), AllClassAttrs(output_format))


OPS = (NON_MAX_SUPPRESSION, GET_VALID_COUNTS, SUPPRESSION, ALL_CLASS)
