"""Common subexpressions: equal calls on equal arguments become one node."""

from __future__ import annotations

from collections.abc import Hashable

from relay_hw.ir.expr import Call, Constant, Expr, Function, Op, Tuple, TupleGetItem
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import Rewriter
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import is_external


class EliminateCommonSubexpr(FunctionPass):
    """Shares equal constants, and calls of the same operator with equal attributes on the same arguments.

    Operators with an effect and calls of functions are left alone.
    """

    name = "eliminate-common-subexpr"

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function):
            return function
        new = _Sharer().rewrite(function)
        assert isinstance(new, Function)
        return new


class _Sharer(Rewriter):
    def __init__(self) -> None:
        super().__init__()
        self._known: dict[Hashable, Expr] = {}

    def rewrite_constant(self, old: Constant, new: Constant) -> Expr:
        data = new.data
        return self._known.setdefault(("constant", str(data.dtype), data.shape, data.tobytes()), new)

    def rewrite_call(self, old: Call, new: Call) -> Expr:
        if not isinstance(new.op, Op) or new.op.has_effect:
            return new
        return self._known.setdefault(("call", new.op.name, new.attrs, tuple(new.args)), new)

    def rewrite_tuple(self, old: Tuple, new: Tuple) -> Expr:
        return self._known.setdefault(("tuple", tuple(new.fields)), new)

    def rewrite_tuple_get_item(self, old: TupleGetItem, new: TupleGetItem) -> Expr:
        return self._known.setdefault(("item", new.tuple_value, new.index), new)
