"""Chooses which region inputs are stored as plain rows of bytes, or as weight tiles, instead of padded pixels.

In: a region. Out: the same region, inputs and the layers that read them marked.
"""

from __future__ import annotations

from dataclasses import replace

from relay_hw.accel.isa.program import TensorLayout
from relay_hw.tensorize.kernel import ConvKernel, ProductKernel
from relay_hw.tensorize.match.region import Activation, LayerSpec, Region
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.choose import best_conv
from relay_hw.tensorize.tiles.geometry import conv_shape
from relay_hw.tensorize.tiles.im2col import folded_shapes


def fold_inputs(region: Region, config: Target) -> Region:
    """The region with each input stored as rows that only convolutions read and that makes them faster together."""
    outputs = set(region.outputs)
    for _, number in region.inputs:
        if number not in outputs and _gains(region, number, config):
            region = _with_rows(region, number)
    return region


def _gains(region: Region, number: int, config: Target) -> bool:
    readers = [layer for layer in region.layers if number in layer.inputs]
    plain = rows = 0
    for layer in readers:
        kernel = layer.kernel
        if not isinstance(kernel, ConvKernel) or layer.inputs[1:] == (number,):
            return False
        folded = best_conv(folded_shapes(kernel, config), config)
        if folded is None:
            return False
        rows += folded.cycles
        straight = best_conv((conv_shape(kernel, config),), config)
        plain += straight.cycles if straight is not None else folded.cycles
    return rows < plain


def _with_rows(region: Region, number: int) -> Region:
    layers = tuple(
        replace(layer, kernel=replace(layer.kernel, rows=True))
        if isinstance(layer.kernel, ConvKernel) and layer.inputs[0] == number
        else layer
        for layer in region.layers
    )
    activations = list(region.activations)
    activations[number] = Activation(activations[number].shape, layout=TensorLayout.ROWS)
    return replace(region, activations=tuple(activations), layers=layers)


def tile_inputs(region: Region) -> Region:
    """The region with each input stored as weight tiles that only products read, as their second operand."""
    outputs = set(region.outputs)
    for _, number in region.inputs:
        readers = [layer for layer in region.layers if number in layer.inputs]
        if number not in outputs and readers and all(_is_right(layer, number) for layer in readers):
            region = _with_tiles(region, number)
    return region


def _is_right(layer: LayerSpec, number: int) -> bool:
    """Whether the activation is the second operand of a product, and nothing else."""
    kernel = layer.kernel
    return isinstance(kernel, ProductKernel) and kernel.origins[1] is None and _places(layer, number) == [1]


def _places(layer: LayerSpec, number: int) -> list[int]:
    return [place for place, operand in enumerate(layer.inputs) if operand == number]


def _with_tiles(region: Region, number: int) -> Region:
    layers = tuple(
        replace(layer, kernel=replace(layer.kernel, tiled=True))
        if isinstance(layer.kernel, ProductKernel) and number in layer.inputs
        else layer
        for layer in region.layers
    )
    activations = list(region.activations)
    activations[number] = Activation(activations[number].shape, layout=TensorLayout.TILES)
    return replace(region, activations=tuple(activations), layers=layers)
