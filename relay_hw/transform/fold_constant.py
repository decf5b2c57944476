"""Constant folding: computes what depends on constants only, by the operators' reference semantics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relay_hw.analysis.folding import work_of
from relay_hw.errors import EvalError
from relay_hw.ir.expr import Call, Constant, Expr, Function, If, Let, Op, Trait, Tuple, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TupleType, Type
from relay_hw.ir.visit import Rewriter, post_order
from relay_hw.span import Span
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import constant, is_external, typed


class FoldConstant(FunctionPass):
    """Calls on constants become constants, items of tuples the items, conditionals on constants the branch taken,
    variables bound to constants, or to tuples of them, their values.

    Operators of the QNN dialect fold only with `fold_qnn`. A call that would fail (an integer division by zero)
    stays, so that it fails where it is evaluated, and so does one that would take more than the usual limits.
    """

    name = "fold-constant"
    opt_level = 2
    pins_effects = True

    def __init__(self, fold_qnn: bool = False) -> None:
        self.fold_qnn = fold_qnn

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function):
            return function
        new = _Folder(function, self.fold_qnn).rewrite(function)
        assert isinstance(new, Function)
        return new


class _Folder(Rewriter):
    def __init__(self, root: Function, fold_qnn: bool) -> None:
        super().__init__()
        self._fold_qnn = fold_qnn
        self._bound: dict[Expr, list[Var]] = {}
        for node in post_order(root):
            if isinstance(node, Let):
                self._bound.setdefault(node.value, []).append(node.var)

    def _rewrite_node(self, node: Expr) -> Expr:
        if isinstance(node, Let) and not isinstance(self._memo[node.var], Var):
            return self._memo[node.body]
        new = super()._rewrite_node(node)
        # The uses of a variable come after its value.
        if node in self._bound and _value(new) is not None:
            self._memo.update(dict.fromkeys(self._bound[node], new))
        return new

    def rewrite_call(self, old: Call, new: Call) -> Expr:
        if not isinstance(new.op, Op) or not self._may_fold(new.op):
            return new
        values = [_value(arg) for arg in new.args]
        if any(value is None for value in values):
            return new
        return _fold(new.op, new.attrs, values, old.type, new.span) or new

    def _may_fold(self, op: Op) -> bool:
        return not op.has(Trait.EFFECT) and (self._fold_qnn or not op.name.startswith("qnn."))

    def rewrite_tuple_get_item(self, old: TupleGetItem, new: TupleGetItem) -> Expr:
        return new.tuple_value.fields[new.index] if isinstance(new.tuple_value, Tuple) else new

    def rewrite_if(self, old: If, new: If) -> Expr:
        if not isinstance(new.cond, Constant):
            return new
        return new.true_branch if bool(new.cond.data) else new.false_branch


def _fold(op: Op, attrs: Any, values: Sequence[Any], ty: Type, span: Span | None) -> Expr | None:
    if not work_of(op, attrs, values, ty).is_small:
        return None
    try:
        with np.errstate(all="ignore"):
            result = op.reference(attrs, values, ty)
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
