"""The standard library: types as published, values against Python's lists."""

from __future__ import annotations

import sys
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relay_hw as relay
from relay_hw.analysis import infer_type, structural_equal
from relay_hw.errors import EvalError, InputError, ParseError, WellFormedError
from relay_hw.interp import ConstructorValue, create_executor
from relay_hw.prelude import LIBRARIES, Prelude, list_items, list_value, load_library, nat_count, nat_value
from relay_hw.text import parse, print_module

QUICK = settings(max_examples=25, deadline=None)
INTS = st.lists(st.integers(-1000, 1000), max_size=12)

TYPES = {
    "id": "fn [A](A) -> A",
    "compose": "fn [A, B, C](fn (B) -> C, fn (A) -> B) -> fn (A) -> C",
    "flip": "fn [A, B, C](fn (A, B) -> C) -> fn (B, A) -> C",
    "iterate": "fn [A](fn (A) -> A, int32) -> fn (A) -> A",
    "hd": "fn [A](List[A]) -> A",
    "tl": "fn [A](List[A]) -> List[A]",
    "nth": "fn [A](List[A], int32) -> A",
    "update": "fn [A](List[A], int32, A) -> List[A]",
    "length": "fn [A](List[A]) -> int32",
    "foldl": "fn [A, B](fn (A, B) -> A, A, List[B]) -> A",
    "foldr": "fn [A, B](fn (A, B) -> B, B, List[A]) -> B",
    "foldr1": "fn [A](fn (A, A) -> A, List[A]) -> A",
    "sum": "fn (List[int32]) -> int32",
    "map": "fn [A, B](fn (A) -> B, List[A]) -> List[B]",
    "concat": "fn [A](List[A], List[A]) -> List[A]",
    "filter": "fn [A](fn (A) -> bool, List[A]) -> List[A]",
    "zip": "fn [A, B](List[A], List[B]) -> List[(A, B)]",
    "rev": "fn [A](List[A]) -> List[A]",
    "map_accumr": "fn [A, B, C](fn (A, B) -> (A, C), A, List[B]) -> (A, List[C])",
    "map_accuml": "fn [A, B, C](fn (A, B) -> (A, C), A, List[B]) -> (A, List[C])",
    "unfoldr": "fn [A, B](fn (A) -> Option[(A, B)], A) -> List[B]",
    "unfoldl": "fn [A, B](fn (A) -> Option[(A, B)], A) -> List[B]",
    "tmap": "fn [A, B](fn (A) -> B, Tree[A]) -> Tree[B]",
    "size": "fn [A](Tree[A]) -> int32",
}
NAT_TYPES = {
    "nat_double": "fn (nat) -> nat",
    "nat_add": "fn (nat, nat) -> nat",
    "nat_nth": "fn [A](List[A], nat) -> A",
    "nat_update": "fn [A](List[A], nat, A) -> List[A]",
    "nat_iterate": "fn [A](fn (A) -> A, nat) -> fn (A) -> A",
}
GRADIENT_TYPES = {
    "FromGradCell": "fn [T](GradCell[T]) -> T",
    "MultiplyGradCell": "fn [T](fn (T, T) -> T, GradCell[T], GradCell[T]) -> GradCell[T]",
    "AddGradCell": "fn [T](fn (T, T) -> T, GradCell[T], GradCell[T]) -> GradCell[T]",
}

