"""Networks with the shapes of MLPerf Tiny: ResNet-8, DS-CNN and the MobileNet of visual wake words.

In: the size of the input and a seed. Out: ONNX models with TensorFlow's SAME padding, biases, output `probabilities`.
"""

from __future__ import annotations

import onnx

from examples.models.builder import Network, Value, same
from examples.models.mobilenet import V1_BLOCKS


def resnet8(size: int, seed: int) -> onnx.ModelProto:
    """Image classification: 32x32 images, 3 residual blocks, 10 classes."""
    net = Network("resnet8", (3, size, size), seed)
    x = net.norm_relu(_conv(net, net.input, "conv1", 16, (3, 3)), "conv1")
    for number, (width, stride) in enumerate(((16, 1), (32, 2), (64, 2)), 1):
        name = f"block{number}"
        y = net.norm_relu(_conv(net, x, f"{name}.conv1", width, (3, 3), stride), f"{name}.conv1")
        y = net.batch_norm(_conv(net, y, f"{name}.conv2", width, (3, 3)), f"{name}.conv2.norm")
        if x.shape != y.shape:
            x = _conv(net, x, f"{name}.down", width, (1, 1), stride)
        x = net.relu(net.add(x, y, f"{name}.add"), f"{name}.relu")
    return _head(net, x, 10)


def ds_cnn(size: int, seed: int) -> onnx.ModelProto:
    """Keyword spotting: `size` x 10 spectral features, 4 depthwise separable blocks, 12 words."""
    net = Network("ds_cnn", (1, size, 10), seed)
    x = net.norm_relu(_conv(net, net.input, "conv1", 64, (10, 4), 2), "conv1")
    for number in range(1, 5):
        x = _separable(net, x, f"block{number}", 64, 1)
    return _head(net, x, 12)


def wake_words(size: int, seed: int) -> onnx.ModelProto:
    """Visual wake words: 96x96 images, MobileNet v1 with a quarter of its channels, 2 classes."""
    net = Network("wake_words", (3, size, size), seed)
    x = net.norm_relu(_conv(net, net.input, "conv1", 8, (3, 3), 2), "conv1")
    for number, (channels, stride) in enumerate(V1_BLOCKS, 1):
        x = _separable(net, x, f"block{number}", channels // 4, stride)
    return _head(net, x, 2)


def _conv(
    net: Network, x: Value, name: str, channels: int, kernel: tuple[int, int], stride: int = 1, groups: int = 1
) -> Value:
    return net.conv(x, name, channels, kernel, stride, same(x.shape, kernel, stride), groups, bias=True)


def _separable(net: Network, x: Value, name: str, channels: int, stride: int) -> Value:
    x = net.norm_relu(_conv(net, x, f"{name}.conv1", x.channels, (3, 3), stride, x.channels), f"{name}.conv1")
    return net.norm_relu(_conv(net, x, f"{name}.conv2", channels, (1, 1)), f"{name}.conv2")


def _head(net: Network, x: Value, classes: int) -> onnx.ModelProto:
    """Average of the whole map, dense, softmax."""
    x = net.flatten(net.average_pool(x, "pool"), "flatten")
    return net.model(net.softmax(net.dense(x, "fc", classes), "softmax"), "probabilities")
