"""Branches, local functions, functions as values and recursion through TVM; and what is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay_hw.analysis import infer_type
from relay_hw.backend.flat import FlatFunction, evaluate, flatten
from relay_hw.backend.tvm import build_library, load_library
from relay_hw.text import parse
from tests.needs import needs_tvm

pytestmark = needs_tvm

PROGRAM = """#[version = "0.0.5"]
def @fact(%n: int32, %acc: int32) -> int32 {
  if (less_equal(%n, 1)) { %acc } else { @fact(subtract(%n, 1), multiply(%acc, %n)) }
}
def @even(%n: int32) -> bool { if (equal(%n, 0)) { True } else { @odd(subtract(%n, 1)) } }
def @odd(%n: int32) -> bool { if (equal(%n, 0)) { False } else { @even(subtract(%n, 1)) } }
def @twice(%f: fn(Tensor[(4), float32]) -> Tensor[(4), float32], %x: Tensor[(4), float32])
    -> Tensor[(4), float32] { %f(%f(%x)) }
def @double(%x: Tensor[(4), float32]) -> Tensor[(4), float32] { add(%x, %x) }
def @main(%x: Tensor[(4), float32], %c: bool) {
  let %k = multiply(%x, 2f);
  let %g = fn (%y: Tensor[(4), float32]) -> Tensor[(4), float32] { add(%y, %k) };
  let %t = if (%c) { (%g(%x), (tanh(%x), %x)) } else { (%x, (@twice(%g, %x), %k)) };
  (%t.0, %t.1, @twice(@double, %x), %g(%k))
}
def @loop(%n: int32) -> int32 {
  let %step = fn (%i: int32, %sum: int32) -> int32 {
    if (equal(%i, 0)) { add(%sum, %n) } else { %step(subtract(%i, 1), add(%sum, %i)) }
  };
  %step(%n, 0)
}
def @open(%x: Tensor[(?, 3), float32]) { multiply(%x, %x) }
"""
MODULE = infer_type(parse(PROGRAM))
NAMES = ("fact", "even", "odd", "twice", "double", "main", "loop", "open")
FUNCTIONS: dict[str, FlatFunction] = {name: flatten(MODULE[name], name) for name in NAMES}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path: Path = tmp_path_factory.mktemp("structure") / "host.so"
    record = build_library(list(FUNCTIONS.values()), path, recursion=True)
    return record, load_library(path, record)


def same(got: Any, want: Any) -> None:
    if isinstance(want, tuple):
        assert isinstance(got, tuple) and len(got) == len(want)
        for left, right in zip(got, want, strict=True):
            same(left, right)
    else:
        assert got.dtype == np.asarray(want).dtype
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("condition", [True, False])
def test_branches_and_closures(built: Any, condition: bool) -> None:
    args = [np.linspace(-1, 2, 4, dtype=np.float32), np.bool_(condition)]
    same(built[1].call("main", args), evaluate(FUNCTIONS["main"], args, FUNCTIONS))


@pytest.mark.parametrize(("name", "args"), [("fact", (6, 1)), ("even", (9,)), ("even", (10,)), ("loop", (17,))])
def test_recursion(built: Any, name: str, args: tuple[int, ...]) -> None:
    given = [np.int32(value) for value in args]
    same(built[1].call(name, given), evaluate(FUNCTIONS[name], given, FUNCTIONS))


def test_unknown_shapes_fall_back_whole(built: Any) -> None:
    record, _ = built
    assert record.functions == NAMES[:-1]
    assert record.left_to_numpy == {"open": ("multiply",)}


def test_recursion_is_left_out_unless_asked_for(tmp_path: Path) -> None:
    record = build_library(list(FUNCTIONS.values()), tmp_path / "host.so")
    assert record.functions == ("twice", "double", "main")
