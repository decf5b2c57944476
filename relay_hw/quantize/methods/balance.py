"""Shares the reach of a norm's channels between its factors and the weights of the layers that read it.

In: a float graph, its layers. Out: one with the same values, in which a norm's outliers are smaller and the weights
that they meet larger, by the share that makes the least noise of both together. A trained transformer has norms of
which a few factors are many times the others; int8 steps that hold those are coarse for all the others. Xiao et al.
2022.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relay_hw.ir.expr import Call, Constant, Expr, Trait
from relay_hw.ir.visit import readers_of
from relay_hw.quantize.layers import Layers
from relay_hw.quantize.rows import Norm, columns_of
from relay_hw.quantize.steps import LinearStep, NormStep
from relay_hw.transform.graph import constant, has_trait, is_op, make, remake
from relay_hw.transform.redirect import redirect

Float64 = NDArray[np.float64]
_Readers = Mapping[Expr, Sequence[Expr]]
# The largest of the standardised elements of a few rows.
_REACH: Final = 4.0
# How much of a channel's reach goes to the weights.
_SHARES: Final = (0.0, 0.25, 0.5, 0.75, 1.0)


def balance_norms(body: Expr, layers: Layers) -> Expr:
    """The body with every norm balanced whose readers are dense layers in integers, perhaps after moves."""
    readers = {body: [body], **readers_of(body)}
    linear: dict[Expr, LinearStep] = {step.linear.anchor: step for step in layers.linear}
    found: dict[Expr, Expr] = {}
    for step in layers.plan.steps:
        if isinstance(step, NormStep):
            steps = [linear.get(reader) for reader in _ends(step.output, readers)]
            dense = [one for one in steps if one is not None and _is_dense(one, columns_of(step.output))]
            if dense and len(dense) == len(steps):
                found |= _balanced(step, dense, layers)
    return redirect(body, found.get) if found else body


def _ends(expr: Expr, readers: _Readers) -> Iterator[Expr]:
    """What reads a tensor, perhaps after moves of whole rows."""
    for reader in readers[expr]:
        if reader is not expr and columns_of(reader) == columns_of(expr) and _moves_rows(reader):
            yield from _ends(reader, readers)
        else:
            yield reader


def _moves_rows(expr: Expr) -> bool:
    if not isinstance(expr, Call):
        return False
    return has_trait(expr, Trait.RESHAPES) or (is_op(expr, "strided_slice") and set(expr.attrs.strides or (1,)) == {1})


def _is_dense(step: LinearStep, columns: int) -> bool:
    anchor = step.linear.anchor
    return is_op(anchor, "nn.dense") and isinstance(anchor.args[1], Constant) and columns_of(anchor.args[1]) == columns


def _balanced(step: NormStep, dense: Sequence[LinearStep], layers: Layers) -> dict[Expr, Expr]:
    """The layers on other factors; none where it is best as it is."""
    shares = _best(step, dense, layers)
    if (shares == 1).all():
        return {}
    factor = constant((1 / shares).astype(np.float32))
    smaller = make("multiply", (step.output, factor), span=step.output.span)
    made: dict[Expr, Expr] = {step.output: smaller}
    found: dict[Expr, Expr] = {}
    for one in dense:
        anchor = one.linear.anchor
        weight = constant((_weight(one) * shares).astype(np.float32), anchor.args[1].span)
        found[anchor] = remake(anchor, (_on(anchor.args[0], made), weight, *anchor.args[2:]))
    return found


def _on(data: Expr, made: dict[Expr, Expr]) -> Expr:
    """The same moves of what `made` has instead."""
    if data not in made:
        assert isinstance(data, Call)
        made[data] = remake(data, (_on(data.args[0], made), *data.args[1:]))
    return made[data]


def _best(step: NormStep, dense: Sequence[LinearStep], layers: Layers) -> Float64:
    """What each column of the weights is multiplied by."""
    reach = np.abs(step.norm.gamma) * _REACH + np.abs(step.norm.beta)
    relative = np.where(reach > 0, reach, 1.0) / np.exp(np.log(reach[reach > 0]).mean()) if reach.any() else reach + 1
    steps = 1.0 / layers.own[step].activations.high
    return min(
        (relative**share for share in _SHARES),
        key=lambda one: _noise(step.norm, reach / one, one, steps, dense, layers),
    )


def _noise(
    norm: Norm, reach: Float64, shares: Float64, steps: float, dense: Sequence[LinearStep], layers: Layers
) -> float:
    """What rounding of the norm's results and of the weights adds to the layers' sums, in twelfths."""
    power = ((norm.gamma**2 + norm.beta**2) / shares**2).sum()
    total = 0.0
    for one in dense:
        weight = _weight(one) * shares
        limit = np.abs(weight).max(axis=1) / layers.own[one].weights.limit
        total += (reach.max() * steps) ** 2 * float(np.square(weight).sum()) + float(np.square(limit).sum() * power)
    return total


def _weight(step: LinearStep) -> NDArray[Any]:
    value = step.linear.anchor.args[1]
    assert isinstance(value, Constant)
    return value.data.astype(np.float64)
