"""Packed columns: what a page's script reads back."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from relay_hw.report.packed import Packer


def read_back(text: str, where: dict[str, int]) -> list[int]:
    """The column as `data.js` reads it."""
    data = zlib.decompress(base64.b64decode(text))
    found: list[int] = []
    place, total = where["begin"], 0
    for _ in range(where["count"]):
        value, shift = 0, 0
        while True:
            byte = data[place]
            place += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        value = -(value + 1) // 2 if value % 2 else value // 2
        total = total + value if where["differ"] else value
        found.append(total)
    return found


@given(st.lists(st.lists(st.integers(-(2**50), 2**50), max_size=30), max_size=4))
def test_columns_come_back(columns: Sequence[Sequence[int]]) -> None:
    packer = Packer()
    places = [packer.add(column) for column in columns]
    text = packer.text()
    assert [read_back(text, where) for where in places] == [list(column) for column in columns]


def test_times_are_kept_as_differences() -> None:
    packer = Packer()
    assert packer.add(range(1_000_000, 1_001_000))["differ"] and not packer.add([5, 1_000_000, 5])["differ"]
    assert len(packer.text()) < 200
