"""Counts of n-grams: what no pool can be is refused, and no number of skips takes longer than its row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from relay_hw.ir.types import TensorType
from relay_hw.op.counting import GramAttrs, count_grams

ATTRS = GramAttrs(least=2, most=2, starts=(0, 2), places=(0, 1), pool=(7, 8, 1, 2, 3, 4))
ALL = replace(ATTRS, places=(0, 1, 2, 3))


def test_skips_end_with_the_row(apply: Callable[..., np.ndarray]) -> None:
    row, weights = np.array([1, 3, 2, 4], np.int64), np.ones(4, np.float32)
    for skips, want in ((0, [0, 0, 0, 0]), (1, [0, 0, 1, 1]), ((1 << 63) - 1, [0, 0, 1, 1])):
        got = apply(lambda x, w, skips=skips: count_grams(x, w, replace(ALL, skips=skips)), row, weights)
        assert got.tolist() == want
    longest = replace(ALL, most=(1 << 63) - 1)
    assert apply(lambda x, w: count_grams(x, w, longest), row, weights).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0)])
def test_nothing_counts_as_nothing(apply: Callable[..., np.ndarray], shape: tuple[int, ...]) -> None:
    got = apply(lambda x, w: count_grams(x, w, ALL), np.zeros(shape, np.int64), np.ones(4, np.float32))
    assert got.shape == (*shape[:-1], 4) and not got.any()


@pytest.mark.parametrize(
    ("attrs", "sentence"),
    [
        (ATTRS, "places of onnx.count_grams must be 4, one an n-gram, not 2"),
        (
            replace(ALL, places=(0, -1, 2, 3)),
            "places and skips of onnx.count_grams must be at least 0, and",
        ),
        (replace(ALL, least=0), "places and skips of onnx.count_grams must be at least 0, and"),
        (replace(ALL, starts=(-(1 << 62), 2)), "starts of onnx.count_grams must rise within its pool of 6"),
        (replace(ALL, starts=(4, 2)), "starts of onnx.count_grams must rise within its pool of 6"),
    ],
)
def test_pools_that_cannot_be(refuse: Callable[..., str], attrs: GramAttrs, sentence: str) -> None:
    said = refuse(lambda x, w: count_grams(x, w, attrs), TensorType((4,), "int64"), TensorType((4,), "float32"))
    assert said.startswith(sentence)
