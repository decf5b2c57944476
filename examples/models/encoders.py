"""Encoders of tokens: a BERT of 4 layers, the keyword-spotting transformer KWT-1, and a block of a conformer.

In: the number of tokens, a seed, maybe other widths. Out: ONNX models as exporters write them. Devlin et al. 2018
(sizes of Turc et al. 2019); Berg et al. 2021; Gulati et al. 2020, as torchaudio has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import onnx
from onnx import TensorProto

from examples.models.sequence import Graph, Value


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of a stack of blocks: channels of tokens, blocks, heads, channels inside of the two layers behind attention."""

    width: int
    layers: int
    heads: int
    hidden: int


BERT = Sizes(256, 4, 4, 1024)
WORDS = 30522
KWT = Sizes(64, 12, 1, 256)
CONFORMER = Sizes(144, 1, 4, 576)
_FEATURES = 40
_CLASSES = 35
_TAPS = 15


def bert(tokens: int, seed: int, sizes: Sizes = BERT, words: int = WORDS) -> onnx.ModelProto:
    """Words, their mask (0 where a sentence is over) and their kinds; what the last layer makes of them."""
    net = Graph("bert", seed)
    ids, mask, kinds = (
        net.input(name, (1, tokens), TensorProto.INT64) for name in ("input_ids", "attention_mask", "token_type_ids")
    )
    places = net.random((1, tokens, sizes.width), "embeddings.position_embeddings.weight", 0.5)
    x = net.add(
        net.embedding(ids, "embeddings.word_embeddings", words, sizes.width),
        net.embedding(kinds, "embeddings.token_type_embeddings", 2, sizes.width),
        "embeddings.Add",
    )
    x = net.layer_norm(net.add(x, places, "embeddings.Add_1"), "embeddings.LayerNorm", 1e-12)
    beyond = _beyond(net, mask)
    for number in range(sizes.layers):
        x = _bert_layer(net, x, beyond, f"encoder.layer.{number}", sizes)
    return net.model([(x, "last_hidden_state")])


def _beyond(net: Graph, mask: Value) -> Value:
    """What is added to scores: 0, or the least number where a sentence is over."""
    row = net.unsqueeze(net.unsqueeze(mask, "Unsqueeze", 1), "Unsqueeze_1", 2)
    there = net.node("Cast", "Cast", [row], row.shape, to=TensorProto.FLOAT)
    gone = net.node("Sub", "Sub", [net.one(), there], row.shape)
    return net.mul(gone, net.number(float(np.finfo(np.float32).min)), "Mul")


