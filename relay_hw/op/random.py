"""Random numbers from keys: random.threefry_generate, threefry_split, uniform, normal and multinomial.

Each takes a key and gives a new one beside its numbers, so that equal keys give equal numbers and nothing has an
effect. A key holds four words of Threefry's key, four of its counter, and two that are 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Constant, Expr, Op, TupleGetItem
from relay_hw.ir.types import TensorType, TupleType, Type
from relay_hw.op.base import Array, Attrs, as_expr, call, rule, show
from relay_hw.op.gradients.common import nothing, ops, zeros

KEY: Final = TensorType((10,), "uint64")
_ROTATIONS: Final = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))
_PARITY: Final = 0x1BD11BDAA9FC1A22
_ROUNDS: Final = 20


@dataclass(frozen=True, slots=True)
class ThreefryGenerateAttrs(Attrs):
    out_shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class UniformAttrs(Attrs):
    out_shape: tuple[int, ...]
    out_dtype: str | None = "float32"


@dataclass(frozen=True, slots=True)
class NormalAttrs(Attrs):
    out_shape: tuple[int, ...]
    out_dtype: str | None = "float32"


@dataclass(frozen=True, slots=True)
class MultinomialAttrs(Attrs):
    num_samples: int = 1


def threefry(key: Array, counters: Array) -> Array:
    """Threefry-4x64 with 20 rounds: four words of 64 bits for each row of four words of `counters`."""
    words = [np.uint64(word) for word in key]
    words.append(np.bitwise_xor.reduce(np.array([*words, _PARITY], np.uint64)))
    with np.errstate(over="ignore"):
        x = [counters[:, at] + words[at] for at in range(4)]
        for number in range(_ROUNDS):
            first, second = _ROTATIONS[number % 8]
            partners = (1, 3) if number % 2 == 0 else (3, 1)
            for at, other, turn in ((0, partners[0], first), (2, partners[1], second)):
                x[at] = x[at] + x[other]
                x[other] = _turned(x[other], turn) ^ x[at]
            if number % 4 == 3:
                step = number // 4 + 1
                x = [x[at] + words[(step + at) % 5] for at in range(4)]
                x[3] = x[3] + np.uint64(step)
    return np.stack(x, axis=1)


def _turned(value: Array, by: int) -> Array:
    return (value << np.uint64(by)) | (value >> np.uint64(64 - by))


def _words(state: Array, count: int) -> tuple[Array, Array]:
    """The next key and `count` words of 64 bits. The counter's first word counts calls, its second blocks."""
    state = np.asarray(state)
    blocks = -(-count // 4)
    counters = np.tile(state[4:8], (max(blocks, 1), 1))
    counters[:, 1] = np.arange(max(blocks, 1), dtype=np.uint64)
    after = state.copy()
    with np.errstate(over="ignore"):
        after[4] += np.uint64(1)
    return after, threefry(state[:4], counters).reshape(-1)[:count]


def _real(words: Array, dtype: str) -> Array:
    """Numbers in [0, 1), from the leading bits of each word."""
    bits = np.finfo(dtype).nmant + 1
    return ((words >> np.uint64(64 - bits)).astype(np.float64) * 2.0**-bits).astype(dtype)


def _check_key(name: str, key: TensorType) -> None:
    if key != KEY:
        raise TypeCheckError(f"the key of {name} must be {show(KEY)}, not {show(key)}")


def _check_shape(name: str, shape: tuple[int, ...]) -> None:
    if any(size < 0 for size in shape):
        raise TypeCheckError(f"out_shape of {name} must be at least 0, not {shape}")


@rule("random.threefry_generate", 1)
def _generate_type(attrs: ThreefryGenerateAttrs, key: TensorType) -> Type:
    _check_key("random.threefry_generate", key)
    _check_shape("random.threefry_generate", attrs.out_shape)
    return TupleType([KEY, TensorType(attrs.out_shape, "uint64")])


def _generate(attrs: ThreefryGenerateAttrs, values: Sequence[Array], result: Type) -> tuple[Array, Array]:
    after, words = _words(values[0], prod(attrs.out_shape))
    return after, words.reshape(attrs.out_shape)


GENERATE = Op(
    "random.threefry_generate",
    1,
    _generate_type,
    _generate,
    attrs_type=ThreefryGenerateAttrs,
    gradient=nothing,
    doc="the next key, and random bits",
)


def threefry_generate(key: Expr, shape: Sequence[int]) -> Call:
    """(next key, random uint64 numbers of `shape`)."""
    return call(GENERATE, (key,), ThreefryGenerateAttrs(tuple(shape)))


@rule("random.threefry_split", 1)
def _split_type(attrs: None, key: TensorType) -> Type:
    _check_key("random.threefry_split", key)
    return TupleType([KEY, KEY])


def _split(attrs: None, values: Sequence[Array], result: Type) -> tuple[Array, Array]:
    """Two keys whose words are random; the counter's last word sets these apart from numbers."""
    state = np.asarray(values[0])
    counters = np.tile(state[4:8], (2, 1))
    counters[:, 3] = np.array([1, 2], np.uint64)
    halves = [np.concatenate([words, np.zeros(6, np.uint64)]) for words in threefry(state[:4], counters)]
    return halves[0], halves[1]


SPLIT = Op("random.threefry_split", 1, _split_type, _split, gradient=nothing, doc="two keys from one")


def threefry_split(key: Expr) -> Call:
    """Two keys whose numbers have nothing to do with each other's, nor with those of `key`."""
    return call(SPLIT, (key,))


def threefry_key(seed: int) -> Constant:
    """The key of a seed."""
    words = np.zeros(10, np.uint64)
    words[0] = np.uint64(seed % 2**64)
    return Constant(words)


def _scaled(name: str, record: type, doc: str, draw) -> Op:
    """Numbers first + (second or second - first) * what `draw` gives."""

    @rule(name, 3)
    def relation(attrs: UniformAttrs, key: TensorType, first: TensorType, second: TensorType) -> Type:
        _check_key(name, key)
        _check_shape(name, attrs.out_shape)
        dtype = attrs.out_dtype or "float32"
        if dtype not in ("float32", "float64") or first.rank or second.rank or {first.dtype, second.dtype} != {dtype}:
            raise TypeCheckError(
                f"{name} must get two scalars of its own element type, float32 or float64, "
                f"not {show(first)} and {show(second)} for {dtype}"
            )
        return TupleType([KEY, TensorType(attrs.out_shape, dtype)])

    def reference(attrs: UniformAttrs, values: Sequence[Array], result: Type) -> tuple[Array, Array]:
        first, second = (np.asarray(value) for value in values[1:])
        after, numbers = draw(values[0], prod(attrs.out_shape), attrs.out_dtype or "float32")
        width = second if name.endswith("normal") else second - first
        return after, (first + width * numbers).astype(first.dtype).reshape(attrs.out_shape)

    def gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
        """The same numbers between 0 and 1, or around 0, say what each bound or parameter gets."""
        op, key, attrs = ops(), call.args[0], call.attrs
        dtype = attrs.out_dtype or "float32"
        plain = TupleGetItem(Call(call.op, (key, op.const(0.0, dtype), op.const(1.0, dtype)), attrs), 1)
        g = TupleGetItem(adjoint, 1)
        to_second = op.sum(g * plain)
        to_first = op.sum(g) if name.endswith("normal") else op.sum(g) - to_second
        return zeros(key), to_first, to_second

    return Op(name, 3, relation, reference, attrs_type=record, gradient=gradient, doc=doc)


def _draw_uniform(key: Array, count: int, dtype: str) -> tuple[Array, Array]:
    after, words = _words(key, count)
    return after, _real(words, dtype)


def _draw_normal(key: Array, count: int, dtype: str) -> tuple[Array, Array]:
    """Box and Muller's method: two numbers between 0 and 1 for each."""
    after, words = _words(key, 2 * count)
    radius = np.sqrt(-2 * np.log1p(-_real(words[:count], "float64")))
    return after, (radius * np.cos(2 * np.pi * _real(words[count:], "float64"))).astype(dtype)


UNIFORM = _scaled("random.uniform", UniformAttrs, "the next key, and numbers spread evenly over a range", _draw_uniform)

NORMAL = _scaled("random.normal", NormalAttrs, "the next key, and numbers of a normal distribution", _draw_normal)


def uniform(
    key: Expr, shape: Sequence[int], dtype: str = "float32", low: Expr | float = 0.0, high: Expr | float = 1.0
) -> Call:
    """(next key, numbers of `shape` in [low, high))."""
    return call(UNIFORM, (key, as_expr(low, dtype), as_expr(high, dtype)), UniformAttrs(tuple(shape), dtype))


def normal(
    key: Expr, shape: Sequence[int], dtype: str = "float32", mean: Expr | float = 0.0, scale: Expr | float = 1.0
) -> Call:
    """(next key, normally distributed numbers of `shape` around `mean`)."""
    return call(NORMAL, (key, as_expr(mean, dtype), as_expr(scale, dtype)), NormalAttrs(tuple(shape), dtype))


@rule("random.multinomial", 2)
def _multinomial_type(attrs: MultinomialAttrs, key: TensorType, probs: TensorType) -> Type:
    _check_key("random.multinomial", key)
    if probs.rank not in (1, 2) or not probs.dtype.startswith("float") or attrs.num_samples < 1:
        raise TypeCheckError(
            f"random.multinomial must get one or two axes of floats and at least 1 sample, "
            f"not {show(probs)} and {attrs.num_samples}"
        )
    return TupleType([KEY, TensorType((*probs.shape[:-1], attrs.num_samples), "int32")])


def _multinomial(attrs: MultinomialAttrs, values: Sequence[Array], result: Type) -> tuple[Array, Array]:
    probs = np.atleast_2d(np.asarray(values[1], np.float64))
    after, words = _words(values[0], len(probs) * attrs.num_samples)
    bounds = np.cumsum(probs, axis=1)
    drawn = _real(words, "float64").reshape(len(probs), -1) * bounds[:, -1:]
    found = (drawn[:, :, None] >= bounds[:, None, :]).sum(axis=2)
    picked = np.minimum(found, probs.shape[1] - 1).astype(np.int32)
    return after, picked.reshape((*np.shape(values[1])[:-1], attrs.num_samples))


MULTINOMIAL = Op(
    "random.multinomial",
    2,
    _multinomial_type,
    _multinomial,
    attrs_type=MultinomialAttrs,
    gradient=nothing,
    doc="the next key, and indices drawn with given probabilities",
)


def multinomial(key: Expr, probs: Expr, num_samples: int) -> Call:
    """(next key, `num_samples` indices a row); `probs` need not add up to 1."""
    return call(MULTINOMIAL, (key, probs), MultinomialAttrs(num_samples))


OPS = (GENERATE, SPLIT, UNIFORM, NORMAL, MULTINOMIAL)
