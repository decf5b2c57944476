"""Breakpoints: operators, variables, functions and source lines at which a debugger stops.

In: what the user typed, the module. Out: `Breakpoint`. Raises InputError for a place that the program does not have.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from typing_extensions import assert_never

from relay_hw.cli.debugger.history import Event
from relay_hw.errors import InputError
from relay_hw.ir.expr import Call, Expr, Op, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import post_order
from relay_hw.support.quote import sentence


class PlaceKind(Enum):
    OPERATOR = "operator"
    VARIABLE = "variable"
    FUNCTION = "function"
    LINE = "line"
    NODE = "node"


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """Stops where `name` gets a value, is entered, or stands in the source."""

    number: int
    kind: PlaceKind
    name: str

    def __str__(self) -> str:
        return f"{self.number}: {self.kind.value} {self.name}"

    def holds(self, event: Event) -> bool:
        """Whether the program stops at this event."""
        node = event.node
        match self.kind:
            case PlaceKind.OPERATOR:
                return isinstance(node, Call) and isinstance(node.op, Op) and node.op.name == self.name
            case PlaceKind.VARIABLE:
                return isinstance(node, Var) and f"%{node.name_hint}" == self.name
            case PlaceKind.FUNCTION:
                return event.is_entry and event.place.function == self.name
            case PlaceKind.LINE:
                return node.span is not None and self.name in (
                    str(node.span.line),
                    f"{node.span.source}:{node.span.line}",
                )
            case PlaceKind.NODE:
                return node.span is not None and str(node.span) == self.name
            case _:
                assert_never(self.kind)


def breakpoint_at(text: str, number: int, mod: IRModule) -> Breakpoint:
    """The breakpoint that a user means: `nn.dense`, `%x`, `@f`, `12`, `FILE:12`, or a name in the source."""
    nodes = [node for function in mod.functions.values() for node in post_order(function)]
    for kind in PlaceKind:
        if text in _names(kind, mod, nodes):
            return Breakpoint(number, kind, text)
    places = "an operator, %variable, @function or source line"
    raise InputError(f"breakpoint must be {places} of the program, not {sentence(text) or 'nothing'}")


def _names(kind: PlaceKind, mod: IRModule, nodes: list[Expr]) -> set[str]:
    spans = [node.span for node in nodes if node.span is not None and isinstance(node, (Call, Var))]
    match kind:
        case PlaceKind.OPERATOR:
            return {node.op.name for node in nodes if isinstance(node, Call) and isinstance(node.op, Op)}
        case PlaceKind.VARIABLE:
            return {f"%{node.name_hint}" for node in nodes if isinstance(node, Var)}
        case PlaceKind.FUNCTION:
            return {f"@{name}" for name in mod.functions}
        case PlaceKind.LINE:
            lines = [span for span in spans if span.line]
            return {str(span.line) for span in lines} | {f"{span.source}:{span.line}" for span in lines}
        case PlaceKind.NODE:
            return {str(span) for span in spans}
        case _:
            assert_never(kind)
