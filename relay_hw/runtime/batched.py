"""Batched forms of fragments: which there are, and which of them calls that wait are computed by.

In: a partitioned module, or the manifest of a build. Out: `Partitioned`, a `Batch` for each fragment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw.backend.flat import FlatFunction, Value
from relay_hw.ir.module import IRModule
from relay_hw.runtime.hosts import called, flat_functions
from relay_hw.target.base import PartitionRules, QuantizerRules
from relay_hw.target.partition import HOST, partition_records
from relay_hw.target.pipeline import partition_pipeline
from relay_hw.target.records import LayerInfo
from relay_hw.transform.batch_fragments import BatchedForm, by_function, forms_of


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
    """The partition of a quantized module, with forms for up to `most` calls; fewer, where the target does not run a
    layer for so many that it runs for one.
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
class Form:
    """A function that computes up to `rows` calls of a fragment in `cycles`: the fragment itself computes one."""

    name: str
    rows: int
    cycles: int


@dataclass(frozen=True, slots=True)
class Group:
    """So many calls that one form computes together."""

    form: Form
    count: int


@dataclass(frozen=True, slots=True)
class Batch:
    """The forms of a fragment, the largest first and the fragment itself last."""

    forms: tuple[Form, ...]

    @property
    def rows(self) -> int:
        """Calls of the largest form."""
        return self.forms[0].rows

    def groups(self, waiting: int) -> list[Group]:
        """Which of the calls that wait are computed together: the largest form filled, or else all in fewest cycles."""
        if waiting >= self.rows:
            return [Group(self.forms[0], self.rows)] * (waiting // self.rows)
        return list(self._fewest_cycles(waiting))

    def _fewest_cycles(self, waiting: int) -> Iterator[Group]:
        """The forms of least cycles for all calls, then of fewest rows to spare."""
        costs, firsts = [(0, 0)], list[Form]()
        for left in range(1, waiting + 1):
            tries = [(_plus(costs[max(0, left - form.rows)], form), form) for form in self.forms]
            cost, form = min(tries, key=lambda found: found[0])
            costs.append(cost)
            firsts.append(form)
        while waiting:
            form = firsts[waiting - 1]
            yield Group(form, min(form.rows, waiting))
            waiting -= min(form.rows, waiting)


def _plus(cost: tuple[int, int], form: Form) -> tuple[int, int]:
    """Cycles and rows with one more form."""
    return cost[0] + form.cycles, cost[1] + form.rows


def batches(
    forms: Sequence[BatchedForm], layers: Sequence[LayerInfo], functions: Mapping[str, FlatFunction]
) -> dict[str, Batch]:
    """The forms of each fragment that has some. `layers` have the cycles of regions; where no region is launched, each
    form counts the same.
    """
    cycles = Counter[str]()
    for row in layers:
        cycles[row.function] += row.cycles

    def sized(name: str, rows: int) -> Form:
        return Form(name, rows, max(1, sum(cycles[inner] for inner in called(functions[name]))))

    return {
        name: Batch((*(sized(row.form, row.rows) for row in rows), sized(name, 1)))
        for name, rows in by_function(forms).items()
    }


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
