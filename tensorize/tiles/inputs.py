"""Chooses which region inputs are stored as plain rows of bytes instead of padded pixels.

In: a region. Out: the same region, inputs and the convolutions that read them marked.
"""

from __future__ import annotations

from dataclasses import replace

from relay_hw.accel.isa.program import TensorLayout
from relay_hw.tensorize.kernel import ConvKernel
from relay_hw.tensorize.match.region import Activation, Region
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
