"""Which term where: an argument's range cut into at most three parts, each with the term that is best there.

In: candidates, their bits of error at points. Out: `Pieces`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from relay_hw.transform.numeric.error import Bits, Points, ordinal
from relay_hw.transform.numeric.terms import Floats, Term, evaluate_float, operators

# Mean bits of error that a further part must save.
_PART: Final = 0.3
_PARTS: Final = 3


@dataclass(frozen=True, slots=True)
class Pieces:
    """`terms[i]` where `argument` is below `bounds[i]` and not below those before; the last term elsewhere."""

    terms: tuple[Term, ...]
    argument: str = ""
    bounds: tuple[float, ...] = ()

    @property
    def operators(self) -> int:
        """Operators that are computed: those of all terms, and a comparison and a selection for each bound."""
        return sum(map(operators, self.terms)) + 2 * len(self.bounds)

    def evaluate(self, points: Points) -> Floats:
        """What float32 computes at `points`."""
        result = evaluate_float(self.terms[-1], points)
        for bound, term in reversed(list(zip(self.bounds, self.terms, strict=False))):
            below = points[self.argument] < np.float32(bound)
            result = np.where(below, evaluate_float(term, points), result)
        return result


def best_pieces(terms: Sequence[Term], bits: Sequence[Bits], points: Points, price: float) -> Pieces:
    """The choice of `terms` with the least mean of `bits`; each operator costs `price`, each further part more.

    `bits` has the errors of each term at `points`.
    """
    costs = np.stack(bits) + price * np.array([operators(one) for one in terms])[:, None]
    total = costs.mean(1)
    least, best = float(total.min()), Pieces((terms[int(total.argmin())],))
    for name, values in points.items():
        for parts in range(2, _PARTS + 1):
            cost, found = _cut(terms, costs, name, values, parts)
            if cost + _PART * (parts - 1) < least:
                least, best = cost + _PART * (parts - 1), found
    return best


def _cut(terms: Sequence[Term], costs: Bits, name: str, values: Floats, parts: int) -> tuple[float, Pieces]:
    """The best cut of one argument's range into `parts`, by dynamic programming over its sorted points."""
    order = np.argsort(values, kind="stable")
    count = len(order)
    sums = np.concatenate([np.zeros((len(terms), 1)), np.cumsum(costs[:, order], 1)], 1)
    # Of all candidates the one with the least sum from point i to point j.
    spans = sums[:, None, :] - sums[:, :, None]
    owner, span = spans.argmin(0), spans.min(0)
    span[np.tril_indices(count + 1)] = np.inf
    least, before = span[0], list[np.ndarray]()
    for _ in range(parts - 1):
        through = least[:, None] + span
        before.append(through.argmin(0))
        least = through.min(0)
    ends = [count]
    for cut in reversed(before):
        ends.append(int(cut[ends[-1]]))
    edges = [0, *reversed(ends)]
    chosen = tuple(terms[int(owner[low, high])] for low, high in pairwise(edges))
    bounds = tuple(_between(*values[order[edge - 1 : edge + 1]]) for edge in edges[1:-1])
    return float(least[count]) / count, Pieces(chosen, name, bounds)


def _between(low: np.float32, high: np.float32) -> float:
    """A float above `low` and at most `high`, in the middle of those between them."""
    middle = (int(ordinal(np.asarray(low))) + int(ordinal(np.asarray(high))) + 1) // 2
    pattern = (-middle) | 0x80000000 if middle < 0 else middle
    return float(np.uint32(pattern).view(np.float32))
