"""Sentences about unknown names: all known ones, and the one that was meant."""

from __future__ import annotations

import pytest

from relay_hw.support.names import did_you_mean, one_of


@pytest.mark.parametrize(
    ("known", "given", "sentence"),
    [
        (["tiny", "wide"], "tinny", "size must be one of tiny, wide, not tinny; did you mean tiny?"),
        (["tiny", "wide"], "TINY", "size must be one of tiny, wide, not TINY; did you mean tiny?"),
        (["tiny", "wide"], "large", "size must be one of tiny, wide, not large"),
        ([], "large", "size must be one of none, not large"),
        ([1, 2], 3, "size must be one of 1, 2, not 3"),
    ],
)
def test_sentences(known: list[object], given: object, sentence: str) -> None:
    assert one_of("size", known, given) == sentence


def test_a_sign_stands_before_the_name() -> None:
    assert did_you_mean("wieght", ["weight", "x"], "%") == "; did you mean %weight?"


def test_how_alike_names_must_be() -> None:
    assert did_you_mean("abcd", ["abxy"], least=0.5) and not did_you_mean("abcd", ["abxy"], least=0.75)
