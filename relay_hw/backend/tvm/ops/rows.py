"""Integer row functions: `fixed.softmax`, `fixed.layer_norm`, `fixed.rms_norm`, exact in 64 bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from relay_hw.backend.flat import FlatCall
from relay_hw.backend.tvm import scalars as s
from relay_hw.backend.tvm.api import te, tirx
from relay_hw.backend.tvm.ops.base import Arg, Context, Lowering, shape_of
from relay_hw.backend.tvm.ops.reduce import folded
from relay_hw.op.rows import (
    ELEMENT_BITS,
    EPSILON_BITS,
    MANTISSA_BITS,
    NORM_SHIFT,
    FixedRmsNormAttrs,
    reach,
)

# No sum of a row has more bits.
_MOST_BITS = 50


def _int(value: int) -> Any:
    return s.number(value, "int64")


def _row(index: Sequence[Any]) -> tuple[Any, ...]:
    """The place of a row's number."""
    return (*index[:-1], 0)


def _folded(x: Any, reducer: Any, element: Any) -> Any:
    """TE: `reducer` over each row of int64 `element(index)`."""
    return folded(x, (len(x.shape) - 1,), True, reducer, lambda _x, index: element(index))


def _bit_lengths(value: Any) -> Any:
    """TE: the number of bits of each number that is not negative: of how many shifts something is left."""
    shape = [int(size) for size in value.shape]
    places = te.reduce_axis((0, _MOST_BITS), "places")

    def count(*index: Any) -> Any:
        left = value(*index) >> places.var.astype("int64")
        return te.sum(s.select(left > _int(0), _int(1), _int(0)), axis=[places])

    return te.compute(shape, count, name="bits")


def _cut(value: Any, down: Any) -> Any:
    """`value` shifted right, left where `down` is negative."""

    def build(v: Any, by: Any) -> Any:
        none = _int(0)
        return (v << tirx.max(none - by, none)) >> tirx.max(by, none)

    return s.bind(build, value, down)


def _at_least(least: int, value: Any) -> Any:
    return te.compute(value.shape, lambda *i: tirx.max(value(*i), _int(least)), name="counted")


def _softmax(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    a, shape = call.attrs, shape_of(args[0])

    def build(x: Any, table: Any, lengths: Any) -> Any:
        def seen(i: Sequence[Any]) -> Any:
            first = i[0] if int(lengths.shape[0]) > 1 else 0
            inside = i[-1].astype("int32") < lengths(first)
            return tirx.all(inside, i[-1] <= i[-2] + (shape[-1] - shape[-2])) if a.causal else inside

        lowest = s.number(-128, "int32")
        data = te.compute(shape, lambda *i: s.select(seen(i), x(*i).astype("int32"), lowest), name="data")
        top = _folded(x, te.max, lambda i: data(*i))

        def entry(*i: Any) -> Any:
            return s.select(seen(i), table(top(*_row(i)) - data(*i)).astype("int64"), _int(0))

        entries = te.compute(shape, entry, name="entry")
        mantissa = lambda i: entries(*i) & _int((1 << MANTISSA_BITS) - 1)  # noqa: E731
        exponent = lambda i: entries(*i) >> _int(MANTISSA_BITS)  # noqa: E731
        total = _at_least(1, _folded(x, te.sum, lambda i: mantissa(i) << exponent(i)))
        bits = _bit_lengths(total)

        def factor(*row: Any) -> Any:
            inverse = tirx.truncdiv(_int((1 << 32) - 1), _cut(total(*row), bits(*row) - _int(16)))
            return (inverse * _int(a.multiplier)) >> _int(16)

        factors = te.compute(total.shape, factor, name="factor")

        def element(*i: Any) -> Any:
            down = tirx.max(bits(*_row(i)) + _int(a.shift) - exponent(i), _int(0))
            rounded = s.rounded_shift(mantissa(i) * factors(*_row(i)), down, "half_up")
            return s.saturated(rounded, a.zero_point, -128, 127, "int8")

        return te.compute(shape, element, name="fixed_softmax")

    return ctx.te(build, *args)


def _root(highest: Any) -> Any:
    """The largest number whose square times `highest` is below 2**46: the one next to the float root that fits."""

    def build(quotient: Any) -> Any:
        near = tirx.sqrt(quotient.astype("float64")).astype("int64")
        return s.bind(
            lambda r: r + _one_if((r + _int(1)) * (r + _int(1)) <= quotient) - _one_if(r * r > quotient), near
        )

    return s.bind(build, tirx.truncdiv(_int((1 << 46) - 1), highest))


def _one_if(condition: Any) -> Any:
    return s.select(condition, _int(1), _int(0))


def _norm(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    a, shape = call.attrs, shape_of(args[0])
    rms, columns = isinstance(a, FixedRmsNormAttrs), shape[-1]
    zero = a.input_zero_point if isinstance(a, FixedRmsNormAttrs) else 0
    limit = (1 << (ELEMENT_BITS - 1)) - 1

    def build(x: Any, gain: Any, bias: Any) -> Any:
        u = lambda i: x(*i).astype("int64") - _int(zero)  # noqa: E731
        total = None if rms else _folded(x, te.sum, u)
        squares = _folded(x, te.sum, lambda i: u(i) * u(i))
        mean = lambda row: _int(0) if total is None else total(*row)  # noqa: E731

        def spread(*row: Any) -> Any:
            variance = squares(*row) * _int(columns) - mean(row) * mean(row)
            return (variance << _int(EPSILON_BITS)) + _int(a.epsilon)

        value = _at_least(1 << EPSILON_BITS, te.compute(squares.shape, spread, name="spread"))
        bits = _bit_lengths(value)
        half = te.compute(value.shape, lambda *i: ((bits(*i) + _int(1)) >> _int(1)) - _int(8), name="half")
        inverse = te.compute(value.shape, lambda *i: _root(_cut(value(*i), half(*i) * _int(2))), name="inverse")

        def element(*i: Any) -> Any:
            row = _row(i)
            drop = tirx.max(half(*row) + _int(reach(columns)), _int(0))
            far = s.rounded_shift(u(i) * _int(columns) - mean(row), drop, "half_up")
            down = half(*row) + _int(NORM_SHIFT) - drop
            z = s.limited(s.rounded_shift(far * inverse(*row), down, "half_up"), -limit, limit)
            scaled = z * gain(i[-1]).astype("int64") + bias(i[-1]).astype("int64")
            return s.saturated(s.rounded_shift(scaled, _int(a.shift), "half_up"), a.zero_point, -128, 127, "int8")

        return te.compute(shape, element, name=call.op.name.replace(".", "_"))

    return ctx.te(build, *args)


LOWERINGS: Mapping[str, Lowering] = MappingProxyType(
    {"fixed.softmax": _softmax, "fixed.layer_norm": _norm, "fixed.rms_norm": _norm}
)
