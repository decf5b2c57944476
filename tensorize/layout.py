"""Where the bytes of tensors lie: activations N·H·W·C with padded channels, weights in tile order, parameter records.

In: numpy arrays. Out: flat int8 or uint8 arrays, and back. Bytes of pad channels written by the device are unspecified
but always the same; whoever reads them multiplies by zero weights or drops them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.program import TensorLayout, TensorSlot, align
from relay_hw.accel.isa.records import encode_cof, encode_exponentials, encode_prm
from relay_hw.accel.isa.rules import row_entries
from relay_hw.accel.isa.spec import RowKind
from relay_hw.accel.isa.tensors import pack_tensor, slot_bytes, unpack_tensor
from relay_hw.errors import TensorizeError
from relay_hw.tensorize.kernel import ConvKernel, Image, Int8, RowKernel
from relay_hw.tensorize.stages import AddStage, MulStage, Requantize


def image_of(shape: Sequence[int]) -> Image:
    """Size of an activation [1, C, H, W], or [..., C] of one to three axes. Raises TensorizeError."""
    match tuple(shape):
        case (1, channels, height, width) if min(channels, height, width) > 0:
            return Image(height, width, channels)
        case (height, width, channels) if min(height, width, channels) > 0:
            return Image(height, width, channels)
        case (width, channels) if min(width, channels) > 0:
            return Image(1, width, channels)
        case other:
            raise TensorizeError(f"activation shape must be (1, C, H, W), (H, W, C) or (W, C), not {other}")


def pixel_bytes(image: Image, config: AccelConfig) -> int:
    """Bytes of one pixel in DRAM."""
    return align(image.channels, config.channel_align)


def row_bytes(image: Image, config: AccelConfig) -> int:
    """Bytes of one row of pixels in DRAM where they lie as plain rows."""
    return align(image.width * image.channels, config.granule_bytes)


def image_bytes(image: Image, config: AccelConfig, layout: TensorLayout = TensorLayout.NHWC) -> int:
    """Bytes of one activation in DRAM."""
    return slot_bytes(config, _slot(image, layout))


def pack_activation(x: NDArray[Any], config: AccelConfig, layout: TensorLayout = TensorLayout.NHWC) -> Int8:
    """int8 [1, C, H, W], [H, W, C] or [W, C] as flat int8 bytes N·H·W·C, channels padded with 0. Raises TensorizeError.

    With layout `rows` the channels are not padded, but each row of pixels is, to a multiple of the granule.
    """
    image = image_of(x.shape)
    if x.dtype != np.int8:
        raise TensorizeError(f"activation must be int8, not {x.dtype}")
    pixels = x.transpose(0, 2, 3, 1) if x.ndim == 4 else x.reshape(1, image.height, image.width, image.channels)
    return pack_tensor(config, _slot(image, layout), pixels).view(np.int8)


def unpack_activation(data: NDArray[Any], shape: Sequence[int], config: AccelConfig) -> Int8:
    """Inverse of `pack_activation`: int8 array of `shape` from flat int8 or uint8 bytes. Raises TensorizeError."""
    image = image_of(shape)
    if data.size != image_bytes(image, config) or data.itemsize != 1:
        raise TensorizeError(f"packed activation must be {image_bytes(image, config)} bytes, not {data.nbytes}")
    pixels = unpack_tensor(config, _slot(image, TensorLayout.NHWC), data.view(np.uint8))
    plain = pixels.transpose(0, 3, 1, 2) if len(shape) == 4 else pixels
    return np.ascontiguousarray(plain).reshape(tuple(shape))


def _slot(image: Image, layout: TensorLayout) -> TensorSlot:
    """The activation as the tensor that programs and devices know."""
    return TensorSlot("activation", "", 0, (1, image.height, image.width, image.channels), "int8", layout)


def pack_weights(weights: Int8, config: AccelConfig) -> Int8:
    """int8 [O, KH, KW, I] as tiles [out block, KH, KW, in block, block_out, inp_lanes], padded with 0.

    One tile is one entry of the weight memory; the entries of one out block are what one accumulator entry adds up.
    """
    out_channels, height, width, in_channels = weights.shape
    out_blocks = -(-out_channels // config.block_out)
    in_blocks = -(-in_channels // config.inp_lanes)
    padded = np.zeros((out_blocks * config.block_out, height, width, in_blocks * config.inp_lanes), np.int8)
    padded[:out_channels, :, :, :in_channels] = weights
    tiles = padded.reshape(out_blocks, config.block_out, height, width, in_blocks, config.inp_lanes)
    return np.ascontiguousarray(tiles.transpose(0, 2, 3, 4, 1, 5))


def units_as_image(kernel: ConvKernel, image: Image, config: AccelConfig) -> ConvKernel:
    """A dense layer whose units, in the order of C, H, W, are stored as the pixels of `image`; padding is zero."""
    pixel = pixel_bytes(image, config)
    units = np.full((image.height, image.width, pixel), -1)
    order = np.arange(image.channels * image.pixels).reshape(image.channels, image.height, image.width)
    units[..., : image.channels] = order.transpose(1, 2, 0)
    chosen = units.reshape(-1)
    real = chosen >= 0

    def spread(values: NDArray[Any]) -> NDArray[Any]:
        found = np.zeros((chosen.size, *values.shape[1:]), values.dtype)
        found[real] = values[chosen[real]]
        return found

    stage = kernel.requantize
    numbers = {name: spread(getattr(stage, name)) for name in ("bias", "multiplier", "shift")}
    return replace(
        kernel,
        target=Image(1, 1, chosen.size),
        weights=spread(kernel.weights),
        requantize=replace(stage, **numbers),
    )


def unpack_weights(tiles: Int8, shape: Sequence[int], config: AccelConfig) -> Int8:
    """Inverse of `pack_weights` for weights of `shape`."""
    out_channels, height, width, in_channels = shape
    out_blocks, _, _, in_blocks, _, _ = tiles.shape
    padded = tiles.transpose(0, 4, 1, 2, 3, 5)
    flat = padded.reshape(out_blocks * config.block_out, height, width, in_blocks * config.inp_lanes)
    return np.ascontiguousarray(flat[:out_channels, :, :, :in_channels])


@dataclass(frozen=True, slots=True)
class Records:
    """Parameter entries of a layer's output blocks: one for each, or a single one, `shared`, where all are alike.

    `stage`: the output stage that has them.
    """

    stage: Requantize
    data: bytes
    entry_bytes: int
    shared: bool

    def of(self, begin: int, count: int) -> bytes:
        """Those of blocks `begin` to `begin + count`."""
        return self.data if self.shared else self.data[begin * self.entry_bytes : (begin + count) * self.entry_bytes]

    def first(self, begin: int) -> int:
        """The first block that has the entries of those from `begin` on."""
        return 0 if self.shared else begin


def requantize_records(stage: Requantize, blocks: int, config: AccelConfig) -> Records:
    """Parameter entries of `blocks` output blocks. Pad channels get bias 0, multiplier 0, shift 0; or what all others
    have, where that is one and the same.
    """
    real = np.stack([stage.bias, stage.multiplier, stage.shift])
    shared = bool((real == real[:, :1]).all())
    lanes = config.block_out * (1 if shared else blocks)
    numbers = np.zeros((len(real), lanes), np.int64)
    if shared:
        numbers[:] = real[:, :1]
    else:
        numbers[:, : real.shape[1]] = real
    data = encode_prm(*numbers, multiplier_bits=config.multiplier_bits).tobytes()
    return Records(stage, data, config.prm_bytes, shared)


def row_records(kernel: RowKernel, config: AccelConfig) -> bytes:
    """Coefficients of a function of rows: a softmax's table for each lane, or those of a norm's channels, then 0."""
    if kernel.kind is RowKind.SOFTMAX:
        return encode_exponentials(kernel.gain.astype(np.uint16), config.row_lanes).tobytes()
    columns = row_entries(config, kernel.source.channels) * config.block_out
    gain, bias = (np.pad(values, (0, columns - values.size)) for values in (kernel.gain, kernel.bias))
    return encode_cof(gain, bias).tobytes()


def pair_record(stage: AddStage | MulStage, config: AccelConfig) -> bytes:
    """The one parameter entry of a sum or a product of two activations."""
    second, first = (stage.r_multiplier, stage.y_multiplier) if isinstance(stage, AddStage) else (0, stage.multiplier)
    return _one_record((second, first, stage.shift, stage.y_zero, stage.r_zero), config)


def _one_record(values: tuple[int, int, int, int, int], config: AccelConfig) -> bytes:
    """An entry whose lanes are alike: bias or second multiplier, multiplier, shift, zeros of both operands."""
    fields = (np.full(config.block_out, value, np.int64) for value in values)
    return encode_prm(*fields, multiplier_bits=config.multiplier_bits).tobytes()
