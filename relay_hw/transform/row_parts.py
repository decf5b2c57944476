"""Divides a fragment into parts that compute row by row and others.

In: a fragment. Out: `RowParts`. A part of rows has the operators whose result for a row has the same bits whatever
other rows there are; a loop's counter, the choice of a step's input and sums of floats are outside.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from relay_hw.errors import UnsupportedError
from relay_hw.ir.expr import Call, Function, Trait, Var
from relay_hw.ir.types import TensorType, TupleType, Type
from relay_hw.transform.fragments import FRAGMENT
from relay_hw.transform.graph import dataflow_order, dtype_of, has_trait, op_name
from relay_hw.transform.names import unused_name
from relay_hw.transform.outline import outline, values_of

# The layer of rows.
_LAYER: Final = "nn.dense"
# Beside elementwise operators and layers of integers. Sums of floats are none of them: how many rows there are decides
# the order in which libraries add.
_EXACT: Final = frozenset(
    {
        "concatenate",
        "fixed.requantize",
        "fixed.table",
        "nn.bias_add",
        "qnn.dequantize",
        "qnn.quantize",
        "qnn.requantize",
        "reshape",
        "split",
        "strided_slice",
    }
)


@dataclass(frozen=True, slots=True)
class RowParts:
    """`functions`: the fragment, which calls its parts unless it is one, and the parts. `rows`: names of the parts that
    compute layers of rows.
    """

    functions: Mapping[str, Function]
    rows: tuple[str, ...]


def row_parts(fragment: Function, name: str, taken: Collection[str]) -> RowParts | None:
    """The parts of a fragment, under names that are not `taken`; None where no layer computes rows."""
    try:
        calls = [node for node in dataflow_order(fragment.body, name) if isinstance(node, Call)]
    except UnsupportedError:
        # Other passes may have given names to values since it was outlined.
        return None
    levels: dict[Call, int] = {}
    for call in calls:
        levels[call] = _level(call, levels)
    layered = {level for call, level in levels.items() if level % 2 and op_name(call) == _LAYER}
    if not layered:
        return None
    place = _merged(sorted(set(levels.values())), layered)
    count = 1 + max(place.values())
    if count == 1:
        return RowParts({name: fragment}, (name,))
    names: list[str] = []
    for number in range(count):
        names.append(unused_name(f"{name}_{number}", {*taken, *names}))
    group = {call: place[level] for call, level in levels.items()}
    found, whole = outline(fragment, calls, group, names, dict.fromkeys(names, ""))
    functions = {new: replace(function, attrs={FRAGMENT: 1}) for new, function in found.items()}
    return RowParts(
        {**functions, name: replace(whole, attrs={})}, tuple(names[place[level]] for level in sorted(layered))
    )


def _merged(levels: Sequence[int], layered: Collection[int]) -> dict[int, int]:
    """The number of the part of each level: one with layers is a part, those between two such are one together."""
    place: dict[int, int] = {}
    number, is_open = -1, False
    for level in levels:
        if level in layered or not is_open:
            number += 1
        is_open = level not in layered
        place[level] = number
    return place


def _level(call: Call, levels: Mapping[Call, int]) -> int:
    """How often a call comes behind a change from row by row to otherwise, or back: odd if it computes row by row.

    `levels`: those of the calls before it.
    """
    values = [value for arg in call.args for value in values_of(arg) if not isinstance(value, Var)]
    last = max((levels[value[0]] for value in values), default=0)
    reads = [arg.type for arg in call.args if any(values_of(arg))]
    by_rows = bool(reads) and is_exact(call) and all(map(is_row, reads))
    return last + (last % 2 != by_rows)


def is_row(ty: Type) -> bool:
    """Whether a value consists of matrices of one row."""
    if isinstance(ty, TupleType):
        return bool(ty.fields) and all(map(is_row, ty.fields))
    return isinstance(ty, TensorType) and len(ty.shape) == 2 and ty.shape[0] == 1 and isinstance(ty.shape[1], int)


def is_exact(call: Call) -> bool:
    """Whether each row of a call's result has the same bits whatever other rows there are."""
    if not is_row(call.type):
        return False
    if op_name(call) == _LAYER:
        return not dtype_of(call).startswith("float")
    return has_trait(call, Trait.ELEMENTWISE) or op_name(call) in _EXACT
