"""Recurrent programs for tests: the examples with random weights, trees and data; loops, scans and branches as text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import relay_hw as relay
from relay_hw.interp import ConstructorValue

EXAMPLES = Path(__file__).parents[2] / "examples" / "relay"
HEADER = '#[version = "0.0.5"]\n'
Arrays = Mapping[str, Any]


def uniform(rng: np.random.Generator, *shape: int) -> Any:
    """Weights as layers start with."""
    return rng.uniform(-1, 1, shape).astype("float32") / math.sqrt(shape[-1])


def lstm(inputs: int = 128, hidden: int = 128, steps: int = 28) -> tuple[relay.IRModule, Arrays]:
    """The example's LSTM, perhaps smaller, and its weights."""
    text = (EXAMPLES / "lstm.relay").read_text()
    for old, new in (
        ("(28, 1, 128)", f"({steps}, 1, {inputs})"),
        ("%w: Tensor[(512, 128)", f"%w: Tensor[({4 * hidden}, {inputs})"),
        ("%r: Tensor[(512, 128)", f"%r: Tensor[({4 * hidden}, {hidden})"),
        ("512", str(4 * hidden)),
        ("newshape=[1, 128]", f"newshape=[1, {inputs}]"),
        ("(1, 128)", f"(1, {hidden})"),
        ("[1, 128]", f"[1, {hidden}]") if inputs == 128 else ("shape=[1, 128]", f"shape=[1, {hidden}]"),
        ("%t < 28", f"%t < {steps}"),
    ):
        assert old in text or old == new or hidden == 128
        text = text.replace(old, new)
    rng = np.random.default_rng(7)
    weights = {
        "w": uniform(rng, 4 * hidden, inputs),
        "r": uniform(rng, 4 * hidden, hidden),
        "b": uniform(rng, 4 * hidden),
    }
    return relay.fromtext(text), weights


def sequences(count: int, steps: int, inputs: int, seed: int = 3) -> Any:
    """[count, steps, 1, inputs]."""
    return np.random.default_rng(seed).normal(size=(count, steps, 1, inputs)).astype("float32")


def treelstm() -> tuple[relay.IRModule, Arrays]:
    """The example and its weights."""
    rng = np.random.default_rng(8)
    weights = {"wl": uniform(rng, 192, 32), "wn": uniform(rng, 320, 128), "bn": uniform(rng, 320)}
    return relay.fromtext((EXAMPLES / "treelstm.relay").read_text()), weights


def trees(mod: relay.IRModule, count: int, seed: int = 4) -> list[ConstructorValue]:
    """Random trees of up to seven leaves."""
    leaf, node = mod.types["Tree"].constructors
    rng = np.random.default_rng(seed)

    def grow(leaves: int) -> ConstructorValue:
        if leaves == 1:
            return ConstructorValue(leaf, (rng.normal(size=(1, 32)).astype("float32"),))
        left = int(rng.integers(1, leaves))
        return ConstructorValue(node, (grow(left), grow(leaves - left)))

    return [grow(int(rng.integers(1, 8))) for _ in range(count)]


def newton() -> tuple[relay.IRModule, Arrays]:
    """A loop whose number of steps depends on data: a layer is applied until its result is small."""
    text = HEADER + (
        "def @main(%x: Tensor[(1, 32), float32], %w: Tensor[(32, 32), float32]) -> (Tensor[(1, 32), float32], int32) {"
        " let %loop = fn (%y: Tensor[(1, 32), float32], %n: int32) -> (Tensor[(1, 32), float32], int32) {"
        "   if (sum(abs(%y)) > 1f) { %loop(nn.relu(nn.dense(%y, %w, units=32)), %n + 1) } else { (%y, %n) } };"
        " %loop(%x, 0) }"
    )
    return relay.fromtext(text), {"w": uniform(np.random.default_rng(9), 32, 32)}


