"""Exhaustiveness check of matches. In: a match. Out: the patterns that no arm matches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from relay_hw.ir.expr import (
    Constructor,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
)

MAX_CANDIDATES = 10_000

# The constructors of the data type that a constructor belongs to.
Siblings = Callable[[Constructor], Sequence[Constructor]]


def unmatched_cases(match: Match, siblings: Siblings, limit: int = MAX_CANDIDATES) -> list[Pattern]:
    """Patterns that `match` does not cover, in order of the constructors; empty if it is exhaustive.

    At most `limit` candidates are looked at.
    """
    missing: list[Pattern] = []
    arms = _Arms.of([clause.lhs for clause in match.clauses])
    candidates: list[Pattern] = [PatternWildcard()]
    while candidates and limit > 0:
        limit -= 1
        candidate = candidates.pop()
        decision = _first_decision(candidate, arms.for_candidate(candidate))
        if decision is None:
            missing.append(candidate)
        elif isinstance(decision, Pattern):
            candidates.extend(reversed(_expand(candidate, decision, siblings)))
    return missing


@dataclass(frozen=True, slots=True)
class _Arms:
    """Arms in order, indexed by constructor, since there may be as many arms as constructors.

    `by_constructor` has a constructor's arms, "" those that ask for a tuple; `first` is the first arm of all; `rest`
    the first that takes everything, behind which nothing is looked at.
    """

    by_constructor: Mapping[str, Sequence[Pattern]]
    first: Sequence[Pattern]
    rest: Sequence[Pattern]

    @classmethod
    def of(cls, arms: Sequence[Pattern]) -> _Arms:
        found: dict[str, list[Pattern]] = {}
        for place, arm in enumerate(arms):
            if isinstance(arm, PatternWildcard | PatternVar):
                return cls(found, arms[:1], arms[place : place + 1])
            found.setdefault(_asked(arm), []).append(arm)
        return cls(found, arms[:1], ())

    def for_candidate(self, candidate: Pattern) -> Sequence[Pattern]:
        """Arms that may match `candidate`, in order, up to the first that certainly matches a part of it."""
        if isinstance(candidate, PatternWildcard | PatternVar):
            return self.first
        return [*self.by_constructor.get(_asked(candidate), ()), *self.rest]


def _asked(pattern: Pattern) -> str:
    return pattern.constructor.name_hint if isinstance(pattern, PatternConstructor) else ""


def pattern_text(pattern: Pattern) -> str:
    """`pattern` as Relay's text format writes it."""
    match pattern:
        case PatternVar(var=var):
            return f"%{var.name_hint}"
        case PatternConstructor(constructor=constructor, patterns=()):
            return constructor.name_hint
        case PatternConstructor(constructor=constructor, patterns=inner):
            return f"{constructor.name_hint}({', '.join(map(pattern_text, inner))})"
        case PatternTuple(patterns=inner):
            return f"({', '.join(map(pattern_text, inner))})"
        case _:
            return "_"


def _first_decision(candidate: Pattern, arms: Sequence[Pattern]) -> Pattern | bool | None:
    """True if an arm matches all of `candidate`, the arm's pattern if it matches a part, None if none matches."""
    for arm in arms:
        overlap = _overlap(candidate, arm)
        if overlap == "all":
            return True
        if overlap == "part":
            return arm
    return None


def _overlap(candidate: Pattern, arm: Pattern) -> str:
    """How much of `candidate` the pattern `arm` matches: "all", "part" or "none"."""
    match candidate, arm:
        case _, PatternWildcard() | PatternVar():
            return "all"
        case ((PatternWildcard() | PatternVar()), _):
            return "part"
        case PatternConstructor(), PatternConstructor():
            if candidate.constructor.name_hint != arm.constructor.name_hint:
                return "none"
            return _overlap_all(candidate.patterns, arm.patterns)
        case PatternTuple(), PatternTuple():
            return _overlap_all(candidate.patterns, arm.patterns)
        case _:
            return "none"


def _overlap_all(candidates: Sequence[Pattern], arms: Sequence[Pattern]) -> str:
    found = {_overlap(candidate, arm) for candidate, arm in zip(candidates, arms, strict=False)}
    return "none" if "none" in found else "part" if "part" in found else "all"


def _expand(candidate: Pattern, arm: Pattern, siblings: Siblings) -> list[Pattern]:
    """Split the wildcards of `candidate` one level deeper, where `arm` has a constructor or tuple."""
    match candidate, arm:
        case _, PatternWildcard() | PatternVar():
            return [candidate]
        case ((PatternWildcard() | PatternVar()), PatternConstructor()):
            return [
                PatternConstructor(constructor, tuple(PatternWildcard() for _ in constructor.inputs))
                for constructor in siblings(arm.constructor)
            ]
        case ((PatternWildcard() | PatternVar()), PatternTuple()):
            return [PatternTuple(tuple(PatternWildcard() for _ in arm.patterns))]
        case PatternConstructor(), PatternConstructor():
            inner = _expand_first(candidate.patterns, arm.patterns, siblings)
            return [PatternConstructor(candidate.constructor, patterns) for patterns in inner]
        case PatternTuple(), PatternTuple():
            return [PatternTuple(patterns) for patterns in _expand_first(candidate.patterns, arm.patterns, siblings)]
        case _:
            return [candidate]


def _expand_first(
    candidates: Sequence[Pattern], arms: Sequence[Pattern], siblings: Siblings
) -> list[tuple[Pattern, ...]]:
    """Expand the first part that the arm matches only partly; one at a time keeps candidates few."""
    for place, (candidate, arm) in enumerate(zip(candidates, arms, strict=False)):
        if _overlap(candidate, arm) == "part":
            parts = _expand(candidate, arm, siblings)
            return [(*candidates[:place], part, *candidates[place + 1 :]) for part in parts]
    return [tuple(candidates)]
