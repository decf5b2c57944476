"""Builds the integer graph of a plan, with every scale as integer multiplier and shift.

In: a plan and the range of each tensor. Out: the new body, typed, and probes that pair float and integer tensors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.ir.expr import Call, Constant, Expr, Tuple, TupleGetItem
from relay_hw.ir.types import TupleType
from relay_hw.ir.visit import copy_with
from relay_hw.op.base import split_padding
from relay_hw.op.fixed_scale import MUL_MULTIPLIER_BITS
from relay_hw.quantize.factors import factor_groups
from relay_hw.quantize.layers import Layers
from relay_hw.quantize.number import (
    Attention,
    LayerWeights,
    QParams,
    activation_params,
    layer_weights,
    normalise,
    normalise_together,
)
from relay_hw.quantize.pointwise import function_values, on_another
from relay_hw.quantize.row_integers import norm_in_integers, reshaped, softmax_in_integers
from relay_hw.quantize.steps import (
    AddStep,
    AverageStep,
    BoundStep,
    FloatStep,
    GateStep,
    KeepStep,
    LinearStep,
    NormStep,
    PlanStep,
    ProductStep,
    SoftmaxStep,
    TableStep,
)
from relay_hw.span import Span
from relay_hw.transform.graph import constant, is_op, make, op_name, remake, shape_of, typed

Array = NDArray[Any]
Ranges = Mapping[Expr, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Probe:
    """A layer's tensor in the float graph and, as integers of `params`, in the integer graph."""

    name: str
    operator: str
    reference: Expr
    integer: Expr
    params: QParams


@dataclass(frozen=True, slots=True)
class FloatOperator:
    """An operator that stays float, in the float graph and in the integer graph."""

    reference: Call
    realized: Call


def realize(
    body: Expr, layers: Layers, ranges: Ranges, weights: Mapping[PlanStep, LayerWeights] | None = None
) -> tuple[Expr, tuple[Probe, ...], tuple[FloatOperator, ...]]:
    """The integer form of `body`, typed; `weights`: of layers whose integers are chosen already.

    Raises QuantizeError for numbers that integers cannot hold.
    """
    realizer = Realizer(layers, group_params(layers, ranges))
    for step in layers.plan.steps:
        realizer.take(step, (weights or {}).get(step))
    return realizer.as_float(body), tuple(realizer.probes), tuple(realizer.operators)


def group_params(layers: Layers, ranges: Ranges) -> dict[Expr, QParams]:
    """Scale and zero point of each integer tensor; tensors of one group get the same object."""
    plan = layers.plan
    found: dict[tuple[Expr, ...], QParams] = {}
    symmetric = plan.symmetric
    for group in plan.group.values():
        if group not in found:
            limits = [ranges[tensor] for tensor in group]
            low, high = min(low for low, _ in limits), max(high for _, high in limits)
            own = max((layers.of_tensor(tensor) for tensor in group), key=lambda one: one.bits)
            own = replace(own, symmetric=True) if group[0] in symmetric else own
            found[group] = activation_params(low, high, own)
    return {tensor: found[group] for tensor, group in plan.group.items()}


