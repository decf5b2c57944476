"""Finds softmax and norms of rows in a float graph, however they are written.

In: operators of a float graph, and which read each. Out: what each function reads and computes, the operators inside. A
row is the last axis. ONNX writes a norm as seven operators, a scaled and masked softmax as three.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from relay_hw.ir.expr import Call, Expr
from relay_hw.op.reduce import reduced_axes
from relay_hw.transform.graph import constant_value, dtype_of, is_op, op_name, scalar_value, shape_of
from relay_hw.transform.prefix_masks import MASKED

Vector = NDArray[np.float64]
# What reads a call; None where something but calls does.
Readers = Callable[[Call], Sequence[Expr] | None]


@dataclass(frozen=True, slots=True, eq=False)
class Softmax:
    """`output` is the softmax of `source` times `factor`, if `causal` of columns up to the row's own.

    `lengths`: int32, how many columns count, one number or one for each part of the first axis; None: all. `inside`:
    the operators between them, which nothing else reads.
    """

    output: Call
    source: Expr
    inside: tuple[Call, ...]
    factor: float
    causal: bool
    lengths: Expr | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Norm:
    """`output` is `source`, less its mean if `centered`, over the root of its mean square and `epsilon`, times gamma
    plus beta. `inside` as in Softmax."""

    output: Call
    source: Expr
    inside: tuple[Call, ...]
    gamma: Vector
    beta: Vector
    epsilon: float
    centered: bool


RowFunction = Softmax | Norm


def row_functions(calls: Iterable[Call], readers: Readers) -> tuple[RowFunction, ...]:
    """Those among `calls`, which come operands first; of several around one another the largest."""
    found: dict[Expr, RowFunction] = {}
    for call in calls:
        if dtype_of(call) != "float32" or not shape_of(call):
            continue
        one = _softmax(call, readers) or _norm(call, found, readers)
        if one is not None:
            for inner in one.inside:
                found.pop(inner, None)
            found[call] = one
    return tuple(found.values())


def columns_of(expr: Expr) -> int:
    """The length of a row."""
    return (shape_of(expr) or (0,))[-1]


def _is_last(axis: int, expr: Expr) -> bool:
    rank = len(shape_of(expr) or (0,))
    return axis % rank == rank - 1


def _softmax(call: Call, readers: Readers) -> Softmax | None:
    if not is_op(call, "nn.softmax", "nn.fast_softmax") or not _is_last(call.attrs.axis, call):
        return None
    one = Softmax(call, call.args[0], (), 1.0, False)
    while isinstance(data := one.source, Call) and _is_read_by(data, {call, *one.inside}, readers):
        factor, rest = times_number(data)
        masked = None if one.causal or one.factor != 1 else _masked(data)
        padded = None if one.lengths or one.factor != 1 else padding_of(data)
        if rest is not None and factor > 0:
            one = replace(one, source=rest, inside=(*one.inside, data), factor=one.factor * factor)
        elif masked is not None:
            one = replace(one, source=masked, inside=(*one.inside, data), causal=True)
        elif padded is not None:
            one = replace(one, source=padded[0], inside=(*one.inside, data), lengths=padded[1])
        else:
            break
    return one


def _is_read_by(call: Call, members: set[Call], readers: Readers) -> bool:
    """Whether nothing but `members` reads a call."""
    found = readers(call)
    return found is not None and members.issuperset(found)


def times_number(call: Call) -> tuple[float, Expr | None]:
    """The number that a tensor is multiplied by, and the tensor."""
    match op_name(call):
        case "multiply":
            for number, data in (call.args, call.args[::-1]):
                value = scalar_value(number)
                if value is not None and shape_of(data) == shape_of(call):
                    return float(value), data
        case "divide" if scalar_value(call.args[1]):
            return 1 / float(scalar_value(call.args[1]) or 1), call.args[0]
        case _:
            pass
    return 0.0, None


def _masked(call: Call) -> Expr | None:
    """What a causal mask is added to, or chooses from."""
    shape = shape_of(call)
    if shape is None or len(shape) < 2:
        return None
    if is_op(call, "where") and (chosen := chosen_scores(call)) is not None:
        value = constant_value(chosen.visible)
        if value is None or value.size != shape[-1] * shape[-2]:
            return None
        seen = np.tri(shape[-2], shape[-1], shape[-1] - shape[-2], dtype=bool)
        return chosen.scores if ((value.reshape(shape[-2:]) != 0) == (seen != chosen.negated)).all() else None
    if not is_op(call, "add"):
        return None
    for mask, data in (call.args, call.args[::-1]):
        value = constant_value(mask)
        if value is None or shape_of(data) != shape or value.size != shape[-1] * shape[-2]:
            continue
        rows = value.reshape(shape[-2:])
        seen = np.tri(shape[-2], shape[-1], shape[-1] - shape[-2], dtype=bool)
        if not rows[seen].any() and (rows[~seen] <= MASKED).all():
            return data
    return None


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """`scores` where `visible`, or, if `negated`, where not; numbers that do not count elsewhere."""

    scores: Expr
    visible: Expr
    negated: bool


def chosen_scores(call: Call) -> Chosen | None:
    """The parts of a `where` that hides scores."""
    if not is_op(call, "where"):
        return None
    for negated, (scores, hidden) in enumerate((call.args[1:], call.args[:0:-1])):
        number = scalar_value(hidden)
        if number is not None and number <= MASKED and shape_of(scores) == shape_of(call):
            return Chosen(scores, call.args[0], bool(negated))
    return None


def padding_of(call: Call) -> tuple[Expr, Expr] | None:
    """Scores and how many of their columns count, one number or one for each part of the first axis: `where` of the
    numbers of columns below them."""
    chosen, shape = chosen_scores(call), shape_of(call)
    if chosen is None or chosen.negated or shape is None or not isinstance(chosen.visible, Call):
        return None
    if not is_op(chosen.visible, "less"):
        return None
    columns, lengths = constant_value(chosen.visible.args[0]), chosen.visible.args[1]
    counts = shape_of(lengths)
    if columns is None or columns.shape[-1:] != shape[-1:] or columns.size != shape[-1] or counts is None:
        return None
    one_a_part = len(counts) == len(shape) and counts[0] in (1, shape[0]) and set(counts[1:]) <= {1}
    if not one_a_part or dtype_of(lengths) != "int32" or (columns.reshape(-1) != np.arange(shape[-1])).any():
        return None
    return chosen.scores, lengths


def _norm(call: Call, found: dict[Expr, RowFunction], readers: Readers) -> Norm | None:
    """A norm's operator, its division, or the factors and offsets behind it."""
    if is_op(call, "nn.layer_norm"):
        return _layer_norm(call)
    if is_op(call, "divide", "multiply") and (core := _standardized(call, readers)) is not None:
        return core
    if not is_op(call, "multiply", "add", "nn.bias_add"):
        return None
    for data, other in (call.args, call.args[::-1]):
        inner, vector = found.get(data), _vector(other, call)
        if not isinstance(inner, Norm) or vector is None or not _is_read_by(inner.output, {call}, readers):
            continue
        outer = replace(inner, output=call, inside=(*inner.inside, inner.output))
        if is_op(call, "multiply"):
            return replace(outer, gamma=inner.gamma * vector, beta=inner.beta * vector)
        if is_op(call, "add") or _is_last(call.attrs.axis, call):
            return replace(outer, beta=inner.beta + vector)
    return None


