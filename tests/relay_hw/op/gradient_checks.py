"""Derivatives of first and second order, against finite differences in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import relay_hw as relay
from relay_hw.analysis.infer import infer_expr
from relay_hw.interp import create_executor
from relay_hw.ir.expr import Expr, Var
from relay_hw.ir.types import TensorType, TupleType, Type
from relay_hw.op.gradients.accumulate import accumulate, joined

EXECUTOR = create_executor("debug")
STEP = 1e-6
Binds = dict[Var, Any]


def value(expr: Expr, binds: Binds) -> Any:
    return EXECUTOR.evaluate(expr, binds)


def type_of(given: Any) -> Type:
    if isinstance(given, tuple):
        return TupleType([type_of(part) for part in given])
    return TensorType(given.shape, str(given.dtype))


def weigh(result: Any, rng: np.random.Generator) -> Any:
    """Random numbers in the shape of a value of tensors and tuples."""
    if isinstance(result, tuple):
        return tuple(weigh(part, rng) for part in result)
    if result.dtype.kind != "f":
        return np.zeros_like(result)
    return np.where(np.isfinite(result), rng.normal(size=result.shape), 0).astype(result.dtype)


def total(result: Any, weights: Any) -> float:
    if isinstance(result, tuple):
        return sum(total(part, weight) for part, weight in zip(result, weights, strict=True))
    if result.dtype.kind != "f":
        return 0.0
    return float(np.sum(np.where(np.isfinite(result), result, 0) * weights))


def difference(function: Callable[[Binds], float], binds: Binds, param: Var) -> np.ndarray:
    """The slope of `function` for every element of a parameter."""
    slope = np.zeros_like(binds[param])
    for place in np.ndindex(slope.shape):
        ends = []
        for step in (STEP, -STEP):
            moved = np.array(binds[param])
            moved[place] += step
            ends.append(function(binds | {param: moved}))
        slope[place] = (ends[0] - ends[1]) / (2 * STEP)
    return slope


def real(given: Any) -> bool:
    return not isinstance(given, tuple) and given.dtype.kind == "f"


def check(build: Callable[..., Expr], *values: Any, free: Sequence[int] | None = None, second: bool = True) -> None:
    """First and second derivatives by every real argument (of `free`) must be what small steps show."""
    rng = np.random.default_rng(1)
    params = [Var(f"x{i}", type_of(v), checked_type=type_of(v)) for i, v in enumerate(values)]
    chosen = [p for i, (p, v) in enumerate(zip(params, values, strict=True)) if real(v) and (free is None or i in free)]
    binds: Binds = dict(zip(params, values, strict=True))
    function = infer_expr(build(*params))
    weights = weigh(value(function, binds), rng)
    seed = Var("g", function.type, checked_type=function.type)
    slopes = slopes_of(function, seed, chosen)
    binds[seed] = weights
    compare(chosen, slopes, binds, lambda at: total(value(function, at), weights))
    if not second:
        return
    whole = infer_expr(relay.Tuple(slopes))
    outer = weigh(value(whole, binds), rng)
    again = Var("h", whole.type, checked_type=whole.type)
    twice = slopes_of(whole, again, [*chosen, *([seed] if isinstance(seed.type, TensorType) else [])])
    binds[again] = outer
    wanted = [*chosen, seed] if isinstance(seed.type, TensorType) else chosen
    compare(wanted, twice, binds, lambda at: total(value(whole, at), outer))


def slopes_of(expr: Expr, seed: Var, wanted: Sequence[Var]) -> list[Expr]:
    return [joined(slope, var) for slope, var in zip(accumulate(expr, seed, wanted), wanted, strict=True)]


def compare(wanted: Sequence[Var], slopes: Sequence[Expr], binds: Binds, function: Callable[[Binds], float]) -> None:
    for param, slope in zip(wanted, slopes, strict=True):
        found = value(slope, binds)
        assert found.shape == binds[param].shape and found.dtype == binds[param].dtype
        expected = difference(function, binds, param)
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5, err_msg=f"%{param.name_hint}")