class Realizer:
    """Builds the quantized graph step by step; each tensor is materialised lazily as int8, float32 or both."""

    def __init__(self, layers: Layers, params: Mapping[Expr, QParams]) -> None:
        self.probes: list[Probe] = []
        self.operators: list[FloatOperator] = []
        self._params = params
        self._names = layers.names
        self._strategy = layers.strategy
        self._own = layers.own
        self._ints: dict[Expr, Expr] = {}
        self._floats: dict[Expr, Expr] = {}

    def take(self, step: PlanStep, weights: LayerWeights | None = None) -> None:
        """Build one step after those before it. `weights`: a linear layer's integers, if chosen already."""
        output = step.output
        match step:
            case LinearStep():
                self._record(step, self._linear(step, weights), op_name(step.linear.anchor))
            case AddStep():
                self._record(step, self._add(step), "add")
            case GateStep():
                self._record(step, self._gate(step), "multiply")
            case ProductStep():
                self._record(step, self._product(step), op_name(output))
            case SoftmaxStep() | NormStep():
                self._record(step, self._rows(step), op_name(output))
            case AverageStep():
                self._record(step, self._average(step), op_name(step.pool))
            case KeepStep():
                self._ints[output] = self._keep(step)
            case BoundStep():
                self._ints[output] = self._bound(step)
            case TableStep():
                self._ints[output] = self._table(step)
            case FloatStep():
                assert isinstance(output, Call)
                args = [self.as_float(arg) for arg in output.args]
                new = copy_with(output, args=tuple(args))
                self._floats[output] = new
                self.operators.append(FloatOperator(output, new))
            case _:
                raise AssertionError(step)

    def as_float(self, expr: Expr) -> Expr:
        """`expr` of the old graph as floats in the new one."""
        if expr in self._floats:
            return self._floats[expr]
        match expr:
            case Tuple(fields=parts):
                new: Expr = copy_with(expr, fields=tuple(self.as_float(part) for part in parts))
            case TupleGetItem(tuple_value=value):
                new = copy_with(expr, tuple_value=self.as_float(value))
            case _ if expr in self._ints:
                new = self._dequantize(self._ints[expr], self._params[expr], expr.span)
            case _:
                new = expr
        self._floats[expr] = new
        return new

    def as_int(self, expr: Expr) -> Expr:
        """`expr` of the old graph as integers in the new one."""
        if isinstance(expr, Constant):
            return self._ints.setdefault(expr, constant(self._params[expr].integers(expr.data), expr.span))
        if expr not in self._ints:
            self._ints[expr] = self._quantize(self.as_float(expr), self._params[expr], expr.span)
        return self._ints[expr]

    def _quantize(self, data: Expr, params: QParams, span: Span | None) -> Expr:
        args = (data, constant(np.float32(params.scale)), constant(np.int32(params.zero_point)))
        new = make("qnn.quantize", args, out_dtype="int8", span=span)
        if (params.low, params.high) == (-128, 127):
            return new
        return make("clip", (new,), a_min=params.low, a_max=params.high, span=span)

    def _dequantize(self, data: Expr, params: QParams, span: Span | None) -> Expr:
        args = (data, constant(np.float32(params.scale)), constant(np.int32(params.zero_point)))
        return make("qnn.dequantize", args, out_dtype="float32", span=span)

    def _record(self, step: PlanStep, integer: Expr, operator: str) -> None:
        self._ints[step.output] = integer
        self.probes.append(Probe(self._names[step], operator, step.output, integer, self._params[step.output]))

    def weights(self, step: LinearStep) -> LayerWeights:
        """The integers of a layer as its rule rounds them. Raises QuantizeError."""
        weight, bias = float_weights(step)
        own = self._own[step].weights
        groups = factor_groups(step, own)
        params, name = self._params[step.inputs[0]], self._names[step]
        return layer_weights(weight, bias, params, own, name, Attention(groups=groups))

    def _linear(self, step: LinearStep, weights: LayerWeights | None) -> Expr:
        linear, source = step.linear, step.inputs[0]
        x, given, result = self.as_int(source), self._params[source], self._params[step.output]
        layer = self.weights(step) if weights is None else weights
        anchor = linear.anchor
        attrs, bias = replace(anchor.attrs, out_dtype="int32"), layer.bias
        if is_op(anchor, "nn.conv2d") and given.zero_point != 0:
            x, attrs = _pad_first(x, attrs, attrs.data_layout, given.zero_point, anchor.span)
        integers = np.ascontiguousarray(np.moveaxis(layer.weight, 0, linear.weight_axis))
        args = (x, constant(integers, anchor.args[1].span))
        if is_op(anchor, "nn.conv2d_transpose"):
            acc, bias = _transposed(args, anchor, given.zero_point), layer.unfolded
        else:
            acc = remake(anchor, args, attrs)
        factors = [Fraction(given.scale) * Fraction(float(s)) / Fraction(result.scale) for s in layer.scales]
        if (layer.scales == layer.scales[0]).all() and not self._own[step].weights.per_channel:
            factors = factors[:1]
        return self._requantize(acc, bias, factors, linear.axis, step)

    def _product(self, step: ProductStep) -> Expr:
        """A product of the left operand with the right one, transposed first if necessary."""
        call, result = step.output, self._params[step.output]
        assert isinstance(call, Call)
        turned = (call.attrs.transpose_a, not call.attrs.transpose_b)
        left, right = (
            make("transpose", (self.as_int(tensor),), axes=(0, 2, 1), span=call.span) if turn else self.as_int(tensor)
            for tensor, turn in zip(step.inputs, turned, strict=True)
        )
        acc = make("nn.batch_matmul", (left, right), out_dtype="int32", transpose_b=True, span=call.span)
        factor = Fraction(1) / Fraction(result.scale)
        for tensor in step.inputs:
            factor *= Fraction(self._params[tensor].scale)
        columns = shape_of(acc)
        assert columns is not None
        return self._requantize(acc, np.zeros(columns[2], np.int32), [factor], 2, step)

    def _average(self, step: AverageStep) -> Expr:
        pool, source = step.pool, step.inputs[0]
        x, given, result = self.as_int(source), self._params[source], self._params[step.output]
        shape = shape_of(pool.args[0])
        assert shape is not None
        layout = pool.attrs.layout
        if is_op(pool, "nn.global_avg_pool2d"):
            size = (shape[layout.index("H")], shape[layout.index("W")])
            strides, padding = (1, 1), (0, 0, 0, 0)
        else:
            size, strides = tuple(pool.attrs.pool_size), tuple(pool.attrs.strides)
            before, after = split_padding(op_name(pool), pool.attrs.padding, 2)
            padding = (*before, *after)
        if any(padding) and given.zero_point != 0:
            x = _pad(x, padding, layout, given.zero_point, pool.span)
            padding = (0, 0, 0, 0)
        acc = make("fixed.sum_pool2d", (x,), pool_size=size, strides=strides, padding=padding, layout=layout,
                   span=pool.span)  # fmt: skip
        count = math.prod(size)
        channels = shape[layout.index("C")]
        bias = np.full(channels, -given.zero_point * count, np.int64)
        factor = Fraction(given.scale) / (Fraction(result.scale) * count)
        return self._requantize(acc, bias.astype(np.int32), [factor], layout.index("C"), step)

    def _requantize(self, acc: Expr, bias: Array, factors: Sequence[Fraction], axis: int, step: PlanStep) -> Expr:
        bits = self._strategy.multiplier_bits
        pairs = [normalise(factor, bits) for factor in factors]
        return make(
            "fixed.requantize",
            (acc, constant(bias)),
            multiplier=tuple(m for m, _ in pairs),
            shift=tuple(s for _, s in pairs),
            axis=axis,
            **self._end(step, bits),
        )

    def _end(self, step: PlanStep, multiplier_bits: int) -> dict[str, Any]:
        """What all operators with a scaled result take: how it is rounded, moved and clipped, and where it is from."""
        result = self._params[step.output]
        a_min, a_max = _limits(step, result)
        return {
            "zero_point": result.zero_point,
            "rounding": self._strategy.rounding,
            "a_min": a_min,
            "a_max": a_max,
            "multiplier_bits": multiplier_bits,
            "span": step.output.span,
        }

    def _add(self, step: AddStep) -> Expr:
        left, right = (self._params[tensor] for tensor in step.inputs)
        result = self._params[step.output]
        bits = self._strategy.multiplier_bits
        sides = zip((left, right), step.factors, strict=True)
        factors = [Fraction(side.scale) * Fraction(factor) / Fraction(result.scale) for side, factor in sides]
        (left_multiplier, right_multiplier), shift = normalise_together(factors, bits)
        return make(
            "fixed.add",
            [self.as_int(tensor) for tensor in step.inputs],
            y_multiplier=left_multiplier,
            r_multiplier=right_multiplier,
            shift=shift,
            y_zero_point=left.zero_point,
            r_zero_point=right.zero_point,
            **self._end(step, bits),
        )

    def _keep(self, step: KeepStep) -> Expr:
        call, params = step.output, self._params[step.output]
        assert isinstance(call, Call)
        parts = [self.as_int(tensor) for tensor in step.inputs]
        if is_op(call, "concatenate"):
            return remake(call, (_tuple(parts),))
        if is_op(call, "nn.pad"):
            assert isinstance(call.args[1], Constant)
            value = params.quantize(float(call.args[1].data.reshape(-1)[0]))
            return remake(call, (parts[0], constant(np.int8(value))))
        shape = shape_of(call)
        if is_op(call, "reshape") and is_op(parts[0], "reshape") and shape is not None:
            return reshaped(parts[0], shape)
        return remake(call, (parts[0], *call.args[1:]))

    def _bound(self, step: BoundStep) -> Expr:
        a_min, a_max = _limits(step, self._params[step.output])
        return make("clip", (self.as_int(step.inputs[0]),), a_min=a_min, a_max=a_max, span=step.output.span)

    def _gate(self, step: GateStep) -> Expr:
        left, right = (self._params[tensor] for tensor in step.inputs)
        result, bits = self._params[step.output], min(self._strategy.multiplier_bits, MUL_MULTIPLIER_BITS)
        multiplier, shift = normalise(Fraction(left.scale) * Fraction(right.scale) / Fraction(result.scale), bits)
        return make(
            "fixed.mul",
            [self.as_int(tensor) for tensor in step.inputs],
            multiplier=multiplier,
            shift=shift,
            y_zero_point=left.zero_point,
            r_zero_point=right.zero_point,
            **self._end(step, bits),
        )

    def _rows(self, step: SoftmaxStep | NormStep) -> Expr:
        """Softmax or a norm; in floats where its numbers have no place in the integer form."""
        (source,), call = step.inputs, step.output
        given, result = self._params[source], self._params[call]
        if isinstance(step, SoftmaxStep):
            lengths = None if step.softmax.lengths is None else self.as_float(step.softmax.lengths)
            new = softmax_in_integers(self.as_int(source), step.softmax, given, result, lengths)
        else:
            new = norm_in_integers(self.as_int(source), step.norm, given, result)
        assert isinstance(call, Call)
        return self._in_floats(call, source) if new is None else new

    def _in_floats(self, call: Call, source: Expr) -> Expr:
        """Integers of a function of `source` that is computed in floats."""
        new = on_another(call, source, self.as_float(source))
        assert isinstance(new, Call)
        self.operators.append(FloatOperator(call, new))
        return self._quantize(new, self._params[call], call.span)

    def _table(self, step: TableStep) -> Expr:
        (source,), call = step.inputs, step.output
        assert isinstance(call, Call)
        given, result = self._params[source], self._params[call]
        values = function_values(call, source, given.reals(np.arange(-128, 128)))
        if not np.isfinite(values[given.low + 128 : given.high + 129]).all():
            # Infinities and what is no number are told at run time, where a host makes integers of them.
            return self._in_floats(call, source)
        return make("fixed.table", (self.as_int(source), constant(result.integers(values))), span=call.span)


