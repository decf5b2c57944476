"""What a value stands for in reverse mode: a tensor beside its adjoint, fields of a tuple one by one, or itself.

In: symbols, and the bindings of a step. Out: whether adjoints are asked for, their values, and where they are added to.
"""

from __future__ import annotations

from dataclasses import dataclass

from relay_hw.ir.expr import Expr, Let, RefRead, Tuple, Var
from relay_hw.ir.types import Type
from relay_hw.op.gradients.accumulate import fields
from relay_hw.op.gradients.common import zeros


@dataclass(frozen=True, slots=True)
class Real:
    """A real tensor: its value, and the reference to its adjoint unless nothing asks for it.

    `whole` is the pair, where there is one already.
    """

    value: Expr
    adjoint: Expr | None = None
    whole: Expr | None = None


@dataclass(frozen=True, slots=True)
class Product:
    """A tuple whose fields are known one by one."""

    parts: tuple[Symbol, ...]
    whole: Expr | None = None


@dataclass(frozen=True, slots=True)
class Plain:
    """Anything else; `value` has the reverse-mode type already."""

    value: Expr


Symbol = Real | Product | Plain


class Bindings:
    """Bindings in order."""

    def __init__(self) -> None:
        self._bound: list[tuple[Var, Expr]] = []

    def emit(self, value: Expr, ty: Type | None = None, name: str = "x") -> Var:
        """A new variable for `value`."""
        var = Var(name, checked_type=ty)
        self._bound.append((var, value))
        return var

    def bind(self, var: Var, value: Expr) -> None:
        """`value` under a variable that there is already."""
        self._bound.append((var, value))

    def close(self, body: Expr) -> Expr:
        """`body` under all bindings."""
        for var, value in reversed(self._bound):
            body = Let(var, value, body)
        return body


def is_active(symbol: Symbol) -> bool:
    """Whether something asks for an adjoint of it, or of a part of it."""
    match symbol:
        case Real(adjoint=adjoint):
            return adjoint is not None
        case Product(parts=parts):
            return any(map(is_active, parts))
        case Plain():
            return False


def adjoint_of(symbol: Symbol, step: Bindings) -> Expr:
    """The adjoint of a result, read when the step runs; integers have zeros."""
    match symbol:
        case Real(value=value, adjoint=Expr() as adjoint):
            return step.emit(RefRead(adjoint), value.checked_type, "g")
        case Real(value=value) | Plain(value=value):
            return zeros(value)
        case Product(parts=parts):
            return Tuple([adjoint_of(part, step) for part in parts])


def add_targets(symbol: Symbol, slope: Expr, targets: list[tuple[Expr, Expr]]) -> None:
    """Pairs of an argument's reference and what is to be added there."""
    match symbol:
        case Real(adjoint=Expr() as adjoint):
            targets.append((adjoint, slope))
        case Product(parts=parts) if is_active(symbol):
            for part, piece in zip(parts, fields(slope, len(parts)), strict=True):
                add_targets(part, piece, targets)
        case _:
            pass
