"""Converts loops of ONNX graphs to tail-recursive functions, and the rows that they collect to tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw import op
from relay_hw.frontend.onnx.node import Arguments, Array, stamp
from relay_hw.frontend.onnx.typer import join
from relay_hw.ir.expr import Call, Constant, Expr, Function, GlobalVar, If, Tuple, TupleGetItem, Var
from relay_hw.ir.types import ANY, Dim, TensorType, TupleType, Type
from relay_hw.op import const


@dataclass(frozen=True, slots=True)
class Loop:
    """`while test: carried = step`, then `result`; `fixed` variables are loop-invariant."""

    hint: str
    carried: Mapping[Var, Expr]
    fixed: Mapping[Var, Expr]
    test: Expr
    step: Sequence[Expr]
    result: Sequence[Expr]


def variable(args: Arguments, name: str, ty: Type) -> Var:
    """A new variable of the loop."""
    return Var(args.scope.fresh(name), ty, span=args.node.span)


def run(args: Arguments, loop: Loop) -> list[Expr]:
    """Define the function of the loop and call it: the results."""
    name = args.scope.fresh(loop.hint)
    test, *step = stamp([loop.test, *loop.step], args.node.span)
    again = Call(GlobalVar(name), [*step, *loop.fixed], span=args.node.span)
    last = Tuple(loop.result, span=args.node.span)
    body = If(test, again, last, span=args.node.span)
    returned = TupleType([args.any_type(value) for value in loop.result])
    function = Function([*loop.carried, *loop.fixed], body, returned, span=args.node.span)
    call = Call(args.scope.define(name, function), [*loop.carried.values(), *loop.fixed.values()])
    return [TupleGetItem(call, index) for index in range(len(loop.result))]


def fix(args: Arguments, value: Expr, name: str, fixed: dict[Var, Expr]) -> Expr:
    """`value` inside the loop: a constant stays, anything else becomes a variable of `fixed`."""
    if isinstance(value, Constant):
        return value
    var = variable(args, name, args.any_type(value))
    fixed[var] = value
    return var


def row(data: Expr, index: Expr, axis: int = 0) -> Expr:
    """`data` at one index of an axis, without that axis."""
    return op.take(data, index, axis)


def number(value: int, dtype: str = "int64") -> Constant:
    """A scalar."""
    return const(np.array(value, dtype))


def widened(args: Arguments, old: Sequence[Type], values: Sequence[Expr]) -> list[Type]:
    """Types that include those of `old` and of another step. Raises TypeCheckError if there are none."""
    return [join(ty, args.any_type(value)) for ty, value in zip(old, values, strict=True)]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows [*shape] that a loop makes, one per step, as a tensor [count, *shape], or [?, *shape] if count is dynamic.

    Where it is known the tensor has its final size from the start, and each step pushes a row in at one end.
    """

    row: TensorType
    count: int | None
    at_front: bool = False

    @property
    def type(self) -> TensorType:
        lead: Dim = ANY if self.count is None else self.count
        return TensorType((lead, *self.row.shape), self.row.dtype)

    def start(self) -> Expr:
        """The initial value. The row's shape must be known."""
        empty: Array = np.zeros((self.count or 0, *self.row.static_shape), self.row.dtype)
        return const(empty)

    def finish(self, rows: Expr) -> Expr:
        """The tensor after the loop."""
        return rows

    def push(self, rows: Expr, value: Expr) -> Expr:
        """`rows` with one row appended."""
        new = op.expand_dims(value, 0)
        if self.count in (0, 1):  # a loop of no iterations pushes nothing
            return new if self.count else rows
        kept = rows
        if self.count is not None:
            begin = 0 if self.at_front else 1
            kept = op.strided_slice(rows, (begin,), (begin + self.count - 1,), (1,), axes=(0,))
        return op.concatenate([new, kept] if self.at_front else [kept, new], 0)
