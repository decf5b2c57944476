"""MobileNetV3-Small and EfficientNet-B0 for 224x224 images: inverted residual blocks whose channels gates weigh.

In: the size of the image and a seed. Out: ONNX models, output `logits` [1, 1000]. A gate is a number for each channel,
made of the channels' means by two layers (squeeze and excite). Howard et al. 2019; Tan and Le 2019.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import onnx

from examples.models.builder import Network, Value

CLASSES = 1000
Activation = Callable[[Value, str], Value]


@dataclass(frozen=True, slots=True)
class _Block:
    """Kernel, channels inside and at the end, stride; channels of the gate's first layer, 0 where there is none."""

    kernel: int
    inside: int
    channels: int
    stride: int
    gate: int


# MobileNetV3-Small; the first three have ReLUs, the others hard-swish.
_SMALL = (
    _Block(3, 16, 16, 2, 8),
    _Block(3, 72, 24, 2, 0),
    _Block(3, 88, 24, 1, 0),
    _Block(5, 96, 40, 2, 24),
    _Block(5, 240, 40, 1, 64),
    _Block(5, 240, 40, 1, 64),
    _Block(5, 120, 48, 1, 32),
    _Block(5, 144, 48, 1, 40),
    _Block(5, 288, 96, 2, 72),
    _Block(5, 576, 96, 1, 144),
    _Block(5, 576, 96, 1, 144),
)
_RELUS = 3
# EfficientNet-B0: kernel, expansion, channels, blocks, stride of the first block.
_STAGES = (
    (3, 1, 16, 1, 1),
    (3, 6, 24, 2, 2),
    (5, 6, 40, 2, 2),
    (3, 6, 80, 3, 2),
    (5, 6, 112, 3, 1),
    (5, 6, 192, 4, 2),
    (3, 6, 320, 1, 1),
)


def mobilenet_v3_small(size: int, seed: int) -> onnx.ModelProto:
    """11 blocks; gates by hard sigmoids."""
    net = Network("mobilenet_v3_small", (3, size, size), seed)
    x = net.norm_hard_swish(net.conv(net.input, "conv1", 16, 3, 2, 1), "conv1")
    for number, block in enumerate(_SMALL, 1):
        activation = net.norm_relu if number <= _RELUS else net.norm_hard_swish
        x = _inverted(net, x, f"block{number}", block, (activation, net.relu, net.hard_sigmoid))
    x = net.norm_hard_swish(net.conv(x, "conv2", 576, 1), "conv2")
    x = net.flatten(net.global_average_pool(x, "pool"), "flatten")
    x = net.hard_swish(net.dense(x, "fc1", 1024), "fc1.swish")
    return net.model(net.dense(x, "fc2", CLASSES), "logits")


def efficientnet_b0(size: int, seed: int) -> onnx.ModelProto:
    """16 blocks; gates by sigmoids."""
    net = Network("efficientnet_b0", (3, size, size), seed)
    x = net.norm_silu(net.conv(net.input, "conv1", 32, 3, 2, 1), "conv1")
    number = 0
    for kernel, expansion, channels, blocks, first in _STAGES:
        for at in range(blocks):
            number += 1
            block = _Block(kernel, x.channels * expansion, channels, 1 if at else first, max(1, x.channels // 4))
            x = _inverted(net, x, f"block{number}", block, (net.norm_silu, net.silu, net.sigmoid))
    x = net.norm_silu(net.conv(x, "conv2", 1280, 1), "conv2")
    x = net.flatten(net.global_average_pool(x, "pool"), "flatten")
    return net.model(net.dense(x, "fc", CLASSES), "logits")


def _inverted(
    net: Network, x: Value, name: str, block: _Block, activations: tuple[Activation, Activation, Activation]
) -> Value:
    """Widen, filter each channel, weigh it, narrow without an activation; a sum around it where sizes allow.

    `activations`: of the block's layers, with their batch norms, of the gate's first layer and of its second.
    """
    of_layers, of_gate, gate = activations
    y = x
    if block.inside != x.channels:
        y = of_layers(net.conv(y, f"{name}.conv1", block.inside, 1), f"{name}.conv1")
    y = net.conv(y, f"{name}.conv2", block.inside, block.kernel, block.stride, block.kernel // 2, block.inside)
    y = of_layers(y, f"{name}.conv2")
    if block.gate:
        z = net.global_average_pool(y, f"{name}.gate.pool")
        z = of_gate(net.conv(z, f"{name}.gate.conv1", block.gate, 1, bias=True), f"{name}.gate.inner")
        z = gate(net.conv(z, f"{name}.gate.conv2", block.inside, 1, bias=True), f"{name}.gate.outer")
        y = net.multiply(y, z, f"{name}.gate")
    y = net.batch_norm(net.conv(y, f"{name}.conv3", block.channels, 1), f"{name}.conv3.norm")
    return net.add(y, x, f"{name}.add") if x.shape == y.shape else y
