"""Builders of the exact fixed-point operators `fixed.*`, which quantization emits and integer accelerators run."""

from __future__ import annotations

from relay_hw.op.fixed_scale import add, mul, requantize, table
from relay_hw.op.fixed_sums import conv2d_transpose, sum_pool2d
from relay_hw.op.rows import layer_norm, rms_norm, softmax

__all__ = ["add", "conv2d_transpose", "layer_norm", "mul", "requantize", "rms_norm", "softmax", "sum_pool2d", "table"]
