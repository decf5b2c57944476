"""Candidates of an e-graph: for each class the terms that float32 computes best, found from the leaves upwards.

In: an e-graph, points. Out: terms of the root's class: the one that is best at all points, those that are best where it
is not, and the smallest one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
from mpmath import mp

from relay_hw.transform.numeric.error import Bits, Points, bits_of_error
from relay_hw.transform.numeric.exact import Real, apply_exact, reals, to_float
from relay_hw.transform.numeric.saturate import Equal, Node, Use
from relay_hw.transform.numeric.terms import Apply, Argument, Floats, Number, Term, apply_float, rounded

# Bits of the real numbers at points, enough where cancellation takes up to 250.
_PRECISION: Final = 400
# Candidates that a class keeps, and how often every node is tried on those of its arguments.
_KEPT: Final = 3
_SWEEPS: Final = 4
_COMMUTATIVE: Final = frozenset({"add", "multiply"})
# Mean bits of error that one operator more must save.
PRICE: Final = 0.04


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A term, what float32 computes for it at the points, and its bits of error there."""

    term: Term
    values: Floats
    bits: Bits
    size: int

    @property
    def cost(self) -> float:
        """Mean bits of error, and the price of the operators."""
        return float(self.bits.mean()) + PRICE * self.size


def candidates(equal: Equal, points: Points) -> list[Candidate]:
    """The best terms of the root's class at `points`, the most accurate one first."""
    with mp.workprec(_PRECISION):
        exact = _exact(equal, points)
    search = _Search(equal, points, exact)
    for _ in range(_SWEEPS):
        if not search.sweep():
            break
    return search.best.get(equal.root, [])


def _distinct(nodes: Sequence[Node]) -> list[Node]:
    """`nodes` without those that only swap the arguments of others."""
    swapped = lambda node: (  # noqa: E731
        Use(node.op, tuple(sorted(node.args))) if isinstance(node, Use) and node.op in _COMMUTATIVE else node
    )
    return list({swapped(node): node for node in nodes}.values())


def _exact(equal: Equal, points: Points) -> dict[str, Floats]:
    """The exact value of each class at `points`, from the first node that has one."""
    count = len(next(iter(points.values())))
    found: dict[str, list[Real]] = {}
    left = {name: list(nodes) for name, nodes in equal.classes.items()}
    while True:
        ready = {
            name: node
            for name, nodes in left.items()
            if (node := next((one for one in nodes if _is_ready(one, found)), None)) is not None
        }
        if not ready:
            return {name: to_float(values) for name, values in found.items()}
        for name, node in ready.items():
            left[name].remove(node)
            match node:
                case Number() | Argument():
                    values = reals(node, points, count)
                case Use():
                    values = apply_exact(node.op, [found[one] for one in node.args])
            before = found.get(name)
            found[name] = values if before is None else before
        for name in ready:
            # Another node may have a value where the first one has none.
            if all(one == one for one in found[name]):
                del left[name]


def _is_ready(node: Node, found: Mapping[str, object]) -> bool:
    return not isinstance(node, Use) or all(one in found for one in node.args)


class _Search:
    """The best candidates of each class so far."""

    def __init__(self, equal: Equal, points: Points, exact: Mapping[str, Floats]) -> None:
        self.best: dict[str, list[Candidate]] = {}
        self._classes = {name: _distinct(nodes) for name, nodes in equal.classes.items()}
        self._points = points
        self._exact = exact
        self._seen: dict[str, set[Term]] = {}

    def sweep(self) -> bool:
        """Try every node on the candidates of its arguments; whether a class has found better ones."""
        changed = False
        for name, nodes in self._classes.items():
            if name not in self._exact:
                continue
            new = [one for node in nodes for one in self._made(name, node)]
            if new:
                kept = select([*self.best.get(name, []), *new], _KEPT)
                changed |= kept != self.best.get(name)
                self.best[name] = kept
        return changed

    def _made(self, name: str, node: Node) -> Iterator[Candidate]:
        """Candidates of class `name` by `node` that were not tried before."""
        seen, exact = self._seen.setdefault(name, set()), self._exact[name]
        match node:
            case Number() | Argument():
                if node not in seen:
                    seen.add(node)
                    values = rounded(node.value) if isinstance(node, Number) else self._points[node.name]
                    values = np.broadcast_to(values, exact.shape)
                    yield Candidate(node, values, bits_of_error(values, exact), 0)
            case Use():
                for args in product(*(self.best.get(one, ()) for one in node.args)):
                    term = Apply(node.op, [one.term for one in args])
                    if term in seen:
                        continue
                    seen.add(term)
                    size = 1 + sum(one.size for one in args)
                    values = apply_float(node.op, [one.values for one in args])
                    yield Candidate(term, values, bits_of_error(values, exact), size)


def select(found: Sequence[Candidate], count: int) -> list[Candidate]:
    """The cheapest candidate, those that save most where it is wrong, and the one of fewest operators."""
    cheapest = min(found, key=lambda one: one.cost)
    chosen, least = [cheapest], cheapest.bits
    bits, sizes = np.stack([one.bits for one in found]), np.array([one.size for one in found])
    while len(chosen) < count - 1:
        gains = np.maximum(least - bits, 0).mean(1) - PRICE * sizes
        best = int(gains.argmax())
        if gains[best] <= 0:
            break
        chosen.append(found[best])
        least = np.minimum(least, bits[best])
    small = min(found, key=lambda one: one.size)
    return chosen if small in chosen else [*chosen, small]
