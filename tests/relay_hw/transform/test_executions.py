"""No pass of the pipelines makes an operator call of a program be executed more often than the program itself does."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

import relay_hw as relay
from relay_hw.frontend.python import Float, Tensor
from relay_hw.frontend.python import relay as python_relay
from relay_hw.ir.expr import Call, Expr, Function, GlobalVar, Let, Var
from relay_hw.ir.visit import post_order
from relay_hw.quantize import quantize
from relay_hw.target.accel.composites import MergeDeviceComposites
from relay_hw.target.accel.rules import AccelRules
from relay_hw.target.partition import PartitionDevice
from relay_hw.target.pipeline import partition_pipeline
from relay_hw.transform import (
    DeadCodeElimination,
    InferType,
    Inline,
    InlineLet,
    OutlineFragments,
    Pass,
    Pipeline,
    ToANormalForm,
    ToBasicBlockNormalForm,
    ToGraphNormalForm,
    simplify_pipeline,
)
from relay_hw.transform.fragments import is_graph
from tests.relay_hw.programs import INPUTS, random_module
from tests.relay_hw.random_control import INT, TYPES, VALUE, Generator, inputs
from tests.relay_hw.transform.executions import LAYERS, assert_no_more, executions, mark, more_often
from tests.relay_hw.transform.test_reference_semantics import ORDERED

SIMPLIFY = simplify_pipeline()
WHOLE = Pipeline([SIMPLIFY, partition_pipeline(AccelRules())])
assert isinstance(SIMPLIFY, Pipeline)
STEPS: tuple[Pass, ...] = (
    # A pipeline runs some passes twice.
    *{repr(step): step for step in SIMPLIFY.passes}.values(),
    OutlineFragments(),
    Pipeline([OutlineFragments(), MergeDeviceComposites()]),
    Pipeline([OutlineFragments(), MergeDeviceComposites(), PartitionDevice(AccelRules())]),
    DeadCodeElimination(inline_once=True),
    ToGraphNormalForm(),
    ToBasicBlockNormalForm(),
    Pipeline([ToANormalForm(), ToGraphNormalForm()]),
    Inline(),
    SIMPLIFY,
    WHOLE,
)


class Loops(Generator):
    """Programs in which work outside of a loop, a closure or a function is used inside of it."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._pick = random.Random(seed)
        self.marked: set[str] = set()

    def value(self, scope: list[Expr], counts: list[Expr], depth: int) -> Expr:
        if depth > 1 and self._pick.random() < 0.6:
            rules: list[Callable[[list[Expr], list[Expr], int], Expr]] = [
                self._bound, self._repeated, self._repeated, self._two_users, self._tupled, self._dead, self._known,
                self._twice, self._helper, self._curried,
            ]  # fmt: skip
            return self._pick.choice(rules)(scope, counts, depth - 1)
        return super().value(scope, counts, depth)

    def _work(self, scope: list[Expr]) -> Expr:
        """One or two operators, now and then with a name that goes along."""
        work = (
            self._dense(self._pick.choice(scope)) if self._pick.random() < 0.5 else relay.tanh(self._pick.choice(scope))
        )
        if self._pick.random() < 0.3:
            work = relay.multiply(relay.add(work, self._pick.choice(scope)), relay.const(np.float32(0.5)))
        return work

    def _bound(self, scope: list[Expr], counts: list[Expr], depth: int) -> Expr:
        """A name for work, or for another name."""
        name = Var("w", VALUE)
        value = self._pick.choice(scope) if self._pick.random() < 0.2 else self._work(scope)
        return Let(name, value, self.value([*scope, name, name, name], counts, depth))

    def _repeated(self, scope: list[Expr], counts: list[Expr], depth: int) -> Expr:
        """A local loop of three rounds that uses work of the scope around it, by name or as a node."""
        work = self._work(scope)
        name = Var("w", VALUE)
        shared = name if self._pick.random() < 0.6 else work
        loop, n, state = Var("again"), Var("n", INT), Var("state", VALUE)
        step = relay.add(self.value([shared, shared, state, *scope], [n], depth - 1), shared)
        more = Call(loop, [relay.subtract(n, relay.const(1)), relay.tanh(step)])
        body = Function([n, state], relay.If(relay.less(n, relay.const(1)), state, more), VALUE)
        whole: Expr = Let(loop, body, Call(loop, [relay.const(3), self._pick.choice([*scope, shared])]))
        return Let(name, work, whole) if shared is name else whole

    def _function(self, scope: list[Expr], depth: int) -> Function:
        a = Var("a", VALUE)
        return Function([a], self.value([*scope, a], [], depth - 1), VALUE)

    def _two_users(self, scope: list[Expr], counts: list[Expr], depth: int) -> Expr:
        """Work that two functions share, one of which may be called seldom or never."""
        work = self._work(scope)
        first, second = Var("first"), Var("second")
        around = [*scope, work, work]
        calls: Expr = Call(second, [Call(second, [self._pick.choice(scope)])])
        if self._pick.random() < 0.5:
            calls = relay.add(calls, Call(first, [self._pick.choice(scope)]))
        return Let(first, self._function(around, depth), Let(second, self._function(around, depth), calls))

    def _tupled(self, scope: list[Expr], counts: list[Expr], depth: int) -> Expr:
        """Work in a tuple whose parts functions use."""
        pair: Expr = relay.Tuple([self._work(scope), self._work(scope)])
        name, f, a = Var("pair"), Var("f"), Var("a", VALUE)
        shown = name if self._pick.random() < 0.5 else pair
        body = relay.add(relay.TupleGetItem(shown, 0), self.value([a, *scope], [], depth - 1))
        used: Expr = Call(f, [Call(f, [relay.TupleGetItem(shown, self._pick.randint(0, 1))])])
        whole = Let(f, Function([a], body, VALUE), used)
        return Let(name, pair, whole) if shown is name else whole

    def _dead(self, scope: list[Expr], counts: list[Expr], depth: int) -> Expr:
        """A function that nobody calls, and with it a use of what it shares with others."""
        work = self._work(scope)
        return Let(Var("dead"), self._function([work, work], depth), self.value([work, *scope], counts, depth))

    def _known(self, scope: list[Expr], counts: list[Expr], depth: int) -> Expr:
        """A branch that is known: what the other one used has a user less."""
        work = self._work(scope)
        f, a = Var("f"), Var("a", VALUE)
        inner = Function([a], relay.add(a, relay.tanh(work)), VALUE)
        arms = [Call(f, [Call(f, [self.value([work, *scope], counts, depth - 1)])]), relay.add(work, work)]
        self._pick.shuffle(arms)
        return Let(f, inner, relay.If(relay.const(self._pick.random() < 0.5), arms[0], arms[1]))

    def _twice(self, scope: list[Expr], counts: list[Expr], depth: int) -> Expr:
        """Equal calls, inside of a function and outside, of which the one outside may fold away."""
        data = self._pick.choice(scope)
        f, a = Var("f"), Var("a", VALUE)
        inner = Function([a], relay.maximum(a, relay.exp(relay.tanh(data))), VALUE)
        outer = relay.multiply(relay.exp(relay.tanh(data)), relay.const(np.float32(self._pick.choice((1, 2)))))
        return Let(f, inner, relay.add(Call(f, [Call(f, [data])]), outer))

    def _helper(self, scope: list[Expr], counts: list[Expr], depth: int) -> Expr:
        """A call of a global function, to be inlined or not, whose inner function uses its parameter."""
        name = f"helper_{len(self.functions)}"
        p, f, a = Var("p", VALUE), Var("f"), Var("a", VALUE)
        inner = Function([a], relay.add(relay.tanh(a), p), VALUE)
        attrs = {"Inline": 1} if self._pick.random() < 0.5 else {}
        self.functions[name] = Function([p], Let(f, inner, Call(f, [Call(f, [p])])), VALUE, [], attrs)
        return Call(GlobalVar(name), [self._work(scope)])

    def _curried(self, scope: list[Expr], counts: list[Expr], depth: int) -> Expr:
        """A function that does work once and gives a function that uses it."""
        make, made, a, b = Var("make"), Var("made"), Var("a", VALUE), Var("b", VALUE)
        name = Var("w", VALUE)
        work = self._work([a, *scope])
        inner: Expr = Function([b], relay.add(relay.tanh(b), name), VALUE)
        outer = Function([a], Let(name, work, inner))
        calls = Call(made, [Call(made, [self.value(scope, counts, depth - 1)])])
        return Let(make, outer, Let(made, Call(make, [self._pick.choice(scope)]), calls))


