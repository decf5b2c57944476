"""Strands: the machine's values, with all calls open at once that need none of the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relay_hw as relay
from relay_hw.backend import strands
from relay_hw.backend.flat import FlatFunction, Machine, flatten, nested
from relay_hw.backend.nodes import FlatInput, uses
from relay_hw.backend.strands import StrandMachine, Strands, calls_first, is_pure
from relay_hw.errors import EvalError
from relay_hw.interp.values import ConstructorValue
from relay_hw.transform import InferType
from tests.relay_hw.random_control import random_program
from tests.relay_hw.transform.reference import plain

HEADER = '#[version = "0.0.5"]\n'
LEAVES = """type Tree { Leaf(int32), Node(Tree, Tree), }
def @work(%x: int32) -> int32 { %x * 10 }
def @main(%t: Tree) -> int32 {
  match (%t) {
    Leaf(%x) => { @work(%x) },
    Node(%l, %r) => { @main(%l) + @main(%r) * 2 },
  }
}"""


def flat(text: str) -> tuple[relay.IRModule, dict[str, FlatFunction]]:
    mod = InferType()(relay.fromtext(HEADER + text))
    return mod, {name: flatten(function, name) for name, function in mod.functions.items()}


def run(
    functions: dict[str, FlatFunction], args: list[Any], outside: tuple[str, ...] = (), most: int = 100, seed: int = 0
) -> tuple[Any, list[int]]:
    """The value of `main`, requests answered in random order; and how many were open before each answer."""
    inner = {name: function for name, function in functions.items() if name not in outside}
    running = Strands(StrandMachine(inner), functions["main"], args, most)
    rng = np.random.default_rng(seed)
    requests, widths = running.advance(), []
    while requests:
        widths.append(len(requests))
        request = requests.pop(int(rng.integers(len(requests))))
        requests += running.advance(request, Machine({}).call(functions[request.function], request.args))
    return running.value, widths


def tree(mod: relay.IRModule, depth: int) -> ConstructorValue:
    leaf, node = mod.types["Tree"].constructors
    if depth == 0:
        return ConstructorValue(leaf, (np.int32(3),))
    return ConstructorValue(node, (tree(mod, depth - 1), tree(mod, depth - 1)))


@pytest.mark.parametrize("most", [1, 3, 100])
def test_all_leaves_of_a_tree_are_open_at_once(most: int) -> None:
    mod, functions = flat(LEAVES)
    value, widths = run(functions, [tree(mod, 4)], ("work",), most, seed=most)
    assert value == Machine(functions).call(functions["main"], [tree(mod, 4)])
    assert len(widths) == 16 and max(widths) == min(16, most)


def test_the_elements_of_a_mapped_list_are_open_at_once() -> None:
    text = (
        "type List[A] { Cons(A, List[A]), Nil, } def @work(%x: int32) -> int32 { %x + 1 }"
        "def @map(%l: List[int32]) -> List[int32] {"
        " match (%l) { Cons(%h, %t) => { Cons(@work(%h), @map(%t)) }, Nil => { Nil } } }"
        "def @main(%a: int32, %b: int32, %c: int32) -> List[int32] { @map(Cons(%a, Cons(%b, Cons(%c, Nil)))) }"
    )
    _, functions = flat(text)
    value, widths = run(functions, [np.int32(k) for k in range(3)], ("work",))
    assert widths == [3, 2, 1]
    assert [int(value.fields[0]), int(value.fields[1].fields[0])] == [1, 2]


def test_a_call_waits_for_its_arguments_and_a_loop_needs_no_stack() -> None:
    text = (
        "def @work(%x: int32) -> int32 { %x + 1 }"
        "def @main(%n: int32, %x: int32) -> int32 { if (%n > 0) { @main(%n - 1, @work(%x)) } else { %x } }"
    )
    _, functions = flat(text)
    value, widths = run(functions, [np.int32(3_000), np.int32(0)], ("work",))
    assert value == 3_000 and set(widths) == {1}


def test_calls_may_be_nested_so_deep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strands, "MAX_CALL_DEPTH", 100)
    text = "def @main(%n: int32) -> int32 { if (%n > 0) { 1 + @main(%n + 1) } else { 0 } }"
    _, functions = flat(text)
    with pytest.raises(EvalError, match="calls must be nested at most 100 deep"):
        run(functions, [np.int32(1)])


def test_random_programs_have_the_machines_value() -> None:
    compared = 0
    for seed in range(40):
        mod = InferType()(random_program(seed))
        functions = {name: flatten(function, name) for name, function in mod.functions.items()}
        if is_pure(list(functions.values())):
            args = [np.ones(p.tensor_type.static_shape, p.tensor_type.dtype) for p in mod["main"].params]
            assert plain(run(functions, args)[0]) == plain(Machine(functions).call(functions["main"], args)), seed
            compared += 1
    assert compared >= 10


@pytest.mark.parametrize("seed", range(10))
def test_calls_first_keeps_operands_in_front_and_the_tail(seed: int) -> None:
    mod = InferType()(random_program(seed))
    for function in nested(flatten(mod["main"], "main")):
        new = calls_first(function)
        assert [node.name for node in new.params] == [node.name for node in function.params]
        assert all(isinstance(node, FlatInput) for node in new.nodes[: len(new.params)])
        assert all(used < index for index, node in enumerate(new.nodes) for used in uses(node))
        assert len(new.nodes) == len(function.nodes)
        if function.result == len(function.nodes) - 1:
            assert new.result == function.result


def test_effects_are_found_in_inner_functions() -> None:
    pure = "def @main(%x: int32) -> int32 { let %f = fn (%y: int32) -> int32 { %y + 1 }; %f(%x) }"
    writes = "def @main(%x: int32) -> int32 { let %f = fn (%y: int32) -> int32 { ref_read(ref(%y)) }; %f(%x) }"
    prints = "def @main(%x: int32) -> int32 { if (%x > 0) { debug(%x) } else { 0 } }"
    assert [is_pure(list(flat(text)[1].values())) for text in (pure, writes, prints)] == [True, False, False]
