"""DenseNet-121 for 224x224 images and 1,000 classes (Huang et al. 2017): every layer reads all before it in its block.

In: the size of the image and a seed. Out: an ONNX model, output `logits` [1, 1000]. Batch norms stand in front of
layers and behind joins, where no layer takes them in.
"""

from __future__ import annotations

import onnx

from examples.models.builder import Network, Value

CLASSES = 1000
GROWTH = 32
# A layer makes 4 times its growth from all maps, then its growth from these.
BOTTLENECK = 4
LAYERS = (6, 12, 24, 16)


def densenet121(size: int, seed: int) -> onnx.ModelProto:
    """Four dense blocks, and a 1x1 layer with a pool between them."""
    net = Network("densenet121", (3, size, size), seed)
    x = net.norm_relu(net.conv(net.input, "conv0", 2 * GROWTH, 7, 2, 3), "conv0")
    x = net.max_pool(x, "pool0", 3, 2, 1)
    for number, layers in enumerate(LAYERS, 1):
        x = _block(net, x, f"block{number}", layers)
        if number < len(LAYERS):
            name = f"transition{number}"
            x = net.conv(net.norm_relu(x, name), f"{name}.conv", x.channels // 2, 1)
            x = net.halved(x, f"{name}.pool")
    x = net.global_average_pool(net.norm_relu(x, "last"), "pool")
    return net.model(net.dense(net.flatten(x, "flatten"), "classes", CLASSES), "logits")


def _block(net: Network, x: Value, name: str, layers: int) -> Value:
    parts = [x]
    for number in range(layers):
        here = f"{name}.layer{number}"
        y = net.concat(parts, f"{here}.join") if len(parts) > 1 else x
        y = net.conv(net.norm_relu(y, f"{here}.a"), f"{here}.conv1", BOTTLENECK * GROWTH, 1)
        parts.append(net.conv(net.norm_relu(y, f"{here}.b"), f"{here}.conv2", GROWTH, 3, 1, 1))
    return net.concat(parts, f"{name}.join")
