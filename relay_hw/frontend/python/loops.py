"""Iterables of a `for`: ranges, tensors, lists, and `zip` of several.

In: values. Out: for each, the state of a loop, its test, its element, its next state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relay_hw.errors import UnsupportedError
from relay_hw.frontend.python.emit import Emitter, is_list, item_type
from relay_hw.frontend.python.values import Symbol, Value, constant
from relay_hw.ir.expr import Clause, Match, PatternConstructor, PatternWildcard
from relay_hw.ir.types import TensorType, scalar_type
from relay_hw.op import add, greater, less, logical_and, take

States = Sequence[Value]
BOOL = scalar_type("bool")


@dataclass(frozen=True, slots=True)
class Iteration:
    """`start` begins the loop; the others take the current states, in the block where they are needed."""

    start: tuple[Value, ...]
    test: Callable[[States], Value]
    element: Callable[[States], Symbol]
    step: Callable[[States], list[Value]]


def over_range(emitter: Emitter, begin: Value, end: Value, step: int) -> Iteration:
    """`range(begin, end, step)`."""
    if step == 0:
        raise UnsupportedError("step of range must not be 0")
    compare = less if step > 0 else greater

    def advance(states: States) -> list[Value]:
        return [emitter.graph(add(states[0].expr, constant(step).expr))]

    return Iteration(
        (begin,), lambda states: emitter.graph(compare(states[0].expr, end.expr)), lambda states: states[0], advance
    )


def over_tensor(emitter: Emitter, tensor: Value) -> Iteration:
    """The slices along the first axis."""
    assert isinstance(tensor.type, TensorType)
    if not tensor.type.rank or not isinstance(tensor.type.shape[0], int):
        raise UnsupportedError(f"tensor of a for must have a first axis of known size, not {tensor.type}")
    places = over_range(emitter, constant(0), constant(tensor.type.shape[0]), 1)

    def element(states: States) -> Symbol:
        return emitter.graph(take(tensor.expr, states[0].expr, axis=0))

    return Iteration(places.start, places.test, element, places.step)


def over_list(emitter: Emitter, items: Value) -> Iteration:
    """The elements of a list."""
    inner = item_type(items.type)
    cons, _ = emitter.constructors

    def test(states: States) -> Value:
        arms = [
            Clause(PatternConstructor(cons, (PatternWildcard(), PatternWildcard())), constant(True).expr),
            Clause(PatternWildcard(), constant(False).expr),
        ]
        return emitter.emit(Match(states[0].expr, arms), BOOL)

    def element(states: States) -> Symbol:
        return emitter.prelude("hd", (states[0],), inner, (inner,))

    def step(states: States) -> list[Value]:
        return [emitter.prelude("tl", (states[0],), items.type, (inner,))]

    return Iteration((items,), test, element, step)


def over_several(emitter: Emitter, parts: Sequence[Iteration]) -> Iteration:
    """`zip`: until the shortest ends."""
    ends: list[int] = []
    total = 0
    for part in parts:
        total += len(part.start)
        ends.append(total)

    def share(states: States, index: int) -> States:
        return states[ends[index] - len(parts[index].start) : ends[index]]

    def test(states: States) -> Value:
        result = parts[0].test(share(states, 0))
        for index in range(1, len(parts)):
            result = emitter.graph(logical_and(result.expr, parts[index].test(share(states, index)).expr))
        return result

    def element(states: States) -> Symbol:
        found = [emitter.value(part.element(share(states, index))) for index, part in enumerate(parts)]
        return emitter.tuple(found)

    def step(states: States) -> list[Value]:
        return [new for index, part in enumerate(parts) for new in part.step(share(states, index))]

    return Iteration(tuple(state for part in parts for state in part.start), test, element, step)


def over(emitter: Emitter, value: Value) -> Iteration:
    """A tensor or list. Raises UnsupportedError for other values."""
    if is_list(value.type):
        return over_list(emitter, value)
    if isinstance(value.type, TensorType):
        return over_tensor(emitter, value)
    raise UnsupportedError(f"for must go through a range, tensor, list or tuple, not {value.type}")
