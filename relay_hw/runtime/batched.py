"""Batched forms of fragments: which there are, and from how many calls on each of them pays.

In: a partitioned module, or the manifest of a build. Out: `Partitioned`, a `Batch` for each fragment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw.backend.flat import FlatFunction, Value
from relay_hw.ir.module import IRModule
from relay_hw.runtime.hosts import called, flat_functions
from relay_hw.target.base import PartitionRules, QuantizerRules
from relay_hw.target.partition import HOST, partition_records
from relay_hw.target.pipeline import partition_pipeline
from relay_hw.target.records import LayerInfo
from relay_hw.transform.batch_fragments import BatchedForm, forms_of


@dataclass(frozen=True, slots=True, eq=False)
class Partitioned:
    """A partitioned module, its flat functions, and the batched forms among them."""

    mod: IRModule
    functions: Mapping[str, FlatFunction]
    batched: tuple[BatchedForm, ...]

    def launched(self, regions: Collection[str]) -> tuple[str, ...]:
        """The regions among `regions` that forms launch."""
        return tuple(name for row in self.batched for name in called(self.functions[row.form]) if name in regions)


def partition(mod: IRModule, takes: PartitionRules, rules: QuantizerRules, most: int) -> Partitioned:
    """The partition of a quantized module, with forms for `most` calls; fewer, where the target does not run a layer
    for so many that it runs for one.
    """
    while True:
        partitioned = partition_pipeline(takes, rules, most)(mod)
        functions = flat_functions(partitioned)
        batched = tuple(row for row in forms_of(partitioned) if row.function in functions)
        if _runs_all(partitioned, functions, batched):
            return Partitioned(partitioned, functions, batched)
        most //= 2


def _runs_all(mod: IRModule, functions: Mapping[str, FlatFunction], batched: Sequence[BatchedForm]) -> bool:
    """Whether the target runs as many layers of every form as of its fragment."""
    places = [record.function for record in partition_records(mod) if record.where != HOST] if batched else []

    def layers(name: str) -> int:
        inside = set(called(functions[name]))
        return sum(place in inside for place in places)

    return all(layers(row.form) == layers(row.function) for row in batched)


@dataclass(frozen=True, slots=True)
class Batch:
    """A form of `rows` rows, which takes fewer cycles than calls one by one if there are `least` of them."""

    form: str
    rows: int
    least: int

    def groups(self, waiting: int) -> list[int]:
        """How many of the calls that wait are computed together: forms filled, or else all of them as it pays."""
        if waiting >= self.rows:
            return [self.rows] * (waiting // self.rows)
        return [waiting] if waiting >= self.least else [1] * waiting


def batches(
    forms: Sequence[BatchedForm], layers: Sequence[LayerInfo], functions: Mapping[str, FlatFunction]
) -> dict[str, Batch]:
    """The form of each fragment that has one. `layers` have the cycles of regions, which decide when it pays; where no
    region is launched, two calls are enough.
    """
    cycles = Counter[str]()
    for row in layers:
        cycles[row.function] += row.cycles

    def spent(name: str) -> int:
        return max(1, sum(cycles[inner] for inner in called(functions[name])))

    return {row.function: Batch(row.form, row.rows, spent(row.form) // spent(row.function) + 1) for row in forms}


def joined_rows(calls: Sequence[Sequence[Value]], rows: int) -> list[Value]:
    """The arguments of a form of `rows` rows for these calls; rows that are left over are zero."""
    spare = rows - len(calls)
    columns: list[Value] = []
    for parts in zip(*calls, strict=True):
        rest = [np.zeros((spare, *np.shape(parts[0])[1:]), np.asarray(parts[0]).dtype)] if spare else []
        columns.append(np.concatenate([*parts, *rest]))
    return columns


def row_of(value: Value, number: int) -> Value:
    """The result of one call in that of a form."""
    if isinstance(value, tuple):
        return tuple(row_of(part, number) for part in value)
    return value[number : number + 1]
