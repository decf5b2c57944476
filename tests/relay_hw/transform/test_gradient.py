"""Gradients of whole programs: to the third order against PyTorch's autograd, against small steps without PyTorch.

And what cannot be differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relay_hw as relay
from relay_hw import op
from relay_hw.errors import InputError, UnsupportedError
from relay_hw.ir.expr import Function
from relay_hw.ir.types import TensorType, TupleType
from relay_hw.transform import gradient, gradient_module
from tests.relay_hw.transform import dual_numbers
from tests.relay_hw.transform.dual_numbers import DualNumbers
from tests.relay_hw.transform.real_programs import real_programs

try:
    import torch
except ImportError:
    torch = None
needs_torch = pytest.mark.skipif(torch is None, reason="torch, of the extra autograd, is not installed")

HEADER = '#[version = "0.0.5"]\ntype List[A] { Cons(A, List[A]), Nil, }\n'


def sum_of_slopes(mod: relay.IRModule, name: str) -> relay.IRModule:
    """`@name`: the sum of all slopes that `@name_g`, its gradient, gives: the next function to differentiate."""
    entry = "main" if name == "d1" else f"d{int(name[1:]) - 1}"
    mod = gradient_module(mod, entry, f"{name}_g")
    old = mod[f"{name}_g"]
    params = [relay.Var(param.name_hint, param.type) for param in old.params]
    slopes = relay.TupleGetItem(relay.Call(relay.GlobalVar(f"{name}_g"), params), 1)
    terms = [
        op.sum(relay.TupleGetItem(slopes, at))
        for at, param in enumerate(params)
        if isinstance(param.type_annotation, TensorType) and param.type_annotation.dtype == "float64"
    ]
    total = terms[0]
    for term in terms[1:]:
        total = op.add(total, term)
    return relay.transform.InferType()(mod.with_functions({name: Function(params, total, TensorType((), "float64"))}))


def torch_slopes(function: Callable[..., Any], values: Sequence[Any], order: int) -> list[np.ndarray]:
    """The gradients of the sum of slopes of the sum of slopes ..., as PyTorch computes them."""
    tensors = [
        torch.tensor(np.asarray(v), requires_grad=True) if np.asarray(v).dtype.kind == "f" else v for v in values
    ]
    reals = [t for t in tensors if isinstance(t, torch.Tensor)]
    total = function(*tensors).sum()
    found: list[Any] = []
    for _ in range(order):
        if total.requires_grad:
            found = list(torch.autograd.grad(total, reals, create_graph=True, allow_unused=True))
        else:
            found = [None] * len(reals)
        found = [torch.zeros_like(t) if slope is None else slope for slope, t in zip(found, reals, strict=True)]
        total = sum(slope.sum() for slope in found)
    return [slope.detach().numpy() for slope in found]


def check(mod: relay.IRModule, function: Callable[..., Any], values: Sequence[Any], order: int) -> None:
    for step in range(1, order + 1):
        mod = sum_of_slopes(mod, f"d{step}")
        _, slopes = relay.create_executor("debug", mod).evaluate(f"d{step}_g")(*values)
        reals = [slope for slope in slopes if slope.dtype.kind == "f"]
        for found, expected in zip(reals, torch_slopes(function, values, step), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


def power(x: Any, n: int) -> Any:
    return 1.0 if n == 0 else power(x, n - 1) * x


def list_program(x: Any, y: Any, n: int) -> Any:
    items = [x, y * x, x + y]
    total = 0
    for item in items:
        total = total * 0.5 + torch.sin(item) * y if item > 0.5 else total + item * item * x
    return total


def nested(x: Any, y: Any) -> Any:
    scale = x * y
    add = lambda a: a + scale * x  # noqa: E731
    return add(add(y)) * torch.exp(x)


PROGRAMS: dict[str, tuple[str, Callable[..., Any], tuple[Any, ...]]] = {
    "if": (
        "def @main(%x: float64, %y: float64) -> float64 { if (%x > %y) { %x * %x * %y } else { %y * sin(%x) } }",
        lambda x, y: x * x * y if x > y else y * torch.sin(x),
        (1.5, 0.5),
    ),
    "recursion": (
        "def @main(%x: float64, %n: int32) -> float64 { if (%n == 0) { 1f64 } else { @main(%x, %n - 1) * %x } }",
        power,
        (1.3, np.int32(5)),
    ),
    "list": (
        """def @step(%f: fn (float64, float64) -> float64, %acc: float64, %l: List[float64]) -> float64 {
  match (%l) { Cons(%h, %t) => { @step(%f, %f(%acc, %h), %t) }, Nil => { %acc } }
}
def @main(%x: float64, %y: float64, %n: int32) -> float64 {
  let %f = fn (%acc: float64, %item: float64) -> float64 {
    if (%item > 0.5f64) { %acc * 0.5f64 + sin(%item) * %y } else { %acc + %item * %item * %x }
  };
  @step(%f, 0f64, Cons(%x, Cons(%y * %x, Cons(%x + %y, Nil))))
}""",
        list_program,
        (0.9, 0.4, np.int32(0)),
    ),
    "closures": (
        """def @compose(%f: fn (float64) -> float64, %g: fn (float64) -> float64) -> fn (float64) -> float64 {
  fn (%z: float64) -> float64 { %f(%g(%z)) }
}
def @main(%x: float64, %y: float64) -> float64 {
  let %scale = %x * %y;
  let %add = fn (%a: float64) -> float64 { %a + %scale * %x };
  let %both = @compose(%add, %add);
  %both(%y) * exp(%x)
}""",
        nested,
        (0.7, 1.2),
    ),
    "tuples": (
        """def @swap(%p: (float64, (float64, int32))) -> ((float64, int32), float64) { (%p.1, %p.0) }
