"""Constant folding: what depends on constants only is computed now, by the operators' own meaning in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relay_hw.errors import EvalError
from relay_hw.ir.expr import Call, Constant, Expr, Function, If, Op, Tuple, TupleGetItem
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TupleType, Type
from relay_hw.ir.visit import Rewriter
from relay_hw.span import Span
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import constant, is_external, typed


class FoldConstant(FunctionPass):
    """Calls on constants become constants, items of tuples the items, conditionals on constants the branch taken.

    A call that would fail (an integer division by zero) stays, so that it fails where it is evaluated.
    """

    name = "fold-constant"

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function):
            return function
        new = _Folder().rewrite(function)
        assert isinstance(new, Function)
        return new


class _Folder(Rewriter):
    def rewrite_call(self, old: Call, new: Call) -> Expr:
        values = [_value(arg) for arg in new.args]
        if not isinstance(new.op, Op) or new.op.has_effect or any(value is None for value in values):
            return new
        return _fold(new.op, new.attrs, values, old.type, new.span) or new

    def rewrite_tuple_get_item(self, old: TupleGetItem, new: TupleGetItem) -> Expr:
        return new.tuple_value.fields[new.index] if isinstance(new.tuple_value, Tuple) else new

    def rewrite_if(self, old: If, new: If) -> Expr:
        if not isinstance(new.cond, Constant):
            return new
        return new.true_branch if bool(new.cond.data) else new.false_branch


def _fold(op: Op, attrs: Any, values: Sequence[Any], ty: Type, span: Span | None) -> Expr | None:
    try:
        result = op.meaning(attrs, values, ty)
    except EvalError:
        return None
    return _constant(result, ty, span)


def _constant(value: Any, ty: Type, span: Span | None) -> Expr:
    if isinstance(ty, TupleType):
        parts = [_constant(part, part_type, span) for part, part_type in zip(value, ty.fields, strict=True)]
        return typed(Tuple(parts, span=span), ty)
    return constant(np.asarray(value), span)


def _value(expr: Expr) -> Any:
    """The value of a constant or of a tuple of constants, else None."""
    if isinstance(expr, Constant):
        return expr.data
    if isinstance(expr, Tuple):
        parts = tuple(_value(part) for part in expr.fields)
        return None if any(part is None for part in parts) else parts
    return None
