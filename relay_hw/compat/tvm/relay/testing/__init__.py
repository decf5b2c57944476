"""Models and helpers of TVM's `relay.testing`."""

from __future__ import annotations

from typing import Any

from relay_hw.compat.tvm.module import as_module
from relay_hw.compat.tvm.relay.testing import layers, mlp, resnet
from relay_hw.compat.tvm.relay.testing.init import Xavier, create_workload
from relay_hw.ir.expr import Expr, Function
from relay_hw.transform import InferType, Pass

__all__ = ["Xavier", "create_workload", "layers", "mlp", "resnet", "run_infer_type", "run_opt_pass"]


def run_infer_type(expr: Expr) -> Expr:
    """`expr`, typed."""
    return run_opt_pass(expr, InferType())


def run_opt_pass(expr: Expr, opt_pass: Pass | Any) -> Expr:
    """`expr` after a pass; of a function the function, else the expression."""
    main = opt_pass(as_module(_function(expr)))["main"]
    return main if isinstance(expr, Function) else main.body


def _function(expr: Expr) -> Function:
    from relay_hw.analysis import free_vars

    return expr if isinstance(expr, Function) else Function(free_vars(expr), expr)
