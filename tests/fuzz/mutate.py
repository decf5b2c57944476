"""Mutations of bytes, of text by its tokens, and of JSON by its tree. In: a seed and an input. Out: another input."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

INTEGERS: Final = (
    0,
    1,
    -1,
    2,
    7,
    127,
    128,
    255,
    256,
    32767,
    65536,
    1 << 24,
    (1 << 31) - 1,
    1 << 31,
    -(1 << 31),
    1 << 32,
)
INTEGERS_OF_JSON: Final = (*INTEGERS, (1 << 63) - 1, 1 << 63, -(1 << 63), 1 << 64, 10**30, 10**400)
STRINGS: Final = (
    "",
    "x",
    "0",
    "-1",
    "x" * 3000,
    "\x1b]0;x\x07",
    "a\nb",
    "\u202e",
    "\ud800",
    "../x",
    "/etc/passwd",
    "\0",
    '"',
)
NUMBERS: Final = (
    "0",
    "-0",
    "1",
    "-1",
    "2147483648",
    "9223372036854775808",
    "1" * 60,
    "1" * 5000,
    "1e999",
    "0x1f",
    "1.5",
)
MARKS: Final = ("\x1b", "\0", "\r", "\n", "\t", "é", "\u202e", "\u2028", "٣", "²", "\ufeff", "🤖", "\x85", "\ud83e")
_TOKEN: Final = re.compile(r"\s+|\w+|.", re.S)


def bytes_of(rng: Random, seeds: Sequence[bytes]) -> bytes:
    """One of `seeds`, its bytes changed in up to sixteen places."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 1, 2, 2, 4, 8, 16))):
        rng.choice(_BYTES)(rng, data, seeds)
    return bytes(data)


def _span(rng: Random, data: bytearray, most: int = 64) -> tuple[int, int]:
    begin = rng.randrange(len(data) + 1)
    return begin, min(len(data), begin + rng.randrange(1, most))


