"""ONNX's operators of classical machine learning: n-gram counts and tree ensembles.

In: types, attributes, arrays. Out: types, arrays, `Call` nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np

from relay_hw.errors import EvalError, TypeCheckError, UnsupportedError
from relay_hw.ir.expr import Call, Constant, Expr, Op
from relay_hw.ir.types import TensorType, Type
from relay_hw.op.base import Array, Attrs, call, out_type, rule
from relay_hw.op.gradients.common import in_type, ops, sizes, zeros

MODES = ("TF", "IDF", "TFIDF")
# By the numbers of the attribute nodes_modes; 6 asks for membership.
COMPARISONS = (np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal)
MEMBER = 6
AGGREGATES = ("average", "sum", "min", "max")


@dataclass(frozen=True, slots=True)
class GramAttrs(Attrs):
    """`pool` holds all n-grams one behind the other, those of length n from `starts[n - 1]` on."""

    least: int = 1
    most: int = 1
    skips: int = 0
    mode: str = "TF"
    starts: tuple[int, ...] = ()
    places: tuple[int, ...] = ()
    pool: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TreeAttrs(Attrs):
    """One number per node or leaf; `roots`: one per tree. A branch leads to a leaf if `*_is_leaf` is 1."""

    targets: int = 1
    aggregate: str = "sum"
    roots: tuple[int, ...] = ()
    features: tuple[int, ...] = ()
    modes: tuple[int, ...] = ()
    true_ids: tuple[int, ...] = ()
    true_is_leaf: tuple[int, ...] = ()
    false_ids: tuple[int, ...] = ()
    false_is_leaf: tuple[int, ...] = ()
    missing_is_true: tuple[int, ...] = ()
    leaf_targets: tuple[int, ...] = ()


@rule("onnx.count_grams", 2)
def _grams_type(attrs: GramAttrs, x: TensorType, weights: TensorType) -> Type:
    if attrs.mode not in MODES or x.rank not in (1, 2) or not attrs.places:
        raise TypeCheckError(
            f"onnx.count_grams must get one or two axes, a mode of {', '.join(MODES)} and places, not {x}, {attrs.mode}"
        )
    if min(attrs.places) < 0 or attrs.least < 1 or attrs.skips < 0:
        raise TypeCheckError("places and skips of onnx.count_grams must be at least 0, and its lengths at least 1")
    if any(a > b for a, b in pairwise((0, *attrs.starts, len(attrs.pool)))):
        raise TypeCheckError(f"starts of onnx.count_grams must rise within its pool of {len(attrs.pool)}")
    count = sum(1 for _ in _grams(attrs))
    if count != len(attrs.places):
        raise TypeCheckError(f"places of onnx.count_grams must be {count}, one an n-gram, not {len(attrs.places)}")
    return TensorType((*x.shape[:-1], max(attrs.places) + 1), "float32")


def _grams(attrs: GramAttrs) -> Iterator[tuple[int, ...]]:
    """All n-grams of the pool in order."""
    for length, begin in enumerate(attrs.starts, 1):
        end = attrs.starts[length] if length < len(attrs.starts) else len(attrs.pool)
        for at in range(begin, end - length + 1, length):
            yield attrs.pool[at : at + length]


def _counted(attrs: GramAttrs, row: Array, known: dict[tuple[int, ...], int], size: int) -> Array:
    found = np.zeros(size, np.float32)
    for length in range(attrs.least, min(attrs.most, len(row)) + 1):
        # Skips do not change what a single word is, and must leave room for all words.
        widest = min(attrs.skips + 1, (len(row) - 1) // (length - 1)) if length > 1 else 1
        for step in range(1, widest + 1):
            for start in range(len(row) - (length - 1) * step):
                gram = tuple(int(item) for item in row[start : start + (length - 1) * step + 1 : step])
                if gram in known:
                    found[known[gram]] += 1
    return found


def _count_grams(attrs: GramAttrs, values: Sequence[Array], result: Type) -> Array:
    x, weights = np.asarray(values[0]), np.asarray(values[1])
    grams = list(_grams(attrs))
    if len(weights) != len(grams):
        raise EvalError(f"weights of onnx.count_grams must be {len(grams)}, not {len(weights)}")
    size = max(attrs.places) + 1
    known = dict(zip(grams, attrs.places, strict=True))
    rows = x.reshape(prod(x.shape[:-1]), x.shape[-1])
    counts = np.array([_counted(attrs, row, known, size) for row in rows], np.float32).reshape(len(rows), size)
    spread = np.ones(size, np.float32)
    spread[list(attrs.places)] = weights
    if attrs.mode == "IDF":
        counts = (counts > 0).astype(np.float32)
    return (counts if attrs.mode == "TF" else counts * spread).reshape(*x.shape[:-1], size)


def _grams_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """A weight gets the counts that it stands for; of weights for one place, the last one counts."""
    (x, weights), attrs, op = call.args, call.attrs, ops()
    if attrs.mode == "TF":
        return zeros(x), zeros(weights)
    counts = count_grams(x, op.ones_like(weights), attrs) * adjoint
    shares = op.sum(counts, tuple(range(x.tensor_type.rank - 1))) if x.tensor_type.rank > 1 else counts
    is_last = [place not in attrs.places[number + 1 :] for number, place in enumerate(attrs.places)]
    picked = op.take(shares, Constant(np.array(attrs.places, np.int64)), 0) * op.const(np.array(is_last), "float32")
    return zeros(x), in_type(picked, weights, call)


COUNT_GRAMS = Op(
    "onnx.count_grams",
    2,
    _grams_type,
    _count_grams,
    attrs_type=GramAttrs,
    gradient=_grams_gradient,
    doc="counts of each n-gram of a pool",
)


def count_grams(data: Expr, weights: Expr, attrs: GramAttrs) -> Call:
    """Counts of n-grams in the rows of `data`, or their weights, or both multiplied, as the mode says."""
    return call(COUNT_GRAMS, (data, weights), attrs)


@rule("onnx.tree_ensemble", 4)
def _trees_type(attrs: TreeAttrs, x: TensorType, splits: TensorType, members: TensorType, leaves: TensorType) -> Type:
    if x.rank != 2 or attrs.aggregate not in AGGREGATES:
        raise TypeCheckError(
            f"onnx.tree_ensemble must get rows of features and an aggregate of {', '.join(AGGREGATES)}, "
            f"not {x} and {attrs.aggregate}"
        )
    return TensorType((x.shape[0], attrs.targets), x.dtype)


def _members(attrs: TreeAttrs, members: Array) -> dict[int, Array]:
    """The member sets of membership nodes: runs that end with NaN."""
    nodes = [node for node, mode in enumerate(attrs.modes) if mode == MEMBER]
    ends = np.flatnonzero(np.isnan(members))
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    return {node: members[begin:end] for node, begin, end in zip(nodes, starts, ends, strict=False)}


def _leaf(attrs: TreeAttrs, row: Array, root: int, splits: Array, members: dict[int, Array]) -> int:
    node = root
    for _ in range(len(attrs.features) + 1):
        value = row[attrs.features[node]]
        if attrs.modes[node] == MEMBER:
            is_true = bool(np.isin(value, members[node]))
        else:
            is_true = bool(COMPARISONS[attrs.modes[node]](value, splits[node]))
        is_true = is_true or bool(attrs.missing_is_true and attrs.missing_is_true[node] and np.isnan(value))
        ids, is_leaf = (attrs.true_ids, attrs.true_is_leaf) if is_true else (attrs.false_ids, attrs.false_is_leaf)
        if is_leaf[node]:
            return ids[node]
        node = ids[node]
    raise EvalError("the nodes of onnx.tree_ensemble must form trees, not a circle")


def _tree_ensemble(attrs: TreeAttrs, values: Sequence[Array], result: Type) -> Array:
    x, splits, members, leaves = (np.asarray(value) for value in values)
    sets = _members(attrs, members)
    found = np.zeros((len(x), attrs.targets), np.float64)
    for number, row in enumerate(x):
        reached: dict[int, list[float]] = {}
        for root in attrs.roots:
            leaf = _leaf(attrs, row, root, splits, sets)
            reached.setdefault(attrs.leaf_targets[leaf], []).append(float(leaves[leaf]))
        for target, weights in reached.items():
            match attrs.aggregate:
                case "min":
                    found[number, target] = min(weights)
                case "max":
                    found[number, target] = max(weights)
                case "average":
                    found[number, target] = sum(weights) / len(attrs.roots)
                case _:
                    found[number, target] = sum(weights)
    return found.astype(out_type(result).dtype)


def _trees_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Decisions are steps, without slopes; each leaf gets what the trees give with that leaf alone."""
    (x, splits, members, leaves), attrs, op = call.args, call.attrs, ops()
    steps = (zeros(x), zeros(splits), zeros(members))
    if isinstance(leaves, Constant):
        return *steps, zeros(leaves)
    if attrs.aggregate not in ("sum", "average"):
        raise UnsupportedError(
            f"the gradient of onnx.tree_ensemble by its leaves must be of a sum or average, not {attrs.aggregate}",
            call.span,
        )
    alone = np.eye(sizes(call, leaves)[0], dtype=leaves.tensor_type.dtype)
    shares = [op.sum(tree_ensemble(x, splits, members, Constant(row), attrs) * adjoint) for row in alone]
    return *steps, in_type(op.stack(shares, 0), leaves, call)


TREE_ENSEMBLE = Op(
    "onnx.tree_ensemble",
    4,
    _trees_type,
    _tree_ensemble,
    attrs_type=TreeAttrs,
    gradient=_trees_gradient,
    doc="sums of the leaves of decision trees",
)


def tree_ensemble(data: Expr, splits: Expr, members: Expr, leaves: Expr, attrs: TreeAttrs) -> Call:
    """For each row of `data` the weights of the leaves that it reaches, aggregated by target."""
    return call(TREE_ENSEMBLE, (data, splits, members, leaves), attrs)


OPS = (COUNT_GRAMS, TREE_ENSEMBLE)
