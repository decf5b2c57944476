"""Python operators on expressions: `x + y`, `f(x)`, `t[0]` build nodes, as Relay users write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from relay_hw.ir.late import late

if TYPE_CHECKING:
    from relay_hw.ir.expr import Call, Expr, TupleGetItem


class Sugar:
    """Mixin of `Expr`. Comparison operators are left alone: nodes compare by identity."""

    __slots__ = ()

    def __add__(self, other: object) -> Call:
        return _call("add", self, other)

    def __radd__(self, other: object) -> Call:
        return _call("add", other, self)

    def __sub__(self, other: object) -> Call:
        return _call("subtract", self, other)

    def __rsub__(self, other: object) -> Call:
        return _call("subtract", other, self)

    def __mul__(self, other: object) -> Call:
        return _call("multiply", self, other)

    def __rmul__(self, other: object) -> Call:
        return _call("multiply", other, self)

    def __truediv__(self, other: object) -> Call:
        return _call("divide", self, other)

    def __rtruediv__(self, other: object) -> Call:
        return _call("divide", other, self)

    def __neg__(self) -> Call:
        return _call("negative", self)

    def __call__(self, *args: Expr) -> Call:
        from relay_hw.ir.expr import Call

        return Call(cast("Expr", self), args)

    def __getitem__(self, index: int) -> TupleGetItem:
        from relay_hw.ir.expr import TupleGetItem

        return TupleGetItem(cast("Expr", self), index)

    # Without it Python would iterate by __getitem__ and never end.
    __iter__ = None

    def astype(self, dtype: str) -> Call:
        """The tensor with its elements cast to `dtype`."""
        return late("relay_hw.op").cast(self, dtype)


def _call(name: str, *operands: object) -> Call:
    from relay_hw.ir.expr import Expr

    operators = late("relay_hw.op")
    return getattr(operators, name)(*(x if isinstance(x, Expr) else operators.const(x) for x in operands))
