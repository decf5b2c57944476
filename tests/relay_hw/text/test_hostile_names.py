"""Modules from JSON whose names are a stranger's: as text they are the same module, or they are refused."""

from __future__ import annotations

import json
import re
from io import StringIO
from tokenize import COMMENT, generate_tokens

import pytest

from relay_hw.backend.python_code import to_python
from relay_hw.errors import ParseError
from relay_hw.ir.module import IRModule
from relay_hw.text import load_json, parse, print_module, save_json
from tests.hostile import NAMES

TEXT = """#[version = "0.0.5"]
type Pair[A] { Both(A, A), Neither }
def @helper[n: Dim](%x: Tensor[(n), float32]) -> Tensor[(n), float32] { add(%x, %x) }
def @main(%x: Tensor[(2), float32]) -> Tensor[(2), float32] {
  let %p = Both(%x, %x);
  match (%p) { Both(%a, %b) => @helper(%a), Neither => %x }
}
"""
JSON = save_json(parse(TEXT))
# The module has a @main already.
FREE = tuple(name for name in NAMES if name != "main")


def shape_of(mod: IRModule) -> str:
    """The text of a module with every name replaced by its kind."""
    return re.sub(r"([%@])[\w:./]+", r"\1", print_module(mod))


@pytest.mark.parametrize("old", ["helper", "p", "x", "n", "A"])
def test_text_writes_other_names_for_those_that_it_cannot_hold(old: str) -> None:
    for name in FREE:
        mod = load_json(JSON.replace(json.dumps(old), json.dumps(name)))
        again = parse(print_module(mod))
        assert shape_of(again) == shape_of(mod) and len(again.functions) == 2, name


@pytest.mark.parametrize(("old", "what"), [("Pair", "a type's name"), ("Both", "a constructor's name")])
def test_names_of_types_are_words(old: str, what: str) -> None:
    taken: list[str] = []
    for name in NAMES:
        try:
            mod = load_json(JSON.replace(json.dumps(old), json.dumps(name)))
        except ParseError as error:
            assert re.search(rf"{what} must be a word of Relay text, not ", str(error)), name
        else:
            taken.append(name)
            assert print_module(parse(print_module(mod))) == print_module(mod)
    assert taken and all(re.fullmatch(r"[A-Za-z_][\w/]*", name, re.A) for name in taken)


def test_layouts_are_words() -> None:
    text = JSON.replace('"dtype": "float32"}', '"dtype": "float32", "layout": "N] int32, 7"}')
    assert text != JSON
    with pytest.raises(ParseError, match="a layout must be a word of Relay text, not 'N] int32, 7'"):
        load_json(text)


def test_python_is_made_of_names_of_its_own() -> None:
    for old in ("helper", "p", "x"):
        for name in FREE:
            mod = load_json(JSON.replace(json.dumps(old), json.dumps(name)))
            found = to_python(mod)
            assert len(found.functions) == 2
            # A comment, to the end of its line, holds any name; the code has only names that are made for it.
            lines = found.source.splitlines()
            tokens = generate_tokens(StringIO(found.source).readline)
            comments = [token.string for token in tokens if token.type == COMMENT]
            assert comments == [line for line in lines if line.startswith("#")] and len(comments) == 2
            code = "\n".join(line for line in lines if not line.startswith("#"))
            assert code.isascii() and re.fullmatch(r"[\w\s.,:()=\[\]{}'<>!+*/%-]*", code), name
