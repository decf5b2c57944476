"""Folds constants during import. In: an expression without variables. Out: its value, within a budget."""

from __future__ import annotations

from typing import Any

from relay_hw.analysis.folding import work_of
from relay_hw.errors import InputError
from relay_hw.frontend.onnx.budget import Ledger
from relay_hw.frontend.onnx.typer import Typer
from relay_hw.ir.expr import Call, Constant, Expr, Op, Tuple, TupleGetItem
from relay_hw.ir.visit import post_order
from relay_hw.span import Span


def computed_constant(root: Expr, typer: Typer, ledger: Ledger) -> Any:
    """Evaluate `root`; `ledger` checks each call before it is computed. Raises InputError."""
    found: dict[Expr, Any] = {}
    for expr in post_order(root):
        match expr:
            case Op():
                continue
            case Constant(data=data):
                found[expr] = data
            case Tuple(fields=fields):
                found[expr] = tuple(found[field] for field in fields)
            case TupleGetItem(tuple_value=value, index=index):
                found[expr] = found[value][index]
            case Call(op=Op() as op, args=args, attrs=attrs):
                values, ty = [found[arg] for arg in args], typer(expr)
                ledger.compute(work_of(op, attrs, values, ty), expr.span or root.span or Span(op.name))
                found[expr] = op.reference(attrs, values, ty)
            case _:
                raise InputError(
                    f"a constant must be computed from constants, not from {type(expr).__name__}", expr.span
                )
    return found[root]