def _layer_norm(call: Call) -> Norm | None:
    gamma, beta = (constant_value(arg) for arg in call.args[1:])
    if gamma is None or beta is None or not _is_last(call.attrs.axis, call):
        return None
    gamma = gamma if call.attrs.scale else np.ones(columns_of(call))
    beta = beta if call.attrs.center else np.zeros(columns_of(call))
    return Norm(call, call.args[0], (), gamma.astype(np.float64), beta.astype(np.float64), call.attrs.epsilon, True)


def _vector(expr: Expr, call: Call) -> Vector | None:
    """A constant that has one number for each column, or one for all."""
    value, columns = constant_value(expr), columns_of(call)
    if value is None or value.dtype.kind != "f" or value.size not in (1, columns) or not np.isfinite(value).all():
        return None
    if value.size > 1 and value.shape[-1] != columns:
        return None
    return np.broadcast_to(value.reshape(-1), columns).astype(np.float64)


def _standardized(call: Call, readers: Readers) -> Norm | None:
    """x over the root of the mean of its squares and a number; x may be data less their mean."""
    for data, divisor in (call.args, call.args[::-1])[: 1 if is_op(call, "divide") else 2]:
        inside: list[Call] = []
        variance = _under_root(divisor, is_op(call, "divide"), inside)
        if variance is None or not is_op(variance, "add"):
            continue
        for mean, number in (variance.args, variance.args[::-1]):
            epsilon, squares = scalar_value(number), _mean_of(mean)
            if epsilon is None or epsilon < 0 or not isinstance(squares, Call) or not _is_square(squares, data):
                continue
            assert isinstance(mean, Call)
            source, less = _less_mean(data)
            members = (*inside, variance, mean, squares, *less)
            columns = columns_of(call)
            one = Norm(call, source, members, np.ones(columns), np.zeros(columns), epsilon, bool(less))
            closed = all(_is_read_by(member, {call, *members}, readers) for member in members)
            return one if closed and shape_of(source) == shape_of(call) else None
    return None


def _under_root(expr: Expr, divides: bool, inside: list[Call]) -> Call | None:
    """v of sqrt(v) that divides, or of its inverse that multiplies."""
    if not isinstance(expr, Call):
        return None
    inside.append(expr)
    match op_name(expr):
        case "sqrt" if divides:
            found = expr.args[0]
        case "power" if scalar_value(expr.args[1]) == (0.5 if divides else -0.5):
            found = expr.args[0]
        case "rsqrt" if not divides:
            found = expr.args[0]
        case "divide" if not divides and scalar_value(expr.args[0]) == 1:
            return _under_root(expr.args[1], True, inside)
        case _:
            return None
    return found if isinstance(found, Call) else None


def _mean_of(expr: Expr) -> Expr | None:
    """What the mean of each row is of."""
    if not isinstance(expr, Call) or not is_op(expr, "mean") or not expr.attrs.keepdims:
        return None
    rank = len(shape_of(expr.args[0]) or ())
    return expr.args[0] if rank and tuple(reduced_axes("mean", expr.attrs, rank)) == (rank - 1,) else None


def _is_square(expr: Expr, data: Expr) -> bool:
    if not isinstance(expr, Call):
        return False
    if is_op(expr, "multiply"):
        return expr.args[0] is data and expr.args[1] is data
    return is_op(expr, "power") and expr.args[0] is data and scalar_value(expr.args[1]) == 2


def _less_mean(data: Expr) -> tuple[Expr, tuple[Call, ...]]:
    """The tensor that `data` are less its mean, and both operators; `data` and none if they are not."""
    if isinstance(data, Call) and is_op(data, "subtract"):
        source, mean = data.args
        if isinstance(mean, Call) and _mean_of(mean) is source:
            return source, (data, mean)
    return data, ()
