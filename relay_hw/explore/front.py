"""The Pareto front of points: which are dominated, by which point and by how much.

In: rows, objectives. Out: the points on the front, and one sentence for each other one.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from relay_hw.errors import InputError
from relay_hw.explore.results import Row, State
from relay_hw.support.names import one_of

Amounts = tuple[float, ...]


class Objective(Enum):
    """Something to minimise, except for accuracy, which is maximised."""

    CYCLES = "cycles"
    MS = "ms"
    AREA = "area"
    LUTS = "luts"
    BLOCK_RAMS = "block_rams"
    MULTIPLIERS = "multipliers"
    ENERGY = "energy"
    DRAM = "dram"
    ACCURACY = "accuracy"


def read_objectives(text: str) -> tuple[Objective, ...]:
    """Names, separated by commas. Raises InputError."""
    known = {objective.value: objective for objective in Objective}
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            raise InputError(one_of("objective", known, name))
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"objectives must differ, not have {twice[0]} twice")
    return tuple(known[name] for name in names)


def amount(row: Row, objective: Objective, share: float) -> float:
    """The value of an objective for a measured row; less is better. `share`: its share of the part."""
    assert row.placed is not None and row.measured is not None
    area, measured = row.placed.area, row.measured
    match objective:
        case Objective.CYCLES:
            return measured.cycles
        case Objective.MS:
            milliseconds = row.milliseconds
            assert milliseconds is not None
            return milliseconds
        case Objective.AREA:
            return share
        case Objective.LUTS:
            return area.luts
        case Objective.BLOCK_RAMS:
            return area.block_rams
        case Objective.MULTIPLIERS:
            return area.multipliers
        case Objective.ENERGY:
            return measured.energy.total
        case Objective.DRAM:
            return measured.dram_bytes
        case Objective.ACCURACY:
            assert row.accuracy is not None
            return -row.accuracy


def beats(one: Amounts, other: Amounts) -> bool:
    """Whether it dominates: nowhere worse and somewhere better."""
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


def whole(rows: Sequence[Row]) -> list[Row]:
    """Measured rows that leave the least work to the host; cycles of the others are not comparable."""
    done = [row for row in rows if row.state is State.DONE and row.measured is not None]
    least = min((row.measured.host_macs for row in done if row.measured), default=0)
    return [row for row in done if row.measured and row.measured.host_macs == least]


def unbeaten(amounts: dict[int, Amounts]) -> frozenset[int]:
    """Numbers of the points that no other point dominates."""
    # A point that dominates another comes before it in this order.
    ordered = sorted(amounts.items(), key=lambda item: item[1])
    front: list[tuple[int, Amounts]] = []
    for number, own in ordered:
        if not any(beats(other, own) for _, other in front):
            front.append((number, own))
    return frozenset(number for number, _ in front)


def best_rival(own: Amounts, amounts: dict[int, Amounts], front: frozenset[int]) -> int | None:
    """The point of the front that dominates this one by the most, measured by the product of all objectives."""

    def lead(number: int) -> tuple[float, int]:
        product = 1.0
        for mine, theirs in zip(own, amounts[number], strict=True):
            product *= _ratio(theirs, mine)
        return product, number

    rivals = [number for number in front if beats(amounts[number], own)]
    return min(rivals, key=lead, default=None)


def _ratio(theirs: float, mine: float) -> float:
    if mine < 0:  # accuracy, whose more is better
        return mine / theirs if theirs else 1.0
    return theirs / mine if mine else 1.0


def beaten_by(number: int, own: Amounts, rival: Amounts, objectives: Sequence[Objective]) -> str:
    """One sentence: the point that dominates it, and by how much in each objective."""
    parts = [
        _difference(mine, theirs, objective) for mine, theirs, objective in zip(own, rival, objectives, strict=True)
    ]
    return f"#{number} beats it: {', '.join(parts)}"


def _difference(mine: float, theirs: float, objective: Objective) -> str:
    if objective is Objective.ACCURACY:
        return f"accuracy {mine - theirs:+.4g}" if mine != theirs else "the same accuracy"
    name = objective.value.replace("_", " ")
    if mine == theirs:
        return f"the same {name}"
    return f"{name} {100 * (theirs / mine - 1):+.1f}%" if mine else f"{name} {theirs - mine:+,.0f}"


def host_reason(row: Row) -> str:
    """Why a row that leaves more work to the host than others is not on the front."""
    measured = row.measured
    assert measured is not None
    share = measured.host_macs / measured.macs if measured.macs else 0.0
    return f"{100 * share:.1f}% of the products are left to the host, outside of the cycles: {measured.host}"
