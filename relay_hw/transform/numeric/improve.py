"""The search for a better term: saturate, keep the best, saturate from these again, judge at points not yet seen.

In: a term, a sampler of its arguments. Out: `Improved`, or None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from relay_hw.transform.numeric.error import Bits, Points, Sampler, bits_of_error
from relay_hw.transform.numeric.exact import evaluate_exact
from relay_hw.transform.numeric.extract import PRICE, candidates
from relay_hw.transform.numeric.pieces import Pieces, best_pieces
from relay_hw.transform.numeric.saturate import saturate
from relay_hw.transform.numeric.terms import Floats, Term, evaluate_float, operators

# Points to find candidates at, to choose among them, and to judge the choice.
_FIND: Final = 48
_CHOOSE: Final = 256
_JUDGE: Final = 512
_DRAWS: Final = 40
_FEWEST: Final = 16
_SEARCHES: Final = 3
# Mean bits of error that a change must save, at points not seen before.
_MARGIN: Final = 0.1
# Mean bits of error below which nothing better is looked for.
_GOOD: Final = 0.25


@dataclass(frozen=True, slots=True)
class Improved:
    """What stands for a term, with mean bits of error of both at points that the search has not seen."""

    pieces: Pieces
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Judged:
    """Points where the term has an exact value that float32 holds, and these values."""

    points: Points
    exact: Floats

    def bits(self, found: Floats) -> Bits:
        """Bits of error at each point."""
        return bits_of_error(np.broadcast_to(found, self.exact.shape), self.exact)

    def mean_bits(self, pieces: Pieces) -> float:
        """Mean bits of error of what stands for the term."""
        return float(self.bits(pieces.evaluate(self.points)).mean())


def improve(term: Term, sampler: Sampler, bound: float | None, seed: int = 0) -> Improved | None:
    """An equal term with a smaller mean error at points of `sampler`; None where none is found.

    With a `bound`: the one of fewest operators whose mean error grows by at most so many bits. Raises UnsupportedError
    without egglog and mpmath.
    """
    random = np.random.default_rng(seed)
    find, choose, judge = (draw(term, sampler, count, random) for count in (_FIND, _CHOOSE, _JUDGE))
    if min(len(one.exact) for one in (find, choose, judge)) < _FEWEST:
        return None
    before = judge.mean_bits(Pieces((term,)))
    if bound is None and before < _GOOD:
        return None
    terms = _search(term, find)
    most = before - _MARGIN if bound is None else before + bound
    for pieces in _accurate(term, terms, choose) if bound is None else _shorter(term, terms):
        after = judge.mean_bits(pieces)
        if after <= most:
            return Improved(pieces, before, after)
    return None


def draw(term: Term, sampler: Sampler, count: int, random: np.random.Generator) -> Judged:
    """At most `count` points of `sampler` at which `term` has a value within float32's range."""
    found: list[Points] = []
    values: list[Floats] = []
    for _ in range(_DRAWS):
        points = sampler(count, random)
        exact = evaluate_exact(term, points)
        kept = np.flatnonzero(np.isfinite(exact))
        found.append({name: one[kept] for name, one in points.items()})
        values.append(exact[kept])
        if sum(map(len, values)) >= count:
            break
    names = found[0]
    joined = {name: np.concatenate([one[name] for one in found])[:count] for name in names}
    return Judged(joined, np.concatenate(values)[:count])


def _search(term: Term, find: Judged) -> list[Term]:
    """Terms equal to `term` that are good at the points of `find`; `term` comes first."""
    terms = [term]
    for _ in range(_SEARCHES):
        best = candidates(saturate(terms), find.points)
        more = [one.term for one in best if one.term not in terms]
        if not more:
            break
        terms += more
    return terms


def _accurate(term: Term, terms: Sequence[Term], at: Judged) -> list[Pieces]:
    """What has the least error at the points of `at`: in parts, and in one."""
    bits = [at.bits(evaluate_float(one, at.points)) for one in terms]
    parts = best_pieces(terms, bits, at.points, PRICE)
    whole = Pieces((min(zip(terms, bits, strict=True), key=lambda pair: float(pair[1].mean()))[0],))
    return [one for one in (parts, whole) if one.terms != (term,)]


def _shorter(term: Term, terms: Sequence[Term]) -> list[Pieces]:
    """What has fewer operators than `term`, the fewest first."""
    fewer = [one for one in terms if operators(one) < operators(term)]
    return [Pieces((one,)) for one in sorted(fewer, key=operators)]