def program(seed: int) -> relay.IRModule:
    """A module of `x` and `k`, each call marked."""
    x, k = Var("x", VALUE), Var("k", INT)
    generator = Loops(seed)
    body = generator.value([x], [k], 5)
    return mark(relay.IRModule({**generator.functions, "main": Function([x, k], body, VALUE)}, TYPES))


def samples(*counts: int) -> list[dict[str, object]]:
    """Inputs of `program`, one for each count."""
    data = inputs(4, 0)
    return [{"x": data["x"][k : k + 1], "k": data["k"][k]} for k in counts]


def check(seed: int, counts: list[dict[str, object]]) -> None:
    mod = program(seed)
    for step in STEPS:
        assert_no_more(step, mod, counts, f"program({seed})")


@pytest.mark.parametrize("seed", range(60))
def test_programs(seed: int) -> None:
    check(seed, samples(3))


ROWS = """#[version = "0.0.5"]
def @main(%x: Tensor[(4, 8), float32], %w: Tensor[(8, 8), float32]) -> Tensor[(8), float32] {
  let %all = nn.dense(%x, %w, units=None);
  let %loop = fn (%i: int32, %h: Tensor[(8), float32]) -> Tensor[(8), float32] {
    if (less(%i, 4)) {
      %loop(add(%i, 1), tanh(add(%h, take(%all, %i, axis=0))))
    } else {
      %h
    }
  };
  %loop(0, take(%x, 0, axis=0))
}
"""