# Each function of the library with functions that neither commute nor associate.
PROGRAM = """#[version = "0.0.5"]
def @affine(%x: int32) -> int32 { 3 * %x + 1 }
def @less(%a: int32, %b: int32) -> int32 { %a - 2 * %b }
def @step(%state: int32, %x: int32) -> (int32, int32) { (2 * %state + %x, %state - %x) }
def @down(%n: int32) -> Option[(int32, int32)] { if (%n <= 0) { None } else { Some((%n - 2, %n * %n)) } }

def @t_id(%xs: List[int32]) -> List[int32] { @id(%xs) }
def @t_compose(%x: int32) -> float32 { @compose(fn (%y: int32) -> float32 { cast(%y, dtype="float32") }, @affine)(%x) }
def @t_flip(%a: int32, %b: int32) -> int32 { @flip(@less)(%a, %b) }
def @t_iterate(%n: int32, %x: int32) -> int32 { @iterate(@affine, %n)(%x) }
def @t_foldl(%xs: List[int32]) -> int32 { @foldl(@less, 7, %xs) }
def @t_foldr(%xs: List[int32]) -> int32 { @foldr(@less, 7, %xs) }
def @t_foldr1(%xs: List[int32]) -> int32 { @foldr1(@less, %xs) }
def @t_map(%xs: List[int32]) -> List[bool] { @map(fn (%x: int32) -> bool { %x < 5 }, %xs) }
def @t_filter(%xs: List[int32]) -> List[int32] { @filter(fn (%x: int32) -> bool { %x < 5 }, %xs) }
def @t_accumr(%xs: List[int32]) -> (int32, List[int32]) { @map_accumr(@step, 3, %xs) }
def @t_accuml(%xs: List[int32]) -> (int32, List[int32]) { @map_accuml(@step, 3, %xs) }
def @t_unfoldr(%n: int32) -> List[int32] { @unfoldr(@down, %n) }
def @t_unfoldl(%n: int32) -> List[int32] { @unfoldl(@down, %n) }
def @t_tmap(%t: Tree[int32]) -> Tree[int32] { @tmap(@affine, %t) }
def @t_nat_iterate(%n: nat, %x: int32) -> int32 { @nat_iterate(@affine, %n)(%x) }
"""
EXECUTOR = create_executor("debug", parse(PROGRAM, init_module=load_library("nat")))


def run(name: str, *args: Any) -> Any:
    return EXECUTOR.evaluate(name)(*args)


def ints(items: list[int]) -> ConstructorValue:
    return list_value([np.int32(item) for item in items])


def back(value: Any) -> list[int]:
    return [int(item) for item in list_items(value)]


def affine(x: int) -> int:
    return 3 * x + 1


def less(a: int, b: int) -> int:
    return a - 2 * b


def step(state: int, x: int) -> tuple[int, int]:
    return 2 * state + x, state - x


@pytest.mark.parametrize(
    ("library", "types"), [("prelude", TYPES), ("nat", TYPES | NAT_TYPES), ("gradient", GRADIENT_TYPES), ("core", {})]
)
def test_types(library: str, types: dict[str, str]) -> None:
    mod = load_library(library)
    assert {name: str(function.checked_type) for name, function in mod.functions.items()} == types


def test_data_types() -> None:
    mod = load_library("nat").import_from_std("gradient").import_from_std("core")
    shown = {
        name: [(item.name_hint, *map(str, item.inputs)) for item in data.constructors]
        for name, data in mod.types.items()
    }
    assert shown == {
        "List": [("Cons", "A", "List[A]"), ("Nil",)],
        "Option": [("Some", "A"), ("None",)],
        "Tree": [("Rose", "A", "List[Tree[A]]")],
        "nat": [("zero",), ("succ", "nat")],
        "GradCell": [("Raw", "T"), ("One", "fn () -> T"), ("Zero", "fn () -> T")],
        "Storage": [],
    }
    assert mod.types["Storage"].extern


@pytest.mark.parametrize("library", LIBRARIES)
def test_libraries_print_and_parse(library: str) -> None:
    mod = load_library(library)
    assert structural_equal(parse(print_module(mod)), mod)


@QUICK
@given(INTS, INTS)
def test_lists_from_lists(xs: list[int], ys: list[int]) -> None:
    assert back(run("t_id", ints(xs))) == xs
    assert [bool(item) for item in list_items(run("t_map", ints(xs)))] == [x < 5 for x in xs]
    assert back(run("t_filter", ints(xs))) == [x for x in xs if x < 5]
    assert back(run("concat", ints(xs), ints(ys))) == xs + ys
    assert back(run("rev", ints(xs))) == xs[::-1]
    pairs = [(int(a), int(b)) for a, b in list_items(run("zip", ints(xs), ints(ys)))]
    assert pairs == list(zip(xs, ys, strict=False))
    assert int(run("length", ints(xs))) == len(xs)
    assert int(run("sum", ints(xs))) == sum(xs)


@QUICK
@given(INTS)
def test_folds(xs: list[int]) -> None:
    small = [x % 10 for x in xs]
    assert int(run("t_foldl", ints(small))) == reduce(less, small, 7)
    assert int(run("t_foldr", ints(small))) == reduce(lambda acc, x: less(x, acc), small[::-1], 7)
    if small:
        assert int(run("t_foldr1", ints(small))) == reduce(lambda acc, x: less(x, acc), small[::-1])


@QUICK
@given(INTS)
def test_maps_with_an_accumulator(xs: list[int]) -> None:
    for name, order in (("t_accumr", xs[::-1]), ("t_accuml", xs)):
        state, made = 3, []
        for x in order:
            state, out = step(state, x)
            made.insert(0, out)
        found = run(name, ints(xs))
        assert (int(found[0]), back(found[1])) == (state, made)


