"""Bits of error of published expressions before and after `RewriteNumerics`: docs/results/numerics.json, its table.

The expressions are those of Hamming's Numerical Methods for Scientists and Engineers, chapter 3, as Herbie's suite has
them (herbie-fp/herbie on GitHub, bench/hamming, commit 03e599d4af07), with the ranges given there. Left out are 2cbrt,
since Relay has no cube root, and expq3, whose conditions hold for almost no float32.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

import relay_hw as relay
from relay_hw import transform
from relay_hw.interp import evaluate
from relay_hw.transform.numeric.error import Points, bit_patterns, bits_of_error
from relay_hw.transform.numeric.exact import evaluate_exact
from relay_hw.transform.numeric.samplers import ALL
from relay_hw.transform.numeric.terms import Apply, Argument, Number, Term, arguments, parse
from scripts.figures import replaced

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results" / "numerics.json"
PAGE = ROOT / "docs" / "numerics.md"
# Points of samples, and points to measure at, drawn anew.
SAMPLES, MEASURED = 4096, 2000


def _is_near(points: Points) -> np.ndarray:
    """A step that is positive, smaller than x, and not lost beside it."""
    x, eps = np.abs(points["x"].astype(np.float64)), points["eps"]
    return (eps > 1e-16 * x) & (eps < x)


@dataclass(frozen=True, slots=True)
class Row:
    """An expression of the suite: ranges of its arguments, by default all floats, and what must hold among them."""

    name: str
    text: str
    ranges: dict[str, tuple[float, float]]
    condition: Callable[[Points], np.ndarray] | None = None

    @property
    def term(self) -> Term:
        """What `text` says."""
        return parse(self.text)

    def draw(self, count: int, random: np.random.Generator) -> Points:
        """Points where the condition holds and the exact result is a float."""
        found: list[Points] = []
        while sum(len(next(iter(one.values()))) for one in found) < count:
            points = {name: bit_patterns(count, *self.ranges.get(name, ALL), random) for name in arguments(self.term)}
            kept = np.ones(count, bool) if self.condition is None else self.condition(points)
            points = {name: values[kept] for name, values in points.items()}
            kept = np.isfinite(evaluate_exact(self.term, points))
            found.append({name: values[kept] for name, values in points.items()})
        return {name: np.concatenate([one[name] for one in found])[:count] for name in found[0]}


_LARGE: Final = (1.0, ALL[1])
_ROUND: Final = {"x": (-1e4, 1e4), "eps": (0.0, 1e4)}
_ROOT: Final = "(sqrt (subtract (multiply b b) (multiply 4 (multiply a c))))"
_HALF_ROOT: Final = "(sqrt (subtract (multiply b b) (multiply a c)))"
SUITE: Final = (
    Row("2sqrt", "(subtract (sqrt (add x 1)) (sqrt x))", {"x": _LARGE}),
    Row("2isqrt", "(subtract (divide 1 (sqrt x)) (divide 1 (sqrt (add x 1))))", {"x": _LARGE}),
    Row("2frac", "(subtract (divide 1 (add x 1)) (divide 1 x))", {}),
    Row("3frac", "(add (subtract (divide 1 (add x 1)) (divide 2 x)) (divide 1 (subtract x 1)))", {}),
    Row("2log", "(subtract (log (add n 1)) (log n))", {"n": _LARGE}),
    Row("exp2", "(add (subtract (exp x) 2) (exp (negative x)))", {"x": (-710, 710)}),
    Row("expm1", "(subtract (exp x) 1)", {"x": (-0.5, 0.5)}),
    Row("logs", "(subtract (subtract (multiply (add n 1) (log (add n 1))) (multiply n (log n))) 1)",
        {"n": (6.8e15, ALL[1])}),
    Row("qlog", "(divide (log (subtract 1 x)) (log (add 1 x)))", {"x": (-0.5, 0.5)}),
    Row("invcot", "(subtract (divide 1 x) (divide 1 (tan x)))", {"x": (-0.026, 0.026)}),
    Row("cos2", "(divide (subtract 1 (cos x)) (multiply x x))", {}),
    Row("logq", "(log (divide (subtract 1 eps) (add 1 eps)))", {"eps": (-1, 1)}),
    Row("sqrtexp", "(sqrt (divide (subtract (exp (multiply 2 x)) 1) (subtract (exp x) 1)))", {}),
    Row("2nthrt", "(subtract (power (add x 1) (divide 1 n)) (power x (divide 1 n)))", {}),
    Row("2sin", "(subtract (sin (add x eps)) (sin x))", _ROUND, _is_near),
    Row("2cos", "(subtract (cos (add x eps)) (cos x))", _ROUND, _is_near),
    Row("2tan", "(subtract (tan (add x eps)) (tan x))", _ROUND, _is_near),
    Row("tanhf", "(divide (subtract 1 (cos x)) (sin x))", {}),
    Row("sintan", "(divide (subtract x (sin x)) (subtract x (tan x)))", {"x": (-1e5, 1e5)}),
    Row("2atan", "(subtract (atan (add n 1)) (atan n))", {"n": _LARGE}),
    Row("quadp", f"(divide (add (negative b) {_ROOT}) (multiply 2 a))", {}),
    Row("quadm", f"(divide (subtract (negative b) {_ROOT}) (multiply 2 a))", {}),
    Row("quad2p", f"(divide (add (negative b) {_HALF_ROOT}) a)", {}),
    Row("quad2m", f"(divide (subtract (negative b) {_HALF_ROOT}) a)", {}),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Result:
    """Mean bits of error and operators of an expression, before and after."""

    name: str
    before: float
    after: float
    operators_before: int
    operators_after: int


def module(row: Row, count: int) -> relay.IRModule:
    """A function that computes the expression for `count` values of each argument."""
    params = {name: relay.var(name, shape=(count,), dtype="float32") for name in arguments(row.term)}
    return relay.IRModule.from_expr(relay.Function(list(params.values()), _relay(row.term, params)))


def _relay(term: Term, params: dict[str, relay.Var]) -> relay.Expr:
    match term:
        case Number(value=value):
            return relay.const(np.float32(float(value)))
        case Argument(name=name):
            return params[name]
        case Apply(op=op, args=args):
            return getattr(relay, op)(*(_relay(one, params) for one in args))


def operators(mod: relay.IRModule) -> int:
    """How many operators a module's entry computes."""
    found: set[relay.Expr] = set()
    relay.analysis.post_order_visit(mod["main"].body, lambda node: found.add(node))
    return sum(isinstance(node, relay.Call) for node in found)


