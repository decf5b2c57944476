"""Plans buffers for tensors between segments: one memory block for each run of a function, with reuse.

In: a flat function and the names of the segments. Out: `BufferPlan`. A tensor is planned where its size is known and
only segments read it: nothing else could keep it for longer than the function runs.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.backend.nodes import FlatFunction, FlatGet, FlatInvoke, Value, uses
from relay_hw.ir.types import TensorType, TupleType, Type

ALIGN = 64


@dataclass(frozen=True, slots=True)
class Place:
    """A tensor's place in the memory block."""

    offset: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def size(self) -> int:
        """Bytes, rounded up to whole cache lines."""
        return -(-prod(self.shape) * np.dtype(self.dtype).itemsize // ALIGN) * ALIGN

    def view(self, memory: NDArray[np.uint8]) -> NDArray[Any]:
        """The tensor in `memory`."""
        count = prod(self.shape)
        dtype = np.dtype(self.dtype)
        return memory[self.offset : self.offset + count * dtype.itemsize].view(dtype).reshape(self.shape)


@dataclass(frozen=True, slots=True)
class BufferPlan:
    """`places`: by node, of its tensors, left to right. `size`: bytes of the block; `unshared`: without reuse."""

    places: Mapping[int, tuple[Place, ...]]
    size: int = 0
    unshared: int = 0


def plan_buffers(function: FlatFunction, segments: Container[str]) -> BufferPlan:
    """The plan of one function, inner functions not entered: largest tensors first, each at the lowest free place."""
    last = _last_reads(function, segments)
    wanted = [
        (node, k, Place(0, leaf.static_shape, leaf.dtype))
        for node in last
        for k, leaf in enumerate(_tensors(function, node))
    ]
    placed: list[tuple[int, int, Place]] = []
    found: dict[int, dict[int, Place]] = {}
    for node, k, place in sorted(wanted, key=lambda item: (-item[2].size, item[0], item[1])):
        alive = [other for begin, end, other in placed if begin <= last[node] and node <= end]
        offset = 0
        for other in sorted(alive, key=lambda one: one.offset):
            if other.offset - offset >= place.size:
                break
            offset = max(offset, other.offset + other.size)
        new = Place(offset, place.shape, place.dtype)
        placed.append((node, last[node], new))
        found.setdefault(node, {})[k] = new
    places = {node: tuple(rows[k] for k in sorted(rows)) for node, rows in sorted(found.items())}
    size = max((place.offset + place.size for _, _, place in placed), default=0)
    return BufferPlan(places, size, sum(place.size for _, _, place in placed))


def _last_reads(function: FlatFunction, segments: Container[str]) -> dict[int, int]:
    """By planned node, in order: the last node that reads it."""
    source = list(range(len(function.nodes)))
    last: dict[int, int] = {}
    kept: set[int] = set()
    for index, node in enumerate(function.nodes):
        is_segment = isinstance(node, FlatInvoke) and node.function in segments
        if isinstance(node, FlatGet):
            source[index] = source[node.source]
        if is_segment and isinstance(node, FlatInvoke) and _leaves(node.type) is not None:
            last[index] = index
        for origin in {source[used] for used in uses(node)} & last.keys():
            last[origin] = index
            if not is_segment and not isinstance(node, FlatGet):
                kept.add(origin)
    kept.add(source[function.result])
    return {index: end for index, end in last.items() if index not in kept}


def _tensors(function: FlatFunction, index: int) -> list[TensorType]:
    node = function.nodes[index]
    assert isinstance(node, FlatInvoke)
    return _leaves(node.type) or []


def _leaves(ty: Type) -> list[TensorType] | None:
    """The tensors of a type, left to right; None if one has no known size."""
    match ty:
        case TensorType():
            return [ty] if all(isinstance(dim, int) for dim in ty.shape) else None
        case TupleType():
            found: list[TensorType] = []
            for part in ty.fields:
                inner = _leaves(part)
                if inner is None:
                    return None
                found += inner
            return found
        case _:
            return None


class Memory:
    """A memory block with the planned tensors of a running function."""

    def __init__(self, function: FlatFunction, plan: BufferPlan) -> None:
        self._bytes = np.empty(plan.size, np.uint8)
        self._values: dict[int, tuple[Type, list[NDArray[Any]]]] = {}
        for index, places in plan.places.items():
            node = function.nodes[index]
            assert isinstance(node, FlatInvoke)
            self._values[index] = (node.type, [place.view(self._bytes) for place in places])

    def keep(self, index: int, value: Value) -> Value:
        """`value` of a node, in its place; of a node without place, by itself where it lies in this memory."""
        if index not in self._values:
            return self._own(value)
        ty, views = self._values[index]
        for view, leaf in zip(views, flat_leaves(value), strict=True):
            view[...] = leaf
        return _tree(ty, iter(views))

    def _own(self, value: Value) -> Value:
        if isinstance(value, tuple):
            return tuple(self._own(part) for part in value)
        lies_here = isinstance(value, np.ndarray) and np.may_share_memory(value, self._bytes)
        return value.copy() if lies_here else value


def flat_leaves(value: Value) -> list[Any]:
    """The tensors of a value, left to right."""
    return [leaf for part in value for leaf in flat_leaves(part)] if isinstance(value, tuple) else [value]


def _tree(ty: Type, leaves: Iterator[NDArray[Any]]) -> Value:
    return tuple(_tree(part, leaves) for part in ty.fields) if isinstance(ty, TupleType) else next(leaves)
