"""ONNX operators of classical machine learning: domain ai.onnx.ml, and TfIdfVectorizer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relay_hw import op
from relay_hw.frontend.onnx.node import Arguments, Converter, Known, Node
from relay_hw.ir.expr import Expr
from relay_hw.op import const, nn
from relay_hw.op.counting import AGGREGATES, MEMBER, MODES, GramAttrs, TreeAttrs
from relay_hw.support.names import one_of

ML = "ai.onnx.ml"
AFTER = ("NONE", "SOFTMAX", "LOGISTIC")


def _check_words(node: Node, known: Known) -> str | None:
    if node.attr("pool_strings"):
        return "tensors must hold numbers, not words: give pool_int64s"
    mode = node.attr("mode")
    return None if mode in MODES else one_of("mode", MODES, mode)


def _tf_idf(node: Node, args: Arguments) -> Expr:
    places = tuple(node.attr("ngram_indexes"))
    attrs = GramAttrs(
        node.attr("min_gram_length"),
        node.attr("max_gram_length"),
        node.attr("max_skip_count"),
        node.attr("mode"),
        tuple(node.attr("ngram_counts")),
        places,
        tuple(node.attr("pool_int64s")),
    )
    weights = np.array(node.attr("weights", [1.0] * len(places)), np.float32)
    return op.counting.count_grams(args[0], const(weights), attrs)


def _extract(node: Node, args: Arguments) -> Expr:
    """Columns of the last axis; a vector counts as one row."""
    data = op.expand_dims(args[0], 0) if args.rank(args[0]) == 1 else args[0]
    return op.take(data, op.reshape(args[1], (-1,)), args.rank(data) - 1)


def _binarize(node: Node, args: Arguments) -> Expr:
    above = op.greater(args[0], args.scalar(node.attr("threshold", 0.0), args[0]))
    return op.cast(above, args.dtype(args[0]))


def _floats(args: Arguments) -> Expr:
    return args[0] if args.dtype(args[0]) == "float32" else op.cast(args[0], "float32")


def _scale(node: Node, args: Arguments) -> Expr:
    offset, scale = (const(np.array(node.attr(name), np.float32)) for name in ("offset", "scale"))
    return op.multiply(op.subtract(_floats(args), offset), scale)


def _check_norm(node: Node, known: Known) -> str | None:
    norm = node.attr("norm", "MAX")
    return None if norm in ("MAX", "L1", "L2") else f"norm must be MAX, L1 or L2, not {norm}"


def _normalize(node: Node, args: Arguments) -> Expr:
    data = _floats(args)
    match node.attr("norm", "MAX"):
        case "L1":
            length = op.sum(op.abs(data), -1, True)
        case "L2":
            length = op.sqrt(op.sum(op.multiply(data, data), -1, True))
        case _:
            length = op.max(data, -1, True)
    nothing = op.equal(length, args.scalar(0, length))
    return op.divide(data, op.where(nothing, args.scalar(1, length), length))


def _check_after(node: Node, known: Known) -> str | None:
    given = node.attr("post_transform", AFTER[0])
    given = AFTER[given] if isinstance(given, int) and given < len(AFTER) else given
    return None if given in AFTER else one_of("post_transform", AFTER, given)


def _after(node: Node, value: Expr) -> Expr:
    given = node.attr("post_transform", AFTER[0])
    transforms: dict[str, Callable[[Expr], Expr]] = {"SOFTMAX": nn.softmax, "LOGISTIC": op.sigmoid}
    name = AFTER[given] if isinstance(given, int) else given
    return transforms[name](value) if name in transforms else value


def _linear(node: Node, args: Arguments) -> Expr:
    targets = node.attr("targets", 1)
    weight = np.array(node.attr("coefficients"), np.float32).reshape(targets, -1)
    value = nn.dense(_floats(args), const(weight), targets)
    if node.attr("intercepts"):
        value = nn.bias_add(value, const(np.array(node.attr("intercepts"), np.float32)))
    return _after(node, value)


def _check_trees(node: Node, known: Known) -> str | None:
    modes = [int(mode) for mode in np.ravel(node.attr("nodes_modes"))]
    if any(not 0 <= mode <= MEMBER for mode in modes):
        return f"nodes_modes must be 0 to {MEMBER}, not {modes}"
    return _check_after(node, known)


def _trees(node: Node, args: Arguments) -> Expr:
    attrs = TreeAttrs(
        node.attr("n_targets", 1),
        AGGREGATES[node.attr("aggregate_function", 1)],
        tuple(node.attr("tree_roots")),
        tuple(node.attr("nodes_featureids")),
        tuple(int(mode) for mode in np.ravel(node.attr("nodes_modes"))),
        tuple(node.attr("nodes_truenodeids")),
        tuple(node.attr("nodes_trueleafs")),
        tuple(node.attr("nodes_falsenodeids")),
        tuple(node.attr("nodes_falseleafs")),
        tuple(node.attr("nodes_missing_value_tracks_true", ())),
        tuple(node.attr("leaf_targetids")),
    )
    splits, leaves = (np.ravel(node.attr(name)) for name in ("nodes_splits", "leaf_weights"))
    members = np.ravel(node.attr("membership_values", np.zeros(0, splits.dtype)))
    return _after(node, op.counting.tree_ensemble(args[0], const(splits), const(members), const(leaves), attrs))


CONVERTERS = (
    Converter("TfIdfVectorizer", _tf_idf, _check_words),
    Converter("ArrayFeatureExtractor", _extract, None, ML),
    Converter("Binarizer", _binarize, None, ML),
    Converter("LinearRegressor", _linear, _check_after, ML),
    Converter("Normalizer", _normalize, _check_norm, ML),
    Converter("Scaler", _scale, None, ML),
    Converter("TreeEnsemble", _trees, _check_trees, ML),
)