def measure(row: Row) -> Result:
    """Rewrite an expression, and evaluate both forms at points drawn anew."""
    random = np.random.default_rng(1)
    if row.condition is None:
        step, count = transform.RewriteNumerics(ranges=row.ranges), MEASURED
    else:
        samples = row.draw(SAMPLES, random)
        step, count = transform.RewriteNumerics(samples={name: one[None] for name, one in samples.items()}), SAMPLES
    before = transform.EliminateCommonSubexpr()(module(row, count))
    after = step(before)
    points = row.draw(count, random)
    exact = evaluate_exact(row.term, points)
    errors = [float(bits_of_error(evaluate(mod, points), exact).mean()) for mod in (before, after)]
    return Result(row.name, round(errors[0], 2), round(errors[1], 2), operators(before), operators(after))


def table(found: Sequence[dict[str, Any]]) -> str:
    """The rows of docs/numerics.md."""
    lines = ["| Expression | | mean bits of error | rewritten | operators | rewritten |", "|---|---|---|---|---|---|"]
    texts = {row.name: row.text for row in SUITE}
    lines += [
        f"| {one['name']} | `{texts[one['name']]}` | {one['before']:.2f} | {one['after']:.2f} "
        f"| {one['operators_before']} | {one['operators_after']} |"
        for one in found
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    found = [asdict(measure(row)) for row in SUITE]
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    PAGE.write_text(replaced(PAGE.read_text(), "numerics", table(found)))
    for one in found:
        print(f"{one['name']:8} {one['before']:6.2f} {one['after']:6.2f} bits of error, "
              f"{one['operators_before']} and {one['operators_after']} operators")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
