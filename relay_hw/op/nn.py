"""Builders of the `nn.*` operators under Relay's names."""

from __future__ import annotations

from relay_hw.op.blocks import depth_to_space, space_to_depth
from relay_hw.op.broadcast import prelu
from relay_hw.op.conv import conv1d, conv2d, conv3d
from relay_hw.op.conv_transpose import conv1d_transpose, conv2d_transpose, conv3d_transpose
from relay_hw.op.dense import batch_matmul, bias_add, dense, matmul
from relay_hw.op.elementwise import leaky_relu, relu
from relay_hw.op.loss import cross_entropy, cross_entropy_with_logits
from relay_hw.op.norm import (
    batch_norm,
    dropout,
    dropout_raw,
    fast_softmax,
    group_norm,
    instance_norm,
    l2_normalize,
    layer_norm,
    log_softmax,
    lrn,
    softmax,
)
from relay_hw.op.pool import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    global_avg_pool2d,
    global_max_pool2d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from relay_hw.op.shape import batch_flatten
from relay_hw.op.transform import mirror_pad, pad
from relay_hw.op.upsampling import upsampling

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_flatten",
    "batch_matmul",
    "batch_norm",
    "bias_add",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "cross_entropy",
    "cross_entropy_with_logits",
    "dense",
    "depth_to_space",
    "dropout",
    "dropout_raw",
    "fast_softmax",
    "global_avg_pool2d",
    "global_max_pool2d",
    "group_norm",
    "instance_norm",
    "l2_normalize",
    "layer_norm",
    "leaky_relu",
    "log_softmax",
    "lrn",
    "matmul",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "mirror_pad",
    "pad",
    "prelu",
    "relu",
    "softmax",
    "space_to_depth",
    "upsampling",
]