def @main(%x: float64, %y: float64) -> float64 {
  let %q = @swap((%x * %y, (%y, 1)));
  match (%q) { ((%a, _), %b) => { %a * %b * tanh(%b) } }
}""",
        lambda x, y: y * (x * y) * torch.tanh(x * y),
        (0.6, -1.1),
    ),
    "references": (
        """def @main(%x: float64, %y: float64) -> float64 {
  let %r = ref(%x);
  let %twice = fn () -> () { ref_write(%r, ref_read(%r) * ref_read(%r) + %y) };
  let %a = %twice();
  let %b = %twice();
  ref_read(%r)
}""",
        lambda x, y: (x * x + y) ** 2 + y,
        (0.5, 0.25),
    ),
    "references to functions": (
        """def @main(%x: float64) -> float64 {
  let %f = ref(fn (%a: float64) -> float64 { %a * %x });
  let %g = ref_read(%f);
  let %u = ref_write(%f, fn (%a: float64) -> float64 { %g(%g(%a)) * %a });
  let %h = ref_read(%f);
  %h(%x)
}""",
        lambda x: x * x * x * x,
        (1.4,),
    ),
    "data types": (
        """type Shape { Circle(float64), Box(float64, float64), Both(Shape, Shape), }
def @area(%s: Shape) -> float64 {
  match (%s) {
    Circle(%r) => { 3.14f64 * %r * %r },
    Box(%a, %b) => { %a * %b },
    Both(%a, %b) => { @area(%a) + @area(%b) * 2f64 },
  }
}
def @main(%x: float64, %y: float64) -> float64 { @area(Both(Circle(%x), Both(Box(%x, %y), Circle(%y * %y)))) }""",
        lambda x, y: 3.14 * x * x + 2 * (x * y + 2 * 3.14 * (y * y) ** 2),
        (0.8, 1.1),
    ),
    "functions that call each other": (
        """def @even(%x: float64, %n: int32) -> float64 { if (%n == 0) { %x } else { @odd(%x * %x, %n - 1) } }
