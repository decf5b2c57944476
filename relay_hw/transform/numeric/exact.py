"""The exact value of a term, rounded once to float32, by mpmath with as many bits as it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import mpmath
import numpy as np
from mpmath import mp, mpf

from relay_hw.transform.numeric.error import Points
from relay_hw.transform.numeric.terms import Apply, Argument, Floats, Number, Term, subterms

Real: TypeAlias = Any  # mpmath brings no types

# Bits of the first try; the next ones take more where the two last ones disagree.
PRECISIONS: Final = (320, 640, 1400)
# Beyond it exp has more digits than memory.
_LARGEST_EXPONENT: Final = mpf(2) ** 150
_NAN: Final = mpf("nan")


def _exp(x: Real) -> Real:
    return mpmath.exp(x) if abs(x) < _LARGEST_EXPONENT else _NAN


def _power(x: Real, y: Real) -> Real:
    if x == 0:
        return mpf(0) if y > 0 else _NAN
    if x < 0:
        return mpmath.power(x, y) if y == int(y) and abs(y) < 2**30 else _NAN
    return _exp(y * mpmath.log(x))


def _within(function: Callable[[Real], Real], low: float, high: float) -> Callable[[Real], Real]:
    return lambda x: function(x) if low <= x <= high else _NAN


def _moderate(function: Callable[[Real], Real]) -> Callable[[Real], Real]:
    return lambda x: function(x) if abs(x) < _LARGEST_EXPONENT else _NAN


def _inside(function: Callable[[Real], Real], low: float, high: float) -> Callable[[Real], Real]:
    return lambda x: function(x) if low < x < high else _NAN


_INF: Final = float("inf")
EXACT: Final[Mapping[str, Callable[..., Real]]] = MappingProxyType(
    {
        "negative": lambda x: -x,
        "abs": abs,
        "sqrt": _within(mpmath.sqrt, 0, _INF),
        "rsqrt": _inside(lambda x: 1 / mpmath.sqrt(x), 0, _INF),
        "exp": _exp,
        "log": _inside(mpmath.log, 0, _INF),
        "sin": _moderate(mpmath.sin),
        "cos": _moderate(mpmath.cos),
        "tan": _moderate(mpmath.tan),
        "sinh": _moderate(mpmath.sinh),
        "cosh": _moderate(mpmath.cosh),
        "tanh": _moderate(mpmath.tanh),
        "asin": _within(mpmath.asin, -1, 1),
        "acos": _within(mpmath.acos, -1, 1),
        "atan": mpmath.atan,
        "asinh": mpmath.asinh,
        "acosh": _within(mpmath.acosh, 1, _INF),
        "atanh": _inside(mpmath.atanh, -1, 1),
        "sigmoid": lambda x: 1 / (1 + _exp(-x)),
        "erf": mpmath.erf,
        "add": lambda x, y: x + y,
        "subtract": lambda x, y: x - y,
        "multiply": lambda x, y: x * y,
        "divide": lambda x, y: x / y if y else _NAN,
        "power": _power,
    }
)


def apply_exact(op: str, values: Sequence[Sequence[Real]]) -> list[Real]:
    """The operator on real numbers at each point, at mpmath's present precision; NaN where it has no value."""
    function = EXACT[op]
    return [_NAN if any(one != one for one in args) else function(*args) for args in zip(*values, strict=True)]


def reals(term: Number | Argument, points: Points, count: int) -> list[Real]:
    """A leaf's value at each point."""
    if isinstance(term, Number):
        return [mpf(term.value.numerator) / term.value.denominator] * count
    return [mpf(float(one)) for one in points[term.name]]


def evaluate_real(root: Term, points: Points) -> dict[Term, list[Real]]:
    """Every subterm of `root` at each point, at mpmath's present precision."""
    count = len(next(iter(points.values())))
    values: dict[Term, list[Real]] = {}
    for term in subterms(root):
        match term:
            case Number() | Argument():
                values[term] = reals(term, points, count)
            case Apply():
                values[term] = apply_exact(term.op, [values[one] for one in term.args])
    return values


def to_float(values: Sequence[Real]) -> Floats:
    """Real numbers rounded to float32; beyond its range infinity."""
    with np.errstate(over="ignore"):
        return np.array([float(one) for one in values], np.float64).astype(np.float32)


def evaluate_exact(root: Term, points: Points) -> Floats:
    """The exact value of `root` at `points`, rounded once; NaN where it has none or no precision of ours decides it."""
    count = len(next(iter(points.values())))
    result = np.full(count, np.nan, np.float32)
    left = np.arange(count)
    before: Floats | None = None
    for precision in PRECISIONS:
        some = {name: values[left] for name, values in points.items()}
        with mp.workprec(precision):
            now = to_float(evaluate_real(root, some)[root])
        if before is not None:
            agreed = now == before
            result[left[agreed]] = now[agreed]
            left, now = left[~agreed & ~np.isnan(now)], now[~agreed & ~np.isnan(now)]
        before = now
        if not left.size:
            break
    return result
