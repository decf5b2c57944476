"""Transformers of images: DeiT-Tiny and MobileViT-XXS.

In: the size of the image, a seed, maybe other widths. Out: ONNX models as exporters write them, output `logits`.
Touvron et al. 2021; Mehta and Rastegari 2021, both as timm has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod, sqrt

import onnx

from examples.models.encoders import Sizes, joined
from examples.models.sequence import Graph, Value

DEIT = Sizes(192, 12, 3, 768)
_PATCH = 16
_CLASSES = 1000
_EPSILON = 1e-6


@dataclass(frozen=True, slots=True)
class Stage:
    """Channels of a stage; blocks of attention and their channels, 0 where it has none; further convolutions."""

    channels: int
    convolutions: int
    stride: int
    layers: int = 0
    width: int = 0


MOBILEVIT = (
    Stage(16, 1, 1),
    Stage(24, 3, 2),
    Stage(48, 1, 2, 2, 64),
    Stage(64, 1, 2, 4, 80),
    Stage(80, 1, 2, 3, 96),
)
_STEM, _END, _EXPANSION, _HEADS, _SIDE = 16, 320, 2, 4, 2


def deit_tiny(size: int, seed: int, sizes: Sizes = DEIT) -> onnx.ModelProto:
    """Patches of 16x16 and a token that gives the class; norms in front of layers, queries and keys scaled alike.

    Raises ValueError for an image without a patch."""
    if size < _PATCH:
        raise ValueError(f"size must be at least {_PATCH}, not {size}")
    net = Graph("deit_tiny", seed)
    x = net.conv(net.input("input", (1, 3, size, size)), "patch_embed.proj", sizes.width, (_PATCH,) * 2, stride=_PATCH)
    tokens = x.shape[2] * x.shape[3]
    x = net.transpose(net.reshape(x, "patch_embed.Reshape", (1, sizes.width, tokens)), "patch_embed.T", (0, 2, 1))
    x = net.concat([net.random((1, 1, sizes.width), "cls_token", 1.0), x], "Concat", 1)
    x = net.add(x, net.random((1, tokens + 1, sizes.width), "pos_embed", 0.5), "Add")
    for number in range(sizes.layers):
        x = block(net, x, f"blocks.{number}", sizes)
    x = net.take(net.layer_norm(x, "norm", _EPSILON), "Gather", 0, 1)
    return net.model([(net.gemm(x, "head", _CLASSES), "logits")])


def block(net: Graph, x: Value, name: str, sizes: Sizes, silu: bool = False) -> Value:
    """Attention and two layers, each with a norm in front and a sum behind."""
    y = _attention(net, net.layer_norm(x, f"{name}.norm1", _EPSILON), f"{name}.attn", sizes.heads)
    x = net.add(x, y, f"{name}.Add")
    y = net.linear(net.layer_norm(x, f"{name}.norm2", _EPSILON), f"{name}.mlp.fc1", sizes.hidden)
    y = net.silu(y, f"{name}.mlp.act") if silu else net.gelu(y, f"{name}.mlp.act")
    return net.add(x, net.linear(y, f"{name}.mlp.fc2", sizes.width), f"{name}.Add_1")


def _attention(net: Graph, x: Value, name: str, heads: int) -> Value:
    """scaled_dot_product_attention: the root of the factor on each side of the product."""
    batch, tokens, width = x.shape
    whole = net.linear(x, f"{name}.qkv", 3 * width)
    parts = net.reshape(whole, f"{name}.Reshape", (batch, tokens, 3, heads, width // heads))
    q, k, v = net.unbind(net.transpose(parts, f"{name}.Transpose", (2, 0, 3, 1, 4)), name)
    root = net.number(sqrt(sqrt(heads / width)))
    q = net.mul(q, root, f"{name}.Mul")
    k = net.mul(net.transpose(k, f"{name}.Transpose_k", (0, 1, 3, 2)), root, f"{name}.Mul_1")
    weights = net.softmax(net.matmul(q, k, f"{name}.MatMul"), f"{name}.Softmax")
    return net.linear(joined(net, net.matmul(weights, v, f"{name}.MatMul_1"), name, x.shape), f"{name}.proj", width)


def mobilevit_xxs(size: int, seed: int, stages: Sequence[Stage] = MOBILEVIT) -> onnx.ModelProto:
    """Inverted residual blocks; in some stages attention between pixels at the same place of 2x2 patches.

    Raises ValueError for an image whose smallest map has no whole patches."""
    if size < 1 or size % (least := _SIDE**2 * prod(stage.stride for stage in stages)):
        raise ValueError(f"size must be a multiple of {least}, not {size}")
    net = Graph("mobilevit_xxs", seed)
    x = _convolution(net, net.input("input", (1, 3, size, size)), "stem", _STEM, 3, stride=2)
    for number, stage in enumerate(stages):
        name = f"stages.{number}"
        for at in range(stage.convolutions):
            x = _inverted(net, x, f"{name}.{at}", stage.channels, 1 if at else stage.stride)
        if stage.layers:
            sizes = Sizes(stage.width, stage.layers, _HEADS, stage.width * 2)
            x = _with_attention(net, x, f"{name}.{stage.convolutions}", sizes)
    x = _convolution(net, x, "final_conv", x.shape[1] * _END // MOBILEVIT[-1].channels, 1)
    x = net.node("GlobalAveragePool", "head.pool", [x], (*x.shape[:2], 1, 1), x.power)
    x = net.node("Flatten", "head.flatten", [x], x.shape[:2], x.power, axis=1)
    return net.model([(net.gemm(x, "head.fc", _CLASSES), "logits")])


def _convolution(net: Graph, x: Value, name: str, channels: int, kernel: int, **given: int) -> Value:
    y = net.conv(x, f"{name}.conv", channels, (kernel, kernel), bias=False, **given)
    return net.silu(net.batch_norm(y, f"{name}.bn"), f"{name}.act")


def _inverted(net: Graph, x: Value, name: str, channels: int, stride: int) -> Value:
    wide = x.shape[1] * _EXPANSION
    y = _convolution(net, x, f"{name}.conv1_1x1", wide, 1)
    y = _convolution(net, y, f"{name}.conv2_kxk", wide, 3, stride=stride, groups=wide)
    y = net.batch_norm(net.conv(y, f"{name}.conv3_1x1.conv", channels, (1, 1), bias=False), f"{name}.conv3_1x1.bn")
    return net.add(y, x, f"{name}.Add") if x.shape == y.shape else y


def _with_attention(net: Graph, x: Value, name: str, sizes: Sizes) -> Value:
    y = _convolution(net, x, f"{name}.conv_kxk", x.shape[1], 3)
    y = net.conv(y, f"{name}.conv_1x1", sizes.width, (1, 1), bias=False)
    tokens = _unfolded(net, y, name)
    for number in range(sizes.layers):
        tokens = block(net, tokens, f"{name}.transformer.{number}", sizes, silu=True)
    tokens = net.layer_norm(tokens, f"{name}.norm", _EPSILON)
    y = _convolution(net, _folded(net, tokens, name, y.shape), f"{name}.conv_proj", x.shape[1], 1)
    return _convolution(net, net.concat([x, y], f"{name}.Concat", 1), f"{name}.conv_fusion", x.shape[1], 3)


def _unfolded(net: Graph, x: Value, name: str) -> Value:
    """[4, patches, channels]: a pixel of each patch."""
    _, channels, high, wide = x.shape
    rows, columns = high // _SIDE, wide // _SIDE
    x = net.reshape(x, f"{name}.Reshape", (channels * rows, _SIDE, columns, _SIDE))
    x = net.transpose(x, f"{name}.Transpose", (0, 2, 1, 3))
    x = net.reshape(x, f"{name}.Reshape_1", (1, channels, rows * columns, _SIDE**2))
    return net.reshape(
        net.transpose(x, f"{name}.Transpose_1", (0, 3, 2, 1)), f"{name}.Reshape_2", (_SIDE**2, rows * columns, channels)
    )


def _folded(net: Graph, x: Value, name: str, shape: tuple[int, ...]) -> Value:
    """The image again."""
    _, channels, high, wide = shape
    rows, columns = high // _SIDE, wide // _SIDE
    x = net.reshape(x, f"{name}.Reshape_3", (1, _SIDE**2, rows * columns, channels))
    x = net.transpose(x, f"{name}.Transpose_2", (0, 3, 2, 1))
    x = net.reshape(x, f"{name}.Reshape_4", (channels * rows, columns, _SIDE, _SIDE))
    return net.reshape(net.transpose(x, f"{name}.Transpose_3", (0, 2, 1, 3)), f"{name}.Reshape_5", shape)