def _flip(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def _integer(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    size = rng.choice((2, 4, 8))
    begin = rng.randrange(max(1, len(data) - size))
    value = rng.choice(INTEGERS) % (1 << (8 * size))
    data[begin : begin + size] = value.to_bytes(size, rng.choice(("little", "big")))


def _insert(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    begin = rng.randrange(len(data) + 1)
    data[begin:begin] = rng.randbytes(rng.choice((1, 2, 8, 64)))


def _delete(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    begin, end = _span(rng, data)
    del data[begin:end]


def _double(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    begin, end = _span(rng, data, 512)
    data[end:end] = data[begin:end]


def _cut(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    del data[rng.randrange(len(data) + 1) :]


def _splice(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    other = bytearray(rng.choice(seeds))
    begin, end = _span(rng, other, 512)
    place = rng.randrange(len(data) + 1)
    data[place:place] = other[begin:end]


_BYTES: Final = (_flip, _flip, _set, _set, _integer, _integer, _insert, _delete, _double, _cut, _splice)


def text_of(rng: Random, seeds: Sequence[str], words: Sequence[str] = ()) -> bytes:
    """One of `seeds`, its tokens changed in a few places; `words` are such as its language knows."""
    tokens = _TOKEN.findall(rng.choice(seeds))
    if rng.random() < 0.5:
        return _gently(rng, tokens, words).encode(errors="surrogatepass")
    others = _TOKEN.findall(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 1, 2, 2, 4, 8))):
        place = rng.randrange(len(tokens) + 1)
        match rng.randrange(9):
            case 0:
                del tokens[place : place + rng.choice((1, 1, 1, 3, 10))]
            case 1:
                tokens[place:place] = tokens[place : place + rng.choice((1, 1, 4, 16))]
            case 2:
                begin = rng.randrange(len(others) + 1)
                tokens[place:place] = others[begin : begin + rng.choice((1, 4, 16, 64))]
            case 3:
                tokens[place : place + 1] = [rng.choice((*words, "x"))]
            case 4:
                tokens[place : place + 1] = [rng.choice(NUMBERS)]
            case 5:
                tokens[place:place] = [rng.choice(MARKS)]
            case 6:
                tokens[place:place] = [rng.choice((*words, *"([{<-!+,;:.\"'/")) * rng.choice((2, 50, 300, 2000))]
            case 7:
                numbers = [k for k, token in enumerate(tokens) if token.isdecimal()] or [0]
                tokens[(at := rng.choice(numbers)) : at + 1] = [rng.choice(NUMBERS)]
            case _:
                other = rng.randrange(len(tokens) + 1)
                tokens[place : place + 1], tokens[other : other + 1] = (
                    tokens[other : other + 1],
                    tokens[place : place + 1],
                )
    return "".join(tokens).encode(errors="surrogatepass")


def _gently(rng: Random, tokens: list[str], words: Sequence[str]) -> str:
    """Words become other words of the text or its language, numbers other numbers: most of it can still be read."""
    found = [k for k, token in enumerate(tokens) if token.isalnum()]
    for _ in range(rng.choice((1, 1, 1, 2, 3)) if found else 0):
        place = rng.choice(found)
        if tokens[place].isdecimal():
            tokens[place] = rng.choice(("0", "1", "2", "3", "16", "255", "65536", "2147483647"))
        else:
            alike = [tokens[k] for k in found if not tokens[k].isdecimal()]
            tokens[place] = rng.choice((*alike, *words)) if rng.random() < 0.2 else rng.choice(alike)
    return "".join(tokens)


Tree = Any


def tree_of(rng: Random, seeds: Sequence[Tree], mend: Callable[[Tree], Tree] = lambda tree: tree) -> bytes:
    """The JSON text of one of `seeds`, its tree changed in a few places, then mended; sometimes its bytes too."""
    tree = copy.deepcopy(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 1, 2, 2, 4))):
        tree = _changed(rng, tree, rng.choice(seeds))
    text = json.dumps(mend(tree)).encode()
    return bytes_of(rng, [text]) if rng.random() < 0.1 else text


def _changed(rng: Random, tree: Tree, other: Tree) -> Tree:
    """`tree` with one value, key or element changed."""
    places = list(_places(tree))
    if not places:
        return strange(rng)
    holder, key = rng.choice(places)
    match rng.randrange(8):
        case 0:
            del holder[key]
        case 1 | 2:
            holder[key] = strange(rng)
        case 3:
            source, name = rng.choice(list(_places(other)) or [(holder, key)])
            holder[key] = copy.deepcopy(source[name])
        case 4 if isinstance(holder, dict):
            holder[rng.choice((*holder, "x", ""))] = holder.pop(key)
        case 4 | 5 if isinstance(holder, list):
            holder[key:key] = [copy.deepcopy(holder[key])] * rng.choice((1, 2, 50))
        case _:
            holder[key] = _near(rng, holder[key])
    return tree


def _places(tree: Tree) -> list[tuple[Any, Any]]:
    """Every holder in a tree with every key of it."""
    found: list[tuple[Any, Any]] = []
    level = [tree]
    while level:
        holder = level.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()
        found += [(holder, key) for key in keys]
        level += [holder[key] for key in keys]
    return found


def _near(rng: Random, value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return value + rng.choice((1, -1, 16, -16, -2 * value))
        case float():
            return rng.choice((-value, value * 1e30, float("nan"), float("inf"), value // 1))
        case str():
            return rng.choice((value + "x", value[:-1], value * 50, value.upper(), value[:1], "%" + value))
        case list():
            return rng.choice((value[::-1], value[1:], value + value, {"0": value}))
        case _:
            return strange(rng)


def strange(rng: Random) -> Any:
    """A value that a document need not expect."""
    match rng.randrange(6):
        case 0:
            return rng.choice(INTEGERS_OF_JSON)
        case 1:
            return rng.choice(STRINGS)
        case 2:
            return rng.choice((None, True, False, 0.5, 1e308, float("nan"), float("-inf")))
        case 3:
            return rng.choice(([], {}, [[]], [None], {"x": None}, [0] * 100, [[0], [0]]))
        case 4:
            return _deep(rng.choice((5, 60, 150, 250)), rng.random() < 0.5)
        case _:
            return rng.randrange(-4, 40)


def _deep(depth: int, is_list: bool) -> Any:
    found: Any = 0
    for _ in range(depth):
        found = [found] if is_list else {"x": found}
    return found