@QUICK
@given(INTS.filter(bool), st.data())
def test_parts_of_lists(xs: list[int], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(xs) - 1))
    assert int(run("hd", ints(xs))) == xs[0]
    assert back(run("tl", ints(xs))) == xs[1:]
    assert int(run("nth", ints(xs), place)) == xs[place]
    assert back(run("update", ints(xs), place, np.int32(5))) == [*xs[:place], 5, *xs[place + 1 :]]
    assert int(run("nat_nth", ints(xs), nat_value(place))) == xs[place]
    assert back(run("nat_update", ints(xs), nat_value(place), np.int32(5))) == [*xs[:place], 5, *xs[place + 1 :]]


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("hd", ([],)),
        ("tl", ([],)),
        ("t_foldr1", ([],)),
        ("nth", ([1, 2], 2)),
        ("nth", ([1, 2], -1)),
        ("update", ([1], 1, np.int32(0))),
        ("nat_nth", ([1], nat_value(1))),
        ("nat_update", ([], nat_value(0), np.int32(0))),
    ],
)
def test_partial_functions_say_what_is_missing(name: str, args: tuple[Any, ...]) -> None:
    with pytest.raises(EvalError, match=r"prelude\.relay:.*match must have an arm for Nil of List"):
        run(name, ints(args[0]), *args[1:])


@QUICK
@given(st.integers(-3, 12), st.integers(-50, 50))
def test_functions_of_functions(n: int, x: int) -> None:
    expected = reduce(lambda value, _: affine(value), range(n), x)
    assert int(run("t_iterate", n, x)) == expected
    assert int(run("t_nat_iterate", nat_value(max(n, 0)), x)) == expected
    composed = run("t_compose", x)
    assert composed.dtype == np.float32 and float(composed) == affine(x)
    assert int(run("t_flip", n, x)) == less(x, n)


@QUICK
@given(st.integers(-3, 40))
def test_lists_from_a_seed(n: int) -> None:
    expected = [state * state for state in range(n, 0, -2)]
    assert back(run("t_unfoldr", n)) == expected
    assert back(run("t_unfoldl", n)) == expected[::-1]


@QUICK
@given(st.integers(0, 30), st.integers(0, 30))
def test_natural_numbers(a: int, b: int) -> None:
    assert nat_count(run("nat_add", nat_value(a), nat_value(b))) == a + b
    assert nat_count(run("nat_double", nat_value(a))) == 2 * a


TREES = st.recursive(
    st.tuples(st.integers(-99, 99), st.just([])),
    lambda child: st.tuples(st.integers(-99, 99), st.lists(child, max_size=3)),
    max_leaves=15,
)


def tree_value(tree: tuple[int, list]) -> ConstructorValue:
    (rose,) = load_library("prelude").types["Tree"].constructors
    return ConstructorValue(rose, (np.int32(tree[0]), list_value([tree_value(child) for child in tree[1]])))


def tree_items(value: ConstructorValue) -> tuple[int, list]:
    return int(value.fields[0]), [tree_items(child) for child in list_items(value.fields[1])]


def tree_map(tree: tuple[int, list]) -> tuple[int, list]:
    return affine(tree[0]), [tree_map(child) for child in tree[1]]


def tree_size(tree: tuple[int, list]) -> int:
    return 1 + sum(map(tree_size, tree[1]))


@QUICK
@given(TREES)
def test_trees(tree: tuple[int, list]) -> None:
    assert int(run("size", tree_value(tree))) == tree_size(tree)
    assert tree_items(run("t_tmap", tree_value(tree))) == tree_map(tree)


CELLS = """#[version = "0.0.5"]
def @cell(%kind: int32, %x: int32, %forced: ref(int32)) -> GradCell[int32] {
  if (%kind == 0) { Raw(%x) } else {
    if (%kind == 1) { One(fn () -> int32 { ref_write(%forced, ref_read(%forced) + 1); 1 }) }
    else { Zero(fn () -> int32 { ref_write(%forced, ref_read(%forced) + 1); 0 }) }
  }
}
def @product(%i: int32, %a: int32, %j: int32, %b: int32) -> (int32, int32) {
  let %forced = ref(0);
  let %both = @MultiplyGradCell(fn (%x: int32, %y: int32) -> int32 { %x * %y },
                                @cell(%i, %a, %forced), @cell(%j, %b, %forced));
  let %early = ref_read(%forced);
  (@FromGradCell(%both), %early)
}
def @total(%i: int32, %a: int32, %j: int32, %b: int32) -> (int32, int32) {
  let %forced = ref(0);
  let %both = @AddGradCell(fn (%x: int32, %y: int32) -> int32 { %x + %y },
                           @cell(%i, %a, %forced), @cell(%j, %b, %forced));
  let %early = ref_read(%forced);
  (@FromGradCell(%both), %early)
}
"""


