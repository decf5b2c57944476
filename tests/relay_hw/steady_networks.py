"""Networks for tests of the steady state: of three regions or more, with host operators between them, and small loops.

In: a number, or the name of a loop. Out: a module of one float input, and calibration data for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import relay_hw as relay
from relay_hw import op
from relay_hw.analysis import infer_expr
from relay_hw.ir.expr import Constant, Expr, Function, Var
from relay_hw.ir.types import TensorType
from tests.relay_hw.recurrent import EXAMPLES, conv_newton, gru, lstm, newton, scan, translator, uniform

Network = tuple[relay.IRModule, Mapping[str, Any]]
SAMPLES = 4
# Operators of floats that stay on the host, and so cut a network into regions.
HOST = (op.nn.log_softmax, op.sort)


class _Net:
    """A network under construction; `x` is its last tensor, typed."""

    def __init__(self, seed: int, shape: tuple[int, ...]) -> None:
        self.rng = np.random.default_rng(seed)
        self.input = infer_expr(Var("x", TensorType(shape)))
        self.x: Expr = self.input
        self.regions = 0

    @property
    def shape(self) -> tuple[int, ...]:
        return self.x.tensor_type.static_shape

    def put(self, expr: Expr) -> None:
        self.x = infer_expr(expr)

    def weight(self, *shape: int) -> Constant:
        return Constant((self.rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32))

    def pick(self, *values: int) -> int:
        return int(self.rng.choice(values))

    def cut(self) -> None:
        """The end of a region."""
        self.put(HOST[self.rng.integers(len(HOST))](self.x))
        self.regions += 1

    def convolutions(self) -> None:
        """One to three convolutions, perhaps a pool."""
        for _ in range(self.pick(1, 2, 3)):
            kernel, channels = self.pick(1, 3), self.pick(8, 16, 24, 48, 64)
            weight = self.weight(channels, self.shape[1], kernel, kernel)
            self.put(op.nn.relu(op.nn.conv2d(self.x, weight, padding=(kernel // 2,) * 2)))
        if self.rng.random() < 0.4 and min(self.shape[2:]) >= 4:
            self.put(op.nn.max_pool2d(self.x, pool_size=(2, 2), strides=(2, 2)))

    def denses(self, most: int) -> None:
        """One or two dense layers of up to `most` results."""
        for _ in range(self.pick(1, 2)):
            units = self.pick(most // 4, most // 2, most)
            self.put(op.nn.relu(op.nn.dense(self.x, self.weight(units, self.shape[-1]))))

    def attention(self) -> None:
        """Two products of activations with a softmax between."""
        tokens, width = self.shape
        q, k, v = (op.nn.dense(self.x, self.weight(width, width)) for _ in range(3))
        q, k, v = (op.reshape(one, newshape=[1, tokens, width]) for one in (q, k, v))
        scores = op.nn.softmax(op.nn.batch_matmul(q, k) * Constant(np.float32(1 / np.sqrt(width))), axis=-1)
        mixed = op.nn.batch_matmul(scores, op.transpose(v, axes=[0, 2, 1]))
        self.put(op.nn.dense(op.reshape(mixed, newshape=[tokens, width]), self.weight(width, width)))

    def module(self) -> Network:
        shape = self.input.tensor_type.static_shape
        data = self.rng.normal(size=(SAMPLES, *shape)).astype(np.float32)
        given = data[:, 0] if shape[0] == 1 else data
        return relay.IRModule({"main": Function([self.input], self.x)}), {"x": given}


def images(seed: int, most: int = 512) -> Network:
    """Convolutions, then dense layers, of at least three regions."""
    net = _Net(seed, (1, 3, (8, 12, 16)[seed % 3], 12))
    for _ in range(net.pick(1, 2, 3)):
        net.convolutions()
        net.cut()
    net.put(op.nn.batch_flatten(net.x))
    while net.regions < 3 or net.rng.random() < 0.6:
        net.denses(most)
        net.cut()
    net.denses(64)
    return net.module()


def vectors(seed: int, most: int = 512) -> Network:
    """Dense layers, of three to a dozen regions."""
    net = _Net(seed, (1, 64 * (1 + seed % 4)))
    for _ in range(net.pick(3, 5, 8, 12)):
        net.denses(most)
        net.cut()
    net.denses(32)
    return net.module()


def tokens(seed: int) -> Network:
    """Attention and dense layers on some tokens, of at least three regions."""
    net = _Net(seed, (16 * (1 + seed % 2), (32, 64, 128)[seed % 3]))
    while net.regions < 2 or net.rng.random() < 0.3:
        net.attention()
        width = net.shape[-1]
        net.denses(4 * width)
        net.cut()
        net.put(op.nn.dense(net.x, net.weight(width, net.shape[-1])))
    return net.module()


def lenet() -> Network:
    """The LeNet of the first paper on Relay, with random weights."""
    mod = relay.fromtext((EXAMPLES / "lenet.relay").read_text().replace("%image", "%x"))
    shapes = {
        **{"w1": (20, 1, 5, 5), "w2": (50, 20, 5, 5), "w3": (500, 800), "w4": (10, 500)},
        **{"b1": (20,), "b2": (50,), "b3": (500,), "b4": (10,)},
    }
    rng = np.random.default_rng(2)
    return _with_data((mod, {name: uniform(rng, *shape) for name, shape in shapes.items()}), (1, 1, 28, 28))


def _with_data(program: tuple[relay.IRModule, Mapping[str, Any]], shape: tuple[int, ...]) -> Network:
    mod, weights = program
    return mod, {"x": np.random.default_rng(1).normal(size=(SAMPLES, *shape)).astype(np.float32), **weights}


STACKS = 27
# Loops have layers inside and outside, and launch them as often as data say.
WHOLE: tuple[Callable[[], Network], ...] = (
    lambda: _with_data(conv_newton(), (1, 3, 6, 6)),
    lambda: _with_data(gru(), (1, 4, 6, 8)),
    lambda: _with_data(translator(), (5, 1, 32)),
    lenet,
)
NETWORKS = range(STACKS + len(WHOLE))
# Loops of one or two regions.
LOOPS: Mapping[str, Callable[[], Network]] = {
    "lstm": lambda: _with_data(lstm(32, 64, 5), (5, 1, 32)),
    "newton": lambda: _with_data(newton(), (1, 32)),
    "scan": lambda: _with_data(scan(), (5, 1, 16)),
}


def network(number: int) -> Network:
    """The network of that number among `NETWORKS`."""
    if number >= STACKS:
        return WHOLE[number - STACKS]()
    return (images, vectors, tokens)[number % 3](number)
