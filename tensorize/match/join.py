"""Removes needless copies: results are stored in the larger tensor at once, parts are read where they lie.

In: a region. Out: the same region with places and origins in the kernels beside the copies, and fewer copies.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.tensorize.kernel import (
    ConvKernel,
    Image,
    KernelSpec,
    Move,
    MoveKernel,
    Origin,
    Place,
    PoolKernel,
    ProductKernel,
    TransposeKernel,
)
from relay_hw.tensorize.layout import pixel_bytes
from relay_hw.tensorize.match.region import LayerSpec, Region


def join_in_place(region: Region, config: AccelConfig) -> Region:
    """Leave out every copy of a whole activation that one layer computes and nothing else reads."""
    for number, layer in enumerate(region.layers):
        if isinstance(layer.kernel, MoveKernel) and layer.kernel.only_moves:
            region = _join(region, number, config)
    return region


def read_in_place(region: Region, config: AccelConfig) -> Region:
    """Leave out every copy that makes an activation of one part of another, where only windows read it."""
    for number, layer in enumerate(region.layers):
        if isinstance(layer.kernel, MoveKernel) and layer.kernel.only_moves:
            region = _read(region, number, config)
    return region


def store_heads(region: Region, config: AccelConfig) -> Region:
    """Leave out every copy that splits the channels of one convolution, which nothing else reads, into heads."""
    for number, layer in enumerate(region.layers):
        if isinstance(layer.kernel, MoveKernel) and layer.kernel.only_moves:
            heads = _split_heads(region, layer, config)
            region = region if heads is None else _stored(region, number, *heads)
    return region


def _stored(region: Region, number: int, producer: int, kernel: KernelSpec) -> Region:
    """The region where layer `producer`, with another kernel, makes the result of copies `number`."""
    layers, joined = list(region.layers), region.layers[number]
    layers[producer] = replace(layers[producer], kernel=kernel, output=joined.output)
    layers[number] = _without_copies(joined)
    return replace(region, layers=tuple(layers))


def _without_copies(layer: LayerSpec) -> LayerSpec:
    """The layer of copies when others do all of them."""
    assert isinstance(layer.kernel, MoveKernel)
    return replace(layer, kernel=replace(layer.kernel, sources=(), moves=()), inputs=())


def _read(region: Region, number: int, config: AccelConfig) -> Region:
    copied = region.layers[number]
    kernel = copied.kernel
    assert isinstance(kernel, MoveKernel)
    writers = sum(layer.output == copied.output for layer in region.layers)
    if len(kernel.moves) != 1 or writers != 1 or copied.output in region.outputs:
        return region
    move, pixel = kernel.moves[0], pixel_bytes(kernel.target, config)
    row = move.row_stride if move.size[0] > 1 else kernel.target.width * pixel
    col = move.col_stride if move.size[1] > 1 else pixel
    origin = Origin(move.begin, row, col)
    source = copied.inputs[move.source]
    layers = list(region.layers)
    for at, layer in enumerate(layers):
        if copied.output in layer.inputs:
            operand = layer.inputs.index(copied.output)
            placed = _reading(layer.kernel, operand, origin)
            if placed is None or layer.inputs.count(copied.output) > 1:
                return region
            inputs = (*layer.inputs[:operand], source, *layer.inputs[operand + 1 :])
            layers[at] = replace(layer, kernel=placed, inputs=inputs)
    layers[number] = _without_copies(copied)
    return replace(region, layers=tuple(layers))


def _reading(kernel: KernelSpec, operand: int, origin: Origin) -> KernelSpec | None:
    """The kernel with this input at `origin`; None where it reads flat bytes."""
    match kernel, operand:
        case ProductKernel(origins=(None, right)), 0:
            return replace(kernel, origins=(origin, right))
        case ProductKernel(origins=(left, None)), 1:
            return replace(kernel, origins=(left, origin))
        case ((ConvKernel(origin=None, rows=False) | PoolKernel(origin=None)), 0):
            return replace(kernel, origin=origin)
        case TransposeKernel(), 0:
            return replace(kernel, phases=tuple(replace(phase, origin=origin) for phase in kernel.phases))
        case _:
            return None


def _join(region: Region, number: int, config: AccelConfig) -> Region:
    joined = region.layers[number]
    kernel = joined.kernel
    assert isinstance(kernel, MoveKernel)
    layers = list(region.layers)
    heads = _join_heads(region, joined, config)
    if heads is not None:
        return _stored(region, number, *heads)
    kept: list[Move] = []
    for move in kernel.moves:
        source = joined.inputs[move.source]
        producer = _producer(region, joined, source)
        alone = sum(other.source == move.source for other in kernel.moves) == 1
        placed = None
        if producer is not None and alone and _is_whole(move, kernel.sources[move.source], config):
            place = Place(kernel.target, move.first, move.step, move.block * config.channel_align)
            placed = _placed(layers[producer].kernel, place, config)
        if producer is None or placed is None:
            kept.append(move)
        else:
            layers[producer] = replace(layers[producer], kernel=placed, output=joined.output)
    used = sorted({move.source for move in kept})
    layers[number] = replace(
        joined,
        kernel=replace(
            kernel,
            sources=tuple(kernel.sources[source] for source in used),
            moves=tuple(replace(move, source=used.index(move.source)) for move in kept),
        ),
        inputs=tuple(joined.inputs[source] for source in used),
    )
    return replace(region, layers=tuple(layers))


def _split_heads(region: Region, joined: LayerSpec, config: AccelConfig) -> tuple[int, ConvKernel] | None:
    """The convolution whose channels the copies split into heads, with planes for them, and its number."""
    kernel = joined.kernel
    assert isinstance(kernel, MoveKernel)
    producer = _producer(region, joined, joined.inputs[0]) if len(kernel.sources) == 1 else None
    conv = None if producer is None else region.layers[producer].kernel
    if producer is None or not isinstance(conv, ConvKernel) or conv.groups > 1 or conv.place or conv.residual:
        return None
    source, block = kernel.sources[0], config.out_bytes
    pixel, head = pixel_bytes(source, config), pixel_bytes(kernel.target, config)
    if block != config.channel_align or pixel % head:
        return None
    found = _block_places(kernel, config)
    pixels, planes, blocks = np.indices((source.pixels, pixel // head, head // block), np.int64)
    wanted = (planes * source.pixels + pixels) * head + blocks * block
    if found is None or not (found == wanted.reshape(found.shape)).all():
        return None
    return producer, replace(conv, place=Place(source, (0, 0), (1, 1), plane_blocks=head // block))


def _block_places(kernel: MoveKernel, config: AccelConfig) -> NDArray[np.int64] | None:
    """[pixels, blocks] bytes of the target where each block of channels of the only source comes to lie; None where not
    each does, once.
    """
    source, block, whole = kernel.sources[0], config.channel_align, pixel_bytes(kernel.target, config)
    places = np.full(source.pixels * pixel_bytes(source, config) // block, -1, np.int64)
    for move in kernel.moves:
        rows, cols, blocks = np.indices(move.size, np.int64)
        begins = move.begin + rows * move.row_stride + cols * move.col_stride + blocks * block
        y, x = move.first[0] + rows * move.step[0], move.first[1] + cols * move.step[1]
        places[begins // block] = (y * kernel.target.width + x) * whole + (move.block + blocks) * block
    once = sum(prod(move.size) for move in kernel.moves) == places.size
    return places.reshape(source.pixels, -1) if once and (places >= 0).all() else None


def _join_heads(region: Region, joined: LayerSpec, config: AccelConfig) -> tuple[int, ProductKernel] | None:
    """The product whose result the copies spread evenly over a larger tensor, with that place, and its number."""
    kernel = joined.kernel
    assert isinstance(kernel, MoveKernel)
    if len(kernel.sources) != 1 or not kernel.moves:
        return None
    producer = _producer(region, joined, joined.inputs[0])
    product = None if producer is None else region.layers[producer].kernel
    if producer is None or not isinstance(product, ProductKernel) or product.place is not None:
        return None
    places = _places(kernel, config)
    if places is None:
        return None
    row = int(places[1, 0] - places[0, 0]) if places.shape[0] > 1 else 0
    col = int(places[0, 1] - places[0, 0]) if places.shape[1] > 1 else 0
    rows, cols = np.indices(places.shape)
    if min(row, col) < 0 or not (places == places[0, 0] + rows * row + cols * col).all():
        return None
    return producer, replace(product, place=Origin(int(places[0, 0]), row, col))


def _places(kernel: MoveKernel, config: AccelConfig) -> NDArray[np.int64] | None:
    """Where each pixel of the only source comes to lie in the target; None where not each does, once and whole."""
    blocks = _block_places(kernel, config)
    if blocks is None or (np.diff(blocks, axis=1) != config.channel_align).any():
        return None
    return blocks[:, 0].reshape(kernel.sources[0].height, -1)


def _producer(region: Region, reader: LayerSpec, number: int) -> int | None:
    """The layer that alone computes an activation which `reader` alone reads, once."""
    reads = sum(layer.inputs.count(number) for layer in region.layers)
    writers = [at for at, layer in enumerate(region.layers) if layer.output == number]
    if reads != 1 or number in region.outputs or number not in reader.inputs or len(writers) != 1:
        return None
    return writers[0]


def _is_whole(move: Move, image: Image, config: AccelConfig) -> bool:
    pixel = pixel_bytes(image, config)
    rows, cols, blocks = move.size
    even = (rows == 1 or move.row_stride == image.width * pixel) and (cols == 1 or move.col_stride == pixel)
    whole = (rows, cols, blocks * config.channel_align) == (image.height, image.width, pixel)
    return whole and even and move.begin == 0


def _placed(kernel: KernelSpec, place: Place, config: AccelConfig) -> KernelSpec | None:
    """The kernel with its results at `place`; None where it stores flat bytes."""
    match kernel:
        case ProductKernel(place=None):
            pixel = pixel_bytes(place.image, config)
            row = place.image.width * pixel
            begin = place.first[0] * row + place.first[1] * pixel + place.channel
            return replace(kernel, place=Origin(begin, place.step[0] * row, place.step[1] * pixel))
        case ConvKernel(place=None) | PoolKernel(place=None):
            return replace(kernel, place=place)
        case TransposeKernel():
            return replace(kernel, phases=tuple(_phase(phase, place) for phase in kernel.phases))
        case _:
            return None


def _phase(phase: ConvKernel, outer: Place) -> ConvKernel:
    inner = phase.place
    assert inner is not None
    first = [a + b * step for a, b, step in zip(outer.first, inner.first, outer.step, strict=True)]
    step = [a * b for a, b in zip(outer.step, inner.step, strict=True)]
    place = Place(outer.image, (first[0], first[1]), (step[0], step[1]), outer.channel)
    return replace(phase, place=place)
