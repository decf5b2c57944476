"""The generator of DCGAN: a vector becomes a 64x64 image through four transposed convolutions.

In: a seed. Out: an ONNX model, input [1, 100], output `image` [1, 3, 64, 64].
"""

from __future__ import annotations

import onnx

from examples.models.builder import Network

CODE = 100
WIDTHS = (512, 256, 128)
FIRST = (1, 1024, 4, 4)


def dcgan(size: int, seed: int) -> onnx.ModelProto:
    """CT1 to CT3 of VTA's tests, with the dense layer in front and the last layer behind. `size`: of the vector."""
    net = Network("dcgan", (size,), seed)
    _, channels, high, wide = FIRST
    x = net.reshape(net.dense(net.input, "dense", channels * high * wide, bias=False), "reshape", FIRST)
    x = net.norm_relu(x, "dense")
    for number, width in enumerate(WIDTHS, 1):
        x = net.norm_relu(net.conv_transpose(x, f"deconv{number}", width, 4, 2, 1), f"deconv{number}")
    x = net.conv_transpose(x, "deconv4", 3, 4, 2, 1)
    return net.model(net.tanh(x, "tanh"), "image")
