"""Constants that stand for others: of the same width and sign."""

from __future__ import annotations

import pytest

from tests.mutants.operators import _other_constants  # type: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("4'd7", ["4'd8", "4'd6"]),
        ("1'b1", ["1'd0"]),
        ("8'hff", ["8'd254"]),
        ("4'sd7", ["4'sd6"]),
        ("36'sd131071", ["36'sd131072", "36'sd131070"]),
        ("12", ["13", "11"]),
        ("4'bxx", []),
    ],
)
def test_other_constants(text: str, others: list[str]) -> None:
    assert list(_other_constants(text)) == others
