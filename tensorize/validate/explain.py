"""Says where a program goes wrong: the layer, the element, the instruction, and which part of the expression differs.

In: the meaning, a wrong output, and what the output stage did. Out: one sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw.ir.expr import Call, Expr, Op
from relay_hw.op import rows
from relay_hw.tensorize.segment import Segment
from relay_hw.tensorize.validate.meaning import LayerMeaning, Meaning, Value
from relay_hw.tensorize.validate.memories import Vectors
from relay_hw.tensorize.validate.operators import totals
from relay_hw.tensorize.validate.taps import wrong_tap
from relay_hw.tensorize.validate.terms import Numbers, Terms

Seen = Sequence[tuple[int, Vectors]]


# Operators of the output stage.
_STAGES = ("fixed.requantize", "fixed.add", "fixed.mul")
# Operators of the row unit.
_ROWS = tuple(row.name for row in rows.OPS)


@dataclass(frozen=True, slots=True)
class Place:
    """The first wrong element of an output, the number that is there, and how many are wrong."""

    output: int
    element: tuple[int, ...]
    number: int
    count: int


@dataclass(frozen=True, slots=True)
class _Parts:
    """Numbers that a layer may have, stage by stage."""

    results: Numbers
    totals: Numbers
    sums: Numbers


def explain(segment: Segment, meaning: Meaning, place: Place, seen: Seen) -> str:
    """The first layer, in the order of the graph, of which some element is never computed; else what lies where."""
    where = f"element {_show(place.element)} of output {place.output} is wrong, one of {place.count:,}"
    for layer in meaning.layers:
        numbers = [at for at, known in enumerate(segment.layers) if known.composite is layer.composite]
        own = [(index, vectors) for index, vectors in seen if segment.owners[index] in numbers]
        if not own:
            continue
        made = np.concatenate([vectors.results.numbers.reshape(-1) for _, vectors in own])
        missing = np.argwhere(~np.isin(layer.result.numbers, made))
        if missing.size:
            name = segment.layers[numbers[0]].name
            element = _show(tuple(missing[0].tolist()))
            cause = _cause(layer, tuple(missing[0].tolist()), own)
            return f"no instruction computes element {element} of layer {name}, {cause}; {where}"
    return f"{where}: {_content(segment, meaning, place)}"


def _cause(layer: LayerMeaning, missing: tuple[int, ...], own: Seen) -> str:
    """What differs in the instruction that comes nearest to what is missing."""
    parts = _parts(layer)
    best: tuple[int, int, str] | None = None
    for index, vectors in own:
        # Lanes without a channel have sums that do not depend on inputs.
        other = ~np.isin(vectors.results.numbers, parts.results) & (vectors.totals.low < vectors.totals.high)
        if not other.any():
            continue
        right = [
            (2, np.isin(vectors.totals.numbers, parts.totals), "the sum is right, its scaling is not"),
            (1, np.isin(vectors.sums.numbers, parts.sums), "the products are right, bias or zero points are not"),
        ]
        for rank, known, sentence in right:
            if (other & known).any() and (best is None or best[0] < rank):
                best = (rank, index, sentence)
        if best is None:
            best = (0, index, _other_inputs(layer))
    if best is None:
        return "whose instructions compute other elements of it only"
    if best[0] == 0:
        best = _by_tap(layer, missing, own) or best
    return f"which instruction {best[1]} (requant) is nearest to: {best[2]}"


def _other_inputs(layer: LayerMeaning) -> str:
    """What differs where no sum is right."""
    operators = (expr.op for expr in layer.inside if isinstance(expr, Call))
    if any(isinstance(op, Op) and op.name in _ROWS for op in operators):
        return "its row has another element, coefficient or number of the instruction"
    return "its sum has another tap, padding, weight or input"


def _by_tap(layer: LayerMeaning, missing: tuple[int, ...], own: Seen) -> tuple[int, int, str] | None:
    """The instruction whose sum differs from the missing one in a tap only, where the layer is a convolution."""
    for expr, value in layer.inside.items():
        if not isinstance(expr, Call) or not isinstance(expr.op, Op) or expr.op.name != "nn.conv2d":
            continue
        if _numbers(value).size == layer.result.numbers.size and len(missing) == len(expr.tensor_type.shape):
            made = np.concatenate([vectors.sums.numbers.reshape(-1) for _, vectors in own])
            tap = wrong_tap(expr, layer.inside, missing, made)
            if tap is not None:
                index = next(index for index, vectors in own if (vectors.sums.numbers == tap.number).any())
                return (0, index, f"in its sum {tap.what}")
    return None


def _parts(layer: LayerMeaning) -> _Parts:
    results = np.concatenate([_numbers(value) for value in layer.inside.values()])
    scaled: list[Numbers] = []
    sums: list[Numbers] = []
    for expr in layer.inside:
        if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name in _STAGES:
            scaled.append(_numbers(totals(expr, [_terms(layer.inside, arg) for arg in expr.args])))
            sums.append(_numbers(layer.inside[expr.args[0]]))
    # Layers that only move or compare have no sums but what they read.
    return _Parts(results, np.concatenate(scaled or [results]), np.concatenate(sums or [results]))


def _terms(inside: Mapping[Expr, Value], expr: Expr) -> Terms:
    value = inside[expr]
    assert isinstance(value, Terms)
    return value


def _numbers(value: Value) -> Numbers:
    parts = value if isinstance(value, tuple) else (value,)
    return np.concatenate([part.numbers.reshape(-1) for part in parts])


def _content(segment: Segment, meaning: Meaning, place: Place) -> str:
    """Which value lies where another one belongs."""
    for layer in meaning.layers:
        found = np.argwhere(layer.result.numbers == place.number)
        if found.size:
            name = next((one.name for one in segment.layers if one.composite is layer.composite), "a move")
            return f"element {_show(tuple(found[0].tolist()))} of layer {name} lies there"
    return "no layer computes what lies there"


def _show(element: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, element))})"