@pytest.mark.parametrize("step", STEPS, ids=repr)
def test_a_layer_before_a_loop_runs_once(step: Pass) -> None:
    given = {"x": np.ones((4, 8), "float32"), "w": np.ones((8, 8), "float32")}
    counts = executions(assert_no_more(step, mark(relay.fromtext(ROWS)), [given], "a loop over rows"), given)
    assert sum(count for (_, name), count in counts.items() if name == "nn.dense") == 1


@python_relay
def over_rows(x: Tensor[Float, (4, 8)], w: Tensor[Float, (8, 8)]) -> Tensor[Float, (8,)]:
    product = x @ w
    total = x[0]
    for row in product:
        total = python_relay.tanh(total + row)
    return total


def test_a_product_before_a_python_loop_runs_once() -> None:
    rng = np.random.default_rng(0)
    given = dict(zip(("x", "w"), (rng.normal(size=shape).astype("float32") for shape in ((4, 8), (8, 8))), strict=True))
    mod = mark(over_rows.mod.with_functions({"main": over_rows.mod["over_rows"]}))
    new = assert_no_more(WHOLE, mod, [given], "a loop in Python")
    counts = executions(new, given)
    assert sum(count for (_, name), count in counts.items() if name in LAYERS) == 1


def test_what_falls_into_a_function_by_way_of_other_names_stays() -> None:
    """`%pair` is no work, `%work` in it is; the loop reads the pair only."""
    text = ROWS.replace("let %loop", "let %pair = (%all, %x);\n  let %loop").replace("take(%all", "take(%pair.0")
    given = {"x": np.ones((4, 8), "float32"), "w": np.ones((8, 8), "float32")}
    mod = mark(relay.fromtext(text))
    new = assert_no_more(InlineLet(), mod, [given], "a pair")
    assert [n.var.name_hint for n in post_order(new["main"]) if isinstance(n, Let)] == ["loop", "all"]


