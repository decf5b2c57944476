"""Reads layers of a prequantized graph: the operators before a quantize or requantize, as one integer operator each.

In: expressions of the old graph and the target of their result. Out: int8 expressions of the new one, or None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Constant, Expr, Trait, Tuple
from relay_hw.quantize.affine import OFFSET, Grid, GridConstant, grid_constant, grid_of, integer_constant, known
from relay_hw.quantize.integer_layers import (
    Target,
    add,
    average,
    bounded,
    convolution,
    requantize,
    rescale,
    transposed,
)
from relay_hw.quantize.prequantized_queries import (
    fits_int8,
    has_one_divisor,
    input_axis,
    original,
    pairs_of,
    places_of,
    spread_to,
    vector_of,
)
from relay_hw.quantize.rules import LAYERS
from relay_hw.transform.graph import (
    constant,
    count_uses,
    dtype_of,
    has_trait,
    is_op,
    make,
    op_name,
    remake,
    shape_of,
    typed_tuple,
)

Array = NDArray[Any]
_AVERAGES: Final = ("nn.avg_pool2d", "nn.global_avg_pool2d", "mean")
_INT_ANCHORS: Final = ("qnn.conv2d", "qnn.dense", "nn.conv2d", "nn.dense")


@dataclass(frozen=True, slots=True)
class Source:
    """A float tensor of the old graph that equals int8 `data` on `grid`; `is_own`: it has no other reader."""

    data: Expr
    grid: Grid
    is_own: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class _Given:
    """The numbers of a linear layer: integers of its weight and bias, the data's zero point, and what requantizes.

    `pairs`: (multiplier, shift) of each output channel; `places`: the axes of output channels in result and weight.
    """

    weight: Array
    zero: int
    bias: Array
    pairs: Sequence[tuple[int, int]]
    places: tuple[int, int]


class LayerReader:
    """Maps tensors of the old graph to int8, and reads layers made of them."""

    def __init__(self, body: Expr, bits: int) -> None:
        self._bits = bits
        self._uses = count_uses(body)
        self._ints: dict[Expr, Expr] = {}
        self._constants: dict[Expr, Any] = {}
        self._sources: dict[Expr, Source | None] = {}

    def _int(self, expr: Expr) -> Expr:
        if expr not in self._ints:
            self._ints[expr] = self._from_host(expr)
        return self._ints[expr]

    def _from_host(self, expr: Expr) -> Expr:
        raise AssertionError("a walk knows what the host makes")

    # Float layers between dequantize and quantize

    def layer(self, real: Expr, target: Target, single: bool) -> Expr | None:
        """The layer that computes `real`, quantized to the target. `single`: it has no other reader."""
        source = self._source(real)
        if source is not None:
            return self.rescaled(source.data, source.grid, target, single and source.is_own)
        if not isinstance(real, Call) or dtype_of(real) != "float32":
            return None
        found = self._linear(real, target)
        if found is not None:
            return found
        match op_name(real):
            case "add":
                return self._sum(real, target)
            case name if name in _AVERAGES:
                return self._average(real, target)
            case "nn.batch_matmul":
                return self._product(real, target)
            case "concatenate":
                return self._parts(real, target)
            case _:
                return None

    def rescaled(self, data: Expr, grid: Grid, target: Target, is_own: bool) -> Expr:
        """int8 `data` on `grid`, requantized to the target; on the same grid only its bounds change."""
        if grid == target.grid:
            return bounded(data, target.low, target.high, is_own, target.span)
        return rescale(data, grid, target)

    def _source(self, real: Expr) -> Source | None:
        if real not in self._sources:
            self._sources[real] = self._find_source(real)
        return self._sources[real]

    def _find_source(self, real: Expr) -> Source | None:
        if not isinstance(real, Call):
            return None
        name = op_name(real)
        if name == "qnn.dequantize":
            data = real.args[0]
            grid = grid_of(real, OFFSET[dtype_of(data)]) if dtype_of(data) in OFFSET else None
            own = self._uses[real] == 1 and self._uses[data] == 1
            return None if grid is None else Source(self._int(data), grid, own)
        if name == "concatenate":
            return self._source_of_parts(real)
        if not has_trait(real, Trait.KEEPS_SCALE) and name not in ("nn.pad", "nn.relu"):
            return None
        inner = self._source(real.args[0])
        if inner is None:
            return None
        if name == "nn.pad":
            value = known(real.args[1], self._constants)
            index = None if value is None else inner.grid.exact(float(np.asarray(value).reshape(())))
            if index is None or real.attrs.pad_mode != "constant":
                return None
            return Source(remake(real, (inner.data, constant(np.int8(index)))), inner.grid)
        if name == "nn.relu":
            own = inner.is_own and self._uses[real] == 1
            return Source(bounded(inner.data, inner.grid.zero, 127, own, real.span), inner.grid, own)
        return Source(remake(real, (inner.data, *real.args[1:])), inner.grid)

    def _source_of_parts(self, real: Call) -> Source | None:
        parts = real.args[0]
        sources = [self._source(part) for part in parts.fields] if isinstance(parts, Tuple) else []
        found = [source for source in sources if source is not None]
        if not found or len(found) < len(sources) or any(source.grid != found[0].grid for source in found):
            return None
        return Source(self._concatenated(real, [source.data for source in found]), found[0].grid)

    def _concatenated(self, call: Call, parts: Sequence[Expr]) -> Expr:
        return make("concatenate", (typed_tuple(list(parts)),), axis=call.attrs.axis, span=call.span)

    def _parts(self, real: Call, target: Target) -> Expr | None:
        """Requantize parts on different grids to the target one by one."""
        parts = real.args[0]
        sources = [self._source(part) for part in parts.fields] if isinstance(parts, Tuple) else []
        done: list[Expr] = []
        for source in sources:
            if source is None:
                return None
            done.append(self.rescaled(source.data, source.grid, target, False))
        return self._concatenated(real, done) if done else None

    def _linear(self, real: Call, target: Target) -> Expr | None:
        anchor, bias = self._split_bias(real, LAYERS)
        if anchor is None or anchor.attrs.out_dtype not in (None, "", "float32"):
            return None
        places = places_of(anchor)
        source, weight = self._source(anchor.args[0]), grid_constant(anchor.args[1], self._constants)
        if source is None or weight is None or places is None:
            return None
        axis, weight_axis = places
        scales = weight.along(weight_axis)
        if scales is None:
            return None
        units = [source.grid.scale * scale for scale in scales]
        offsets = self._bias(bias, units, axis, len(shape_of(real) or ()))
        if offsets is None:
            return None
        pairs = target.pairs([unit / target.grid.scale for unit in units])
        given = _Given(weight.integers, source.grid.zero, offsets, pairs, places)
        return self._layer(anchor, source.data, given, target)

    def _split_bias(self, real: Expr, anchors: Sequence[str]) -> tuple[Call | None, Expr | None]:
        """Split a layer into its anchor and the constant that is added to it."""
        if not isinstance(real, Call):
            return None, None
        if op_name(real) in anchors:
            return real, None
        if op_name(real) not in ("nn.bias_add", "add"):
            return None, None
        for data, bias in (real.args, real.args[::-1]):
            data = original(data)
            if isinstance(data, Call) and op_name(data) in anchors:
                if is_op(real, "nn.bias_add"):
                    shape, places = shape_of(real), places_of(data)
                    fits = shape is not None and places is not None and real.attrs.axis % len(shape) == places[0]
                    return (data, bias) if fits else (None, None)
                return data, bias
        return None, None

    def _bias(self, bias: Expr | None, units: Sequence[Fraction], axis: int, rank: int) -> Array | None:
        """A bias in units of the accumulator, ties to even, clipped to int32."""
        if bias is None:
            return np.zeros(len(units), np.int64)
        given = grid_constant(bias, self._constants)
        value = known(bias, self._constants)
        if given is not None:
            numbers = self._exact(given, len(units), axis, rank)
        elif value is not None:
            flat = vector_of(np.asarray(value), len(units), axis, rank)
            numbers = None if flat is None or not np.isfinite(flat).all() else [Fraction(float(v)) for v in flat]
        else:
            numbers = None
        if numbers is None:
            return None
        rounded = [round(number / unit) for number, unit in zip(numbers, units, strict=True)]
        return np.array([min(max(v, -(2**31)), 2**31 - 1) for v in rounded], np.int64)

    def _exact(self, given: GridConstant, count: int, axis: int, rank: int) -> list[Fraction] | None:
        flat = vector_of(given.integers, count, axis, rank)
        if flat is None or len(given.scales) not in (1, count):
            return None
        scales = given.scales * count if len(given.scales) == 1 else given.scales
        return [int(v) * scale for v, scale in zip(flat, scales, strict=True)]

    def _layer(self, anchor: Call, data: Expr, given: _Given, target: Target) -> Expr | None:
        """A convolution or dense layer on int8 `data`, whose zero point is folded into the bias."""
        axis, weight_axis = given.places
        weight, zero, bias, pairs = given.weight, given.zero, given.bias, given.pairs
        if not fits_int8(weight):
            return self._wide_layer(anchor, data, given, target)
        weight = np.ascontiguousarray(weight.astype(np.int8))
        sums = weight.astype(np.int64).sum(axis=tuple(k for k in range(weight.ndim) if k != weight_axis))
        if op_name(anchor).endswith("conv2d_transpose"):
            return requantize(transposed(anchor, data, weight, zero), bias, pairs, axis, target)
        if op_name(anchor).endswith("conv2d"):
            acc = convolution(anchor, data, weight, zero)
        else:
            args = (data, constant(weight))
            acc = make("nn.dense", args, units=weight.shape[0], out_dtype="int32", span=anchor.span)
        return requantize(acc, bias - zero * sums, pairs, axis, target)

    def _wide_layer(self, anchor: Call, data: Expr, given: _Given, target: Target) -> Expr | None:
        """A layer with 9-bit weights, as a sum of layers with int8 weights; None if groups forbid it."""
        weight = given.weight
        is_dense = op_name(anchor).endswith("dense")
        if op_name(anchor).endswith("conv2d_transpose") or (not is_dense and anchor.attrs.groups != 1):
            return None
        parts: list[Array] = []
        while weight.any():
            parts.append(np.clip(weight, -128, 127))
            weight = weight - parts[-1]
        channels, inputs = (-1, 1) if is_dense else (anchor.attrs.data_layout.index("C"), input_axis(anchor))
        repeated = make("concatenate", (typed_tuple([data] * len(parts)),), axis=channels, span=anchor.span)
        wide = np.concatenate(parts, axis=inputs)
        return self._layer(anchor, repeated, replace(given, weight=wide), target)

    def _sum(self, real: Call, target: Target) -> Expr | None:
        left, right = (self._source(arg) for arg in real.args)
        shape = shape_of(real)
        if left is None or right is None or shape is None:
            return None
        sides = [spread_to(side.data, shape) for side in (left, right)]
        if any(side is None for side in sides) or all(isinstance(side, Constant) for side in sides):
            return None
        return add(sides, (left.grid, right.grid), target)  # type: ignore[arg-type]

    def _average(self, real: Call, target: Target) -> Expr | None:
        source, shape = self._source(real.args[0]), shape_of(real.args[0])
        if source is None or shape is None or len(shape) != 4 or not has_one_divisor(real):
            return None
        return average(real, source.data, source.grid, target)

    def _product(self, real: Call, target: Target) -> Expr | None:
        left, right = (self._source(arg) for arg in real.args)
        shapes = [shape_of(arg) for arg in real.args]
        if left is None or right is None or left.grid.zero or right.grid.zero or None in shapes:
            return None
        if shapes[0][0] != shapes[1][0] or isinstance(right.data, Constant):  # type: ignore[index]
            return None
        turned = (real.attrs.transpose_a, not real.attrs.transpose_b)
        sides = [
            make("transpose", (side.data,), axes=(0, 2, 1), span=real.span) if turn else side.data
            for side, turn in zip((left, right), turned, strict=True)
        ]
        acc = make("nn.batch_matmul", sides, out_dtype="int32", transpose_b=True, span=real.span)
        shape = shape_of(acc)
        assert shape is not None
        pairs = target.pairs([left.grid.scale * right.grid.scale / target.grid.scale])
        return requantize(acc, np.zeros(shape[2], np.int64), pairs, 2, target)

    # Integer layers before requantize

    def integer_layer(
        self, acc: Expr, in_scale: Array, out_scale: Array, target: Target, is_fixed: bool
    ) -> Expr | None:
        """int32 sums, `in_scale` each, at the target. `is_fixed`: by the Q31 multipliers of `qnn.requantize`."""
        if is_op(acc, "nn.relu"):
            assert isinstance(acc, Call)
            target = Target(target.grid, target.grid.zero, 127, target.rounding, target.bits, target.span)
            acc = acc.args[0]
        anchor, bias = self._split_bias(acc, _INT_ANCHORS)
        places = None if anchor is None else places_of(anchor)
        if anchor is None or places is None or dtype_of(anchor.args[0]) not in OFFSET or dtype_of(acc) != "int32":
            return None
        axis, weight_axis = places
        weight, zero = self._integer_weight(anchor, weight_axis), self._input_zero(anchor)
        if weight is None or zero is None or out_scale.size != 1:
            return None
        count = weight.shape[weight_axis]
        offsets = np.zeros(count, np.int64)
        if bias is not None:
            value = known(bias, self._constants)
            flat = None if value is None else vector_of(np.asarray(value), count, axis, len(shape_of(acc) or ()))
            if flat is None:
                return None
            offsets = flat.astype(np.int64)
        if in_scale.size not in (1, count):
            return None
        pairs = pairs_of(in_scale, out_scale, target, is_fixed)
        pairs = pairs * count if len(pairs) == 1 else pairs
        return self._layer(anchor, self._int(anchor.args[0]), _Given(weight, zero, offsets, pairs, places), target)

    def _integer_weight(self, anchor: Call, axis: int) -> Array | None:
        """The weight with its zero point subtracted, int64."""
        value = known(anchor.args[1], self._constants)
        zero = known(anchor.args[3], self._constants) if op_name(anchor).startswith("qnn.") else np.int32(0)
        if value is None or zero is None or np.asarray(value).dtype.kind not in "iu":
            return None
        return integer_constant(np.asarray(value), np.ones(1, np.float32), np.asarray(zero), axis).integers

    def _input_zero(self, anchor: Call) -> int | None:
        zero = known(anchor.args[2], self._constants) if op_name(anchor).startswith("qnn.") else np.int32(0)
        if zero is None or np.asarray(zero).size != 1:
            return None
        shifted = int(np.asarray(zero).reshape(())) - OFFSET[dtype_of(anchor.args[0])]
        return shifted if -128 <= shifted <= 127 else None

    # Operators that move integers

    def moved(self, node: Call) -> Expr | None:
        """An operator on int8 or uint8 tensors that moves or selects elements."""
        name, offset = op_name(node), OFFSET[dtype_of(node)]
        try:
            if name == "concatenate" and isinstance(node.args[0], Tuple):
                return self._concatenated(node, [self._int(part) for part in node.args[0].fields])
            if not node.args or dtype_of(node.args[0]) != dtype_of(node):
                return None
            if has_trait(node, Trait.KEEPS_SCALE):
                return remake(node, (self._int(node.args[0]), *node.args[1:]))
            if name in ("clip", "nn.relu"):
                return self._limited(node, offset)
            value = known(node.args[1], self._constants) if len(node.args) == 2 else None
            if value is None or np.asarray(value).size != 1:
                return None
            fill = int(np.asarray(value).reshape(())) - offset
            if name == "nn.pad" and -128 <= fill <= 127:
                return remake(node, (self._int(node.args[0]), constant(np.int8(fill))))
            if name in ("maximum", "minimum") and shape_of(node) == shape_of(node.args[0]):
                limits = (fill, 127) if name == "maximum" else (-128, fill)
                return bounded(self._int(node.args[0]), *limits, self._uses[node.args[0]] == 1, node.span)
        except TypeCheckError:
            return None
        return None

    def _limited(self, node: Call, offset: int) -> Expr:
        low, high = (0.0, np.inf) if is_op(node, "nn.relu") else (node.attrs.a_min, node.attrs.a_max)
        limits = [int(min(max(np.trunc(bound) - offset, -128), 127)) for bound in (np.ceil(low), np.floor(high))]
        return bounded(self._int(node.args[0]), limits[0], limits[1], self._uses[node.args[0]] == 1, node.span)
