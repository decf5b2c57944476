"""What tests of rules for tokens are written with: a sequence, dense layers on it, what their integer form has."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Expr, Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import post_order
from relay_hw.op.base import const
from relay_hw.quantize.main import realize_module
from relay_hw.transform.graph import dtype_of, op_name

TOKENS, WIDTH, HEADS = 10, 16, 2
EACH = WIDTH // HEADS
X = Var("x", TensorType((1, TOKENS, WIDTH)))


def number(value: float) -> Expr:
    return const(np.float32(value))


def random(*shape: int, seed: int = 5) -> Expr:
    return const(np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32))


def dense(x: Expr, seed: int = 0, units: int = WIDTH, columns: int = WIDTH) -> Expr:
    """A layer on each token."""
    weight = np.random.default_rng(seed).normal(size=(units, columns)) / np.sqrt(columns)
    rows = op.nn.dense(op.reshape(x, (-1, columns)), const(weight.astype(np.float32)))
    return op.reshape(rows, (1, -1, units))


def heads(x: Expr) -> Expr:
    """[heads, tokens, width of a head]."""
    return op.reshape(op.transpose(op.reshape(x, (1, TOKENS, HEADS, EACH)), (0, 2, 1, 3)), (HEADS, TOKENS, EACH))


def module(body: Expr, *more: Var) -> IRModule:
    return infer_type(IRModule.from_expr(Function([X, *more], body)))


def samples(count: int = 16, seed: int = 1) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(seed).normal(size=(count, TOKENS, WIDTH)).astype(np.float32)}


def names(body: Expr) -> list[str]:
    """Operators of a graph, operands first."""
    return [op_name(node) for node in post_order(body) if isinstance(node, Call)]


def floats(body: Expr) -> set[str]:
    """Operators that make floats, but for those at the ends: tokens in rows, the last conversion."""
    calls = (node for node in post_order(body) if isinstance(node, Call) and dtype_of(node) == "float32")
    return {op_name(call) for call in calls} - {"reshape", "qnn.dequantize"}


def quantized(
    mod: IRModule, data: Mapping[str, np.ndarray] | None = None, strategy: str = "int8"
) -> tuple[Expr, float]:
    """The integer form, and its signal-to-noise ratio in dB on other samples."""
    given = data or samples()
    realized = realize_module(mod, strategy, given)
    one = {key: array[:1] for key, array in given.items()} | {"x": samples(1, seed=9)["x"]}
    want, have = (np.asarray(evaluate(each, one), np.float64) for each in (mod, realized.mod))
    return realized.mod["main"].body, 10 * np.log10(np.square(want).sum() / np.square(want - have).sum())