def @odd(%x: float64, %n: int32) -> float64 { if (%n == 0) { sin(%x) } else { @even(cos(%x), %n - 1) } }
def @main(%x: float64) -> float64 { @even(%x, 2) + @even(%x, 3) }""",
        lambda x: torch.cos(x * x) + torch.sin(torch.cos(x * x) ** 2),
        (0.8,),
    ),
    "polymorphism": (
        """def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  match (%l) { Cons(%h, %t) => { Cons(%f(%h), @map(%f, %t)) }, Nil => { Nil } }
}
def @sum(%l: List[float64]) -> float64 { match (%l) { Cons(%h, %t) => { %h + @sum(%t) }, Nil => { 0f64 } } }
def @cube(%a: float64) -> float64 { %a * %a * %a }
def @main(%x: float64, %y: float64) -> float64 { @sum(@map(@cube, Cons(%x * %y, Cons(%y, Nil)))) }""",
        lambda x, y: (x * y) ** 3 + y**3,
        (0.8, 1.1),
    ),
    "operators with tuples": (
        """def @main(%x: Tensor[(2, 3), float64], %y: Tensor[(2, 1), float64]) -> float64 {
  let %t = split(concatenate((%x, %y, %x), axis=1), indices_or_sections=[1, 4], axis=1);
  sum(%t.1 * exp(%t.1) * %t.0 + sum(%t.2))
}""",
        lambda x, y: (lambda t: (t[:, 1:4] * torch.exp(t[:, 1:4]) * t[:, :1] + t[:, 4:].sum()).sum())(
            torch.cat((x, y, x), 1)
        ),
        (np.linspace(-1, 1, 6).reshape(2, 3), np.array([[0.3], [-0.7]])),
    ),
    "sizes known at run time": (
        """def @f[n: Dim, k: Dim](%x: Tensor[(n, k), float64]) -> Tensor[(n,), float64] {
  sum(exp(%x) * mean(%x, axis=[1], keepdims=True), axis=[1]) + max(%x, axis=[1])
}
def @main(%x: Tensor[(2, 3), float64], %y: Tensor[(4, 1), float64]) -> float64 { sum(@f(%x)) * sum(@f(%y)) }""",
        lambda x, y: (lambda f: f(x) * f(y))(
            lambda a: ((torch.exp(a) * a.mean(1, keepdim=True)).sum(1) + a.amax(1)).sum()
        ),
        (np.linspace(-1, 1, 6).reshape(2, 3), np.linspace(0, 1, 4).reshape(4, 1)),
    ),
    "a shape that is a type parameter": (
        """def @f[s: Shape](%x: Tensor[s, float64]) -> Tensor[s, float64] { %x * %x + exp(%x) / %x }
def @main(%x: Tensor[(2, 3), float64], %y: Tensor[(4,), float64]) -> float64 { sum(@f(%x)) * sum(@f(%y)) }""",
        lambda x, y: (lambda f: f(x).sum() * f(y).sum())(lambda a: a * a + torch.exp(a) / a),
        (np.linspace(1, 2, 6).reshape(2, 3), np.linspace(0.5, 1, 4)),
    ),
    "what does not depend on the arguments": (
        """def @main(%x: float64, %y: float64) -> float64 {
  let %k = 3f64 * 2f64;
  if (%k > 1f64) { %k } else { %x }
}""",
        lambda x, y: torch.tensor(6.0, dtype=torch.float64),
        (1.0, 2.0),
    ),
}


@needs_torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_three_derivatives(name: str) -> None:
    text, function, values = PROGRAMS[name]
    check(relay.fromtext(HEADER + text), function, values, 3)


@needs_torch
@settings(max_examples=16)
@given(real_programs(torch), st.integers(0, 2**20))
def test_random_programs_to_the_second_order(program: Any, seed: int) -> None:
    mod, function = program
    rng = np.random.default_rng(seed)
    check(mod, function, [rng.normal(size=2), rng.normal(size=2)], 2)


@needs_torch
@settings(max_examples=15)
@given(real_programs(torch), st.integers(0, 2**20))
def test_one_function_holds_the_functions_that_it_calls(program: Any, seed: int) -> None:
    mod, function = program
    rng = np.random.default_rng(seed)
    values = [rng.normal(size=2), rng.normal(size=2)]
    new = gradient(mod["main"], mod)
    value, slopes = relay.create_executor("debug", mod).evaluate(new)(*values)
    np.testing.assert_allclose(value, function(*map(torch.tensor, values)).numpy())
    for found, expected in zip(slopes, torch_slopes(function, values, 1), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


def shifted(values: Sequence[Any], step: float) -> list[Any]:
    """Every real argument moved by the same step."""
    return [v + step if np.asarray(v).dtype.kind == "f" else v for v in values]


def check_by_steps(mod: relay.IRModule, values: Sequence[Any], order: int, step: float) -> None:
    """The sum of all slopes is what moving all arguments together shows."""
    for number in range(1, order + 1):
        mod = sum_of_slopes(mod, f"d{number}")
    executor = relay.create_executor("debug", mod)
    below = executor.evaluate("main" if order == 1 else f"d{order - 1}")
    slope = (np.sum(below(*shifted(values, step))) - np.sum(below(*shifted(values, -step)))) / (2 * step)
    np.testing.assert_allclose(executor.evaluate(f"d{order}")(*values), slope, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", PROGRAMS)
def test_two_derivatives_by_steps(name: str) -> None:
    text, _, values = PROGRAMS[name]
    for order in (1, 2):
        check_by_steps(relay.fromtext(HEADER + text), values, order, 1e-5)


class Nothing:
    """In the place of PyTorch, where only the Relay side of a random program is needed."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


