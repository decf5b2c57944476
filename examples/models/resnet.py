"""Residual networks for 224x224 images and 1,000 classes: ResNet-18, -34 and -50 v1.5 (stride in the 3x3 layer).

In: the size of the image and a seed. Out: ONNX models, output `logits` [1, 1000].
"""

from __future__ import annotations

import onnx

from examples.models.builder import Network, Value

CLASSES = 1000
WIDTHS = (64, 128, 256, 512)
EXPANSION = 4


def resnet18(size: int, seed: int) -> onnx.ModelProto:
    """8 blocks of two 3x3 layers."""
    return _resnet("resnet18", (2, 2, 2, 2), False, size, seed)


def resnet34(size: int, seed: int) -> onnx.ModelProto:
    """16 blocks of two 3x3 layers."""
    return _resnet("resnet34", (3, 4, 6, 3), False, size, seed)


def resnet50(size: int, seed: int) -> onnx.ModelProto:
    """16 blocks of 1x1, 3x3 and 1x1 layers."""
    return _resnet("resnet50", (3, 4, 6, 3), True, size, seed)


def _resnet(name: str, depths: tuple[int, ...], bottleneck: bool, size: int, seed: int) -> onnx.ModelProto:
    net = Network(name, (3, size, size), seed)
    x = net.norm_relu(net.conv(net.input, "conv1", 64, 7, 2, 3), "conv1")
    x = net.max_pool(x, "pool1", 3, 2, 1)
    block = _bottleneck if bottleneck else _basic
    for stage, (depth, width) in enumerate(zip(depths, WIDTHS, strict=True), 1):
        for number in range(depth):
            stride = 2 if stage > 1 and number == 0 else 1
            x = block(net, x, f"layer{stage}.{number}", width, stride)
    x = net.flatten(net.global_average_pool(x, "pool2"), "flatten")
    return net.model(net.dense(x, "fc", CLASSES), "logits")


def _basic(net: Network, x: Value, name: str, width: int, stride: int) -> Value:
    y = net.norm_relu(net.conv(x, f"{name}.conv1", width, 3, stride, 1), f"{name}.conv1")
    y = net.batch_norm(net.conv(y, f"{name}.conv2", width, 3, 1, 1), f"{name}.conv2.norm")
    return _join(net, x, y, name, stride)


def _bottleneck(net: Network, x: Value, name: str, width: int, stride: int) -> Value:
    y = net.norm_relu(net.conv(x, f"{name}.conv1", width, 1), f"{name}.conv1")
    y = net.norm_relu(net.conv(y, f"{name}.conv2", width, 3, stride, 1), f"{name}.conv2")
    y = net.batch_norm(net.conv(y, f"{name}.conv3", width * EXPANSION, 1), f"{name}.conv3.norm")
    return _join(net, x, y, name, stride)


def _join(net: Network, x: Value, y: Value, name: str, stride: int) -> Value:
    """Add the block's input, through a 1x1 layer where its shape is another one."""
    if x.shape != y.shape:
        x = net.batch_norm(net.conv(x, f"{name}.down", y.channels, 1, stride), f"{name}.down.norm")
    return net.relu(net.add(y, x, f"{name}.add"), f"{name}.relu")
