"""The history of an evaluation: every value that was bound or computed, in order, recorded as far as it is looked at.

In: a module, the name of a function, arguments. Out: events, with a cursor that moves both ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from relay_hw.errors import EvalError
from relay_hw.interp.evaluate import Interpreter, arguments
from relay_hw.interp.values import Closure, ConstructorValue, RefValue, Value
from relay_hw.ir.expr import Call, Expr, RefWrite, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.trampoline import Recursion
from relay_hw.span import Span


@dataclass(frozen=True, slots=True, eq=False)
class Activation:
    """A call that runs: of `function`, from `span`, inside of `caller`. `number` counts the calls."""

    function: str
    span: Span | None
    caller: Activation | None
    number: int
    depth: int


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """`node`, a variable, a call or a write, got `value` in a call, as its first event if `is_entry`."""

    node: Expr
    value: Value
    place: Activation
    is_entry: bool


class Recorder(Interpreter):
    """An interpreter that can be asked for one event after the other."""

    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod, self._record)
        self.result: Value = None
        self._place = Activation("", None, None, 0, 0)
        self._calls = 0
        self._entered = 0
        self._pending: list[Event] = []
        self._names = {function: f"@{name}" for name, function in self.mod.functions.items()}

    def events(self, entry: str, args: Sequence[Any] | Mapping[str, Any]) -> Iterator[Event]:
        """The events of a call of `@entry`, which runs as they are asked for. Raises InputError and EvalError."""
        values = arguments(self.mod.functions[entry], args, entry)
        stack: list[Recursion[Value]] = [self._apply(self._global(entry), values, None)]
        value: Value = None
        while stack:
            try:
                child = stack[-1].send(value)
            except StopIteration as stop:
                stack.pop()
                value = stop.value
            else:
                stack.append(child)
                value = None
            while self._pending:
                yield self._pending.pop(0)
        self.result = value

    def _apply(self, callee: Value, args: list[Value], call: Call | None) -> Recursion[Value]:
        if not isinstance(callee, Closure):
            return (yield super()._apply(callee, args, call))
        outer = self._place
        self._calls += 1
        span = None if call is None else call.span
        self._place = Activation(self._name(callee, call), span, outer, self._calls, outer.depth + 1)
        value = yield super()._apply(callee, args, call)
        self._place = outer
        return value

    def _name(self, callee: Closure, call: Call | None) -> str:
        own = f"%{call.op.name_hint}" if call is not None and isinstance(call.op, Var) else "fn"
        return self._names.get(callee.function, own)

    def _record(self, node: Expr, value: Value) -> None:
        is_entry = self._place.number > self._entered
        self._entered = max(self._entered, self._place.number)
        self._pending.append(Event(node, value, self._place, is_entry))


@dataclass(slots=True)
class History:
    """Events up to the farthest one that was looked at; the cursor is on one of them, before the first or behind the
    last."""

    recorder: Recorder
    source: Iterator[Event]
    events: list[Event] = field(default_factory=list[Event])
    cursor: int = -1
    is_whole: bool = False
    failure: EvalError | None = None
    # For each reference, what it held from which event on.
    _contents: dict[RefValue, list[tuple[int, Value]]] = field(default_factory=dict[RefValue, list[tuple[int, Value]]])

    @property
    def here(self) -> Event | None:
        """The event at the cursor."""
        return self.events[self.cursor] if 0 <= self.cursor < len(self.events) else None

    def forward(self) -> bool:
        """Move to the next event, evaluating if necessary; False at the end of the program."""
        is_left = self.cursor + 1 < len(self.events) or self._grow()
        self.cursor = min(self.cursor + 1, len(self.events))
        return is_left

    def backward(self) -> bool:
        """Move to the event before; False at the first one."""
        if self.cursor <= 0:
            return False
        self.cursor -= 1
        return True

    def _grow(self) -> bool:
        if self.is_whole:
            return False
        try:
            event = next(self.source)
        except StopIteration:
            self.is_whole = True
            return False
        except EvalError as error:
            self.is_whole, self.failure = True, error
            return False
        self._keep(event.value, isinstance(event.node, RefWrite))
        self.events.append(event)
        return True

    def _keep(self, value: Value, is_write: bool) -> None:
        """What references in `value` hold: values change, the history does not."""
        waiting = [value]
        while waiting:
            top = waiting.pop()
            if isinstance(top, RefValue) and (top not in self._contents or (is_write and top is value)):
                self._contents.setdefault(top, []).append((len(self.events), top.value))
                waiting.append(top.value)
            elif isinstance(top, ConstructorValue):
                waiting += top.fields
            elif isinstance(top, tuple):
                waiting += top

    def then(self, value: Value) -> Value:
        """`value` as it was at the cursor."""
        match value:
            case RefValue():
                found = [content for index, content in self._contents.get(value, ()) if index <= self.cursor]
                return RefValue(self.then(found[-1])) if found else value
            case tuple():
                return tuple(map(self.then, value))
            case ConstructorValue(constructor=constructor, fields=fields):
                return ConstructorValue(constructor, tuple(map(self.then, fields)))
            case _:
                return value

    def variables(self) -> dict[str, Event]:
        """The latest value of each variable: of the running call, then of its callers, then of any other."""
        here = self.here
        order: list[Activation | None] = []
        place = here.place if here is not None else None
        while place is not None:
            order.append(place)
            place = place.caller
        ranks = {one: rank for rank, one in enumerate(order)}
        found: dict[str, tuple[int, Event]] = {}
        for event in reversed(self.events[: self.cursor + 1]):
            if isinstance(event.node, Var):
                rank = ranks.get(event.place, len(ranks))
                known = found.get(event.node.name_hint)
                if known is None or rank < known[0]:
                    found[event.node.name_hint] = (rank, event)
        return {name: event for name, (_, event) in found.items()}