@settings(max_examples=15)
@given(real_programs(Nothing()), st.integers(0, 2**20))
def test_random_programs_by_steps(program: Any, seed: int) -> None:
    check_random_by_steps(program[0], seed)


def check_random_by_steps(mod: relay.IRModule, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = [rng.normal(size=2), rng.normal(size=2)]
    main = relay.create_executor("debug", mod).evaluate()
    ends = [np.sum(main(*shifted(values, step))) for step in (-2e-6, -1e-6, 0, 1e-6, 2e-6)]
    curves = np.diff(ends, 3)
    # A decision, or a kink, between the steps.
    if np.abs(curves).max() < 1e-9 * max(1.0, np.abs(ends).max()):
        check_by_steps(mod, values, 1, 1e-6)


def check_by_dual_numbers(program: Any, seed: int, order: int) -> bool:
    """The slopes are those of dual numbers, which are exact. False for a program that is not a number there."""
    mod, function = program
    rng = np.random.default_rng(seed)
    values = [rng.normal(size=2), rng.normal(size=2)]
    for number in range(1, order + 1):
        mod = sum_of_slopes(mod, f"d{number}")
        _, found = relay.create_executor("debug", mod).evaluate(f"d{number}_g")(*values)
        wanted = dual_numbers.slopes(function, values, number)
        if not np.isfinite(wanted).all():
            return False
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9 * max(1.0, np.abs(wanted).max()))
    return True


@settings(max_examples=20)
@given(real_programs(DualNumbers()), st.integers(0, 2**20))
def test_random_programs_against_dual_numbers(program: Any, seed: int) -> None:
    check_by_dual_numbers(program, seed, 2 if seed % 4 == 0 else 1)


@pytest.mark.long
def test_300_random_programs() -> None:
    """Against dual numbers to the second order, and against small steps."""
    exact = []

    @settings(max_examples=300, derandomize=True, deadline=None, database=None)
    @given(real_programs(DualNumbers()), st.integers(0, 2**20))
    def check_one(program: Any, seed: int) -> None:
        exact.append(check_by_dual_numbers(program, seed, 2))
        check_random_by_steps(program[0], seed)

    check_one()
    print(f"{sum(exact)} of {len(exact)} programs have the slopes of dual numbers, to the second order")
    assert len(exact) >= 300 and sum(exact) >= 290


def evaluate(function: Function, *values: Any) -> Any:
    return relay.create_executor("debug").evaluate(function)(*values)


def vector(name: str, *shape: int, dtype: str = "float64") -> relay.Var:
    return relay.var(name, shape=shape, dtype=dtype)


@pytest.mark.parametrize("mode", ["higher_order", "first_order"])
def test_tuples_and_integers_as_arguments_and_results(mode: str) -> None:
    x = relay.Var("x", TupleType([TensorType((2,), "float64"), TensorType((2,), "int32")]))
    n, unused = relay.var("n", "int32"), vector("u", 2)
    product = op.multiply(x[0], op.cast(x[1], "float64"))
    function = Function([x, n, unused], relay.Tuple([product, n, op.exp(x[0])]))
    value, slopes = evaluate(
        gradient(function, mode=mode), (np.array([1.0, 2.0]), np.array([3, 4], "int32")), 5, [9, 9]
    )
    assert value[0].tolist() == [3, 8] and value[1] == 5
    assert slopes[0][0].tolist() == [3, 4] and slopes[0][1].tolist() == [0, 0] and slopes[0][1].dtype == np.int32
    assert slopes[1] == 0 and slopes[2].tolist() == [0, 0]


@pytest.mark.parametrize("mode", ["higher_order", "first_order"])
def test_shared_nodes_are_computed_once(mode: str) -> None:
    x = vector("x")
    shared = op.exp(x)
    new = gradient(Function([x], op.multiply(shared, shared)), mode=mode)
    text = relay.astext(new)
    assert text.count("exp(") == 1
    value, (slope,) = evaluate(new, 0.5)
    np.testing.assert_allclose([value, slope], [np.e, 2 * np.e])


