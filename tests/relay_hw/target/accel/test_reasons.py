"""Reasons of operators on the host: none goes in a circle, each says what would change it."""

from __future__ import annotations

import numpy as np
import pytest

from relay_hw import op
from relay_hw.analysis import infer_expr
from relay_hw.ir.expr import Call, Expr, Var
from relay_hw.ir.types import TensorType
from relay_hw.quantize.rules import RULES
from relay_hw.target.accel.reasons import reason_for


def var(*shape: int, dtype: str = "float32") -> Expr:
    return infer_expr(Var("x", TensorType(shape, dtype)))


def reason(expr: Expr, quantizes: bool = True) -> str:
    found = infer_expr(expr)
    assert isinstance(found, Call)
    return reason_for(found, RULES if quantizes else None)


WEIGHT = op.const(np.ones((4, 3, 3), "float32"))
LAYER = op.const(np.ones((4, 3, 3, 3), "float32"))


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (op.nn.conv1d(var(1, 9, 3), WEIGHT, data_layout="NWC"),
         "no rule quantizes nn.conv1d: in layout NCW it would run there"),
        (op.nn.conv2d(var(1, 3, 9, 9), LAYER),
         "nn.conv2d was left in float32; to be quantized its weight and bias must be constants in float32, and neither "
         "the strategy nor the check after quantization may keep it in float"),
        (op.sigmoid(var(1, 3)), "sigmoid was left in float32; to be quantized it must be part of a function of one "
         "tensor from a layer in integers, whose result such a layer reads"),
        (op.cumsum(var(1, 3)), "no rule quantizes cumsum: another operator in its place, or a rule in "
         "relay_hw/quantize/rules.py, would change that"),
        (op.nn.relu(var(1, 3, dtype="float16")),
         "nn.relu is in float16, and only float32 is quantized: export the model in float32"),
        (op.add(var(1, 3, dtype="int32"), var(1, 3, dtype="int32")),
         "add computes in int32: only tensors of int8 go to the accelerator"),
        (op.reshape(var(1, 3, dtype="int8"), (3, 1)),
         "reshape moves elements where the host converts them anyway; between layers in integers it would run there"),
        (op.maximum(var(1, 3, dtype="int8"), var(1, 3, dtype="int8")),
         "the accelerator has no maximum: it computes convolutions, dense layers, products of matrices, pools, sums, "
         "clips and moves of int8"),
    ],
)  # fmt: skip
def test_what_would_change_it(expr: Expr, text: str) -> None:
    assert reason(expr) == text


def test_a_strategy_that_quantizes_nothing_is_the_reason() -> None:
    text = "sigmoid is in float32, which the strategy float leaves: compile with another one, such as int8"
    assert reason(op.sigmoid(var(1, 3)), quantizes=False) == text


def test_every_rule_says_what_it_needs() -> None:
    assert {"nn.conv2d", "nn.dense", "nn.batch_matmul", "add", "concatenate", "nn.max_pool2d"} <= RULES.keys()
    assert all("must" in text for text in RULES.values())
