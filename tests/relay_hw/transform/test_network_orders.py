"""Random orders of the passes for networks keep what random networks compute."""

from __future__ import annotations

import random

import pytest

from relay_hw import transform
from relay_hw.dataflow_pattern import is_constant, is_op, wildcard
from relay_hw.interp import evaluate
from relay_hw.transform import InferType, Pass, Pipeline
from tests.relay_hw.random_cnn import random_cnn, random_input
from tests.relay_hw.transform.checks import assert_close

SUPPORTED = {"npu": dict.fromkeys(("nn.conv2d", "nn.bias_add", "nn.relu", "add"), True), "dsp": {"nn.max_pool2d": True}}
CONV = is_op("nn.conv2d")(wildcard(), is_constant()).optional(lambda x: is_op("nn.relu")(x))
STEPS: tuple[Pass, ...] = (
    transform.SimplifyInference(),
    transform.SimplifyExpr(),
    transform.FoldConstant(),
    transform.FoldBatchNorm(),
    transform.FoldScaleAxis(),
    transform.FoldExplicitPadding(),
    transform.CanonicalizeOps(),
    transform.EliminateCommonSubexpr(),
    transform.CombineParallelConv2D(2),
    transform.CombineParallelDense(2),
    transform.ConvertLayout({"nn.conv2d": ["NHWC"], "nn.max_pool2d": ["NHWC"]}),
    transform.ConvertLayout({"nn.conv2d": ["NCHW"]}),
    transform.Legalize(),
    transform.FuseOps(3),
    transform.DefuseOps(),
    transform.ToANormalForm(),
    transform.ToGraphNormalForm(),
    transform.DeadCodeElimination(inline_once=True),
    transform.MergeComposite([("npu.conv", CONV)]),
    transform.AnnotateTarget(["npu", "dsp"], supported=SUPPORTED),
    transform.MergeCompilerRegions(),
    transform.PartitionGraph(),
    transform.Inline(),
)


@pytest.mark.parametrize("seed", range(60))
def test_random_orders(seed: int) -> None:
    choose = random.Random(seed)
    steps = [choose.choice(STEPS) for _ in range(6)]
    mod = InferType()(random_cnn(seed))
    inputs = random_input(mod, seed)
    assert_close(evaluate(mod, inputs), evaluate(Pipeline(steps)(mod), inputs), f"{steps} on random_cnn({seed})")
