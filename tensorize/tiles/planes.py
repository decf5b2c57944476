"""Chooses which activations lie as planes: one block of channels of all pixels behind the other.

In: a region. Out: the same region, with strides of planes in the kernels that write and read such activations.

A product loads its right operand as weights: of 16 pixels one block of channels each, as short runs of bytes where the
channels of a pixel follow each other. In a plane the pixels of a block do, so that a tile of weights is one run.
"""

from __future__ import annotations

from dataclasses import replace

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.tensorize.kernel import (
    ConvKernel,
    Image,
    KernelSpec,
    MoveKernel,
    Origin,
    PairsKernel,
    Place,
    ProductKernel,
    SwapKernel,
)
from relay_hw.tensorize.layout import pixel_bytes
from relay_hw.tensorize.match.region import LayerSpec, Region


def lay_in_planes(region: Region, config: AccelConfig) -> Region:
    """The region with each activation in planes that is read as weights and that all its layers find there."""
    if not config.inp_bytes == config.out_bytes == config.granule_bytes == config.block_in:
        return region
    for number, activation in enumerate(region.activations):
        outside = number in region.outputs or number in dict(region.inputs).values() or activation.value is not None
        if not outside and any(_is_weights(layer, number) for layer in region.layers):
            region = _with_planes(region, number, config)
    return region


def _is_weights(layer: LayerSpec, number: int) -> bool:
    match layer.kernel:
        case ProductKernel(tiled=False):
            return layer.inputs[1] == number
        case SwapKernel():
            return layer.inputs[0] == number
        case _:
            return False


def _with_planes(region: Region, number: int, config: AccelConfig) -> Region:
    """The region with this activation in planes; `region` where a layer cannot write or read it so."""
    whole = region.activations[number].image
    layers = list(region.layers)
    for at, layer in enumerate(region.layers):
        kernel: KernelSpec | None = layer.kernel
        if layer.output == number:
            kernel = _written(layer.kernel, whole)
        for operand, read in enumerate(layer.inputs):
            if read == number and kernel is not None:
                kernel = _read(kernel, operand, whole, config)
        if kernel is None:
            return region
        layers[at] = replace(layer, kernel=kernel)
    return replace(region, layers=tuple(layers))


def _written(kernel: KernelSpec, whole: Image) -> KernelSpec | None:
    """The kernel with its results in planes of `whole`; None where it cannot."""
    match kernel:
        case ConvKernel(groups=1, residual=None):
            place = kernel.place or Place(whole, (0, 0), (1, 1))
            fits = place.step == (1, 1) and not place.plane_blocks
            return replace(kernel, place=replace(place, plane_blocks=1)) if fits else None
        case SwapKernel():
            block = kernel.identity.channels
            return replace(kernel, place=Origin(0, whole.width * block, block, whole.pixels * block))
        case PairsKernel():
            return replace(kernel, planes=True)
        case MoveKernel(moves=()):
            return kernel
        case _:
            return None


def _read(kernel: KernelSpec, operand: int, whole: Image, config: AccelConfig) -> KernelSpec | None:
    """The kernel with this operand in planes of `whole`; None where it cannot read them."""
    match kernel:
        case ProductKernel(left=left, origins=(own, right)) if operand == 0:
            moved = origin_in_planes(own, left, whole, config)
            return None if moved is None else replace(kernel, origins=(moved, right))
        case ProductKernel(right=right, origins=(left, own), tiled=False) if operand == 1:
            moved = origin_in_planes(own, right, whole, config)
            return None if moved is None else replace(kernel, origins=(left, moved))
        case SwapKernel(target=target) if operand == 0:
            rows = Image(1, target.channels, target.width)
            origins = [
                origin_in_planes(Origin(begin, 0, kernel.row_stride), rows, whole, config) for begin in kernel.begins
            ]
            found = [origin for origin in origins if origin is not None]
            if len(found) < len(origins):
                return None
            begins, first = tuple(origin.begin for origin in found), found[0]
            return replace(kernel, begins=begins, row_stride=first.col_stride, block_stride=first.block_stride)
        case _:
            return None


def origin_in_planes(origin: Origin | None, part: Image, whole: Image, config: AccelConfig) -> Origin | None:
    """Where pixels of `part` lie in planes of `whole`; None where blocks of theirs begin inside of its blocks."""
    pixel, block = pixel_bytes(whole, config), config.out_bytes
    own = Origin(0, part.width * pixel, pixel) if origin is None else origin
    strides = (own.begin, own.row_stride if part.height > 1 else 0, own.col_stride if part.width > 1 else 0)
    pixels, channels = zip(*(divmod(stride, pixel) for stride in strides), strict=True)
    last = channels[0] + channels[1] * (part.height - 1) + channels[2] * (part.width - 1)
    if any(channel % block for channel in channels) or last + pixel_bytes(part, config) > pixel:
        return None
    plane = whole.pixels * block
    begin, row, col = (
        count * block + channel // block * plane for count, channel in zip(pixels, channels, strict=True)
    )
    return Origin(begin, row, col, plane)
