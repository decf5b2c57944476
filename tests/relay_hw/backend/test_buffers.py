"""Planned memory: nothing that is alive at once shares bytes, values that could outlive a run are not in it."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw.backend.buffers import ALIGN, Memory, plan_buffers
from relay_hw.backend.flat import (
    FlatFunction,
    FlatGet,
    FlatInput,
    FlatInvoke,
    FlatNode,
    FlatTuple,
    Machine,
    Value,
    uses,
)
from relay_hw.ir.types import ANY, TensorType, TupleType

SEGMENTS = frozenset(("one", "two"))


def tensor(size: Any) -> TensorType:
    return TensorType((size,), "int32")


@st.composite
def functions(draw: Any) -> FlatFunction:
    """Segments that read what came before, some of it twice, some through tuples; other nodes in between."""
    nodes: list[FlatNode] = [FlatInput("x", tensor(4))]
    for _ in range(draw(st.integers(1, 12))):
        tensors = [i for i, node in enumerate(nodes) if not is_pair(node)]
        args = tuple(draw(st.lists(st.sampled_from(tensors), min_size=1, max_size=3)))
        size = draw(st.sampled_from((1, 7, 40, 100, ANY)))
        match draw(st.integers(0, 5)):
            case 0:
                nodes.append(FlatInvoke("two", args, TupleType([tensor(size), tensor(3)])))
                nodes.append(FlatGet(len(nodes) - 1, 0))
                nodes.append(FlatGet(len(nodes) - 2, 1))
            case 1:
                nodes.append(FlatInvoke("other", args, tensor(4)))
            case _:
                nodes.append(FlatInvoke("one", args, tensor(size)))
    tensors = [i for i, node in enumerate(nodes) if not is_pair(node)]
    nodes.append(FlatTuple(tuple(draw(st.lists(st.sampled_from(tensors), min_size=1, max_size=2)))))
    return FlatFunction("main", tuple(nodes), len(nodes) - 1)


def is_pair(node: FlatNode) -> bool:
    return isinstance(node, FlatInvoke) and isinstance(node.type, TupleType)


@settings(max_examples=200, deadline=None)
@given(functions())
def test_what_is_alive_at_once_does_not_share_bytes(function: FlatFunction) -> None:
    plan = plan_buffers(function, SEGMENTS)
    source = list(range(len(function.nodes)))
    ends = source.copy()
    for index, node in enumerate(function.nodes):
        if isinstance(node, FlatGet):
            source[index] = source[node.source]
        for used in uses(node):
            ends[source[used]] = index
            if source[used] in plan.places:
                assert isinstance(node, FlatGet) or (isinstance(node, FlatInvoke) and node.function in SEGMENTS)
    rows = [(node, ends[node], place) for node, places in plan.places.items() for place in places]
    for a, (begin, end, one) in enumerate(rows):
        assert one.offset % ALIGN == 0 and one.offset + one.size <= plan.size
        for other_begin, other_end, other in rows[a + 1 :]:
            if begin <= other_end and other_begin <= end:
                assert one.offset + one.size <= other.offset or other.offset + other.size <= one.offset
    assert plan.size <= plan.unshared


@settings(max_examples=100, deadline=None)
@given(functions(), st.integers(0, 1000))
def test_values_are_those_without_a_plan(function: FlatFunction, seed: int) -> None:
    """Segments that return views of their arguments, and values that outlive the run."""

    def run(machine: Machine) -> list[Any]:
        def answer(name: str, args: list[Value]) -> Value:
            ty = next(waiting).type
            parts = ty.fields if isinstance(ty, TupleType) else (ty,)
            whole = args[0] if name == "other" else np.concatenate(args)
            found = [_sized(whole, part.shape[0]) for part in parts if isinstance(part, TensorType)]
            return tuple(found) if isinstance(ty, TupleType) else found[0]

        results = []
        for shift in range(3):
            waiting = iter([node for node in function.nodes if isinstance(node, FlatInvoke)])
            results.append(machine.call(function, [np.arange(4, dtype="int32") + seed + shift], answer))
        return [[leaf.tolist() for leaf in result] for result in results]

    assert run(Machine({}, SEGMENTS)) == run(Machine({}))


def _sized(values: Any, size: Any) -> Any:
    """The first values, a view where there are enough."""
    count = size if isinstance(size, int) else 5
    return values[:count] if len(values) >= count else np.resize(values, count)


def test_memory_is_used_again() -> None:
    nodes: list[FlatNode] = [FlatInput("x", tensor(16))]
    for _ in range(9):
        nodes.append(FlatInvoke("one", (len(nodes) - 1,), tensor(16)))
    function = FlatFunction("main", tuple(nodes), 9)
    plan = plan_buffers(function, SEGMENTS)
    assert plan.size == 2 * 64 and plan.unshared == 8 * 64
    memory = Memory(function, plan)
    first = memory.keep(1, np.ones(16, "int32"))
    assert memory.keep(3, np.full(16, 2, "int32")).ctypes.data == first.ctypes.data
    assert memory.keep(9, first) is not first
