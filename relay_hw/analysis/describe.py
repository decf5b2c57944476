"""Describes nodes in messages."""

from __future__ import annotations

from relay_hw.ir.expr import Call, Constructor, Expr, Function, GlobalVar, Op, TupleGetItem, Var


def describe(node: Expr) -> str:
    """A description of `node` for messages."""
    match node:
        case Op(name=name):
            return name
        case GlobalVar(name_hint=name):
            return f"@{name}"
        case Var(name_hint=name):
            return f"%{name}"
        case Constructor(name_hint=name):
            return name
        case Call(op=op):
            return describe(op) if isinstance(op, (Op, GlobalVar, Var, Constructor)) else "the called function"
        case TupleGetItem(index=index):
            return f"projection .{index}"
        case Function():
            return "function"
        case _:
            return type(node).__name__.lower()
