"""Measure the passes: seconds of each on a program of 10,000 operators, on one core.

In: nothing. Out: a table. `make bench` adds the numbers to docs/results/performance.json.
"""

from __future__ import annotations

import time

import numpy as np
from bench_rows import Row

import relay_hw as relay
from relay_hw import transform
from relay_hw.analysis import infer_type
from relay_hw.dataflow_pattern import is_op, wildcard
from relay_hw.ir.expr import Expr
from relay_hw.ir.module import IRModule
from relay_hw.report import table
from relay_hw.transform import Pass, Pipeline

OPERATORS = 10_000
SUPPORTED = {"dsp": {"nn.conv2d": True, "nn.relu": True, "add": True}}
LAYER = is_op("add")(is_op("nn.relu")(is_op("nn.conv2d")(wildcard(), wildcard())), wildcard())


def steps() -> dict[str, Pass]:
    """The passes by name; those that annotate and partition stand together."""
    regions = [
        transform.AnnotateTarget("dsp", supported=SUPPORTED),
        transform.MergeCompilerRegions(),
        transform.PartitionGraph(),
    ]
    return {
        "InferType": transform.InferType(),
        "FoldConstant": transform.FoldConstant(),
        "SimplifyInference": transform.SimplifyInference(),
        "SimplifyExpr": transform.SimplifyExpr(),
        "FoldScaleAxis": transform.FoldScaleAxis(),
        "CanonicalizeOps": transform.CanonicalizeOps(),
        "EliminateCommonSubexpr": transform.EliminateCommonSubexpr(),
        "DeadCodeElimination": transform.DeadCodeElimination(),
        "ToANormalForm": transform.ToANormalForm(),
        "ToANormalForm, ToGraphNormalForm": Pipeline([transform.ToANormalForm(), transform.ToGraphNormalForm()]),
        "ToBasicBlockNormalForm": transform.ToBasicBlockNormalForm(),
        "FuseOps": transform.FuseOps(3),
        "FuseOps, DefuseOps": Pipeline([transform.FuseOps(3), transform.DefuseOps()]),
        "ConvertLayout": transform.ConvertLayout({"nn.conv2d": ["NHWC"]}),
        "MergeComposite": transform.MergeComposite([("dsp.layer", LAYER)]),
        "AnnotateTarget, MergeCompilerRegions, PartitionGraph": Pipeline(regions),
    }


def program(operators: int = OPERATORS) -> IRModule:
    """conv2d, relu, add, repeated; typed."""
    x = relay.var("x", shape=(1, 8, 8, 8))
    weight, bias = relay.const(np.ones((8, 8, 3, 3), "float32")), relay.const(np.ones((1, 8, 1, 1), "float32"))
    body: Expr = x
    for _ in range(operators // 3):
        body = relay.add(relay.nn.relu(relay.nn.conv2d(body, weight, padding=1, channels=8, kernel_size=3)), bias)
    return infer_type(IRModule.from_expr(relay.Function([x], body)))


def measure() -> dict[str, float]:
    """Seconds of processor time by pass."""
    mod = program()
    found: dict[str, float] = {}
    for name, step in steps().items():
        start = time.process_time()
        step(mod)
        found[name] = time.process_time() - start
    return found


def rows(found: dict[str, float]) -> list[Row]:
    """The slowest pass, and all of them together."""
    return [
        Row("10,000 operators: the slowest pass", max(found.values()), "s", 5),
        Row("10,000 operators: all passes, one after the other", sum(found.values()), "s", 20),
    ]


if __name__ == "__main__":
    print(table(("pass", "seconds"), [(name, f"{seconds:.2f}") for name, seconds in measure().items()]))
