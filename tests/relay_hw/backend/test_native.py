"""Native code computes what the interpreter computes, in bounded memory, and fails with the same sentences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relay_hw as relay
from relay_hw.backend.flat import flatten
from relay_hw.backend.native import NativeModule, compile_native, find_compiler
from relay_hw.backend.native.calls import settle_calls
from relay_hw.backend.native.lower import lower
from relay_hw.backend.native.ownership import count_holders
from relay_hw.backend.native.show import show_function
from relay_hw.errors import EvalError
from relay_hw.prelude import list_items, list_value
from relay_hw.runtime.vm import VmExecutor
from relay_hw.transform import InferType
from tests.relay_hw import random_control
from tests.relay_hw.interp.test_functional import LIBRARY, PROGRAMS
from tests.relay_hw.interp.test_functional import plain as as_python
from tests.relay_hw.programs import INPUTS, random_module
from tests.relay_hw.transform.reference import plain

HEADER = '#[version = "0.0.5"]\ntype List[A] { Cons(A, List[A]), Nil, }\n'
pytestmark = pytest.mark.skipif(find_compiler() is None, reason="no C compiler on PATH")


def outcome(function: Any) -> Any:
    try:
        return plain(function())
    except EvalError as error:
        return error.message


def native(text: str) -> NativeModule:
    """All functions of a program."""
    mod = InferType()(relay.fromtext(HEADER + text))
    return compile_native({name: flatten(f, name) for name, f in mod.functions.items()}, mod.types)


def both(mod: relay.IRModule, *args: Any, entry: str = "main") -> tuple[Any, Any]:
    """Outcomes of native code, called twice, and of the interpreter."""
    executor = relay.create_executor("vm", mod, "c")
    have = [outcome(lambda: executor.evaluate(entry)(*args)) for _ in range(2)]
    assert have[0] == have[1]
    return have[0], outcome(lambda: relay.create_executor("debug", mod).evaluate(entry)(*args))


@pytest.mark.parametrize("seed", range(10))
def test_random_programs_have_the_interpreters_value(seed: int) -> None:
    have, want = both(InferType()(random_module(300 + seed, depth=6)), *INPUTS.values())
    assert have == want


@pytest.mark.parametrize("seed", range(4))
def test_random_networks_with_control_flow(seed: int) -> None:
    mod = InferType()(random_control.random_program(seed))
    executor, exact = relay.create_executor("vm", mod, "c"), relay.create_executor("debug", mod)
    data = random_control.inputs(3, seed)
    for k in range(3):
        args = (data["x"][k : k + 1], data["k"][k])
        np.testing.assert_allclose(executor.evaluate()(*args), exact.evaluate()(*args), rtol=2e-5, atol=2e-6)
    assert isinstance(executor, VmExecutor)
    assert executor.native("main").left_to_numpy == ()


def test_polymorphic_and_higher_order_functions() -> None:
    """All programs in one: each is a function of the module."""
    bodies = [f"def @p{k}() {{ {body} }}\n" for k, (body, _) in enumerate(PROGRAMS)]
    mod = InferType()(relay.fromtext(LIBRARY + "".join(bodies)))
    names = [name for name in mod.functions if name.startswith("p")]
    module = compile_native({name: flatten(f, name) for name, f in mod.functions.items()}, mod.types)
    for name, (_, expected) in zip(names, PROGRAMS, strict=True):
        assert as_python(module.call(name, [])) == expected


def test_the_lowered_form_reads_as_a_program() -> None:
    """A loop over numbers has no objects; a list's head is freed before the loop goes on with its tail."""
    mod = InferType()(relay.fromtext(
        HEADER + "def @total(%l: List[int32], %n: int32) -> int32 {"
        " match (%l) { Cons(%h, %t) => { @total(%t, %n + %h) }, Nil => { %n } } }"
    ))  # fmt: skip
    functions, calls = settle_calls(lower({"total": flatten(mod["total"], "total")}, mod.types).functions)
    assert show_function(count_holders(functions[0])).splitlines() == [
        "@0 total(%0, %1:int32) -> int32 {",
        "  match %0 {",
        "    it is 0 {",
        "      %2 = %0.0",
        "      %3:int32 = unbox %2",
        "      drop %2",
        "      %4 = %0.1",
        "      drop %0",
        "      %5:int32 = add(%1:int32, %3:int32)",
        "      again(%4, %5:int32)",
        "    }",
        "    it is 1 {",
        "      drop %0",
        "      return %1:int32",
        "    }",
        "  }",
        "}",
    ]
    assert calls.deep == calls.postponed == frozenset()


