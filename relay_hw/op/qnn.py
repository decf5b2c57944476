"""Builders of the `qnn.*` operators under Relay's names."""

from __future__ import annotations

from relay_hw.op.qnn_arith import add, concatenate, conv2d, dense, mul, subtract
from relay_hw.op.qnn_floats import (
    abs,
    avg_pool2d,
    erf,
    exp,
    hardswish,
    leaky_relu,
    log,
    rsqrt,
    sigmoid,
    simulated_dequantize,
    simulated_quantize,
    softmax,
    sqrt,
    tanh,
)
from relay_hw.op.qnn_products import batch_matmul, conv2d_transpose
from relay_hw.op.qnn_scale import dequantize, quantize, requantize

__all__ = [
    "abs",
    "add",
    "avg_pool2d",
    "batch_matmul",
    "concatenate",
    "conv2d",
    "conv2d_transpose",
    "dense",
    "dequantize",
    "erf",
    "exp",
    "hardswish",
    "leaky_relu",
    "log",
    "mul",
    "quantize",
    "requantize",
    "rsqrt",
    "sigmoid",
    "simulated_dequantize",
    "simulated_quantize",
    "softmax",
    "sqrt",
    "subtract",
    "tanh",
]
