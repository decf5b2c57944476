"""Labels that do not fit samples or network are refused; hits that guessing gets are doubted."""

from __future__ import annotations

import numpy as np
import pytest

from relay_hw.errors import InputError
from relay_hw.runtime.labels import LEAST_SAMPLES, check_labels, doubt, read_labels


def test_labels_are_one_integer_a_sample() -> None:
    assert read_labels(np.array([1, 2], np.uint8), 2, "the data").dtype == np.int64
    with pytest.raises(InputError, match=r"test data: labels must be 3 integers, one for each sample, not int64\[2\]"):
        read_labels(np.array([1, 2]), 3, "test data")
    with pytest.raises(InputError, match=r"labels must be 2 integers, one for each sample, not float64\[2, 5\]"):
        read_labels(np.zeros((2, 5)), 2, "the data")


def test_labels_without_an_output_are_refused() -> None:
    check_labels(np.array([0, 4]), 5, "test data")
    with pytest.raises(InputError, match="test data: labels must be from 0 to 4, not 5"):
        check_labels(np.array([0, 5]), 5, "test data")
    with pytest.raises(InputError, match="test data: labels must be from 0 to 4, not -1"):
        check_labels(np.array([-1, 5]), 5, "test data")


@pytest.mark.parametrize(
    ("hits", "classes", "samples", "is_doubtful"),
    [
        (0.1, 10, 1000, True),
        (0.2, 10, 1000, False),
        (0.1, 10, LEAST_SAMPLES - 1, False),
        (0.0, 1000, 100, True),
        (0.6, 2, 50, True),
        (0.8, 2, 50, False),
    ],
)
def test_hits_that_guessing_gets(hits: float, classes: int, samples: int, is_doubtful: bool) -> None:
    text = doubt(hits, classes, samples)
    assert bool(text) == is_doubtful
    if text:
        assert (
            f"{100 * hits:.1f} % of {samples:,} labels are predicted, no more than by guessing among {classes} classes"
            in text
        )