def float_weights(step: LinearStep) -> tuple[Array, NDArray[np.float64]]:
    """Weight with the output channels on axis 0, and bias."""
    linear = step.linear
    weight = np.moveaxis(linear.weight, linear.weight_axis, 0)
    bias = np.zeros(linear.channels) if linear.bias is None else linear.bias.astype(np.float64)
    return weight, bias


def _limits(step: PlanStep, params: QParams) -> tuple[int, int]:
    """The integer bounds of an activation."""
    low = params.low if step.low == -math.inf else params.quantize(step.low)
    high = params.high if step.high == math.inf else params.quantize(step.high)
    return low, high


def _tuple(parts: Sequence[Expr]) -> Tuple:
    return typed(Tuple(parts), TupleType([part.type for part in parts]))


def _pad_first(x: Expr, attrs: Any, layout: str, value: int, span: Span | None) -> tuple[Expr, Any]:
    """The padding of a convolution as a separate operator that pads with `value`, which represents 0."""
    before, after = split_padding("nn.conv2d", attrs.padding, 2)
    if not any((*before, *after)):
        return x, attrs
    return _pad(x, (*before, *after), layout, value, span), replace(attrs, padding=(0, 0, 0, 0))


def _transposed(args: Sequence[Expr], anchor: Call, zero_point: int) -> Expr:
    """A transposed convolution by the operator that subtracts the zero point: gaps between data are 0."""
    names = ("strides", "padding", "dilation", "groups", "data_layout", "kernel_layout", "output_padding")
    attrs = {name: getattr(anchor.attrs, name) for name in names}
    return make("fixed.conv2d_transpose", args, **attrs, input_zero_point=zero_point, span=anchor.span)


def _pad(x: Expr, padding: Sequence[int], layout: str, value: int, span: Span | None) -> Expr:
    top, left, bottom, right = padding
    widths = {"H": (top, bottom), "W": (left, right)}
    pad_width = tuple(widths.get(letter, (0, 0)) for letter in layout)
    return make("nn.pad", (x, constant(np.int8(value))), pad_width=pad_width, pad_mode="constant", span=span)