def _bert_layer(net: Graph, x: Value, beyond: Value, name: str, sizes: Sizes) -> Value:
    attention = f"{name}.attention"
    q, k, v = (
        _heads(net, net.linear(x, f"{attention}.self.{part}", sizes.width), f"{attention}.self.{part}", sizes)
        for part in ("query", "key", "value")
    )
    scores = net.matmul(q, net.transpose(k, f"{attention}.self.Transpose", (0, 1, 3, 2)), f"{attention}.self.MatMul")
    root = net.number(sqrt(sizes.width // sizes.heads))
    scores = net.node("Div", f"{attention}.self.Div", [scores, root], scores.shape)
    weights = net.softmax(net.add(scores, beyond, f"{attention}.self.Add"), f"{attention}.self.Softmax")
    y = joined(net, net.matmul(weights, v, f"{attention}.self.MatMul_1"), f"{attention}.self", x.shape)
    y = net.linear(y, f"{attention}.output.dense", sizes.width)
    x = net.layer_norm(net.add(y, x, f"{attention}.output.Add"), f"{attention}.output.LayerNorm", 1e-12)
    y = net.gelu(net.linear(x, f"{name}.intermediate.dense", sizes.hidden), f"{name}.intermediate.act")
    y = net.linear(y, f"{name}.output.dense", sizes.width)
    return net.layer_norm(net.add(y, x, f"{name}.output.Add"), f"{name}.output.LayerNorm", 1e-12)


def _heads(net: Graph, x: Value, name: str, sizes: Sizes) -> Value:
    """[1, heads, tokens, width of a head]."""
    tokens = x.shape[1]
    parts = net.reshape(x, f"{name}.Reshape", (1, tokens, sizes.heads, x.width // sizes.heads))
    return net.transpose(parts, f"{name}.Transpose", (0, 2, 1, 3))


def joined(net: Graph, x: Value, name: str, shape: tuple[int, ...]) -> Value:
    """Heads side by side again."""
    return net.reshape(net.transpose(x, f"{name}.Transpose_out", (0, 2, 1, 3)), f"{name}.Reshape_out", shape)


def kwt(frames: int, seed: int, sizes: Sizes = KWT) -> onnx.ModelProto:
    """Spectral features [40, frames] of a second; each frame is a token, one more gives the word. Norms behind sums."""
    net = Graph("kwt_1", seed)
    image = net.input("input", (1, 1, _FEATURES, frames))
    x = net.transpose(net.reshape(image, "Reshape", (1, _FEATURES, frames)), "Transpose", (0, 2, 1))
    x = net.linear(x, "to_patch_embedding", sizes.width)
    x = net.concat([net.random((1, 1, sizes.width), "cls_token", 1.0), x], "Concat", 1)
    x = net.add(x, net.random((1, frames + 1, sizes.width), "pos_embedding", 0.5), "Add")
    for number in range(sizes.layers):
        x = _kwt_layer(net, x, f"transformer.layers.{number}", sizes)
    x = net.layer_norm_in_parts(net.take(x, "Gather", 0, 1), "mlp_head.0")
    return net.model([(net.gemm(x, "mlp_head.1", _CLASSES), "logits")])


def _kwt_layer(net: Graph, x: Value, name: str, sizes: Sizes) -> Value:
    """Decomposed norms: the file of an older exporter."""
    parts = net.split(net.linear(x, f"{name}.to_qkv", 3 * sizes.width, False), f"{name}.Split", 3, 2)
    q, k, v = (_heads(net, part, f"{name}.{at}", sizes) for part, at in zip(parts, "qkv", strict=True))
    dots = net.matmul(q, net.transpose(k, f"{name}.Transpose", (0, 1, 3, 2)), f"{name}.MatMul")
    dots = net.mul(dots, net.number((sizes.width // sizes.heads) ** -0.5), f"{name}.Mul")
    y = joined(net, net.matmul(net.softmax(dots, f"{name}.Softmax"), v, f"{name}.MatMul_1"), name, x.shape)
    y = net.linear(y, f"{name}.to_out", sizes.width)
    x = net.layer_norm_in_parts(net.add(y, x, f"{name}.Add"), f"{name}.norm1")
    y = net.gelu(net.linear(x, f"{name}.net.0", sizes.hidden), f"{name}.net.1")
    return net.layer_norm_in_parts(
        net.add(net.linear(y, f"{name}.net.3", sizes.width), x, f"{name}.Add_1"), f"{name}.norm2"
    )


def conformer(frames: int, seed: int, sizes: Sizes = CONFORMER) -> onnx.ModelProto:
    """Half of two layers, attention, a convolution over time, half of two more layers, a norm."""
    net = Graph("conformer", seed)
    x = net.input("input", (1, frames, sizes.width))
    x = _half(net, x, "ffn1", sizes)
    x = net.add(_self_attention(net, net.layer_norm(x, "self_attn_layer_norm"), sizes), x, "Add_attn")
    x = net.add(x, _over_time(net, x, sizes), "Add_conv")
    x = _half(net, x, "ffn2", sizes)
    return net.model([(net.layer_norm(x, "final_layer_norm"), "output")])


def _half(net: Graph, x: Value, name: str, sizes: Sizes) -> Value:
    y = net.silu(net.linear(net.layer_norm(x, f"{name}.0"), f"{name}.1", sizes.hidden), f"{name}.2")
    y = net.linear(y, f"{name}.4", sizes.width)
    return net.add(net.mul(y, net.number(0.5), f"{name}.Mul"), x, f"{name}.Add")


def _self_attention(net: Graph, x: Value, sizes: Sizes) -> Value:
    """torch.nn.MultiheadAttention: tokens on the first axis, queries divided before the product."""
    tokens, heads, each = x.shape[1], sizes.heads, sizes.width // sizes.heads
    rows = net.transpose(x, "self_attn.Transpose", (1, 0, 2))
    whole = net.linear(rows, "self_attn.in_proj", 3 * sizes.width)
    q, k, v = (
        net.transpose(
            net.reshape(part, f"self_attn.Reshape_{at}", (tokens, heads, each)), f"self_attn.T_{at}", (1, 0, 2)
        )
        for part, at in zip(net.split(whole, "self_attn.Split", 3, 2), "qkv", strict=True)
    )
    q = net.node("Div", "self_attn.Div", [q, net.number(sqrt(each))], q.shape)
    scores = net.matmul(q, net.transpose(k, "self_attn.Transpose_1", (0, 2, 1)), "self_attn.MatMul")
    y = net.matmul(net.softmax(scores, "self_attn.Softmax"), v, "self_attn.MatMul_1")
    y = net.reshape(net.transpose(y, "self_attn.Transpose_2", (1, 0, 2)), "self_attn.Reshape", (tokens, sizes.width))
    y = net.reshape(net.gemm(y, "self_attn.out_proj", sizes.width), "self_attn.Reshape_1", (tokens, 1, sizes.width))
    return net.transpose(y, "self_attn.Transpose_3", (1, 0, 2))


def _over_time(net: Graph, x: Value, sizes: Sizes) -> Value:
    """One-dimensional convolutions: one tap with a gate, many taps of each channel, one tap."""
    y = net.transpose(net.layer_norm(x, "conv.layer_norm"), "conv.Transpose", (0, 2, 1))
    y = net.conv(y, "conv.0", 2 * sizes.width, (1,))
    data, gate = net.split(y, "conv.1.Split", 2, 1)
    y = net.mul(data, net.node("Sigmoid", "conv.1.Sigmoid", [gate], gate.shape), "conv.1.Mul")
    y = net.conv(y, "conv.2", sizes.width, (_TAPS,), groups=sizes.width)
    y = net.silu(net.batch_norm(y, "conv.3"), "conv.4")
    return net.transpose(net.conv(y, "conv.5", sizes.width, (1,)), "conv.Transpose_1", (0, 2, 1))
