"""Answers within their bytes: what is left out is counted, what is kept is unchanged."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_hw.mcp.bounded import MOST_BYTES, bounded, text_of

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)


def test_a_short_answer_stays() -> None:
    row = {"cycles": 7, "layers": [{"layer": "a", "cycles": None}]}
    assert bounded(row) == row


@given(st.dictionaries(st.sampled_from("abcdef"), st.lists(VALUES, max_size=80), max_size=6))
def test_any_lists_fit(row: dict[str, list[Any]]) -> None:
    found = bounded(row)
    assert len(text_of(found).encode()) <= MOST_BYTES
    left_out = found.get("left_out", {})
    for name, values in row.items():
        assert len(found[name]) + left_out.get(name, 0) == len(values)
    assert all(count > 0 for count in left_out.values())


def test_the_longest_list_gives_first() -> None:
    found = bounded({"short": [1, 2, 3], "long": ["x" * 100] * 60})
    assert found["short"] == [1, 2, 3] and 0 < len(found["long"]) < 60
    assert found["left_out"] == {"long": 60 - len(found["long"])}


def test_long_texts_end_in_an_ellipsis() -> None:
    found = bounded({"rows": [{"name": "n" * 500}]})
    assert found["rows"][0]["name"] == "n" * 159 + "…"


def test_what_is_not_in_lists_must_fit() -> None:
    with pytest.raises(ValueError, match="an answer must have at most 2048 bytes beside its lists"):
        bounded({str(n): "x" * 100 for n in range(50)})
