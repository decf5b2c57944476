"""JSON of strangers: what is refused, by which sentence, and that it takes no longer than its size says."""

from __future__ import annotations

import json

import pytest

from accel.documents import MOST_NESTED, DocumentError, parse_json

DEEP = f"JSON must have at most {MOST_NESTED} lists and objects inside one another, not more"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "Expecting value, line 1, column 1"),
        ('{"a": 1,\n "b"}', "Expecting ':' delimiter, line 2, column 5"),
        (b"\xff\xfe", "JSON must be UTF-8: byte 0 is not"),
        (b'{"\xc3\x28": 1}', "JSON must be UTF-8: byte 2 is not"),
        ("[" * 100_000, DEEP),
        ("[" * 5_000_000, DEEP),
        ('{"a":' * 100_000, DEEP),
        ("[" * (MOST_NESTED + 2) + "]" * (MOST_NESTED + 2), DEEP),
        ('{"a":' * (MOST_NESTED + 2) + "1" + "}" * (MOST_NESTED + 2), DEEP),
        ("9" * 5000, "integers of JSON must have at most 4,300 digits"),
        ('{"window_bytes": -' + "1" * 4301 + "}", "integers of JSON must have at most 4,300 digits"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str | bytes, sentence: str) -> None:
    with pytest.raises(DocumentError) as found:
        parse_json(text)
    assert str(found.value) == sentence


def test_a_text_that_is_longer_than_it_may_be() -> None:
    with pytest.raises(DocumentError, match=r"^JSON must be at most 4 bytes long, not 1,000$"):
        parse_json("[" * 1000, most_bytes=4)


@pytest.mark.parametrize("value", [None, 1, -2.5, "a", [], {}, [[], {"a": [1]}], {"b": {"c": None}}])
def test_what_is_read(value: object) -> None:
    assert parse_json(json.dumps(value)) == parse_json(json.dumps(value).encode()) == value


def test_the_deepest_that_is_read() -> None:
    depth = MOST_NESTED + 1
    value = parse_json("[" * depth + "]" * depth)
    for _ in range(depth - 1):
        (value,) = value
    assert value == []