def scan() -> tuple[relay.IRModule, Arrays]:
    """A scan with a state and an output of each step, through a reference and a list."""
    text = HEADER + (
        "type List[A] { Cons(A, List[A]), Nil, }"
        "def @stack(%l: List[Tensor[(1, 16), float32]], %all: Tensor[(?, 16), float32]) -> Tensor[(?, 16), float32] {"
        " match (%l) { Cons(%h, %t) => { @stack(%t, concatenate((%h, %all), axis=0)) }, Nil => { %all } } }"
        "def @main(%x: Tensor[(5, 1, 16), float32], %w: Tensor[(16, 16), float32])"
        " -> (Tensor[(1, 16), float32], Tensor[(?, 16), float32]) {"
        ' let %state = ref(zeros(shape=[1, 16], dtype="float32"));'
        " let %scan = fn (%t: int32, %out: List[Tensor[(1, 16), float32]]) -> List[Tensor[(1, 16), float32]] {"
        "   if (%t < 5) {"
        "     let %now = reshape(take(%x, %t, axis=0), newshape=[1, 16]);"
        "     let %s = tanh(nn.dense(%now, %w, units=16) + ref_read(%state));"
        "     let %u = ref_write(%state, %s);"
        "     %scan(%t + 1, Cons(%s * 2f, %out)) } else { %out } };"
        " let %out = %scan(0, Nil);"
        ' let %none = zeros(shape=[0, 16], dtype="float32");'
        " (ref_read(%state), @stack(%out, %none)) }"
    )
    return relay.fromtext(text), {"w": uniform(np.random.default_rng(10), 16, 16)}


def branches() -> tuple[relay.IRModule, Arrays]:
    """Branches in branches, each with a layer of its own, and a layer that two of them share."""
    text = HEADER + (
        "def @main(%x: Tensor[(1, 16), float32], %k: int32, %a: Tensor[(16, 16), float32],"
        " %b: Tensor[(16, 16), float32]) -> Tensor[(1, 16), float32] {"
        " let %s = nn.relu(nn.dense(%x, %a, units=16));"
        " if (%k < 2) {"
        "   if (%k < 1) { nn.dense(%s, %b, units=16) } else { if (sum(%s) > 2f) { nn.relu(nn.dense(%s, %a, units=16)) }"
        "   else { %s + %x } } } else { tanh(%s) } }"
    )
    rng = np.random.default_rng(11)
    return relay.fromtext(text), {"a": uniform(rng, 16, 16), "b": uniform(rng, 16, 16)}


def conv_newton() -> tuple[relay.IRModule, Arrays]:
    """A convolution, a layer that is applied until its result is small, a dense layer; host operators between."""
    text = HEADER + (
        "def @main(%x: Tensor[(1, 3, 6, 6), float32], %k: Tensor[(16, 3, 3, 3), float32],"
        " %w: Tensor[(64, 64), float32], %v: Tensor[(64, 256), float32], %o: Tensor[(24, 64), float32])"
        " -> (Tensor[(1, 24), float32], int32) {"
        " let %map = sigmoid(nn.relu(nn.conv2d(%x, %k, channels=16, kernel_size=[3, 3])));"
        " let %start = tanh(nn.dense(nn.batch_flatten(%map), %v, units=64));"
        " let %loop = fn (%y: Tensor[(1, 64), float32], %n: int32) -> (Tensor[(1, 64), float32], int32) {"
        "   if (sum(abs(%y)) > 2f) { %loop(nn.relu(nn.dense(%y, %w, units=64)), %n + 1) } else { (%y, %n) } };"
        " let %end = %loop(%start, 0);"
        " (nn.dense(erf(%end.0), %o, units=24), %end.1) }"
    )
    rng = np.random.default_rng(12)
    shapes = {"w": (64, 64), "v": (64, 256), "o": (24, 64)}
    return relay.fromtext(text), {"k": uniform(rng, 16, 3, 3, 3), **{n: uniform(rng, *s) for n, s in shapes.items()}}


