"""A small network of the kinds of layers that strategies treat apart, images for it, and how much noise another has."""

from __future__ import annotations

import numpy as np

from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.ir.expr import Expr, Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.quantize.batch import run_samples


def network(seed: int = 0) -> IRModule:
    """Convolutions whose channels differ in size, a depthwise one, pooling, a dense layer."""
    rng = np.random.default_rng(seed)

    def weight(*shape: int) -> Expr:
        return op.const((rng.normal(size=shape) * np.exp(rng.normal(size=(shape[0], *[1] * (len(shape) - 1))))
                         / np.sqrt(np.prod(shape[1:]))).astype("float32"))  # fmt: skip

    def bias(size: int) -> Expr:
        return op.const((rng.normal(size=size) * 0.2).astype("float32"))

    x = Var("x", TensorType((1, 3, 8, 8), "float32"))
    y: Expr = op.nn.relu(op.nn.bias_add(op.nn.conv2d(x, weight(8, 3, 3, 3), padding=(1, 1)), bias(8)))
    y = op.nn.relu(op.nn.bias_add(op.nn.conv2d(y, weight(8, 1, 3, 3), padding=(1, 1), groups=8), bias(8)))
    y = op.nn.relu(op.nn.bias_add(op.nn.conv2d(y, weight(12, 8, 1, 1)), bias(12)))
    y = op.nn.avg_pool2d(y, (2, 2), (2, 2))
    y = op.nn.dense(op.nn.batch_flatten(y), weight(5, 192))
    return infer_type(IRModule.from_expr(Function([x], op.nn.softmax(op.nn.bias_add(y, bias(5))))))


def images(count: int = 128, seed: int = 1) -> dict[str, np.ndarray]:
    """Smooth images with a little noise."""
    rng = np.random.default_rng(seed)
    coarse = rng.normal(size=(count, 3, 2, 2)).repeat(4, axis=2).repeat(4, axis=3)
    return {"x": (coarse + 0.2 * rng.normal(size=(count, 3, 8, 8))).astype("float32")}


def noise(mod: IRModule, found: IRModule, data: dict[str, np.ndarray]) -> float:
    """Power of the difference of two networks' logarithms, as a share of what varies in the first."""
    want, have = np.log(run_samples(mod, data)), np.log(run_samples(found, data))
    return float(np.square(want - have).mean() / np.square(want - want.mean()).mean())
