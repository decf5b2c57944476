"""The Pareto front of strategies: quality on the test data against the cost of an inference.

In: rows. Out: points of a plot, and those of them that no other one beats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relay_hw.compare.rows import Row

Amount = Callable[[Row], float | None]


@dataclass(frozen=True, slots=True)
class Point:
    """One strategy on one configuration: smaller `x` and larger `y` are better. `name`: its label. `within`: the
    confidence interval of `y`, if known.

    `is_partial`: `x` leaves out a part, so that the point dominates no other. `key`: of its row.
    """

    name: str
    x: float
    y: float
    within: tuple[float, float] | None = None
    is_partial: bool = False
    key: tuple[str, str] = ("", "")

    def beats(self, other: Point) -> bool:
        """Whether this point dominates: cheaper and not worse, or as cheap and significantly better."""
        if self.is_partial or self.x > other.x or self.y < other.y:
            return False
        low, high = (self.within or (self.y,))[0], (other.within or (other.y,))[-1]
        return self.x < other.x or low > high


def unbeaten(points: Sequence[Point]) -> list[Point]:
    """Points that no other point dominates; two of equal cost both stay, unless their intervals are disjoint."""
    whole = [point for point in points if not point.is_partial]
    return [point for point in whole if not any(other.beats(point) for other in whole)]


def staircase(points: Sequence[Point]) -> list[Point]:
    """The best quality at each cost: points from the cheapest on, each better than those before."""
    steps: list[Point] = []
    for point in sorted((p for p in points if not p.is_partial), key=lambda p: (p.x, -p.y)):
        if not steps or point.y > steps[-1].y:
            steps.append(point)
    return steps


def is_by_agreement(rows: Sequence[Row]) -> bool:
    """Whether quality is agreement with float (for outputs that are class scores) instead of output noise."""
    return any(row.test.agreement is not None for row in rows)


def run_time(row: Row) -> float | None:
    """Milliseconds of an inference on the accelerator by the board's clock; cycles without one."""
    if row.cost is None:
        return None
    return 1000 * row.cost.cycles / row.cost.clock_hz if row.cost.clock_hz else row.cost.cycles


def points_of(rows: Sequence[Row], cost: Amount, is_partial: Callable[[Row], bool]) -> list[Point]:
    """A point for each row whose cost and quality are known."""
    by_agreement, labels = is_by_agreement(rows), labels_of(rows)
    found: list[Point] = []
    for row in rows:
        x, y = cost(row), row.test.agreement if by_agreement else row.test.sqnr_db
        if x is not None and y is not None:
            within = row.test.agreement_interval if by_agreement else None
            found.append(Point(labels[row.key], x, y, within, is_partial(row), row.key))
    return found


def labels_of(rows: Sequence[Row]) -> dict[tuple[str, str], str]:
    """The label of each point by its key: the strategy, and the configuration where the strategy has several."""
    names = [row.name for row in rows]
    return {
        row.key: f"{row.name} on {row.key[1]}" if row.key[1] and names.count(row.name) > 1 else row.name for row in rows
    }


def front(rows: Sequence[Row]) -> frozenset[tuple[str, str]]:
    """Keys of the points on the Pareto front of quality and time, over all configurations."""
    points = [point for row in rows for point in row.points]
    return frozenset(point.key for point in unbeaten(points_of(points, run_time, lambda row: row.host_share > 0)))
