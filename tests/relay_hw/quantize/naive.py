"""A second quantizer, written from the contract with loops and fractions: what realized modules are compared with.

A network is a list of layers; layer i reads the output of layer i - 1 (the input for the first), or of `source`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from relay_hw import op
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Expr, Function, Tuple, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType


@dataclass(frozen=True)
class Layer:
    kind: str  # conv, dense, max, avg, add
    weight: np.ndarray | None = None
    bias: np.ndarray | None = None
    stride: int = 1
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)  # top, left, bottom, right
    groups: int = 1
    size: int = 2
    activation: tuple[float, float] = (-math.inf, math.inf)
    source: int | None = None  # add: the other tensor; 0 is the input, i + 1 the output of layer i


def build(layers: list[Layer], shape: tuple[int, ...]) -> tuple[IRModule, list[Expr]]:
    """The float network, and its tensors: the input and the output of each layer, activation included."""
    x = Var("x", TensorType(shape))
    tensors: list[Expr] = [x]
    for layer in layers:
        value = _float(layer, tensors)
        if layer.activation == (0, math.inf):
            value = op.nn.relu(value)
        elif layer.activation != (-math.inf, math.inf):
            value = op.clip(value, *layer.activation)
        tensors.append(value)
    return IRModule.from_expr(Function([x], tensors[-1])), tensors


def _float(layer: Layer, tensors: list[Expr]) -> Expr:
    x = tensors[-1]
    match layer.kind:
        case "conv":
            strides = (layer.stride, layer.stride)
            value = op.nn.conv2d(x, op.const(layer.weight), strides, layer.padding, groups=layer.groups)
        case "dense":
            value = op.nn.dense(op.nn.batch_flatten(x), op.const(layer.weight))
        case "max":
            return op.nn.max_pool2d(x, (layer.size,) * 2, (layer.stride,) * 2)
        case "avg":
            return op.nn.avg_pool2d(x, (layer.size,) * 2, (layer.stride,) * 2)
        case _:
            return op.add(x, tensors[layer.source])
    return value if layer.bias is None else op.nn.bias_add(value, op.const(layer.bias))


@dataclass
class Quantized:
    scale: Fraction
    zero: int


class Naive:
    """int8 with zero points, per-channel weights, 31-bit multipliers, half-up rounding."""

    def __init__(self, layers: list[Layer], shape: tuple[int, ...], calibration: np.ndarray) -> None:
        self.layers = layers
        _, tensors = build(layers, shape)
        probe = IRModule.from_expr(Function([tensors[0]], Tuple(tensors)))
        runs = [evaluate(probe, [sample[None]]) for sample in calibration]
        self.params = [self._params([run[i] for run in runs]) for i in range(len(tensors))]
        for index, layer in enumerate(layers):
            if layer.kind == "max":  # keeps the scale of what it reads
                self.params[index + 1] = self.params[index]

    @staticmethod
    def _params(values: list[np.ndarray]) -> Quantized:
        low = min(0.0, min(float(v.min()) for v in values))
        high = max(0.0, max(float(v.max()) for v in values))
        scale = float(np.float32((high - low) / 255)) or 1.0
        zero = min(max(round(-128 - low / scale), -128), 127)
        return Quantized(Fraction(scale), zero)

    def run(self, sample: np.ndarray) -> list[np.ndarray]:
        """Integer tensors: the quantized input and the output of each layer."""
        first = self.params[0]
        tensors = [np.vectorize(lambda v: self._saturate(self._away(np.float32(v), first) + first.zero))(sample)]
        for index, layer in enumerate(self.layers):
            given, result = self.params[index], self.params[index + 1]
            tensors.append(self._layer(layer, tensors, given, result))
        return tensors

    @staticmethod
    def _away(value: np.float32, params: Quantized) -> int:
        quotient = float(value / np.float32(float(params.scale)))
        return math.floor(abs(quotient) + 0.5) * (1 if quotient >= 0 else -1)

    @staticmethod
    def _saturate(value: int, low: int = -128, high: int = 127) -> int:
        return min(max(int(value), low), high)

    def _layer(self, layer: Layer, tensors: list[np.ndarray], given: Quantized, result: Quantized) -> np.ndarray:
        x = tensors[-1]
        match layer.kind:
            case "max":
                return self._windows(x, layer, max)
            case "avg":
                count = layer.size**2
                sums = self._windows(x, layer, lambda window: sum(v - given.zero for v in window))
                factor = given.scale / result.scale / count
                return np.vectorize(lambda v: self._finish(int(v), factor, layer, result))(sums)
            case "add":
                return self._add(layer, x, tensors[layer.source], given, self.params[layer.source], result)
            case _:
                return self._linear(layer, x, given, result)

    def _windows(self, x: np.ndarray, layer: Layer, reduce) -> np.ndarray:
        rows = (x.shape[2] - layer.size) // layer.stride + 1
        columns = (x.shape[3] - layer.size) // layer.stride + 1
        out = np.zeros((1, x.shape[1], rows, columns), dtype=object)
        for _, c, i, j in np.ndindex(*out.shape):
            top, left = i * layer.stride, j * layer.stride
            out[0, c, i, j] = reduce(
                [int(x[0, c, top + di, left + dj]) for di in range(layer.size) for dj in range(layer.size)]
            )
        return out

    def _linear(self, layer: Layer, x: np.ndarray, given: Quantized, result: Quantized) -> np.ndarray:
        weight = layer.weight if layer.kind == "conv" else layer.weight[:, :, None, None]
        x = x if layer.kind == "conv" else x.reshape(1, -1, 1, 1)
        top, left, bottom, right = layer.padding
        rows = (x.shape[2] + top + bottom - weight.shape[2]) // layer.stride + 1
        columns = (x.shape[3] + left + right - weight.shape[3]) // layer.stride + 1
        out = np.zeros((1, weight.shape[0], rows, columns), dtype=object)
        per_group, inputs = weight.shape[0] // layer.groups, weight.shape[1]
        for o in range(weight.shape[0]):
            scale = Fraction(float(np.float32(float(np.abs(weight[o]).max()) / 127)))
            bias = 0 if layer.bias is None else round(float(layer.bias[o]) / (float(given.scale) * float(scale)))
            first = (o // per_group) * inputs
            for i, j in np.ndindex(rows, columns):
                total = bias
                for c, di, dj in np.ndindex(*weight.shape[1:]):
                    y, z = i * layer.stride + di - top, j * layer.stride + dj - left
                    if 0 <= y < x.shape[2] and 0 <= z < x.shape[3]:
                        integer = round(float(weight[o, c, di, dj]) / float(scale))
                        total += integer * (int(x[0, first + c, y, z]) - given.zero)
                out[0, o, i, j] = self._finish(total, given.scale * scale / result.scale, layer, result)
        return out if layer.kind == "conv" else out.reshape(1, -1)

    def _add(self, layer: Layer, y, r, left: Quantized, right: Quantized, result: Quantized) -> np.ndarray:
        factors = [left.scale / result.scale, right.scale / result.scale]
        shift = self._shift(max(factors))
        my, mr = (math.floor(f * 2**shift + Fraction(1, 2)) for f in factors)
        out = np.zeros(y.shape, dtype=object)
        for where in np.ndindex(*y.shape):
            total = (int(y[where]) - left.zero) * my + (int(r[where]) - right.zero) * mr
            out[where] = self._clip(math.floor(Fraction(total, 2**shift) + Fraction(1, 2)), layer, result)
        return out

    def _finish(self, total: int, factor: Fraction, layer: Layer, result: Quantized) -> int:
        shift = self._shift(factor)
        multiplier = math.floor(factor * 2**shift + Fraction(1, 2))
        return self._clip(math.floor(Fraction(total * multiplier, 2**shift) + Fraction(1, 2)), layer, result)

    @staticmethod
    def _shift(factor: Fraction) -> int:
        """The largest shift that keeps the multiplier below 2**31."""
        shift = 62
        while math.floor(factor * 2**shift + Fraction(1, 2)) >= 2**31:
            shift -= 1
        return shift

    def _clip(self, value: int, layer: Layer, result: Quantized) -> int:
        low, high = layer.activation
        bounds = [
            bound if math.isinf(bound) else self._saturate(self._away(np.float32(bound), result) + result.zero)
            for bound in (low, high)
        ]
        return self._saturate(value + result.zero, max(-128, bounds[0]), min(127, bounds[1]))
