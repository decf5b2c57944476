"""Passes stay near linear: four times the operators are four times the work, not sixteen times.

The work is the number of calls, of Python and of what it is written in.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import relay_hw as relay
from relay_hw import transform
from relay_hw.analysis import infer_type
from relay_hw.dataflow_pattern import is_op, wildcard
from relay_hw.ir.module import IRModule
from relay_hw.transform import Pass, Pipeline
from tests.call_count import count_calls

SMALL, LARGE = 600, 2400
SUPPORTED = {"dsp": {"nn.conv2d": True, "nn.relu": True, "add": True}}
RELU = is_op("nn.relu")(is_op("nn.conv2d")(wildcard(), wildcard()))
STEPS: dict[str, Pass] = {
    "simplify": Pipeline([transform.SimplifyInference(), transform.SimplifyExpr(), transform.FoldScaleAxis()]),
    "fold": Pipeline([transform.FoldConstant(), transform.EliminateCommonSubexpr(), transform.CanonicalizeOps()]),
    "names": Pipeline([transform.ToANormalForm(), transform.DeadCodeElimination(True), transform.ToGraphNormalForm()]),
    "blocks": Pipeline([transform.ToBasicBlockNormalForm(), transform.EtaExpand(), transform.Legalize()]),
    "fuse": Pipeline([transform.FuseOps(3), transform.DefuseOps()]),
    "layout": transform.ConvertLayout({"nn.conv2d": ["NHWC"]}),
    "patterns": transform.MergeComposite([("dsp.conv", RELU)]),
    "regions": Pipeline(
        [
            transform.AnnotateTarget("dsp", supported=SUPPORTED),
            transform.MergeCompilerRegions(),
            transform.PartitionGraph(),
        ]
    ),
}


def chain(operators: int) -> IRModule:
    """conv2d, relu, add, repeated."""
    x, weight = relay.var("x", shape=(1, 2, 4, 4)), relay.const(np.ones((2, 2, 1, 1), "float32"))
    body = x
    for _ in range(operators // 3):
        layer = relay.nn.conv2d(body, weight, channels=2, kernel_size=1)
        body = relay.add(relay.nn.relu(layer), relay.const(np.ones((1, 2, 1, 1), "float32")))
    return infer_type(IRModule.from_expr(relay.Function([x], body)))


@pytest.mark.parametrize("name", STEPS)
def test_near_linear(name: str) -> None:
    small, large = (count_calls(partial(STEPS[name], chain(operators))) for operators in (SMALL, LARGE))
    assert large < 4.2 * small, f"{small} calls and {large} calls"
