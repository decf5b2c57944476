"""Evaluates a call of flat functions as strands: calls that do not need one another are under way together.

In: functions without effects, argument values. Out: requests, many at a time, and the result. What is computed is what
`reference.py` computes, each call once; a call begins when its arguments are there.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from relay_hw.backend.nodes import (
    FlatApply,
    FlatFunction,
    FlatIf,
    FlatInput,
    FlatInvoke,
    FlatMatch,
    FlatRefNew,
    FlatRefRead,
    FlatRefWrite,
    Value,
    nested,
    renumber,
    uses,
)
from relay_hw.backend.reference import Machine, Request, evaluate_node
from relay_hw.errors import EvalError
from relay_hw.interp.evaluate import MAX_CALL_DEPTH
from relay_hw.ir.expr import Trait

_RUNS = (FlatIf, FlatMatch, FlatInvoke, FlatApply)


def is_pure(functions: Sequence[FlatFunction]) -> bool:
    """Whether no call of these functions has an effect, so that the order of calls does not matter."""
    inner = [one for function in functions for one in nested(function)]
    if any(isinstance(node, (FlatRefNew, FlatRefRead, FlatRefWrite)) for one in inner for node in one.nodes):
        return False
    return not any(call.op.has(Trait.EFFECT) for function in functions for call in function.calls)


def calls_first(function: FlatFunction) -> FlatFunction:
    """The function with every call before what needs the result of a call, as far as arguments allow; of equal ones
    the order stays. A node in tail position keeps it.
    """
    depths: list[int] = []
    for node in function.nodes:
        before = [depths[used] + isinstance(function.nodes[used], _RUNS) for used in uses(node)]
        depths.append(0 if isinstance(node, FlatInput) else max(before, default=0))
    last = len(function.nodes) - 1
    is_tail = function.result == last
    order = sorted(range(last + 1), key=lambda k: (is_tail and k == last, depths[k], not _is_first(function, k), k))
    place = {old: new for new, old in enumerate(order)}
    nodes = tuple(renumber(function.nodes[old], place.__getitem__) for old in order)
    return replace(function, nodes=nodes, result=place[function.result])


def _is_first(function: FlatFunction, index: int) -> bool:
    return isinstance(function.nodes[index], FlatInput)


@dataclass(slots=True, eq=False)
class _Later:
    """The result of a call under way, and the strands that wait for it."""

    value: Value = None
    is_known: bool = False
    waiting: list[_Strand] = field(default_factory=list["_Strand"])


@dataclass(slots=True, eq=False)
class _Strand:
    """A call under way: its steps, its result, and how many calls it is inside of."""

    steps: Generator[Any, Value, Value]
    result: _Later
    depth: int


class StrandMachine(Machine):
    """A machine for strands: knows each function with its calls first."""

    def __init__(self, functions: Mapping[str, FlatFunction]) -> None:
        super().__init__(functions)
        self._ordered: dict[FlatFunction, FlatFunction] = {}

    def in_order(self, function: FlatFunction) -> FlatFunction:
        """The function with its calls first."""
        found = self._ordered.get(function)
        if found is None:
            found = self._ordered[function] = calls_first(function)
        return found


class Strands:
    """A call as strands. `most`: requests that are open at a time, before further calls begin."""

    def __init__(self, machine: StrandMachine, function: FlatFunction, args: Sequence[Value], most: int) -> None:
        self._machine, self._most = machine, most
        self._open: dict[Request, _Later] = {}
        self._result = _Later()
        # What can go on, each with the value that it waited for; the one that came last goes on first.
        self._ready: list[tuple[_Strand, Value]] = [(_Strand(self._steps(function, args), self._result, 1), None)]

    @property
    def value(self) -> Value:
        """The result, once no request is open."""
        return self._result.value

    def advance(self, request: Request | None = None, answer: Value = None) -> list[Request]:
        """Continue, with the value of a request; returns new requests. Raises EvalError."""
        if request is not None:
            self._settle(self._open.pop(request), answer)
        found: list[Request] = []
        while self._ready and len(self._open) < self._most:
            strand, value = self._ready.pop()
            try:
                wanted = strand.steps.send(value)
            except StopIteration as stop:
                self._settle(strand.result, stop.value)
                continue
            later = _Later()
            if isinstance(wanted, _Later):
                wanted.waiting.append(strand)
                continue
            if isinstance(wanted, Request):
                self._open[wanted] = later
                found.append(wanted)
                self._ready.append((strand, later))
                continue
            if strand.depth > MAX_CALL_DEPTH:
                raise EvalError(f"calls must be nested at most {MAX_CALL_DEPTH} deep")
            self._ready += [(strand, later), (_Strand(self._steps(*wanted), later, strand.depth + 1), None)]
        return found

    def _settle(self, later: _Later, value: Value) -> None:
        later.value, later.is_known = value, True
        self._ready += [(strand, value) for strand in later.waiting]
        later.waiting.clear()

    def _steps(self, function: FlatFunction, args: Sequence[Value]) -> Generator[Any, Value, Value]:
        """The steps of a call: they yield calls, which answer with their results to come, and results to wait for."""
        while True:
            function = self._machine.in_order(function)
            values: list[Value] = list(args)
            last = len(function.nodes) - 1
            dead = self._machine.dead_after(function)
            tail: tuple[FlatFunction, Sequence[Value]] | None = None
            for index in range(len(values), last + 1):
                node = function.nodes[index]
                for used in uses(node):
                    if isinstance(values[used], _Later):
                        values[used] = (yield values[used]) if not values[used].is_known else values[used].value
                target = self._machine.target(node, values) if isinstance(node, _RUNS) else None
                if target is None:
                    values.append(evaluate_node(node, values))
                elif index == last == function.result and not isinstance(target, Request):
                    tail = target
                else:
                    values.append((yield target))
                for old in dead[index]:
                    values[old] = None
            if tail is None:
                result = values[function.result]
                if isinstance(result, _Later):
                    result = result.value if result.is_known else (yield result)
                return result
            function, args = tail
