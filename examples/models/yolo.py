"""YOLOv8n for 640x640 images and 80 classes (Ultralytics 2023): a detector whose activations are all SiLU.

In: the size of the image, a multiple of 32, and a seed. Out: an ONNX model, output `head` [1, 144, boxes]: of each
box 4 x 16 numbers of distances and 80 of classes, before what makes boxes of them.
"""

from __future__ import annotations

from math import prod

import onnx

from examples.models.builder import Network, Value

CLASSES = 80
DISTANCES = 64


def yolov8n(size: int, seed: int) -> onnx.ModelProto:
    """A backbone, a way up and down again between three sizes of maps, a head for each. Raises ValueError for a size
    that is no multiple of 32."""
    if size % 32:
        raise ValueError(f"size must be a multiple of 32, not {size}")
    net = Network("yolov8n", (3, size, size), seed)
    x = _conv(net, _conv(net, net.input, "conv0", 16, 3, 2), "conv1", 32, 3, 2)
    x = _conv(net, _split(net, x, "c2", 32, 1, True), "conv3", 64, 3, 2)
    small = _split(net, x, "c4", 64, 2, True)
    middle = _split(net, _conv(net, small, "conv5", 128, 3, 2), "c6", 128, 2, True)
    large = _split(net, _conv(net, middle, "conv7", 256, 3, 2), "c8", 256, 1, True)
    large = _pooled(net, large, "sppf")
    up = _split(net, net.concat([net.doubled(large, "up10"), middle], "join11"), "c12", 128, 1, False)
    small = _split(net, net.concat([net.doubled(up, "up13"), small], "join14"), "c15", 64, 1, False)
    down = net.concat([_conv(net, small, "conv16", 64, 3, 2), up], "join17")
    middle = _split(net, down, "c18", 128, 1, False)
    down = net.concat([_conv(net, middle, "conv19", 128, 3, 2), large], "join20")
    large = _split(net, down, "c21", 256, 1, False)
    heads = [_head(net, x, f"head{number}") for number, x in enumerate((small, middle, large))]
    return net.model(net.concat(heads, "boxes", axis=2), "head")


def _conv(net: Network, x: Value, name: str, channels: int, kernel: int, stride: int = 1) -> Value:
    return net.norm_silu(net.conv(x, name, channels, kernel, stride, kernel // 2), name)


def _split(net: Network, x: Value, name: str, channels: int, blocks: int, is_residual: bool) -> Value:
    """Half of the channels through blocks of two layers; all halves and all results together."""
    parts = list(net.halves(_conv(net, x, f"{name}.conv1", channels, 1), f"{name}.split"))
    for number in range(blocks):
        inner, half = parts[-1], channels // 2
        y = _conv(net, inner, f"{name}.block{number}.conv1", half, 3)
        y = _conv(net, y, f"{name}.block{number}.conv2", half, 3)
        parts.append(net.add(inner, y, f"{name}.block{number}.add") if is_residual else y)
    return _conv(net, net.concat(parts, f"{name}.join"), f"{name}.conv2", channels, 1)


def _pooled(net: Network, x: Value, name: str) -> Value:
    """The map and three pools of it, one behind the other."""
    parts = [_conv(net, x, f"{name}.conv1", x.channels // 2, 1)]
    for number in range(3):
        parts.append(net.max_pool(parts[-1], f"{name}.pool{number}", 5, 1, 2))
    return _conv(net, net.concat(parts, f"{name}.join"), f"{name}.conv2", x.channels, 1)


def _head(net: Network, x: Value, name: str) -> Value:
    """[1, 144, H W]: distances and classes of each pixel's box."""
    parts = [_branch(net, x, f"{name}.{kind}", count, size) for kind, count, size in
             (("box", DISTANCES, DISTANCES), ("class", CLASSES, CLASSES))]  # fmt: skip
    whole = net.concat(parts, f"{name}.join")
    return net.reshape(whole, f"{name}.flat", (1, whole.channels, prod(whole.shape[2:])))


def _branch(net: Network, x: Value, name: str, inside: int, channels: int) -> Value:
    y = _conv(net, _conv(net, x, f"{name}.conv1", inside, 3), f"{name}.conv2", inside, 3)
    return net.conv(y, f"{name}.conv3", channels, 1, bias=True)
