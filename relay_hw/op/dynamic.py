"""Builders of Relay's `dyn.` operators, whose sizes, axes or places are run-time values."""

from __future__ import annotations

from relay_hw.op.dynamic_elements import one_hot, pad, strided_slice, topk
from relay_hw.op.dynamic_shape import broadcast_to, expand_dims, full, ones, reshape, squeeze, tile, zeros

__all__ = [
    "broadcast_to",
    "expand_dims",
    "full",
    "one_hot",
    "ones",
    "pad",
    "reshape",
    "squeeze",
    "strided_slice",
    "tile",
    "topk",
    "zeros",
]