def test_the_first_order_result_has_no_references_and_closures() -> None:
    x, w = vector("x", 2, 3), vector("w", 4, 3)
    y = relay.var("y")
    body = relay.Let(y, op.nn.dense(x, w), op.sum(op.tanh(y) * y))
    new = gradient(Function([x, w], body), mode="first_order")
    text = relay.astext(new)
    assert "ref" not in text and text.count("fn") == 1
    values = [np.linspace(-1, 1, 6).reshape(2, 3), np.linspace(0, 1, 12).reshape(4, 3)]
    for found, expected in zip(
        evaluate(new, *values)[1], evaluate(gradient(Function([x, w], body)), *values)[1], strict=True
    ):
        np.testing.assert_allclose(found, expected)


def test_free_variables_are_constants() -> None:
    x, k = vector("x"), vector("k")
    new = gradient(Function([x], op.multiply(op.multiply(x, x), k)))
    assert [var.name_hint for var in relay.analysis.free_vars(new)] == ["k"]


def test_fused_functions_are_opened() -> None:
    x, p = vector("x"), vector("p")
    fused = Function([p], op.exp(op.negative(p)), attrs={"Primitive": 1})
    value, (slope,) = evaluate(gradient(Function([x], relay.Call(fused, [x]))), 0.5)
    np.testing.assert_allclose([value, slope], [np.exp(-0.5), -np.exp(-0.5)])


def test_a_long_chain_needs_no_deep_stack() -> None:
    x = vector("x")
    body = x
    for _ in range(1000):
        body = op.multiply(body, relay.const(1.0, "float64"))
    for mode in ("higher_order", "first_order"):
        _, (slope,) = evaluate(gradient(Function([x], body), mode=mode), 2.0)
        assert slope == 1


RNN = """type Tree[A] { Rose(A, List[Tree[A]]), }
type Weights { Weights(float64, (float64, int32)), }
def @run(%w: Weights, %state: float64, %xs: List[float64]) -> float64 {
  match (%w) {
    Weights(%a, %p) => {
      match (%xs) { Cons(%x, %t) => { @run(%w, tanh(%a * %state + %p.0 * %x), %t) }, Nil => { %state } }
    }
  }
}
def @main(%w: Weights, %xs: List[float64]) -> float64 { @run(%w, 0.5f64, %xs) }
def @list(%xs: List[(float64, int32)], %ns: List[int32]) -> float64 {
  match (%xs) { Cons(%h, %t) => { %h.0 * %h.0 + @list(%t, %ns) }, Nil => { 0f64 } }
}
def @forest(%l: List[Tree[float64]]) -> float64 {
  match (%l) { Cons(%h, %t) => { @tree(%h) + @forest(%t) }, Nil => { 0f64 } }
}
def @top(%t: Tree[float64]) -> float64 { match (%t) { Rose(%x, _) => { %x * %x } } }
def @tree(%t: Tree[float64]) -> float64 { match (%t) { Rose(%x, %l) => { %x * %x + @forest(%l) } } }
"""


def items(value: Any) -> list[Any]:
    return relay.prelude.list_items(value)


def test_arguments_of_data_types_have_derivatives_of_their_form() -> None:
    mod = gradient_module(relay.fromtext(HEADER + RNN), "main", "g")
    executor = relay.create_executor("debug", mod)
    make = relay.interp.ConstructorValue
    weights = mod.types["Weights"].constructors[0]
    xs = [0.3, -1.0, 0.7]

    def given(a: float, b: float, shift: float = 0.0) -> tuple[Any, Any]:
        parts = (np.asarray(a), (np.asarray(b), np.int32(2).reshape(())))
        return make(weights, parts), relay.prelude.list_value([np.asarray(x + shift) for x in xs])

    value, (w, slopes) = executor.evaluate("g")(*given(0.8, 1.1))
    main = executor.evaluate("main")
    for found, ends in (
        (w.fields[0], [main(*given(0.8 + e, 1.1)) for e in (1e-6, -1e-6)]),
        (w.fields[1][0], [main(*given(0.8, 1.1 + e)) for e in (1e-6, -1e-6)]),
        (sum(items(slopes)), [main(*given(0.8, 1.1, e)) for e in (1e-6, -1e-6)]),
    ):
        np.testing.assert_allclose(found, (ends[0] - ends[1]) / 2e-6, rtol=1e-6)
    assert value == main(*given(0.8, 1.1)) and w.fields[1][1] == 0 and len(items(slopes)) == 3


