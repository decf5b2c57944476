"""RewriteNumerics: identities hold, errors are measured right, expressions come out better and never worse."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from fractions import Fraction
from types import ModuleType

import numpy as np
import pytest
from mpmath import mp, mpf

import relay_hw as relay
from relay_hw import op
from relay_hw.errors import InputError, UnsupportedError
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Expr
from relay_hw.transform import PassContext, RewriteNumerics
from relay_hw.transform.numeric.error import bit_patterns, bits_of_error, ordinal
from relay_hw.transform.numeric.exact import EXACT, evaluate_exact, evaluate_real
from relay_hw.transform.numeric.identities import OTHER, SIMPLER, Identity
from relay_hw.transform.numeric.improve import improve
from relay_hw.transform.numeric.pieces import Pieces, best_pieces
from relay_hw.transform.numeric.saturate import Equal, Use, saturate
from relay_hw.transform.numeric.terms import (
    ARITY,
    Apply,
    Argument,
    Number,
    arguments,
    evaluate_float,
    operators,
    parse,
    text,
)
from tests.relay_hw.transform.checks import count, module, var

numerics: ModuleType = __import__("scripts.measure_numerics", fromlist=["SUITE"])
F32 = np.float32
X, Y = var("x", 64), var("y", 64)
ONE = op.const(F32(1))


def floats(*values: float) -> np.ndarray:
    return np.array(values, F32)


@pytest.mark.parametrize("identity", [*SIMPLER, *OTHER], ids=lambda one: f"{text(one.left)} = {text(one.right)}")
def test_identities_hold(identity: Identity) -> None:
    """Both sides are the same real number, to 90 digits, where both have a value."""
    random = np.random.default_rng(0)
    names = sorted({*arguments(identity.left), *arguments(identity.right)})
    points = {name: random.uniform(-0.9, 0.9, 40).astype(F32) for name in names} or {"a": floats(0)}
    with mp.workprec(400):
        left, right = (evaluate_real(one, points)[one] for one in (identity.left, identity.right))
        both = [(a, b) for a, b in zip(left, right, strict=True) if a == a and b == b]
        assert both and all(abs(a - b) <= mpf(10) ** -90 * (1 + abs(a)) for a, b in both)


def test_every_operator_of_terms_has_a_float_and_an_exact_value() -> None:
    assert set(EXACT) == set(ARITY)
    points = {"a": floats(0.3, 1.5, 0.9), "b": floats(2, 0.5, 0.25)}
    for name, arity in ARITY.items():
        term = Apply(name, [Argument("a"), Argument("b")][:arity])
        exact = evaluate_exact(term, points)
        known = ~np.isnan(exact)
        assert known.any() and bits_of_error(evaluate_float(term, points), exact)[known].max() < 4, name


def test_exact_values_are_those_of_fractions() -> None:
    term = parse("(subtract (divide (add x 1/3) (multiply y y)) (multiply 7 x))")
    random = np.random.default_rng(1)
    points = {name: random.uniform(-3, 3, 50).astype(F32) for name in "xy"}
    found = evaluate_exact(term, points)
    for x, y, value in zip(points["x"], points["y"], found, strict=True):
        x, y = Fraction(float(x)), Fraction(float(y))
        assert value == F32(float((x + Fraction(1, 3)) / (y * y) - 7 * x))


def test_exact_values_survive_cancellation() -> None:
    """(1 + x) - 1 needs 126 bits more than x, exp(x) - 2 + exp(-x) twice as many."""
    x = floats(1e-38, 3e-20)
    assert (evaluate_exact(parse("(subtract (add 1 x) 1)"), {"x": x}) == x).all()
    small = floats(1e-15)
    assert evaluate_exact(parse("(add (subtract (exp x) 2) (exp (negative x)))"), {"x": small}) == F32(
        float(small[0]) ** 2
    )
    assert np.isnan(evaluate_exact(parse("(sqrt x)"), {"x": floats(-1)})).all()


def test_bits_of_error() -> None:
    one = floats(1)
    assert bits_of_error(one, one) == 0
    assert bits_of_error(np.nextafter(one, F32(2)), one) == 1
    assert bits_of_error(floats(np.nan), one) == 32 and bits_of_error(one, floats(np.nan)) == 0
    assert bits_of_error(floats(-0.0), floats(0.0)) == 0
    assert bits_of_error(floats(-1e-45), floats(1e-45)) == pytest.approx(math.log2(3))


def test_bit_patterns_are_uniform() -> None:
    drawn = bit_patterns(4000, -8.0, 8.0, np.random.default_rng(0))
    assert np.isfinite(drawn).all() and drawn.min() >= -8 and drawn.max() <= 8
    middle = float(np.median(np.abs(ordinal(drawn))))
    assert middle / int(ordinal(np.asarray(F32(8)))) == pytest.approx(0.5, abs=0.05)


def test_terms_are_read_and_written() -> None:
    source = "(subtract (sqrt (add x 1)) (divide 1/2 -3))"
    term = parse(source)
    assert text(term) == source and repr(term) == source and arguments(term) == ["x"] and operators(term) == 4
    assert operators(parse("(multiply (exp x) (exp x))")) == 2
    for wrong in ("(sqrt x y)", "(nothing x)", "(add x", "x y", "(add x ?)", ""):
        with pytest.raises(ValueError, match=r"must (be|end)"):
            parse(wrong)


def test_a_graph_that_proves_two_numbers_equal_is_not_used() -> None:
    assert not Equal({"a": [Number(Fraction(0)), Number(Fraction(1))]}, "a").is_consistent()
    assert Equal({"a": [Number(Fraction(0)), Use("negative", ("a",))]}, "a").is_consistent()


def test_saturation_finds_equal_terms() -> None:
    """The class of the root has a quotient, which its term has not."""
    found = saturate([parse("(subtract (sqrt (add x 1)) (sqrt x))")])
    assert "divide" in {node.op for node in found.classes[found.root] if isinstance(node, Use)}
    assert found.is_consistent()


def test_parts_of_a_range_are_cut_where_errors_change() -> None:
    x = np.linspace(-4, 4, 101).astype(F32)
    left, right = np.where(x < 1, 0.0, 20.0), np.where(x < 1, 20.0, 0.0)
    terms = (parse("(negative x)"), parse("(abs x)"))
    found = best_pieces(terms, (left, right), {"x": x}, 0.0)
    assert found.terms == terms and found.argument == "x" and x[x < 1].max() < found.bounds[0] <= x[x >= 1].min()
    np.testing.assert_array_equal(found.evaluate({"x": x}), np.where(x < F32(found.bounds[0]), -x, np.abs(x)))
    assert best_pieces(terms, (left * 0.01, right * 0.01), {"x": x}, 0.0) in (Pieces(terms[:1]), Pieces(terms[1:]))


@pytest.mark.parametrize("name", ["2sqrt", "tanhf", "quad2m"])
def test_a_published_expression_gets_better(name: str) -> None:
    row = next(one for one in numerics.SUITE if one.name == name)
    found = numerics.measure(row)
    assert found.after < found.before - 5


@pytest.mark.long
def test_published_expressions_get_better() -> None:
    """All of the suite: fewer bits of error on 20 at least, more on none."""
    found = [numerics.measure(row) for row in numerics.SUITE]
    for one in found:
        print(f"{one.name:8} {one.before:6.2f} {one.after:6.2f}")
    assert sum(one.after < one.before for one in found) >= 20 and all(one.after <= one.before for one in found)


def test_the_page_has_what_was_measured() -> None:
    results = json.loads(numerics.RESULTS.read_text())
    assert [one["name"] for one in results] == [row.name for row in numerics.SUITE]
    assert numerics.table(results) in numerics.PAGE.read_text()
    assert sum(one["after"] < one["before"] for one in results) >= 20


def test_a_rewritten_function_is_right_where_the_old_one_was_not() -> None:
    """The difference of roots, against the formula without cancellation in double precision."""
    new = RewriteNumerics(ranges={"x": (1, 1e30)})(module(op.sqrt(X + ONE) - op.sqrt(X), X))
    x = bit_patterns(64, 1, 1e30, np.random.default_rng(3))
    wide = x.astype(np.float64)
    np.testing.assert_allclose(evaluate(new, [x]), 1 / (np.sqrt(wide + 1) + np.sqrt(wide)), rtol=1e-6)


def test_regimes_become_a_selection() -> None:
    """The sign of b decides which form of a root of a quadratic loses nothing."""
    row = next(one for one in numerics.SUITE if one.name == "quad2p")
    names = count(RewriteNumerics()(numerics.module(row, 8)))
    assert names["where"] == names["less"] == 1


def test_operators_are_saved_within_the_bound() -> None:
    body = op.nn.relu(X * Y + X * ONE * op.const(F32(3)))
    old = module(body, X, Y)
    new = RewriteNumerics(bound=0.5)(old)
    assert count(new).total() < count(old).total()
    random = np.random.default_rng(0)
    inputs = [random.uniform(0.1, 1, 64).astype(F32) for _ in range(2)]
    np.testing.assert_allclose(evaluate(new, inputs), evaluate(old, inputs), rtol=1e-6)


def test_a_shorter_term_with_a_larger_error_is_not_taken() -> None:
    """Of x * x - 1 and (x + 1) * (x - 1) the one with fewer operators loses bits near 1."""
    term = parse("(multiply (add x 1) (subtract x 1))")

    def near_one(count: int, random: np.random.Generator) -> dict[str, np.ndarray]:
        return {"x": random.uniform(0.99, 1.01, count).astype(F32)}

    strict, loose = (improve(term, near_one, bound) for bound in (0.5, 20.0))
    assert strict is None
    assert loose is not None and operators(loose.pieces.terms[0]) == 2 and loose.after > loose.before


def test_samples_decide_where_errors_are_measured() -> None:
    """exp(x) - 1 is good as it is for samples around 5, and not for those around 0."""
    mod = module(op.exp(X) - ONE, X)
    random = np.random.default_rng(0)
    large, small = (random.uniform(*limits, (20, 64)).astype(F32) for limits in ((4, 6), (-0.01, 0.01)))
    assert count(RewriteNumerics(samples={"x": large})(mod)) == count(mod)
    assert count(RewriteNumerics(samples={"x": small})(mod)) != count(mod)


def test_samples_reach_what_other_operators_make() -> None:
    """The argument is the result of a softmax: small numbers, for which exp(x) - 1 cancels."""
    mod = module(op.exp(op.nn.softmax(X)) - ONE, X)
    samples = {"x": np.random.default_rng(0).uniform(-1, 1, (20, 64)).astype(F32)}
    assert count(RewriteNumerics(samples=samples)(mod)) != count(mod)


def test_equal_expressions_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    improving = sys.modules["relay_hw.transform.numeric.improve"]

    def note(term: object, *_: object) -> None:
        searched.append(str(term))

    monkeypatch.setattr(improving, "improve", note)
    parts: list[Expr] = [op.nn.softmax(op.exp(op.nn.relu(one)) - ONE) for one in (X, Y)]
    mod = module(relay.Tuple(parts), X, Y)
    assert count(RewriteNumerics()(mod)) == count(mod)
    assert searched == ["(subtract (exp x0) 1)"]


def test_what_has_no_value_stays() -> None:
    """The square root of a negative number is nowhere a float: there is nothing to measure."""
    mod = module(op.exp(op.sqrt(op.negative(op.abs(X) + ONE))), X)
    assert count(RewriteNumerics()(mod)) == count(mod)


def test_the_type_stays() -> None:
    """x - x + y is y, but of y's shape."""
    row = var("y", 1)
    mod = module(op.exp((X - X) + row) - ONE, X, row)
    new = RewriteNumerics()(mod)
    assert new["main"].func_type == relay.transform.InferType()(mod)["main"].func_type