def test_lazy_gradients_compute_no_more_than_they_must() -> None:
    mod = parse(CELLS, init_module=load_library("gradient"))
    executor = create_executor("debug", mod)
    for i in range(3):
        for j in range(3):
            a, b = (5, 1, 0)[i], (7, 1, 0)[j]
            product, early = executor.evaluate("product")(i, 5, j, 7)
            assert (int(product), int(early)) == (a * b, 0)
            total, early = executor.evaluate("total")(i, 5, j, 7)
            # A side that is not zero must be looked at, unless the other is.
            assert (int(total), int(early)) == (a + b, 0 if 2 in (i, j) else (i == 1) + (j == 1))


def test_long_lists_need_no_deep_python_stack() -> None:
    depth = sys.getrecursionlimit()
    many = list(range(3000))
    found = back(run("concat", ints(many), ints([1])))
    assert found == [*many, 1] and all(a < b for a, b in pairwise(found[:-1]))
    assert sys.getrecursionlimit() == depth


def test_prelude_as_scripts_use_it() -> None:
    mod = relay.IRModule()
    p = relay.prelude.Prelude(mod)
    p.import_from_std("nat.rly")
    assert not mod.functions and "nat_add" in p.mod.functions
    header, cons, nil = p.mod.get_type("List")
    assert header == p.get_type("List") and cons is p.get_ctor("List", "Cons") and nil is p.get_ctor("List", "Nil")
    ones = relay.Call(cons, [relay.const(1), relay.Call(cons, [relay.const(2), relay.Call(nil, [])])])
    x = relay.var("x", "int32")
    same = relay.Function([x], relay.Call(p.id, [x]))
    main = relay.Function([], relay.Call(p.sum, [relay.Call(p.map, [same, ones])]))
    value = relay.create_executor("debug", mod=p.mod.with_functions({"main": main})).evaluate()()
    assert int(value) == 3


def test_importing_twice_changes_nothing() -> None:
    once = relay.IRModule().import_from_std("prelude.rly")
    again = once.import_from_std("prelude")
    assert dict(again.functions) == dict(once.functions) and dict(again.types) == dict(once.types)
    # The library's own text, read as a part of a user's, is the library.
    copy = parse(print_module(once)).import_from_std("prelude")
    assert structural_equal(infer_type(copy), once)


def test_refusals() -> None:
    with pytest.raises(
        InputError, match="library must be one of prelude, nat, sequence, containers, gradient, core, not lists"
    ):
        load_library("lists.rly")
    mine = parse('#[version = "0.0.5"] def @map(%x: int32) { %x }')
    with pytest.raises(WellFormedError, match="@map must be the library's or have another name"):
        mine.import_from_std("prelude")
    mine = parse('#[version = "0.0.5"] type List[A] { Nil }')
    with pytest.raises(WellFormedError, match="type List must be the library's or have another name"):
        mine.import_from_std("prelude")
    mine = parse('#[version = "0.0.5"] type Many { Nil }')
    with pytest.raises(WellFormedError, match="constructor Nil must belong to List, not Many"):
        mine.import_from_std("prelude")
    p = Prelude()
    with pytest.raises(AttributeError, match="Prelude has no function 'mapp'"):
        _ = p.mapp
    with pytest.raises(InputError, match="function must be one of the module, not mapp"):
        p.get_global_var("mapp")
    with pytest.raises(InputError, match="type must be one of List, Option, Tree, not Lists"):
        p.get_type("Lists")
    with pytest.raises(InputError, match="constructor of List must be one of Cons, Nil, not cons"):
        p.get_ctor("List", "cons")
    with pytest.raises(InputError, match="value must be a list, not Tensor"):
        list_items(np.zeros(3, "float32"))
    with pytest.raises(InputError, match="value must be a natural number, not Nil of List"):
        nat_count(list_value([]))
    with pytest.raises(InputError, match="natural number must be at least 0, not -1"):
        nat_value(-1)