def test_loops_run_in_bounded_memory() -> None:
    """A million steps over tensors, closures, tuples and mutual recursion; two megabytes hold what each needs."""
    module = native(
        "def @tensors(%n: int32, %x: Tensor[(600), float32]) -> Tensor[(600), float32] {"
        " if (%n == 0) { %x } else { @tensors(%n - 1, (%x + 1f) * 0.5f) } }"
        "def @closures(%n: int32, %f: fn (int32) -> int32) -> int32 {"
        " if (%n == 0) { %f(1) } else { let %m = mod(%f(%n), 7); @closures(%n - 1, fn (%x: int32) { %x + %m }) } }"
        "def @run(%n: int32) -> int32 { @closures(%n, fn (%x: int32) { %x }) }"
        "def @even(%n: int32) -> bool { if (%n == 0) { True } else { @odd(%n - 1) } }"
        "def @odd(%n: int32) -> bool { if (%n == 0) { False } else { @even(%n - 1) } }"
        "def @passing(%n: int32, %k: fn (int32) -> int32) -> int32 {"
        " if (%n == 0) { %k(0) } else { @back(%n, fn (%x: int32) { %x + 1 }, %k) } }"
        "def @back(%n: int32, %g: fn (int32) -> int32, %k: fn (int32) -> int32) -> int32 { let %d = %g(0);"
        " @passing(%n - %d, %k) }"
        "def @cps(%n: int32) -> int32 { @passing(%n, fn (%x: int32) { %x + 42 }) }"
        "def @pairs(%p: (int32, int32)) -> int32 {"
        " if (%p.0 == 0) { %p.1 } else { @pairs((%p.0 - 1, mod(%p.1 + %p.0, 1000))) } }"
    )
    million = np.int32(1_000_000)
    for name, args, want in (
        ("tensors", [million, np.zeros(600, "float32")], np.ones(600)),
        ("run", [million], None),
        ("even", [million], True),
        ("cps", [million], 42),
        ("pairs", [(million, np.int32(0))], 1_000_000 * 1_000_001 // 2 % 1000),
    ):
        value = module.call(name, args)
        assert want is None or np.array_equal(value, np.asarray(want, value.dtype))
        assert module.most_bytes < 2_000_000


def test_deep_recursion() -> None:
    text = "def @deep(%n: int32) -> int32 { if (%n == 0) { 0 } else { @deep(%n - 1) + 1 } }"
    module = native(text)
    assert module.call("deep", [np.int32(150_000)]) == 150_000
    with pytest.raises(EvalError, match="calls must be nested at most 200000 deep"):
        module.call("deep", [np.int32(250_000)])
    assert module.call("deep", [np.int32(3)]) == 3


def test_long_lists_come_in_and_go_out() -> None:
    module = native(
        "def @rev(%l: List[int32], %to: List[int32]) -> List[int32] {"
        " match (%l) { Cons(%h, %t) => { @rev(%t, Cons(%h * 2, %to)) }, Nil => { %to } } }"
        "def @main(%l: List[int32]) -> List[int32] { @rev(%l, Nil) }"
    )
    value = module.call("main", [list_value([np.int32(k) for k in range(100_000)])])
    assert [int(item) for item in list_items(value)] == [2 * k for k in reversed(range(100_000))]


def test_failures_are_the_interpreters_sentences() -> None:
    text = (
        "def @first(%l: List[int32], %x: Tensor[(2), float32]) -> int32 {"
        " match? ((%l, %x)) { (Cons(%h, _), _) => { %h } } }"
        "def @arm(%l: List[int32]) -> int32 { match? (%l) { Cons(%h, _) => { %h } } }"
        "def @divide(%a: int32, %b: int32) -> int32 { %a / %b }"
        "def @shapes(%x: Tensor[(?), float32], %y: Tensor[(?), float32]) -> Tensor[(?), float32] { %x + %y }"
    )
    mod = InferType()(relay.fromtext(HEADER + text))
    empty = list_value([])
    for entry, args, told in (
        ("first", (empty, np.zeros(2, "float32")), r"match must have an arm for \(Nil of List, Tensor"),
        ("arm", (empty,), "match must have an arm for Nil of List"),
        ("divide", (1, 0), "the divisor of divide must not be 0 in integers"),
        ("shapes", (np.zeros(2, "float32"), np.zeros(3, "float32")), "arguments of add must fit together"),
    ):
        have, want = both(mod, *args, entry=entry)
        assert have == want
        with pytest.raises(EvalError, match=told):
            relay.create_executor("vm", mod, "c").evaluate(entry)(*args)


def test_values_of_other_types_are_refused() -> None:
    """As a file may hold them: nothing is read that is not there."""
    module = native(
        "def @second(%l: List[(int32, int32)]) -> int32 { match? (%l) { Cons(%h, _) => { %h.1 } } }"
        "def @called(%l: List[fn (int32) -> int32]) -> int32 { match? (%l) { Cons(%f, _) => { %f(1) } } }"
    )
    inner = list_value([np.int32(1)])
    for name, item in (("second", np.int32(1)), ("second", list_value([])), ("second", (np.int32(1), inner))):
        with pytest.raises(EvalError, match=r"a (value|tensor) must "):
            module.call(name, [list_value([item])])
    with pytest.raises(EvalError, match="called value must be a function"):
        module.call("called", [list_value([inner])])


def test_functions_and_references_stay_inside() -> None:
    """A function with one as a parameter or a result runs on numpy; one inside of data is told."""
    mod = InferType()(relay.fromtext(
        HEADER + "def @apply(%f: fn (int32) -> int32) -> int32 { %f(3) }"
        "def @make(%n: int32) -> List[fn (int32) -> int32] { Cons(fn (%x: int32) { %x + %n }, Nil) }"
        "def @cell(%n: int32) -> int32 { let %r = ref(%n); let %u = ref_write(%r, ref_read(%r) + 1); ref_read(%r) }"
    ))  # fmt: skip
    executor = relay.create_executor("vm", mod, "c")
    assert executor.evaluate("cell")(4) == 5
    with pytest.raises(EvalError, match="a result must be tensors, tuples and data, not hold a function"):
        executor.evaluate("make")(1)


def test_callbacks_answer_what_c_has_no_form_of() -> None:
    """Operators without a C form, sizes that only run time knows, narrow floats."""
    mod = InferType()(relay.fromtext(
        HEADER + "def @main(%x: Tensor[(?, 2), float32], %h: Tensor[(3), float16]) {"
        " let %s = argsort(%x); let %y = if (sum(%x) > 0f) { %x } else { concatenate((%x, %x)) };"
        " (%s, exp(%y), %h + %h, Cons(cumsum(%y, axis=0), Nil)) }"
    ))  # fmt: skip
    rng = np.random.default_rng(0)
    for sign in (1, -1):
        have, want = both(mod, np.abs(rng.normal(size=(4, 2))).astype("f") * sign, np.ones(3, "float16"))
        assert have == want
