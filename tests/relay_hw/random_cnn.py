"""Seeded random convolutional networks, small, and inputs for them: what property tests of passes run on."""

from __future__ import annotations

import numpy as np

from relay_hw import op
from relay_hw.analysis import infer_expr
from relay_hw.ir.expr import Constant, Expr, Function, Tuple, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType

MAX_CHANNELS = 12


class _Net:
    """A network under construction; `x` is its last tensor, typed, batch 1, NCHW."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        shape = (1, int(self.rng.integers(1, 7)), int(self.rng.integers(5, 10)), int(self.rng.integers(5, 10)))
        self.input = Var("x", TensorType(shape))
        self.x: Expr = infer_expr(self.input)
        self.input = self.x

    @property
    def shape(self) -> tuple[int, ...]:
        return self.x.tensor_type.static_shape

    def add(self, expr: Expr) -> None:
        self.x = infer_expr(expr)

    def value(self, *shape: int, low: float = -1.0, high: float = 1.0) -> Constant:
        return op.const(self.rng.uniform(low, high, shape).astype("float32"))

    def pick(self, *choices):
        return choices[int(self.rng.integers(len(choices)))]


def _conv(net: _Net) -> None:
    _, channels, height, width = net.shape
    kernel = tuple(int(net.rng.integers(1, min(4, size + 1))) for size in (height, width))
    room = [(k - 1) * 2 < size for k, size in zip(kernel, (height, width), strict=True)]
    dilation = tuple(int(net.rng.integers(1, 3)) if free else 1 for free in room)
    strides = net.pick((1, 1), (1, 1), (2, 2), (1, 2))
    padding = tuple(int(p) for p in net.rng.integers(0, 3, 4)) if net.rng.random() < 0.7 else (0, 0, 0, 0)
    if net.rng.random() < 0.8:  # most paddings stay inside the window
        padding = tuple(min(p, (kernel[i % 2] - 1) * dilation[i % 2]) for i, p in enumerate(padding))
    divisors = [g for g in range(1, channels + 1) if channels % g == 0]
    groups = int(net.rng.choice(divisors)) if net.rng.random() < 0.4 else 1
    out = groups * int(net.rng.integers(1, max(2, MAX_CHANNELS // groups)))
    weight = net.value(out, channels // groups, *kernel)
    net.add(op.nn.conv2d(net.x, weight, strides, padding, dilation, groups))
    _maybe_bias(net, out)


def _maybe_bias(net: _Net, channels: int) -> None:
    tail = (1,) * (len(net.shape) - 2)
    match net.pick("none", "bias_add", "add", "add first", "scale"):
        case "bias_add":
            net.add(op.nn.bias_add(net.x, net.value(channels)))
        case "add":
            net.add(op.add(net.x, net.value(1, channels, *tail)))
        case "add first":
            net.add(op.add(net.value(channels, *tail), net.x))
        case "scale":
            net.add(op.multiply(net.x, net.value(1, channels, *tail)))
            net.add(op.subtract(net.x, net.value(channels, *tail)))
        case _:
            pass


def _norm(net: _Net) -> None:
    channels = net.shape[1]
    args = (net.value(channels), net.value(channels), net.value(channels), net.value(channels, low=0.1, high=2.0))
    net.add(
        TupleGetItem(
            op.nn.batch_norm(net.x, *args, scale=net.pick(True, True, False), center=net.pick(True, True, False)), 0
        )
    )


def _activation(net: _Net) -> None:
    x = net.x
    net.add(
        net.pick(
            op.nn.relu(x),
            op.nn.relu(x),
            op.clip(x, 0.0, 6.0),
            op.clip(x, -0.75, 0.5),
            op.maximum(x, op.const(np.float32(0))),
            op.minimum(op.nn.relu(x), op.const(np.float32(1.5))),
            op.nn.leaky_relu(x, 0.1),
            op.sigmoid(x),
            op.tanh(x),
        )
    )


def _pool(net: _Net) -> None:
    size = tuple(int(net.rng.integers(1, min(3, extent) + 1)) for extent in net.shape[2:])
    strides = net.pick((1, 1), (2, 2))
    room = min(size)
    padding = tuple(int(p) for p in net.rng.integers(0, room, 4)) if net.rng.random() < 0.4 else (0, 0, 0, 0)
    if net.rng.random() < 0.5:
        net.add(op.nn.max_pool2d(net.x, size, strides, padding=padding))
    else:
        net.add(op.nn.avg_pool2d(net.x, size, strides, padding=padding, count_include_pad=net.pick(True, False)))


def _pad(net: _Net) -> None:
    top, left, bottom, right = (int(p) for p in net.rng.integers(0, 2, 4))
    value = net.pick(0.0, 0.0, 0.5)
    net.add(op.nn.pad(net.x, ((0, 0), (0, 0), (top, bottom), (left, right)), op.const(np.float32(value))))


def _residual(net: _Net) -> None:
    start, channels = net.x, net.shape[1]
    net.add(op.nn.conv2d(start, net.value(channels, channels, 3, 3, low=-0.4, high=0.4), padding=(1, 1)))
    branch = net.x
    if net.rng.random() < 0.4:
        start = infer_expr(op.nn.conv2d(start, net.value(channels, channels, 1, 1)))
    net.add(op.add(*net.pick((branch, start), (start, branch))))
    if net.rng.random() < 0.6:
        net.add(op.nn.relu(net.x))


def _concatenate(net: _Net) -> None:
    start, channels = net.x, net.shape[1]
    if channels > MAX_CHANNELS:
        return
    left = op.nn.conv2d(start, net.value(3, channels, 1, 1))
    right = net.pick(op.nn.relu(op.nn.conv2d(start, net.value(4, channels, 3, 3), padding=(1, 1))), start)
    net.add(op.concatenate(Tuple([left, right]), 1))


def _nothing(net: _Net) -> None:
    x, shape = net.x, net.shape
    net.add(
        net.pick(
            op.nn.dropout(x),
            op.copy(x),
            op.reshape(x, shape),
            op.transpose(op.transpose(x, (0, 2, 3, 1)), (0, 3, 1, 2)),
            op.reshape(op.reshape(x, (-1,)), shape),
            op.multiply(x, op.const(np.float32(1))),
            op.add(x, op.const(np.zeros((1, 1, 1), "float32"))),
        )
    )


def _shared(net: _Net) -> None:
    """The same computation written twice."""
    weight = net.value(net.shape[1], net.shape[1], 1, 1)
    net.add(op.add(op.nn.relu(op.nn.conv2d(net.x, weight)), op.nn.relu(op.nn.conv2d(net.x, weight))))


def _tail(net: _Net) -> None:
    match net.pick("global", "mean", "flatten", "none"):
        case "global":
            net.add(op.nn.batch_flatten(op.nn.global_avg_pool2d(net.x)))
        case "mean":
            net.add(op.mean(net.x, (2, 3)))
        case "flatten":
            net.add(op.reshape(net.x, (1, -1)))
        case _:
            return
    features = net.shape[1]
    units = int(net.rng.integers(2, 6))
    net.add(op.nn.dense(net.x, net.value(units, features), units))
    _maybe_bias(net, units)
    if net.rng.random() < 0.5:
        net.add(op.nn.softmax(net.x))


_STEPS = (_conv, _conv, _conv, _norm, _activation, _activation, _pool, _pad, _residual, _concatenate, _nothing, _shared)


def random_cnn(seed: int, steps: int | None = None) -> IRModule:
    """An untyped network of input `x` with up to eight parts drawn from `seed`; parameters are constants."""
    net = _Net(seed)
    for _ in range(int(net.rng.integers(1, 9)) if steps is None else steps):
        if min(net.shape[2:]) < 1:
            break
        net.pick(*_STEPS)(net)
    _tail(net)
    return IRModule.from_expr(Function([net.input], net.x))


def random_input(mod: IRModule, seed: int, samples: int = 1) -> dict[str, np.ndarray]:
    """Values for each input of `main`, samples on the first axis."""
    rng = np.random.default_rng([seed, 1])
    return {
        param.name_hint: rng.normal(size=(samples, *param.type_annotation.shape[1:])).astype("float32")
        for param in mod["main"].params
    }