def test_lists_and_trees_as_arguments() -> None:
    mod = relay.fromtext(HEADER + RNN)
    pairs = relay.prelude.list_value([(np.asarray(x), np.int32(1).reshape(())) for x in (1.0, 2.0)])
    numbers = relay.prelude.list_value([np.int32(7).reshape(())])
    new = gradient(mod["list"], mod)
    value, (slopes, zeros) = relay.create_executor("debug", mod).evaluate(new)(pairs, numbers)
    assert value == 5 and [(float(a), int(b)) for a, b in items(slopes)] == [(2, 0), (4, 0)]
    assert [int(zero) for zero in items(zeros)] == [0]
    with pytest.raises(UnsupportedError, match="by data types that hold each other must be taken of the module"):
        gradient(mod["top"], mod)
    whole = gradient_module(mod, "tree", "g")
    rose = whole.types["Tree"].constructors[0]
    make = relay.interp.ConstructorValue
    leaf = make(rose, (np.asarray(3.0), relay.prelude.list_value([])))
    tree = make(rose, (np.asarray(2.0), relay.prelude.list_value([leaf, leaf])))
    value, (slopes,) = relay.create_executor("debug", whole).evaluate("g")(tree)
    assert value == 22 and slopes.fields[0] == 4 and [item.fields[0] for item in items(slopes.fields[1])] == [6, 6]


def test_refusals() -> None:
    x, i = vector("x", 2), relay.var("i", "int32")
    with pytest.raises(InputError, match="mode of gradient must be one of higher_order, first_order, not both"):
        gradient(Function([x], x), mode="both")
    with pytest.raises(UnsupportedError, match="operator reinterpret must have a gradient to be differentiated"):
        gradient(Function([x], op.reinterpret(x, "float64")))
    with pytest.raises(
        UnsupportedError, match=r"result of a differentiated function must be a real tensor, .* not int32"
    ):
        gradient(Function([i], i))
    with pytest.raises(
        UnsupportedError, match=r"result of a differentiated function must be a real tensor, .* not int32"
    ):
        gradient(Function([i], i), mode="first_order")
    f = relay.Var("f", relay.FuncType((x.type_annotation,), x.type_annotation))  # type: ignore[arg-type]
    with pytest.raises(
        UnsupportedError, match="%f of a differentiated function must be of tensors, tuples and data types, not fn"
    ):
        gradient(Function([f, x], relay.Call(f, [x])))
    with pytest.raises(UnsupportedError, match="free variable %f of a differentiated function must be of tensors"):
        gradient(Function([x], relay.Call(f, [x])))
    with pytest.raises(UnsupportedError, match=r"first-order gradient must be of operator calls, .* not contain If"):
        gradient(Function([x], relay.If(relay.const(True), x, x)), mode="first_order")
    f = relay.Var("f")
    loop = relay.Let(f, Function([x], relay.Call(f, [x])), relay.Call(f, [x]))
    with pytest.raises(UnsupportedError, match=r"must be of operator calls, .* not contain a recursive Function"):
        gradient(Function([x], loop), mode="first_order")
    with pytest.raises(UnsupportedError, match="result of a differentiated function must be of tensors and tuples"):
        gradient(Function([x], relay.Tuple([x, Function([], x)])))


def test_refusals_of_modules() -> None:
    mod = relay.fromtext(HEADER + PROGRAMS["functions that call each other"][0])
    with pytest.raises(UnsupportedError, match="that call each other, @even and @odd, must be taken of the module"):
        gradient(mod["main"], mod)
    with pytest.raises(InputError, match="entry must be one of even, odd, main, not f"):
        gradient_module(mod, "f")
    with pytest.raises(InputError, match="name of the gradient must be a new one, not even, which @odd calls"):
        gradient_module(mod, "even")
    assert gradient_module(mod, "main")["main"].func_type.ret_type == TupleType(
        [TensorType((), "float64"), TupleType([TensorType((), "float64")])]
    )
    mod = relay.fromtext(HEADER + PROGRAMS["data types"][0])
    with pytest.raises(UnsupportedError, match="data types hold real numbers must be taken of the module"):
        gradient(mod["main"], mod)


def test_conditions_of_sizes_stay() -> None:
    text = (
        '#[version = "0.0.5"]\ndef @main[n: Dim, m: Dim](%x: Tensor[(n,), float32], %y: Tensor[(m,), float32])'
        " -> Tensor[(n,), float32] where (n == m) { multiply(%x, %x) }\n"
    )
    mod = relay.transform.InferType()(relay.fromtext(text))
    assert gradient(mod["main"], mod, mode="first_order").where == mod["main"].where != ()
    assert relay.transform.PartialEvaluate()(mod)["main"].where == mod["main"].where