def test_long_expressions_are_cut() -> None:
    body: Expr = X
    for _ in range(40):
        body = op.abs(body) + ONE
    mod = module(body, X)
    with PassContext(opt_level=4):
        new = RewriteNumerics()(mod)
    x = np.linspace(0, 1, 64).astype(F32)
    np.testing.assert_allclose(evaluate(new, [x]), evaluate(mod, [x]), rtol=1e-5)


def test_integers_and_single_operators_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is asked of packages that may be missing."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    number = var("n", 4, dtype="int32")
    for body, param in ((number * number + number, number), (op.exp(X), X), (op.negative(op.abs(X)), X)):
        mod = relay.transform.InferType()(module(body, param))
        assert RewriteNumerics()(mod) is mod


def test_a_missing_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    sentence = r"egglog must be installed to rewrite numerics: pip install 'relay-hw\[numeric\]'"
    with pytest.raises(UnsupportedError, match=sentence):
        RewriteNumerics()(module(op.exp(X) - ONE, X))


def test_options_are_checked() -> None:
    with pytest.raises(InputError, match="bound must be at least 0 bits, not -1"):
        RewriteNumerics(bound=-1)
    with pytest.raises(InputError, match="range of x must be from a finite float to a larger one, not 1 to 1"):
        RewriteNumerics(ranges={"x": (1, 1)})
