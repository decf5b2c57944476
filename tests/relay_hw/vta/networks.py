"""Networks for tests of target vta: integer ones that use every kind of layer, and LeNet with seeded weights."""

from __future__ import annotations

import numpy as np

import relay_hw as relay
from relay_hw import op
from relay_hw.ir.expr import Call, Constant, Expr, Function
from relay_hw.ir.module import IRModule
from relay_hw.transform import InferType


def weight(rng: np.random.Generator, *shape: int, most: int = 128) -> Constant:
    return op.const(rng.integers(-most, most, shape).astype("int8"))


def scaled(rng: np.random.Generator, sums: Expr, channels: int, low: int = -128, alike: bool = True) -> Call:
    """Requantized by shifts, one for all channels or one for each; few results are clipped."""
    bias = op.const(rng.integers(-2000, 2000, channels).astype("int32"))
    shifts = [11] if alike else [int(n) for n in rng.integers(3, 25, channels)]
    multipliers = [1] if alike else [1 << int(n) for n in rng.integers(0, 3, channels)]
    return op.fixed.requantize(sums, bias, multipliers, shifts, a_min=low, zero_point=0 if alike else 3)


def mixed(size: int = 17, given: int = 20, channels: int = 40, batch: int = 1) -> IRModule:
    """Convolutions with and without strides, padding and dilation, residual additions, both pools; odd sizes."""
    rng = np.random.default_rng(size)
    x = relay.var("x", shape=(batch, given, size, size), dtype="int8")
    conv = lambda data, *shape, **attrs: op.nn.conv2d(data, weight(rng, *shape), out_dtype="int32", **attrs)  # noqa: E731
    first = scaled(rng, conv(x, channels, given, 3, 3, padding=(2, 2), dilation=(2, 2)), channels, low=0)
    pooled = op.nn.max_pool2d(first, pool_size=(3, 3), strides=(2, 2), padding=(1, 1))
    left = scaled(rng, conv(first, channels, channels, 3, 3, padding=(1, 1), strides=(2, 2)), channels, alike=False)
    right = scaled(rng, conv(first, channels, channels, 1, 1, strides=(2, 2)), channels)
    total = op.fixed.add(op.fixed.add(left, right, 2, 1, 1), pooled, 1, 4, 2, y_zero_point=2)
    sums = op.fixed.sum_pool2d(total, (2, 2), (2, 2))
    zeros = op.const(np.zeros(channels, "int32"))
    return InferType()(IRModule({"main": Function([x], op.fixed.requantize(sums, zeros, [1], [2]))}))


def sensitive(size: int = 9, channels: int = 32) -> IRModule:
    """Small weights and shifts: results of data within [-8, 8] change with every term of a sum."""
    rng = np.random.default_rng(size)
    x = relay.var("x", shape=(1, 16, size, size), dtype="int8")
    bias = lambda: op.const(rng.integers(-20, 20, channels).astype("int32"))  # noqa: E731
    conv = lambda data, given, **attrs: op.nn.conv2d(  # noqa: E731
        data, weight(rng, channels, given, 3, 3, most=2), padding=(1, 1), out_dtype="int32", **attrs
    )
    first = op.fixed.requantize(conv(x, 16), bias(), [1], [3])
    second = op.fixed.requantize(
        conv(first, channels, strides=(2, 2)), bias(), [1] * channels, [4, 5] * (channels // 2)
    )
    pooled = op.nn.max_pool2d(first, pool_size=(3, 3), strides=(2, 2), padding=(1, 1))
    return InferType()(IRModule({"main": Function([x], op.fixed.add(second, pooled, 1, 2, 1))}))


def dense(inputs: int = 100, outputs: int = 37, batch: int = 3) -> IRModule:
    """Two dense layers; of the first one, one channel has the factor 0."""
    rng = np.random.default_rng(inputs)
    x = relay.var("x", shape=(batch, inputs), dtype="int8")
    bias = op.const(rng.integers(-2000, 2000, outputs).astype("int32"))
    sums = op.nn.dense(x, weight(rng, outputs, inputs), out_dtype="int32")
    first = op.fixed.requantize(sums, bias, [0] + [1] * (outputs - 1), [11] * outputs)
    last = scaled(rng, op.nn.dense(first, weight(rng, 5, outputs), out_dtype="int32"), 5)
    return InferType()(IRModule({"main": Function([x], last)}))


def lenet(seed: int = 0) -> IRModule:
    """LeNet-5 in float32 for images of 28x28."""
    rng = np.random.default_rng(seed)
    x = relay.var("x", shape=(1, 1, 28, 28), dtype="float32")

    def value(*shape: int) -> Constant:
        return op.const((rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype("float32"))

    def layer(sums: Expr, channels: int) -> Call:
        return op.nn.relu(op.nn.bias_add(sums, value(channels)))

    y = layer(op.nn.conv2d(x, value(6, 1, 5, 5), padding=(2, 2)), 6)
    y = layer(op.nn.conv2d(op.nn.max_pool2d(y, (2, 2), (2, 2)), value(16, 6, 5, 5)), 16)
    y = op.nn.batch_flatten(op.nn.max_pool2d(y, (2, 2), (2, 2)))
    y = layer(op.nn.dense(layer(op.nn.dense(y, value(120, 400)), 120), value(84, 120)), 84)
    return IRModule({"main": Function([x], op.nn.softmax(op.nn.bias_add(op.nn.dense(y, value(10, 84)), value(10))))})