@pytest.mark.parametrize("legal", [None, lambda _: "it is refused", lambda unit: _no_dense(unit)])
def test_layers_behind_one_flatten(legal: Callable[[Function], str | None] | None) -> None:
    """Each composite takes a flatten in; where the host computes the layers, it flattens once."""
    rng = np.random.default_rng(0)

    def weight(*shape: int) -> Expr:
        return relay.const(rng.normal(size=shape).astype("float32"))

    x = Var("x", relay.TensorType((1, 16, 4, 4), "float32"))
    layer = relay.nn.conv2d(x, weight(16, 16, 3, 3), padding=(1, 1, 1, 1), channels=16, kernel_size=(3, 3))
    flat = relay.nn.batch_flatten(relay.nn.relu(layer))
    body = relay.Tuple([relay.nn.dense(flat, weight(units, 256), units=units) for units in (32, 16)])
    data = {"x": rng.normal(size=(4, 16, 4, 4)).astype("float32")}
    mod = mark(quantize(InferType()(relay.IRModule.from_expr(Function([x], body))), calibration=data))
    assert_no_more(partition_pipeline(AccelRules(legal)), mod, [{"x": data["x"][:1]}], "two layers behind one flatten")


def _no_dense(unit: Function) -> str | None:
    return "it is refused" if unit.attrs["Composite"] == "accel.dense" else None


def test_a_called_function_with_branches_makes_no_graph() -> None:
    """It was taken for a fused operator, and partitioning failed."""
    text = """#[version = "0.0.5"]
def @main(%x: Tensor[(2), float32], %b: bool) -> Tensor[(2), float32] {
  %0 = fn (%y: Tensor[(2), float32]) -> Tensor[(2), float32] { if (%b) { tanh(%y) } else { %y } };
  %0(exp(%x))
}
"""
    mod = mark(relay.fromtext(text))
    assert not is_graph(mod)
    for b in (True, False):
        assert_no_more(WHOLE, mod, [{"x": np.ones(2, "float32"), "b": np.bool_(b)}], "a function that is called")
    straight = text.replace("if (%b) { tanh(%y) } else { %y }", "tanh(%y)")
    nested = text.replace(
        "if (%b) { tanh(%y) } else { %y }", "%1 = fn (%z: Tensor[(2), float32]) { tanh(%z) + %y }; %1(%y)"
    )
    for graph in (straight, nested):
        mod = mark(relay.fromtext(graph))
        assert is_graph(mod)
        assert_no_more(WHOLE, mod, [{"x": np.ones(2, "float32"), "b": np.bool_(True)}], "functions that are called")


def test_more_often_sees_a_call_site_and_a_kind_of_layer() -> None:
    before = Counter({(1, "tanh"): 2, (2, "nn.dense"): 1})
    assert more_often(before, before) == []
    assert more_often(before, Counter({(1, "tanh"): 3})) == ["tanh of call site 1: 3 times, not 2"]
    assert more_often(before, Counter({(1, "nn.dense"): 2})) == ["nn.dense: 2 times, not 1"]


@pytest.mark.long
def test_a_thousand_programs(capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(1000):
        check(seed, samples(0, 3))
    for seed in range(1000):
        mod = mark(random_module(seed))
        for step in STEPS:
            assert_no_more(step, mod, [INPUTS], f"random_module({seed})")


@pytest.mark.long
@pytest.mark.parametrize("step", ORDERED, ids=repr)
def test_passes_outside_of_the_pipelines(step: Pass, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(200):
        assert_no_more(step, program(seed), samples(3), f"program({seed})")
