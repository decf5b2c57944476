"""A language model of the shape of TinyStories-15M: its graph for the words of a prompt, and that for one more word.

In: words, or positions that a word sees; a seed; maybe other widths. Out: ONNX models as exporters of Hugging Face's
LLaMA write them: RMS norms, rotary embedding, SwiGLU; `logits` of the last word and the caches. Touvron et al. 2023.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto

from examples.models.encoders import Sizes, joined
from examples.models.sequence import Graph, Value

STORIES = Sizes(288, 6, 6, 768)
WORDS = 32000
_BASE = 10000.0
# Positions that the model knows.
_LONGEST = 512


@dataclass(frozen=True, slots=True)
class _Place:
    """What depends on where the words are: cosines and sines, what is added to scores; keys and values before."""

    cosines: Value
    sines: Value
    mask: Value | None = None


def llama_prefill(tokens: int, seed: int, sizes: Sizes = STORIES, words: int = WORDS) -> onnx.ModelProto:
    """A prompt of `tokens` words from position 0 on. Raises ValueError for more than the model knows positions of."""
    _check("tokens", tokens, 1)
    net = Graph("llama_prefill", seed)
    ids = net.input("input_ids", (1, tokens), TensorProto.INT64)
    cosines, sines = (net.constant(f"rotary.{name}", part[None, None, :tokens]) for name, part in _angles(sizes))
    hidden = np.triu(np.full((1, 1, tokens, tokens), np.finfo(np.float32).min, np.float32), 1)
    place = _Place(cosines, sines, net.constant("causal_mask", hidden))
    return _model(net, ids, place, {}, sizes, words)


def llama_decode(positions: int, seed: int, sizes: Sizes = STORIES, words: int = WORDS) -> onnx.ModelProto:
    """One word that sees `positions`: itself and those before it, whose keys and values are inputs.

    Raises ValueError for fewer than 2, or more than the model knows."""
    _check("positions", positions, 2)
    net = Graph("llama_decode", seed)
    ids, at = (net.input(name, (1, 1), TensorProto.INT64) for name in ("input_ids", "position_ids"))
    each = sizes.width // sizes.heads
    past = {
        name: net.input(name, (1, sizes.heads, positions - 1, each))
        for number in range(sizes.layers)
        for name in (f"past_key_values.{number}.key", f"past_key_values.{number}.value")
    }
    found = (
        net.node("Gather", f"rotary.{name}.Gather", [net.constant(f"rotary.{name}", part), at], (1, 1, each))
        for name, part in _angles(sizes)
    )
    cosines, sines = (net.unsqueeze(part, f"{part.name}.Unsqueeze", 1) for part in found)
    return _model(net, ids, _Place(cosines, sines), past, sizes, words)


def _check(what: str, count: int, least: int) -> None:
    if not least <= count <= _LONGEST:
        raise ValueError(f"{what} must be {least} to {_LONGEST}, not {count}")


def _angles(sizes: Sizes) -> list[tuple[str, np.ndarray]]:
    """Cosines and sines [position, channel of a head], both halves alike."""
    each = sizes.width // sizes.heads
    rates = _BASE ** -(np.arange(0, each, 2) / each)
    angles = np.outer(np.arange(_LONGEST), np.concatenate([rates, rates]))
    return [("cos", np.cos(angles).astype(np.float32)), ("sin", np.sin(angles).astype(np.float32))]


def _model(net: Graph, ids: Value, place: _Place, past: dict[str, Value], sizes: Sizes, words: int) -> onnx.ModelProto:
    x = net.embedding(ids, "model.embed_tokens", words, sizes.width)
    present: list[tuple[Value, str]] = []
    for number in range(sizes.layers):
        name = f"model.layers.{number}"
        y = net.rms_norm(x, f"{name}.input_layernorm")
        q, k, v = _queries(net, y, f"{name}.self_attn", place, sizes)
        k, v = (_longer(net, past, part, number, kind) for part, kind in ((k, "key"), (v, "value")))
        present += [(k, f"present.{number}.key"), (v, f"present.{number}.value")]
        x = net.add(x, _attention(net, (q, k, v), f"{name}.self_attn", place, x.shape), f"{name}.Add")
        y = net.rms_norm(x, f"{name}.post_attention_layernorm")
        x = net.add(x, _gated(net, y, f"{name}.mlp", sizes), f"{name}.Add_1")
    x = net.rms_norm(x, "model.norm")
    last = net.slice(x, "Slice", 1, x.shape[1] - 1, x.shape[1])
    return net.model([(net.linear(last, "lm_head", words, False), "logits"), *present])


def _queries(net: Graph, x: Value, name: str, place: _Place, sizes: Sizes) -> list[Value]:
    """Queries, keys and values, [1, heads, tokens, width of a head], the first two turned by their position."""
    found: list[Value] = []
    shape = (1, x.shape[1], sizes.heads, sizes.width // sizes.heads)
    for part in ("q_proj", "k_proj", "v_proj"):
        y = net.linear(x, f"{name}.{part}", sizes.width, False)
        y = net.transpose(net.reshape(y, f"{name}.{part}.Reshape", shape), f"{name}.{part}.Transpose", (0, 2, 1, 3))
        found.append(y if part == "v_proj" else _turned(net, y, f"{name}.{part}.rotary", place))
    return found


def _turned(net: Graph, x: Value, name: str, place: _Place) -> Value:
    """Rotary embedding: x times the cosine, and its halves exchanged, one of them negative, times the sine."""
    half = x.width // 2
    first, second = net.slice(x, f"{name}.Slice", 3, 0, half), net.slice(x, f"{name}.Slice_1", 3, half, x.width)
    turned = net.concat([net.node("Neg", f"{name}.Neg", [second], second.shape), first], f"{name}.Concat", 3)
    return net.add(
        net.mul(x, place.cosines, f"{name}.Mul"), net.mul(turned, place.sines, f"{name}.Mul_1"), f"{name}.Add"
    )


def _longer(net: Graph, past: dict[str, Value], x: Value, number: int, kind: str) -> Value:
    """What a cache has and one more position."""
    before = past.get(f"past_key_values.{number}.{kind}")
    return x if before is None else net.concat([before, x], f"model.layers.{number}.self_attn.Concat_{kind}", 2)


def _attention(
    net: Graph, parts: tuple[Value, Value, Value], name: str, place: _Place, shape: tuple[int, ...]
) -> Value:
    q, k, v = parts
    scores = net.matmul(q, net.transpose(k, f"{name}.Transpose", (0, 1, 3, 2)), f"{name}.MatMul")
    scores = net.mul(scores, net.number(q.width**-0.5), f"{name}.Mul")
    if place.mask is not None:
        scores = net.add(scores, place.mask, f"{name}.Add")
    y = net.matmul(net.softmax(scores, f"{name}.Softmax"), v, f"{name}.MatMul_1")
    return net.linear(joined(net, y, name, shape), f"{name}.o_proj", shape[-1], False)


def _gated(net: Graph, x: Value, name: str, sizes: Sizes) -> Value:
    """SwiGLU: one layer's SiLU times another layer, then a third."""
    gate = net.silu(net.linear(x, f"{name}.gate_proj", sizes.hidden, False), f"{name}.act_fn")
    up = net.linear(x, f"{name}.up_proj", sizes.hidden, False)
    return net.linear(net.mul(gate, up, f"{name}.Mul"), f"{name}.down_proj", x.width, False)
