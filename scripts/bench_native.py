"""Speed of native code for control flow: a scalar loop, and recurrent networks beside numpy, in one run.

In: examples/relay. Out: `Row`s; `python scripts/bench_native.py` prints them. Seconds are those of the processor, one
thread, the least of some turns.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import bench_layers  # noqa: F401  first: it puts examples on the path
import numpy as np
from bench_recurrent import EXAMPLE
from bench_rows import Row, judge

import relay_hw as relay
from relay_hw.backend.flat import flatten
from relay_hw.backend.native import NativeModule, compile_native
from relay_hw.interp import ConstructorValue
from relay_hw.transform import InferType

TREE = EXAMPLE.with_name("treelstm.relay")
STEPS, WIDTH, TREES, TURNS = 1000, 64, 100, 7
LOOP_BOUND, LSTM_BOUND, TREE_BOUND = 0.5, 0.7, 1.5
LOOP = """#[version = "0.0.5"]
def @main(%i: int32, %s: float32) -> float32 { if (%i < 1000000) { @main(%i + 1, %s * 0.5f + 1f) } else { %s } }
"""
Array = np.ndarray


def native(mod: relay.IRModule) -> NativeModule:
    """All functions of a module as machine code."""
    typed = InferType()(mod)
    return compile_native({name: flatten(f, name) for name, f in typed.functions.items()}, typed.types)


def fastest(*runs: Callable[[], Any]) -> list[float]:
    """Seconds of the fastest call of each, in turns."""
    best = [float("inf")] * len(runs)
    for _ in range(TURNS):
        for k, run in enumerate(runs):
            begin = time.thread_time()
            run()
            best[k] = min(best[k], time.thread_time() - begin)
    return best


def sigmoid(x: Array) -> Array:
    """As numpy users write it."""
    return 1 / (1 + np.exp(-x))


def loop_row() -> Row:
    """A loop of three operators on numbers."""
    module = native(relay.fromtext(LOOP))
    (seconds,) = fastest(lambda: module.call("main", [np.int32(0), np.float32(0)]))
    return Row("native code, a loop of three operators on numbers, a step", seconds, "us", LOOP_BOUND)


def lstm_row() -> Row:
    """An LSTM against the same steps in numpy. Raises ValueError where the results differ."""
    text = EXAMPLE.read_text().replace("(28, ", f"({STEPS}, ").replace("< 28", f"< {STEPS}")
    text = text.replace("512", str(4 * WIDTH)).replace("128", str(WIDTH))
    module, rng = native(relay.fromtext(text)), np.random.default_rng(0)
    x, bias = rng.normal(size=(STEPS, 1, WIDTH)).astype("f"), rng.normal(size=4 * WIDTH).astype("f")
    w, r = (rng.uniform(-1, 1, (4 * WIDTH, WIDTH)).astype("f") / 8 for _ in range(2))

    def steps() -> Array:
        h = c = np.zeros((1, WIDTH), "f")
        for now in x:
            i, f, g, o = np.split(now @ w.T + bias + h @ r.T, 4, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        return h

    if not np.allclose(module.call("main", [x, w, r, bias]), steps(), atol=1e-5):
        raise ValueError("the LSTM's result must be numpy's")
    ours, theirs = fastest(lambda: module.call("main", [x, w, r, bias]), steps)
    peer = f"numpy: {1e3 * theirs:.1f} ms; here {1e3 * ours:.1f} ms"
    return Row(f"native code, LSTM of {STEPS} steps, {WIDTH} wide, of numpy's time", ours / theirs, "times", LSTM_BOUND,
               peer=peer)  # fmt: skip


def random_tree(rng: np.random.Generator, types: Mapping[str, Any], leaves: int) -> ConstructorValue:
    """A tree with random leaves."""
    leaf, node = types["Tree"].constructors
    if leaves == 1:
        return ConstructorValue(leaf, (rng.normal(size=(1, 32)).astype("f"),))
    left = int(rng.integers(1, leaves))
    return ConstructorValue(node, (random_tree(rng, types, left), random_tree(rng, types, leaves - left)))


def tree_row() -> Row:
    """A TreeLSTM, tree by tree, against recursion in Python over numpy. Raises ValueError where the results differ."""
    mod, rng = relay.fromtext(TREE.read_text()), np.random.default_rng(0)
    module = native(mod)
    wl, wn = rng.uniform(-1, 1, (192, 32)).astype("f") / 8, rng.uniform(-1, 1, (320, 128)).astype("f") / 8
    bias = rng.normal(size=320).astype("f")
    trees = [random_tree(rng, mod.types, int(rng.integers(5, 25))) for _ in range(TREES)]

    def encode(tree: ConstructorValue) -> tuple[Array, Array]:
        if tree.name == "Leaf":
            i, g, o = np.split(tree.fields[0] @ wl.T, 3, axis=1)
            c = sigmoid(i) * np.tanh(g)
            return sigmoid(o) * np.tanh(c), c
        a, b = encode(tree.fields[0]), encode(tree.fields[1])
        i, f, second, g, o = np.split(np.concatenate((a[0], b[0]), axis=1) @ wn.T + bias, 5, axis=1)
        c = sigmoid(i) * np.tanh(g) + sigmoid(f) * a[1] + sigmoid(second) * b[1]
        return sigmoid(o) * np.tanh(c), c

    if not all(np.allclose(module.call("main", [t, wl, wn, bias])[0], encode(t)[0], atol=1e-5) for t in trees):
        raise ValueError("the TreeLSTM's results must be numpy's")
    ours, theirs = fastest(
        lambda: [module.call("main", [tree, wl, wn, bias]) for tree in trees], lambda: list(map(encode, trees))
    )
    peer = f"numpy: {1e3 * theirs:.1f} ms; here {1e3 * ours:.1f} ms"
    return Row(f"native code, TreeLSTM, {TREES} trees one by one, of numpy's time", ours / theirs, "times", TREE_BOUND,
               peer=peer)  # fmt: skip


def rows() -> list[Row]:
    """All rows."""
    return [loop_row(), lstm_row(), tree_row()]


def main() -> int:
    """Measure and print; 1 when a bound is missed."""
    return judge(rows())


if __name__ == "__main__":
    sys.exit(main())
