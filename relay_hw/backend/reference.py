"""Evaluates flat functions on numpy. In: functions and argument values. Out: the result, or requests on the way.

Calls nest as deep as memory allows; a call in tail position takes the place of its caller. Values are dropped after
their last use.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.backend.buffers import BufferPlan, Memory, plan_buffers
from relay_hw.backend.nodes import (
    FlatAny,
    FlatApply,
    FlatCall,
    FlatClosure,
    FlatConstant,
    FlatConstruct,
    FlatFunction,
    FlatGet,
    FlatGlobal,
    FlatIf,
    FlatInput,
    FlatInvoke,
    FlatMatch,
    FlatNode,
    FlatPattern,
    FlatRefNew,
    FlatRefRead,
    FlatRefWrite,
    FlatTuple,
    Value,
    uses,
)
from relay_hw.errors import EvalError
from relay_hw.interp.evaluate import MAX_CALL_DEPTH, operate
from relay_hw.interp.values import ConstructorValue, RefValue, show

Invoke = Callable[[str, list[Value]], Value]


@dataclass(frozen=True, slots=True, eq=False)
class FlatFunctionValue:
    """A function as a value. Called, it runs `function` for what it holds, itself where it is recursive, and the
    arguments; `held` without `function`: the module's function of that name."""

    function: FlatFunction | None
    held: tuple[Value, ...] = ()
    is_recursive: bool = False
    name: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A call of a function outside of the machine, whose value the caller of the steps provides."""

    function: str
    args: list[Value]


class Machine:
    """Runs flat functions. Calls of names that `functions` does not hold are requests, which `invoke` answers.

    Tensors between `segments` are kept in planned memory. `most_calls`: of functions, branches and
    arms that one call may make; more is taken for an endless loop.
    """

    def __init__(
        self, functions: Mapping[str, FlatFunction], segments: Container[str] = (), most_calls: int | None = None
    ) -> None:
        self._functions = functions
        self._segments = segments
        self._most_calls = most_calls
        self._calls = 0
        self._dead: dict[FlatFunction, list[tuple[int, ...]]] = {}
        self._plans: dict[FlatFunction, BufferPlan] = {}
        self._free: dict[FlatFunction, list[Memory]] = {}

    def call(self, function: FlatFunction, args: Sequence[Value], invoke: Invoke | None = None) -> Value:
        """The value of `function`. Raises EvalError."""
        self._calls = 0
        return self._run(Thread(self, function, args), invoke)

    def apply(self, callee: Value, args: Sequence[Value], invoke: Invoke | None = None) -> Value:
        """The value of a function value for `args`. Raises EvalError."""
        target = self._applied(callee, list(args))
        if not isinstance(target, Request):
            return self.call(*target, invoke)
        if invoke is None:
            raise EvalError(f"@{target.function} must be a function of the module")
        return invoke(target.function, target.args)

    @staticmethod
    def _run(thread: Thread, invoke: Invoke | None) -> Value:
        answer: Value = None
        while True:
            request = thread.advance(answer)
            if request is None:
                return thread.value
            if invoke is None:
                raise EvalError(f"@{request.function} must be a function of the module")
            answer = invoke(request.function, request.args)

    def steps(self, function: FlatFunction, args: Sequence[Value]) -> Generator[Any, Value, Value]:
        """The steps of a call: they yield inner calls, as steps, and requests."""
        while True:
            if self._most_calls is not None:
                self._count(self._most_calls)
            values: list[Value] = list(args)
            dead = self.dead_after(function)
            memory: Memory | None = None
            last = len(function.nodes) - 1
            tail: tuple[FlatFunction, Sequence[Value]] | None = None
            for index in range(len(values), last + 1):
                node = function.nodes[index]
                target = None if isinstance(node, SIMPLE) else self.target(node, values)
                if target is None:
                    values.append(evaluate_node(node, values))
                elif isinstance(target, Request):
                    answer = yield target
                    if index in self._plan(function).places:
                        memory = memory or self._take(function)
                    values.append(answer if memory is None else memory.keep(index, answer))
                elif index == last == function.result:
                    tail = target
                else:
                    values.append((yield self.steps(*target)))
                for old in dead[index]:
                    values[old] = None
            if memory is not None:
                self._free.setdefault(function, []).append(memory)
            if tail is None:
                return values[function.result]
            function, args = tail

    def _count(self, most: int) -> None:
        self._calls += 1
        if self._calls > most:
            raise EvalError(f"a sample must take at most {most:,} calls, not more")

    def _plan(self, function: FlatFunction) -> BufferPlan:
        found = self._plans.get(function)
        if found is None:
            found = self._plans[function] = plan_buffers(function, self._segments)
        return found

    def _take(self, function: FlatFunction) -> Memory:
        """Memory for one run of a function: reused from an earlier run, or new."""
        free = self._free.get(function)
        return free.pop() if free else Memory(function, self._plan(function))

    def target(self, node: FlatNode, values: Sequence[Value]) -> tuple[FlatFunction, Sequence[Value]] | Request | None:
        """What a node runs, and for which values; None for a node that runs nothing."""
        match node:
            case FlatIf():
                branch = node.then if values[node.cond] else node.otherwise
                return branch, [values[i] for i in node.captured]
            case FlatMatch():
                return _arm(node, values)
            case FlatInvoke():
                return self._named(node.function, [values[i] for i in node.args])
            case FlatApply():
                return self._applied(values[node.callee], [values[i] for i in node.args])
            case _:
                return None

    def _named(self, name: str, args: list[Value]) -> tuple[FlatFunction, Sequence[Value]] | Request:
        own = self._functions.get(name)
        return Request(name, args) if own is None else (own, args)

    def _applied(self, callee: Value, args: list[Value]) -> tuple[FlatFunction, Sequence[Value]] | Request:
        if not isinstance(callee, FlatFunctionValue):
            raise EvalError(f"called value must be a function, not {show(callee)}")
        if callee.function is None:
            return self._named(callee.name, args)
        own = (callee,) if callee.is_recursive else ()
        return callee.function, [*callee.held, *own, *args]

    def dead_after(self, function: FlatFunction) -> list[tuple[int, ...]]:
        found = self._dead.get(function)
        if found is None:
            found = self._dead[function] = last_uses(function)
        return found


class Thread:
    """A suspended call: stops at each request, and continues with its value."""

    def __init__(self, machine: Machine, function: FlatFunction, args: Sequence[Value]) -> None:
        self.value: Value = None
        self._stack: list[Generator[Any, Value, Value]] = [machine.steps(function, args)]

    def advance(self, answer: Value = None) -> Request | None:
        """Continue with the value of the last request; returns the next one, or None when done. Raises EvalError."""
        stack, value = self._stack, answer
        while stack:
            try:
                found = stack[-1].send(value)
            except StopIteration as stop:
                stack.pop()
                value = stop.value
                continue
            if isinstance(found, Request):
                return found
            if len(stack) > MAX_CALL_DEPTH:
                raise EvalError(f"calls must be nested at most {MAX_CALL_DEPTH} deep")
            stack.append(found)
            value = None
        self.value = value
        return None


def _arm(node: FlatMatch, values: Sequence[Value]) -> tuple[FlatFunction, Sequence[Value]]:
    data = values[node.data]
    for arm in node.arms:
        bound: list[Value] = []
        if _fits(arm.pattern, data, bound):
            return arm.body, [*(values[i] for i in node.captured), *bound]
    raise EvalError(f"match must have an arm for {show(data)}")


def _fits(pattern: FlatPattern, data: Value, bound: list[Value]) -> bool:
    """Whether the pattern matches; collects what it binds, left to right."""
    stack: list[tuple[FlatPattern, Value]] = [(pattern, data)]
    while stack:
        part, value = stack.pop()
        if isinstance(part, FlatAny):
            if part.binds:
                bound.append(value)
            continue
        if part.constructor is not None and value.constructor.name_hint != part.constructor:
            return False
        fields = value if part.constructor is None else value.fields
        stack.extend(reversed(list(zip(part.patterns, fields, strict=True))))
    return True


SIMPLE = (FlatCall, FlatTuple, FlatGet, FlatConstant)


def evaluate_node(node: FlatNode, values: Sequence[Value]) -> Value:
    """Value of a node that runs no other function, from the values of the nodes before it. Raises EvalError."""
    match node:
        case FlatConstant():
            return node.data
        case FlatCall():
            return operate(node.op, node.attrs, [values[i] for i in node.args], node.type)
        case FlatTuple():
            return tuple(values[i] for i in node.fields)
        case FlatGet():
            return values[node.source][node.index]
        case FlatGlobal():
            return FlatFunctionValue(None, name=node.function)
        case FlatClosure():
            held = tuple(values[i] for i in node.captured)
            return FlatFunctionValue(node.function, held, node.is_recursive, node.function.name)
        case FlatConstruct():
            return ConstructorValue(node.constructor, tuple(values[i] for i in node.fields))
        case FlatRefNew():
            return RefValue(values[node.value])
        case FlatRefRead():
            return values[node.ref].value
        case FlatRefWrite():
            values[node.ref].value = values[node.value]
            return ()
        case FlatInput() | FlatInvoke() | FlatApply() | FlatIf() | FlatMatch():
            raise ValueError(f"a {type(node).__name__} has no value of its own")


def evaluate(
    function: FlatFunction, args: Sequence[Value], functions: Mapping[str, FlatFunction] | None = None
) -> Value:
    """Evaluate by the operators' reference semantics, one value per parameter. `functions`: callable by name.

    Raises EvalError.
    """
    return Machine(functions or {}).call(function, args)


def last_uses(function: FlatFunction) -> list[tuple[int, ...]]:
    """By node: the nodes whose last use it is; never the result."""
    last: dict[int, int] = {}
    for index, node in enumerate(function.nodes):
        last.setdefault(index, index)
        for used in uses(node):
            last[used] = index
    last.pop(function.result, None)
    count = len(function.params)
    dead: list[list[int]] = [[] for _ in function.nodes]
    for used, index in last.items():
        if index >= count:
            dead[index].append(used)
    return [tuple(items) for items in dead]


def used_operators(function: FlatFunction) -> Mapping[str, int]:
    """Operator names and how often each is called, in order of first use; branches and closures included."""
    counts: dict[str, int] = {}
    for call in function.calls:
        counts[call.op.name] = counts.get(call.op.name, 0) + 1
    return counts


def as_array(value: Value) -> NDArray[Any]:
    """A tensor value as a contiguous array; numpy scalars become rank 0."""
    return np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