def test_text_that_uses_the_library_must_not_define_it_again() -> None:
    given_main = parse('#[version = "0.0.5"] def @main() { 1 }')
    with pytest.raises(ParseError, match="@main must be defined once"):
        parse("2", init_module=given_main)
    with pytest.raises(ParseError, match="type List must be defined once"):
        parse('#[version = "0.0.5"] type List { Nil2 }', init_module=load_library("prelude"))
    with pytest.raises(ParseError, match="@hd must be defined once"):
        parse('#[version = "0.0.5"] def @hd() { 1 }', init_module=load_library("prelude"))


def test_a_library_is_one_under_all_its_names() -> None:
    for name in LIBRARIES:
        assert load_library(f"{name}.rly") is load_library(name) is load_library(f"{name}.relay")
    prelude = Prelude()
    for name in ("prelude.rly", "nat.rly", "nat"):
        prelude.import_from_std(name)
    assert infer_type(prelude.mod).functions.keys() == prelude.mod.functions.keys()


def test_a_library_fits_types_that_were_read_from_text() -> None:
    """Its functions meet the module's constructors, which are other objects with other type parameters."""
    prelude = Prelude(parse(print_module(Prelude().mod)))
    prelude.import_from_std("nat")
    typed = infer_type(prelude.mod)
    assert str(typed["nat_update"].checked_type) == NAT_TYPES["nat_update"]


CONTAINERS = """#[version = "0.0.5"]
def @same(%a: int32, %b: int32) -> bool { %a == %b }
def @fill(%keys: List[int32], %values: List[int32]) -> Dict[int32, int32] {
  @foldl(fn (%d: Dict[int32, int32], %p: (int32, int32)) -> Dict[int32, int32] { @dict_set(@same, %d, %p.0, %p.1) },
         Empty, @zip(%keys, %values))
}
def @look(%keys: List[int32], %values: List[int32], %key: int32)
    -> (List[(int32, int32)], int32, List[(int32, int32)]) {
  let %d = @dict_map(fn (%v: int32) -> int32 { %v * 2 }, @fill(%keys, %values));
  (@dict_items(%d), @dict_get_or(@same, %d, %key, 0 - 7), @dict_items(@dict_remove(@same, %d, %key)))
}
def @cells(%xs: List[int32], %n: int32, %v: int32) -> (List[int32], int32) {
  let %list = ref(%xs);
  let %number = ref(%v);
  @list_set(%list, %n, %v);
  @list_append(%list, %n);
  @update_ref(%number, fn (%x: int32) -> int32 { %x + @length(ref_read(%list)) });
  @update_ref(%number, fn (%x: int32) -> int32 { %x * 10 });
  (ref_read(%list), ref_read(%number))
}
def @total[n: Dim, k: Dim](%x: Tensor[(n, k), float32]) -> float32 { sum(%x) }
def @totals(%x: Tensor[(2, 3), float32], %y: Tensor[(4, 1), float32]) -> List[float32] {
  let %all = Cons(@hide_sizes(%x), Cons(@hide_sizes(%y), Nil));
  @map(fn (%m: SomeMatrix) -> float32 { @with_matrix(%m, @total) }, %all)
}
"""


def contained(name: str, *args: Any) -> Any:
    mod = parse(CONTAINERS, init_module=load_library("containers"))
    return create_executor("debug", mod).evaluate(name)(*args)


@QUICK
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-99, 99)), max_size=10), st.integers(0, 5))
def test_dictionaries_are_those_of_python(pairs: list[tuple[int, int]], key: int) -> None:
    columns = [list_value([np.int32(pair[at]) for pair in pairs]) for at in (0, 1)]
    wanted = {k: 2 * v for k, v in pairs}
    items, value, rest = contained("look", *columns, np.int32(key))
    assert [(int(k), int(v)) for k, v in list_items(items)] == list(wanted.items())
    assert int(value) == wanted.pop(key, -7)
    assert [(int(k), int(v)) for k, v in list_items(rest)] == list(wanted.items())


def test_lists_in_cells_change_in_place_and_cells_by_functions() -> None:
    xs, number = contained("cells", list_value([np.int32(x) for x in (5, 6, 7)]), np.int32(1), np.int32(9))
    assert [int(x) for x in list_items(xs)] == [5, 9, 7, 1] and int(number) == (9 + 4) * 10


def test_a_list_holds_matrices_of_different_sizes() -> None:
    found = contained("totals", np.ones((2, 3), "float32"), np.ones((4, 1), "float32"))
    assert [float(x) for x in list_items(found)] == [6, 4]
