"""Reads attributes of operators: sizes, padding, numbers for each channel, each with the reason to refuse it.

In: attributes and types of Relay operators. Out: plain numbers, `Window`, `Image`; TensorizeError with the place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.errors import TensorizeError
from relay_hw.ir.expr import Attrs, Call, Expr, Var
from relay_hw.ir.types import TensorType
from relay_hw.tensorize.kernel import Image, Window
from relay_hw.tensorize.stages import Table

INT8_MIN, INT8_MAX = -128, 127


def var_type(var: Var) -> TensorType:
    """Type of a parameter. Raises TensorizeError unless it is a tensor of known shape."""
    ty = var.checked_type or var.type_annotation
    if not isinstance(ty, TensorType) or not all(isinstance(dim, int) for dim in ty.shape):
        raise TensorizeError(f"parameter {var.name_hint} must be a tensor of known shape, not {ty}", var.span)
    return ty


def reshaped_image(call: Call, size: int) -> tuple[int, int, int, int]:
    """The image [1, C, H, W] that a reshape of `size` elements makes. Raises TensorizeError."""
    shape = tuple(call.attrs.newshape)
    need(len(shape) == 4 and min(shape) >= 1, f"reshape must be to (1, C, H, W), not {shape}", call)
    need(shape[0] == 1 and prod(shape) == size, f"reshape must be to one image of {size} values, not {shape}", call)
    return (shape[0], shape[1], shape[2], shape[3])


def need(ok: bool, sentence: str, at: Expr) -> None:
    """Raise TensorizeError with `sentence` and the place of `at` unless `ok`."""
    if not ok:
        raise TensorizeError(sentence, at.span)


def pair(value: object, at: Expr) -> tuple[int, int]:
    """One or two numbers as (height, width)."""
    numbers: tuple[int, ...] = (value,) if isinstance(value, int) else tuple(value)  # type: ignore[arg-type]
    need(len(numbers) in (1, 2), f"window sizes must be 1 or 2 numbers, not {len(numbers)}", at)
    return (numbers[0], numbers[-1])


def four(value: object, at: Expr) -> tuple[int, int, int, int]:
    """Padding as (top, left, bottom, right)."""
    numbers: tuple[int, ...] = (value,) if isinstance(value, int) else tuple(value)  # type: ignore[arg-type]
    need(len(numbers) in (1, 2, 4), f"padding must be 1, 2 or 4 numbers, not {len(numbers)}", at)
    if len(numbers) == 4:
        return (numbers[0], numbers[1], numbers[2], numbers[3])
    return (numbers[0], numbers[-1], numbers[0], numbers[-1])


@dataclass(frozen=True, slots=True)
class Stage:
    """A requantize call, its attributes, and the table that its result goes through."""

    attrs: Attrs
    call: Call
    table: Table | None = None


def dilation_of(attrs: Attrs) -> object:
    """The dilation, where the operator has one."""
    return getattr(attrs, "dilation", (1, 1))


def per_channel(values: Sequence[int], channels: int, at: Expr) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """int64 [channels] of one number or of one for each channel."""
    array = np.asarray(values, np.int64).reshape(-1)
    need(array.size in (1, channels), f"multiplier and shift must have 1 or {channels} values, not {array.size}", at)
    return np.broadcast_to(array, (channels,)).copy()


def with_padding(
    window: Window, outer: tuple[int, ...], value: int, own: tuple[int, ...], fill: int, at: Expr
) -> Window:
    """Padding of nn.pad and of the operator itself as one, where they pad with the same value."""
    need(min(own) >= 0, f"padding must not be negative, not {min(own)}", at)
    if any(outer) and any(own):
        need(value == fill, f"pad value in front of a padding operator must be {fill}, not {value}", at)
    top, left, bottom, right = (a + b for a, b in zip(outer, own, strict=True))
    if any(outer) and not any(own):
        fill = value
    return Window(window.kernel, window.strides, window.dilation, (top, left, bottom, right), fill)


def target_of(source: Image, window: Window, channels: int, at: Expr, up: bool = False) -> Image:
    """Size of the result; every window must meet the input itself."""
    need(min(window.kernel + window.strides + window.dilation) >= 1, "window sizes must be at least 1", at)
    sizes: list[int] = []
    for axis, size in enumerate((source.height, source.width)):
        before, after = window.padding[axis], window.padding[axis + 2]
        extent, stride = window.extent[axis], window.strides[axis]
        need(max(before, after) < extent, f"padding must be below the window's {extent}, not {max(before, after)}", at)
        room = size + before + after - extent
        need(room >= 0, f"window must fit the padded input of {size + before + after}, not be {extent}", at)
        sizes.append((-(-room // stride) if up else room // stride) + 1)
    return Image(sizes[0], sizes[1], channels)


def cover(window: Window, source: Image, target: Image, fill: int, at: Expr) -> Window:
    """Padding that ceil_mode adds behind the input."""
    padding = list(window.padding)
    for axis, (size, count) in enumerate(((source.height, target.height), (source.width, target.width))):
        end = (count - 1) * window.strides[axis] + window.extent[axis] - size - window.padding[axis]
        if end > padding[axis + 2]:
            need(window.pad_value == fill or not any(window.padding), f"pad value must be {fill} in ceil mode", at)
            padding[axis + 2] = end
            need(end < window.extent[axis], "every window must meet the input", at)
    top, left, bottom, right = padding
    return Window(window.kernel, window.strides, window.dilation, (top, left, bottom, right), fill)


def check_products(config: AccelConfig) -> None:
    """Raise TensorizeError unless LOAD can bring single rows of weight tiles, as products of activations need."""
    if config.wgt_bits != 8:
        what = f"weights must have 8 bits, not {config.wgt_bits} as in {config.name}"
        raise TensorizeError(f"products of activations: {what}")
    if config.inp_bytes != config.granule_bytes or config.block_out != config.channel_align:
        what = f"a row of weights must be {config.granule_bytes} bytes, not {config.inp_bytes} as in {config.name}"
        raise TensorizeError(f"products of activations: {what}")
