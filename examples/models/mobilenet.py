"""Networks of depthwise separable layers for 224x224 images and 1,000 classes: MobileNet v1, v2, and v1 with groups.

In: the size of the image and a seed. Out: ONNX models, output `logits` [1, 1000].
"""

from __future__ import annotations

import onnx

from examples.models.builder import Network, Value

CLASSES = 1000
# MobileNet v1: channels and stride of each of its 13 blocks.
V1_BLOCKS = (
    (64, 1),
    (128, 2),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    *((512, 1),) * 5,
    (1024, 2),
    (1024, 1),
)
# MobileNet v2: expansion, channels, blocks, stride of the first block.
V2_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
GROUP_CHANNELS = 16


def mobilenet_v1(size: int, seed: int) -> onnx.ModelProto:
    """13 pairs of a depthwise 3x3 and a 1x1 layer."""
    return _v1("mobilenet_v1", 1, size, seed)


def mobilenet_grouped(size: int, seed: int) -> onnx.ModelProto:
    """MobileNet v1 whose 3x3 layers work on groups of 16 channels: what VTA ran in its place."""
    return _v1("mobilenet_grouped", GROUP_CHANNELS, size, seed)


def mobilenet_v2(size: int, seed: int) -> onnx.ModelProto:
    """17 inverted residual blocks."""
    net = Network("mobilenet_v2", (3, size, size), seed)
    x = net.norm_relu6(net.conv(net.input, "conv1", 32, 3, 2, 1), "conv1")
    number = 0
    for expansion, channels, blocks, first in V2_STAGES:
        for block in range(blocks):
            number += 1
            x = inverted(net, x, f"block{number}", expansion, channels, first if block == 0 else 1)
    x = net.norm_relu6(net.conv(x, "conv2", 1280, 1), "conv2")
    x = net.flatten(net.global_average_pool(x, "pool"), "flatten")
    return net.model(net.dense(x, "fc", CLASSES), "logits")


def _v1(name: str, group: int, size: int, seed: int) -> onnx.ModelProto:
    net = Network(name, (3, size, size), seed)
    x = net.norm_relu(net.conv(net.input, "conv1", 32, 3, 2, 1), "conv1")
    for number, (channels, stride) in enumerate(V1_BLOCKS, 1):
        inner = f"block{number}.conv1"
        x = net.norm_relu(net.conv(x, inner, x.channels, 3, stride, 1, x.channels // group), inner)
        x = net.norm_relu(net.conv(x, f"block{number}.conv2", channels, 1), f"block{number}.conv2")
    x = net.flatten(net.global_average_pool(x, "pool"), "flatten")
    return net.model(net.dense(x, "fc", CLASSES), "logits")


def inverted(net: Network, x: Value, name: str, expansion: int, channels: int, stride: int) -> Value:
    """Add a block that widens, filters each channel, and narrows without an activation; around it where sizes allow."""
    y, width = x, x.channels * expansion
    if expansion > 1:
        y = net.norm_relu6(net.conv(y, f"{name}.conv1", width, 1), f"{name}.conv1")
    y = net.norm_relu6(net.conv(y, f"{name}.conv2", width, 3, stride, 1, width), f"{name}.conv2")
    y = net.batch_norm(net.conv(y, f"{name}.conv3", channels, 1), f"{name}.conv3.norm")
    return net.add(y, x, f"{name}.add") if x.shape == y.shape else y
