"""Linear layers as matrix products (im2col): weights as rows, input windows as columns.

In: a linear step and its input. Out: `[groups, depth, columns]`; the output is rows times columns, plus bias.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.op.base import permutation, split_padding
from relay_hw.op.conv import pad_spatial, taps
from relay_hw.quantize.steps import LinearStep
from relay_hw.transform.graph import is_op

Array = NDArray[Any]
Float64 = NDArray[np.float64]


def has_columns(step: LinearStep) -> bool:
    """Whether the layer is a product with input windows, as all but transposed convolutions are."""
    return is_op(step.linear.anchor, "nn.conv2d", "nn.dense")


def groups_of(step: LinearStep) -> int:
    """Number of groups of a convolution; 1 for a dense layer."""
    return 1 if is_op(step.linear.anchor, "nn.dense") else int(step.linear.anchor.attrs.groups)


def to_rows(step: LinearStep, weight: Array) -> Float64:
    """A weight with its output channels on axis 0 as [groups, channels of a group, depth]."""
    plain = weight if is_op(step.linear.anchor, "nn.dense") else weight.transpose(_kernel_order(step))
    return plain.reshape(groups_of(step), plain.shape[0] // groups_of(step), -1).astype(np.float64)


def from_rows(step: LinearStep, rows: Array, like: Array) -> Array:
    """The inverse of `to_rows`, for a weight of the shape of `like`."""
    if is_op(step.linear.anchor, "nn.dense"):
        return rows.reshape(like.shape)
    order = _kernel_order(step)
    plain = rows.reshape([like.shape[axis] for axis in order])
    return np.ascontiguousarray(plain.transpose(np.argsort(order)))


def columns(step: LinearStep, data: Array) -> Array:
    """Every window of `data` [samples, ...], real numbers, as [groups, depth, windows]; padding is 0."""
    if is_op(step.linear.anchor, "nn.dense"):
        return np.ascontiguousarray(data.reshape(-1, data.shape[-1]).T)[None]
    attrs = step.linear.anchor.attrs
    plain = data.transpose(permutation("nn.conv2d", attrs.data_layout, "NCHW"))
    before, after = split_padding("nn.conv2d", attrs.padding, 2)
    padded = pad_spatial(plain, before, after)
    kernel = _kernel(step)
    parts = zip(padded.shape[2:], kernel, attrs.strides, attrs.dilation, strict=True)
    out = tuple((size - (k - 1) * d - 1) // s + 1 for size, k, s, d in parts)
    samples, channels = padded.shape[:2]
    gathered = np.empty((channels, kernel[0] * kernel[1], samples, *out), padded.dtype)
    for number, view in taps(padded, kernel, attrs.strides, attrs.dilation, out):
        gathered[:, number] = view.swapaxes(0, 1)
    groups = groups_of(step)
    return gathered.reshape(groups, channels // groups * gathered.shape[1], -1)


def _kernel(step: LinearStep) -> tuple[int, int]:
    layout, shape = step.linear.anchor.attrs.kernel_layout, step.linear.weight.shape
    return shape[layout.index("H")], shape[layout.index("W")]


def _kernel_order(step: LinearStep) -> tuple[int, ...]:
    """Axes of a weight whose output channels were moved to the front, as O, I, H, W."""
    layout = step.linear.anchor.attrs.kernel_layout
    moved = "O" + layout.replace("O", "")
    return tuple(moved.index(letter) for letter in "OIHW")
