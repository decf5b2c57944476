"""A function that takes much is hard to call: few but builders of operators take more than six values, and none of ours
more than eight."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.house.arrows import SOURCES
from tests.house.sources import ROOT, nodes_of

FEW, MANY = 6, 8
MOST_WITH_MORE = 6
# Builders of operators take an operator's arguments and each of its attributes, by place or by name, as Relay's scripts
# call them. They keep that: with a record of attributes such calls would have to be written anew; `**attributes` with a
# TypedDict would give each name and type a second home beside the record in the same file, refuse calls by place, and
# leave names that are misspelt to the type checker, where Python itself refuses them.
BUILDERS = {
    "boxes.py:non_max_suppression",
    "conv.py:build",
    "conv_transpose.py:build",
    "fixed_scale.py:add",
    "fixed_sums.py:conv2d_transpose",
    "fixed_scale.py:requantize",
    "norm.py:batch_norm",
    "patches.py:deformable_conv2d",
    "pool.py:build",
    "qnn_arith.py:build",
    "qnn_arith.py:conv2d",
    "qnn_floats.py:avg_pool2d",
    "qnn_products.py:conv2d_transpose",
    "qnn_scale.py:requantize",
    "resize.py:build",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def count(function: Function) -> int:
    """Values that a caller may give by position or name; the object of a method is none."""
    args = function.args
    names = [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def long_ones() -> Iterator[tuple[Path, Function]]:
    for path in SOURCES:
        for node in nodes_of(path):
            if isinstance(node, Function) and count(node) > FEW:
                yield path.relative_to(ROOT), node


def is_builder(path: Path, function: Function) -> bool:
    """Whether a function makes a call of an operator."""
    is_call = function.returns is not None and ast.unparse(function.returns) == "Call"
    return path.parent == Path("relay_hw/op") and is_call


def test_few_functions_take_more_than_six_values() -> None:
    found = [f"{path}:{one.lineno} {one.name}" for path, one in long_ones() if not is_builder(path, one)]
    assert len(found) <= MOST_WITH_MORE, "\n".join(found)


def test_none_but_builders_and_names_of_tvm_takes_more_than_eight() -> None:
    found = [(path, function) for path, function in long_ones() if count(function) > MANY]
    found = [(path, function) for path, function in found if path.parts[:2] != ("relay_hw", "compat")]
    assert all(is_builder(*one) for one in found), found
    assert {f"{path.name}:{function.name}" for path, function in found} == BUILDERS


def test_what_is_counted() -> None:
    source = "class A:\n    def f(self, a, /, b, *rest, c=1, **more): ...\ndef g(self): ...\nasync def h(x, y): ..."
    nodes = ast.walk(ast.parse(source))
    assert {node.name: count(node) for node in nodes if isinstance(node, Function)} == {"f": 3, "g": 0, "h": 2}
