"""Keep an answer within its bytes: the longest lists lose their ends, and say how many entries they lost.

In: a JSON object. Out: one whose compact text has at most `MOST_BYTES` bytes.
"""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any, Final, cast

MOST_BYTES: Final = 2048
# A text that a stranger wrote, such as the name of a layer, is cut behind so many characters.
_MOST_TEXT: Final = 160
LEFT_OUT: Final = "left_out"
Json = Any


def bounded(row: dict[str, Json]) -> dict[str, Json]:
    """`row` within `MOST_BYTES`. `left_out` has the number of entries that each list at the top lost."""
    found = cast("dict[str, Json]", _cut(deepcopy(row)))
    lists = {name: len(value) for name, value in found.items() if isinstance(value, list)}
    while len(text_of(found).encode()) > MOST_BYTES:
        name = max(lists, key=lambda one: len(text_of(found[one])), default=None)
        if name is None or not found[name]:
            raise ValueError(f"an answer must have at most {MOST_BYTES} bytes beside its lists")
        found[name].pop()
        found[LEFT_OUT] = {one: before - len(found[one]) for one, before in lists.items() if before > len(found[one])}
    return found


def text_of(row: Json) -> str:
    """Compact JSON."""
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False)


def _cut(value: Json) -> Json:
    """Long texts with their ends replaced by an ellipsis."""
    if isinstance(value, str):
        return value if len(value) <= _MOST_TEXT else f"{value[: _MOST_TEXT - 1]}…"
    if isinstance(value, list):
        return [_cut(one) for one in cast("list[Json]", value)]
    if isinstance(value, dict):
        return {name: _cut(one) for name, one in cast("dict[str, Json]", value).items()}
    return value
