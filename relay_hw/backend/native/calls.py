"""Finds what calls what: which calls in tail position would never end, and which functions may nest deep.

In: a lowered program. Out: the same with tail calls that need no care as plain calls; `Calls`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from relay_hw.backend.native.nodes import (
    Apply,
    Arm,
    Block,
    Box,
    Branch,
    Invoke,
    Kind,
    Local,
    Make,
    Match,
    NativeFunction,
    Return,
    Statement,
    TailApply,
    TailInvoke,
    Unbox,
    statements,
)


@dataclass(frozen=True, slots=True)
class Calls:
    """`values`: functions that are values; `postponed`: those that end in a call which their caller makes for them, so
    that they return an object; `deep`: those that call themselves, perhaps by others, other than at the end."""

    values: frozenset[int]
    postponed: frozenset[int]
    deep: frozenset[int]


def settle_calls(functions: Sequence[NativeFunction]) -> tuple[tuple[NativeFunction, ...], Calls]:
    """The functions, with tail calls only where a cycle of calls goes through them."""
    all_statements = [list(statements(function.body)) for function in functions]
    values = frozenset(
        one.tag for found in all_statements for one in found if isinstance(one, Make) and one.kind is Kind.FUNCTION
    )
    direct = [_called(found, values) for found in all_statements]
    reach = [_reached(number, direct) for number in range(len(functions))]
    forms = [function.result for function in functions]
    settled = tuple(_settled(function, reach, values, forms) for function in functions)
    ends = [list(statements(function.body)) for function in settled]
    postponed = frozenset(
        number for number, found in enumerate(ends) if any(isinstance(one, (TailInvoke, TailApply)) for one in found)
    )
    deep = frozenset(
        number
        for number, found in enumerate(ends)
        if any(number in reach[callee] for one in found for callee in _nested(one, values))
    )
    return settled, Calls(values, postponed, deep)


def _called(found: Iterable[Statement], values: frozenset[int]) -> frozenset[int]:
    callees: set[int] = set()
    for one in found:
        if isinstance(one, TailInvoke):
            callees.add(one.function)
        elif isinstance(one, TailApply):
            callees |= values
        callees |= set(_nested(one, values))
    return frozenset(callees)


def _nested(one: Statement, values: frozenset[int]) -> Iterable[int]:
    """What a statement calls that is not at the end."""
    if isinstance(one, Invoke):
        return (one.function,)
    return values if isinstance(one, Apply) else ()


def _reached(start: int, direct: Sequence[frozenset[int]]) -> frozenset[int]:
    """The functions that a call of `start` may call, itself among them."""
    found, waiting = {start}, [start]
    while waiting:
        fresh = direct[waiting.pop()] - found
        found |= fresh
        waiting += fresh
    return frozenset(found)


def _settled(
    function: NativeFunction, reach: Sequence[frozenset[int]], values: frozenset[int], forms: Sequence[str | None]
) -> NativeFunction:
    highest = max((local.number for local in _locals(function)), default=-1)
    names = iter(range(highest + 1, 1 << 62))

    def ends_anyway(callees: Iterable[int]) -> bool:
        return not any(function.number in reach[callee] for callee in callees)

    def returned(value: Local) -> list[Statement]:
        """The end of the function with the value of a call, in the form that it returns."""
        if value.dtype == function.result:
            return [Return(value)]
        to = Local(next(names), function.result)
        return [Box(to, value) if function.result is None else Unbox(to, value), Return(to)]

    def walk(block: Block) -> Block:
        done: list[Statement] = []
        for one in block:
            match one:
                case Branch(then=then, otherwise=otherwise):
                    done.append(replace(one, then=walk(then), otherwise=walk(otherwise)))
                case Match(arms=arms):
                    done.append(replace(one, arms=tuple(Arm(arm.tests, walk(arm.block)) for arm in arms)))
                case TailInvoke(function=callee, args=args) if ends_anyway((callee,)):
                    to = Local(next(names), forms[callee])
                    done += [Invoke(to, callee, args), *returned(to)]
                case TailApply(callee=callee, args=args) if ends_anyway(values):
                    to = Local(next(names))
                    done += [Apply(to, callee, args), *returned(to)]
                case _:
                    done.append(one)
        return tuple(done)

    return replace(function, body=walk(function.body))


def _locals(function: NativeFunction) -> Iterable[Local]:
    yield from function.params
    for one in statements(function.body):
        to = getattr(one, "to", None)
        if isinstance(to, Local):
            yield to
