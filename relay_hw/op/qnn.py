"""Builders of the `qnn.*` operators under Relay's names."""

from __future__ import annotations

from relay_hw.op.qnn_arith import add, concatenate, conv2d, dense, mul, subtract
from relay_hw.op.qnn_scale import dequantize, quantize, requantize

__all__ = ["add", "concatenate", "conv2d", "dense", "dequantize", "mul", "quantize", "requantize", "subtract"]
