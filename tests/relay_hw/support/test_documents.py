"""JSON and TOML of strangers: what is refused, by which sentence, and that it takes no longer than its size says."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_hw.support.documents import MOST_NESTED, MOST_PARTS, DocumentError, parse_json, parse_toml, read_record

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

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


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    name: str
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Outer:
    inner: Inner
    share: float
    pairs: tuple[tuple[int, str], ...] = ()
    colour: Colour | None = None
    by_name: Mapping[str, Inner] = field(default_factory=dict)
    free: Any = None
    on: bool = False


WHOLE = {
    "inner": {"name": "a", "sizes": [1, 2]},
    "share": 1,
    "pairs": [[3, "b"]],
    "colour": "red",
    "by_name": {"c": {"name": "d"}},
    "free": [{}],
    "on": True,
}


def test_a_record() -> None:
    found = read_record(Outer, WHOLE, "outer")
    inner = Inner("a", (1, 2))
    assert found == Outer(inner, 1.0, ((3, "b"),), Colour.RED, {"c": Inner("d")}, [{}], True)
    assert type(found.share) is float
    assert read_record(Outer, WHOLE | {"colour": None, "inner": inner}, "outer").colour is None


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"inner": 3}, "outer.inner must be an object, not 3"),
        ({"inner": {}}, "outer.inner must have the field name"),
        ({"other": 3}, "outer must have the fields inner, share, pairs, colour, by_name, free, on, not other"),
        ({"inner": {"name": None}}, "outer.inner.name must be a string, not null"),
        ({"inner": {"name": "a", "sizes": [1, True]}}, r"outer.inner.sizes\[1\] must be an integer, not true"),
        ({"inner": {"name": "a", "sizes": [1.0]}}, r"outer.inner.sizes\[0\] must be an integer, not 1.0"),
        ({"inner": {"name": "a", "sizes": "12"}}, 'outer.inner.sizes must be a list, not "12"'),
        ({"share": 10**30}, r"outer.share must be less than 2\^63, not 31 digits long"),
        ({"pairs": [[1]]}, r"outer.pairs\[0\] must be a list of 2, not of 1"),
        ({"colour": "blue"}, 'outer.colour must be one of red, not "blue"'),
        ({"colour": ["red"]}, r'outer.colour must be one of red, not \["red"\]'),
        ({"by_name": []}, r"outer.by_name must be an object, not \[\]"),
        ({"by_name": {"x": {}}}, "outer.by_name.x must have the field name"),
        ({"on": 1}, "outer.on must be true or false, not 1"),
    ],
)
def test_a_record_that_is_refused(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(DocumentError, match=f"^{sentence}$"):
        read_record(Outer, WHOLE | changes, "outer")


def test_no_object_is_no_record() -> None:
    with pytest.raises(DocumentError, match=r"^outer must be an object, not \[\]$"):
        read_record(Outer, [], "outer")


LONG_KEY = "a" + ".a" * MOST_PARTS


@pytest.mark.parametrize(
    "text",
    [
        f"{LONG_KEY} = 1",
        f"[{LONG_KEY}]",
        f"[[{LONG_KEY}]]",
        f"x = {{{LONG_KEY} = 1}}",
        LONG_KEY.replace(".", " \t. ") + " = 1",
        f"x = 'a' # \"\n{LONG_KEY} = 1",
        f'x = "\\"" # \'\n{LONG_KEY} = 1',
        f'x = """a"""" # \\\n{LONG_KEY} = 1',
        f"x = '''a'''' # '\n{LONG_KEY} = 1",
        "a" + ".'.'" * MOST_PARTS + " = 1",
        "a" + '.""' * MOST_PARTS + " = 1",
    ],
)  # fmt: skip
def test_keys_of_many_parts(text: str) -> None:
    """Before the reader sees them, whose time grows with the square of the parts."""
    with pytest.raises(DocumentError, match=f"^keys must have at most {MOST_PARTS} parts, not {MOST_PARTS + 1}$"):
        parse_toml(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f'x = "{LONG_KEY}"', {"x": LONG_KEY}),
        (f"x = '{LONG_KEY}'", {"x": LONG_KEY}),
        (f'x = """\n\\"""{LONG_KEY}"\n""" # {LONG_KEY}', {"x": f'"""{LONG_KEY}"\n'}),
        (f"x = '''{LONG_KEY}'''''", {"x": f"{LONG_KEY}''"}),
        (f"x = [{'1.5, ' * 100}]", {"x": [1.5] * 100}),
        (f"'{LONG_KEY}'.\"{LONG_KEY}\" = 1", {LONG_KEY: {LONG_KEY: 1}}),
    ],
)  # fmt: skip
def test_dots_that_are_no_keys(text: str, value: object) -> None:
    assert parse_toml(text) == value


def test_keys_are_counted_in_linear_time() -> None:
    """By the work of the pattern: a long word, spaces and quotes that never close."""
    for text in ("9" * 1_000_000, "a" + " " * 1_000_000, 'a."' * 300_000, "'''" + "\\" * 1_000_000, '"""\\' * 250_000):
        with pytest.raises(DocumentError):
            parse_toml(text)


SIGNS = st.text(st.sampled_from("a.-_ \t\"'\\#=[]{}"), max_size=12)
BARE = st.text(st.sampled_from("a1-_"), min_size=1, max_size=3)


def _basic(text: str) -> str:
    return json.dumps(text)


def _value(text: str) -> st.SearchStrategy[str]:
    """The ways of TOML to write a text."""
    ways = [_basic(text), f'"""{text}"""'.replace("\\", "\\\\") if '"""' not in text else "1.5", "[1.5, 2.25]"]
    if "'" not in text:
        ways += [f"'{text}'", f"'''{text}'''"]
    return st.sampled_from(ways)


@given(
    st.lists(st.tuples(st.lists(BARE | SIGNS.map(_basic), min_size=1, max_size=4), SIGNS.flatmap(_value), SIGNS)),
    st.integers(0, 2 * MOST_PARTS),
)
def test_keys_are_counted_whatever_stands_around(rows: list[tuple[list[str], str, str]], parts: int) -> None:
    """Texts, comments, keys in quotes: what the reader takes is taken, and one long key is found."""
    lines = [f"k{number}.{' . '.join(key)} = {value} # {note}" for number, (key, value, note) in enumerate(rows)]
    text = "\n".join([*lines, "long" + ".a" * parts + " = 1"])
    if parts >= MOST_PARTS:
        with pytest.raises(DocumentError, match=f"^keys must have at most {MOST_PARTS} parts, not {parts + 1}$"):
            parse_toml(text)
        return
    try:
        want = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        with pytest.raises(DocumentError, match=f"^{re.escape(str(error))}$"):
            parse_toml(text)
    else:
        assert parse_toml(text) == want


@pytest.mark.parametrize("text", ["a = 0x" + "f" * 5000, "a = [1, {b = 0x8000000000000000}]", f"[[a]]\nb = {1 << 63}"])
def test_integers_that_nobody_counts(text: str) -> None:
    with pytest.raises(DocumentError, match=r"integers must be less than 2\^63"):
        parse_toml(text)
    assert parse_toml("a = [1, {b = 0x7fffffffffffffff}]") == {"a": [1, {"b": (1 << 63) - 1}]}