def gru(steps: int = 6, hidden: int = 48) -> tuple[relay.IRModule, Arrays]:
    """A convolution whose rows go through a GRU one after the other, and a dense layer; host operators between."""
    wide, state = 16 * 8, f"Tensor[(1, {hidden}), float32]"
    text = HEADER + (
        f"def @main(%x: Tensor[(1, 4, {steps}, 8), float32], %k: Tensor[(16, 4, 3, 3), float32],"
        f" %w: Tensor[({3 * hidden}, {wide}), float32], %u: Tensor[({2 * hidden}, {hidden}), float32],"
        f" %n: Tensor[({hidden}, {hidden}), float32], %o: Tensor[(10, {hidden}), float32])"
        " -> Tensor[(1, 10), float32] {"
        " let %map = tanh(nn.relu(nn.conv2d(%x, %k, padding=[1, 1, 1, 1], channels=16, kernel_size=[3, 3])));"
        f" let %rows = reshape(transpose(%map, axes=[0, 2, 1, 3]), newshape=[{steps}, {wide}]);"
        f" let %in = split(nn.dense(%rows, %w, units={3 * hidden}), indices_or_sections=3, axis=1);"
        " let %reset = %in.0; let %update = %in.1; let %new = %in.2;"
        f" let %step = fn (%t: int32, %h: {state}) -> {state} {{"
        f"   if (%t < {steps}) {{"
        f"     let %g = split(nn.dense(%h, %u, units={2 * hidden}), indices_or_sections=2, axis=1);"
        f"     let %r = sigmoid(reshape(take(%reset, %t, axis=0), newshape=[1, {hidden}]) + %g.0);"
        f"     let %z = sigmoid(reshape(take(%update, %t, axis=0), newshape=[1, {hidden}]) + %g.1);"
        f"     let %c = tanh(reshape(take(%new, %t, axis=0), newshape=[1, {hidden}])"
        f"       + nn.dense(%r * %h, %n, units={hidden}));"
        "     %step(%t + 1, (1f - %z) * %c + %z * %h) } else { %h } };"
        f' let %last = %step(0, zeros(shape=[1, {hidden}], dtype="float32"));'
        " nn.dense(sigmoid(%last), %o, units=10) }"
    )
    rng = np.random.default_rng(13)
    shapes = {"w": (3 * hidden, wide), "u": (2 * hidden, hidden), "n": (hidden, hidden), "o": (10, hidden)}
    return relay.fromtext(text), {"k": uniform(rng, 16, 4, 3, 3), **{n: uniform(rng, *s) for n, s in shapes.items()}}


def translator(steps: int = 5, words: int = 4, width: int = 64) -> tuple[relay.IRModule, Arrays]:
    """One loop that reads, another that writes and takes its own output, as translators have them, layers around."""
    state, wide = f"Tensor[(1, {width}), float32]", f"Tensor[({width}, {width}), float32]"
    text = HEADER + (
        f"def @main(%x: Tensor[({steps}, 1, 32), float32], %i: Tensor[({width}, 32), float32], %a: {wide}, %b: {wide},"
        f" %c: {wide}, %o: Tensor[(20, {width}), float32]) -> Tensor[(1, 20), float32] {{"
        f" let %all = erf(nn.dense(reshape(%x, newshape=[{steps}, 32]), %i, units={width}));"
        f" let %read = fn (%t: int32, %h: {state}) -> {state} {{"
        f"   if (%t < {steps}) {{"
        f"     let %now = reshape(take(%all, %t, axis=0), newshape=[1, {width}]);"
        f"     %read(%t + 1, tanh(nn.dense(%now + %h, %a, units={width}))) }} else {{ %h }} }};"
        f" let %write = fn (%t: int32, %h: {state}, %y: {state}) -> {state} {{"
        f"   if (%t < {words}) {{"
        f"     let %s = tanh(nn.dense(%h + %y, %b, units={width}));"
        f"     %write(%t + 1, %s, sigmoid(nn.dense(%s, %c, units={width}))) }} else {{ %y }} }};"
        f' let %none = zeros(shape=[1, {width}], dtype="float32");'
        " nn.dense(%write(0, %read(0, %none), %none), %o, units=20) }"
    )
    rng = np.random.default_rng(14)
    shapes = {"i": (width, 32), **dict.fromkeys("abc", (width, width)), "o": (20, width)}
    return relay.fromtext(text), {name: uniform(rng, *shape) for name, shape in shapes.items()}
