"""Marks of the stages of quantization in a float function, and the function without them.

`annotation.quantized` stands around every tensor that becomes integers, with its range once that is known;
`annotation.quantized_layer` around what a layer makes whose integers were fitted to data; the strategy is an attribute.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from numpy.typing import NDArray

from relay_hw.errors import QuantizeError
from relay_hw.ir.expr import Call, Constant, Expr, Function
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import copy_with
from relay_hw.quantize.layers import Layers
from relay_hw.quantize.methods.simulate import rewritten
from relay_hw.quantize.number import LayerWeights
from relay_hw.quantize.realizer import Ranges
from relay_hw.quantize.strategy import Strategy
from relay_hw.quantize.strategy_file import strategy_from, strategy_values
from relay_hw.support.documents import MOST_SETTINGS, DocumentError, parse_json
from relay_hw.support.quote import sentence
from relay_hw.transform.graph import constant, is_op, make

_STRATEGY: Final = "QuantizeStrategy"
_TENSOR: Final = "annotation.quantized"
_LAYER: Final = "annotation.quantized_layer"
Array = NDArray[Any]
_Fitted = Mapping[Expr, LayerWeights]  # by the output of the layer


@dataclass(frozen=True, slots=True)
class Unmarked:
    """A function without marks. `ranges`: of calibrated tensors; `fitted`: integers that were fitted to data."""

    function: Function
    ranges: Ranges
    fitted: _Fitted


def with_marks(
    function: Function, layers: Layers, ranges: Ranges | None = None, fitted: _Fitted | None = None
) -> Function:
    """The function with its tensors marked and its strategy kept; `ranges` None: not known yet."""
    marked, chosen = frozenset(layers.plan.integers), fitted or {}

    def mark(node: Expr, copy: Expr) -> Expr:
        if node in chosen:
            copy = make(_LAYER, (copy, *map(constant, _numbers(chosen[node]))), span=copy.span)
        if node not in marked:
            return copy
        low, high = (0.0, 0.0) if ranges is None else map(float, ranges[node])
        return make(_TENSOR, (copy,), calibrated=ranges is not None, low=low, high=high, span=copy.span)

    body, _ = rewritten(function.body, mark, {})
    attrs = {**function.attrs, _STRATEGY: json.dumps(strategy_values(layers.strategy))}
    return copy_with(function, body=body, attrs=attrs, checked_type=None)


def without_marks(function: Function) -> Unmarked:
    """The function as it was, and what its marks say."""
    if _STRATEGY not in function.attrs:
        return Unmarked(function, {}, {})
    tensors: dict[Expr, Call] = {}
    layers: dict[Expr, Call] = {}

    def unmark(node: Expr, copy: Expr) -> Expr:
        for name, found in ((_TENSOR, tensors), (_LAYER, layers)):
            if is_op(node, name):
                assert isinstance(node, Call) and isinstance(copy, Call)
                found[copy.args[0]] = node
                return copy.args[0]
        return copy

    body, _ = rewritten(function.body, unmark, {})
    attrs = {key: value for key, value in function.attrs.items() if key != _STRATEGY}
    ranges = {tensor: (mark.attrs.low, mark.attrs.high) for tensor, mark in tensors.items() if mark.attrs.calibrated}
    fitted = {tensor: _weights(mark) for tensor, mark in layers.items()}
    return Unmarked(copy_with(function, body=body, attrs=attrs), ranges, fitted)


def marked_strategies(mod: IRModule) -> dict[str, Strategy]:
    """The strategy of each function that has marks. Raises QuantizeError for an attribute that is none."""
    texts = {name: f.attrs[_STRATEGY] for name, f in mod.functions.items() if _STRATEGY in f.attrs}
    return {name: _strategy(str(text), f"attribute {_STRATEGY} of @{name}") for name, text in texts.items()}


def _strategy(text: str, what: str) -> Strategy:
    try:
        values = parse_json(text, MOST_SETTINGS)
    except DocumentError as error:
        raise QuantizeError(f"{what} must be JSON: {error}") from None
    if not isinstance(values, dict):
        raise QuantizeError(f"{what} must be an object, not {sentence(text)}")
    return strategy_from(values, what, "strategy")


def _numbers(weights: LayerWeights) -> tuple[Array, ...]:
    return weights.weight, weights.bias, weights.unfolded, weights.scales


def _weights(mark: Call) -> LayerWeights:
    return LayerWeights(*(arg.data for arg in mark.args[1:] if isinstance(arg, Constant)))
