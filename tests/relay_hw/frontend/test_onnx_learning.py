"""Operators of classical learning and optimizers' steps, against onnxruntime and against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from relay_hw.errors import UnsupportedError
from relay_hw.frontend import from_onnx
from relay_hw.interp import evaluate

ML = "ai.onnx.ml"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 3)).astype(np.float32)


def model_of(make: Callable[..., Any], operator: str, inputs: dict[str, Any], **attrs: Any) -> Any:
    model = make([helper.make_node(operator, list(inputs), ["y"], domain=ML, **attrs)], inputs)
    model.opset_import.append(helper.make_opsetid(ML, attrs.pop("version", 5)))
    return model


@pytest.mark.parametrize(
    ("operator", "attrs"),
    [
        ("Binarizer", {"threshold": 0.3}),
        ("Scaler", {"offset": [0.5, 0.0, -1.0], "scale": [2.0, 3.0, -1.0]}),
        ("Normalizer", {"norm": "L1"}),
        ("Normalizer", {"norm": "L2"}),
        ("LinearRegressor", {"coefficients": [1.0, 2, 3, -1, 0, 2], "intercepts": [0.5, -1], "targets": 2}),
    ],
)
def test_agrees_with_onnxruntime(
    make: Callable[..., Any], compare: Callable[..., Any], operator: str, attrs: dict[str, Any]
) -> None:
    compare(model_of(make, operator, {"x": X}, **attrs), {"x": X})


def test_columns(make: Callable[..., Any], compare: Callable[..., Any]) -> None:
    inputs = {"x": X, "i": np.array([2, 0], np.int64)}
    compare(model_of(make, "ArrayFeatureExtractor", inputs), inputs)


TREES = {
    "n_targets": 2,
    "tree_roots": [0, 2],
    "nodes_featureids": [0, 1, 2],
    "nodes_modes": numpy_helper.from_array(np.array([0, 1, 3], np.uint8)),
    "nodes_splits": numpy_helper.from_array(np.array([0.1, -0.2, 0.3], np.float32)),
    "nodes_truenodeids": [1, 0, 2],
    "nodes_trueleafs": [0, 1, 1],
    "nodes_falsenodeids": [1, 3, 4],
    "nodes_falseleafs": [1, 1, 1],
    "leaf_targetids": [0, 1, 0, 1, 0],
    "leaf_weights": numpy_helper.from_array(np.array([1, 2, 4, 8, 16], np.float32)),
}


def trees(row: np.ndarray) -> list[float]:
    """What TREES says, by hand."""
    first = ((0, 1.0) if row[1] < -0.2 else (1, 8.0)) if row[0] <= 0.1 else (1, 2.0)
    second = (0, 4.0) if row[2] > 0.3 else (0, 16.0)
    found = [0.0, 0.0]
    for target, weight in (first, second):
        found[target] += weight
    return found


def test_trees(make: Callable[..., Any]) -> None:
    module, _ = from_onnx(model_of(make, "TreeEnsemble", {"x": X}, **TREES))
    found = evaluate(module, [X])
    assert found.tolist() == [trees(row) for row in X] and len({tuple(row) for row in found}) > 2


def test_modes_that_nothing_knows(make: Callable[..., Any]) -> None:
    wrong = numpy_helper.from_array(np.array([0, 1, 9], np.uint8))
    with pytest.raises(UnsupportedError, match=r"nodes_modes must be 0 to 6, not \[0, 1, 9\]"):
        from_onnx(model_of(make, "TreeEnsemble", {"x": X}, **{**TREES, "nodes_modes": wrong}))
    with pytest.raises(UnsupportedError, match="post_transform must be one of NONE, SOFTMAX, LOGISTIC, not PROBIT"):
        from_onnx(model_of(make, "LinearRegressor", {"x": X}, coefficients=[1.0] * 3, post_transform="PROBIT"))


def grams(row: list[int]) -> list[int]:
    """Single 2 and 5, pairs (5, 4) and (5, 6), up to two words apart, by hand."""
    pairs = [(row[a], row[a + step]) for step in (1, 2, 3) for a in range(len(row) - step)]
    return [row.count(2), row.count(5), pairs.count((5, 4)), pairs.count((5, 6))]


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
def test_counted_words(make: Callable[..., Any], compare: Callable[..., Any], mode: str) -> None:
    one = helper.make_node(
        "TfIdfVectorizer", ["x"], ["y"], mode=mode, min_gram_length=1, max_gram_length=2, max_skip_count=2,
        ngram_counts=[0, 2], ngram_indexes=[0, 1, 2, 3], pool_int64s=[2, 5, 5, 4, 5, 6], weights=[1.0, 2.0, 0.5, 3.0],
    )  # fmt: skip
    rows = RNG.integers(2, 7, (4, 9)).astype(np.int32)
    found = compare(make([one], {"x": rows}), {"x": rows})[0]
    if mode == "TF":
        assert found.tolist() == [grams(row.tolist()) for row in rows]
