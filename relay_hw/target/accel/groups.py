"""A group of operators that the accelerator runs as one layer, and the composite function that it becomes.

In: calls of a dataflow graph that match a pattern. Out: a typed function with `Primitive` and `Composite` attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from relay_hw.ir.expr import Call, Constant, Expr, Function, Tuple, Var
from relay_hw.ir.types import FuncType
from relay_hw.ir.visit import copy_with
from relay_hw.transform.graph import is_op, typed_tuple

# A sum or product of two tensors is a composite of its own unless the layer before it takes it in.
PAIRS: Final = ("fixed.add", "fixed.mul")
# Any function of one number, in the output stage.
TABLE: Final = "fixed.table"


@dataclass(frozen=True, slots=True)
class Group:
    """A match: `root` is its last call; `chain` its calls, first one first, the last one with its layer on the left.

    `inputs` are what the calls read from outside but constants, one for each place, in order. `joined`: an operand that
    joins two tensors inside the composite.
    """

    name: str
    root: Call
    chain: tuple[Call, ...]
    inputs: tuple[Expr, ...]
    joined: Call | None = None

    @property
    def members(self) -> frozenset[Call]:
        return frozenset((*self.chain[:-1], self.root, *([self.joined] if self.joined else [])))

    def function(self) -> Function:
        """The composite function, typed: parameters `x` and, for a residual add, `r`."""
        params: list[Var] = []
        previous: Call | None = None
        for call in self.chain:
            args = [self._local(arg, index, call, previous, params) for index, arg in enumerate(call.args)]
            previous = copy_with(call, args=tuple(args))
        assert previous is not None
        ty = FuncType(tuple(param.type for param in params), self.root.type)
        attrs = {"Primitive": 1, "Composite": self.name}
        return Function(params, previous, self.root.type, attrs=attrs, span=self.root.span, checked_type=ty)

    def _local(self, arg: Expr, index: int, call: Call, previous: Call | None, params: list[Var]) -> Expr:
        if isinstance(arg, Constant) and not is_operand(call):
            return arg
        if index == 0 and previous is not None:
            return previous
        if self.joined is not None and arg is self.joined:
            parts = (self._param(part, params) for part in parts_of(self.joined))
            return copy_with(self.joined, args=(typed_tuple(list(parts)),))
        return self._param(arg, params)

    @staticmethod
    def _param(arg: Expr, params: list[Var]) -> Var:
        params.append(Var("xrs"[len(params)], arg.checked_type, checked_type=arg.checked_type))
        return params[-1]


@dataclass(frozen=True, slots=True)
class TreeGroup:
    """A tree of calls that ends in `root`; `inputs` are what it reads, in the order of the parameters."""

    name: str
    root: Call
    members: frozenset[Call]
    inputs: tuple[Expr, ...]

    def function(self) -> Function:
        """The composite function, typed."""
        params = [Var(f"x{n}", arg.checked_type, checked_type=arg.checked_type) for n, arg in enumerate(self.inputs)]
        body = self._inside(self.root, dict(zip(self.inputs, params, strict=True)))
        ty = FuncType(tuple(param.type for param in params), self.root.type)
        attrs = {"Primitive": 1, "Composite": self.name}
        return Function(params, body, self.root.type, attrs=attrs, span=self.root.span, checked_type=ty)

    def _inside(self, expr: Expr, params: Mapping[Expr, Var]) -> Expr:
        match expr:
            case _ if expr in params:
                return params[expr]
            case Tuple(fields=fields):
                return copy_with(expr, fields=tuple(self._inside(field, params) for field in fields))
            case Call(args=args):
                return copy_with(expr, args=tuple(self._inside(arg, params) for arg in args))
            case _:
                return expr


def is_operand(call: Call) -> bool:
    """Whether the call reads constants as it reads activations: positions that are added, factors of a rotation."""
    return is_op(call, *PAIRS)


def parts_of(call: Call) -> Sequence[Expr]:
    """What a concatenation joins, where that is written out."""
    return call.args[0].fields if isinstance(call.args[0], Tuple) else ()
