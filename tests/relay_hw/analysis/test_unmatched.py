"""Completeness of match, against enumeration of all values up to a depth."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relay_hw as relay
from relay_hw.analysis import unmatched
from relay_hw.analysis.unmatched import pattern_text, unmatched_cases
from relay_hw.ir.expr import Clause, Constructor, Match, Pattern, PatternConstructor, PatternTuple, PatternWildcard

T = relay.GlobalTypeVar("T")
TY = relay.TypeCall(T, ())
A, B, C = (Constructor(name, [TY] * count, T, tag) for tag, (name, count) in enumerate((("A", 0), ("B", 1), ("C", 2))))
ALL = (A, B, C)


def match(*arms: Pattern) -> Match:
    return Match(relay.var("x"), [Clause(arm, relay.Tuple([])) for arm in arms])


def missing(*arms: Pattern) -> list[str]:
    return [pattern_text(case) for case in unmatched_cases(match(*arms), lambda _: ALL)]


_ = PatternWildcard()


@pytest.mark.parametrize(
    ("arms", "expected"),
    [
        ((), ["_"]),
        ((_,), []),
        ((relay.PatternVar(relay.var("v")),), []),
        ((PatternConstructor(A),), ["B(_)", "C(_, _)"]),
        ((PatternConstructor(A), PatternConstructor(B, [_]), PatternConstructor(C, [_, _])), []),
        ((PatternConstructor(B, [PatternConstructor(A)]), PatternConstructor(A)), ["B(B(_))", "B(C(_, _))", "C(_, _)"]),
        ((PatternTuple([_, PatternConstructor(A)]),), ["(_, B(_))", "(_, C(_, _))"]),
        ((PatternTuple([PatternConstructor(A), _]), PatternTuple([_, PatternConstructor(A)]), _), []),
    ],
)
def test_cases(arms: tuple[Pattern, ...], expected: list[str]) -> None:
    assert missing(*arms) == expected


def values(depth: int) -> list[tuple]:  # type: ignore[type-arg]
    if depth == 0:
        return [("A",)]
    inner = values(depth - 1)
    return [("A",), *(("B", v) for v in inner), *(("C", v, w) for v, w in product(inner, inner))]


def takes(pattern: Pattern, value: tuple) -> bool:  # type: ignore[type-arg]
    if isinstance(pattern, PatternConstructor):
        same = pattern.constructor.name_hint == value[0]
        return same and all(map(takes, pattern.patterns, value[1:]))
    return True


def patterns(depth: int) -> st.SearchStrategy[Pattern]:
    if depth == 0:
        return st.builds(PatternWildcard)
    part = patterns(depth - 1)
    return st.one_of(
        st.builds(PatternWildcard),
        st.just(PatternConstructor(A)),
        st.builds(lambda p: PatternConstructor(B, [p]), part),
        st.builds(lambda p, q: PatternConstructor(C, [p, q]), part, part),
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(patterns(2), max_size=5))
def test_a_value_is_left_out_exactly_if_a_missing_case_takes_it(arms: list[Pattern]) -> None:
    left_out = unmatched_cases(match(*arms), lambda _: ALL)
    for value in values(3):
        assert any(takes(arm, value) for arm in arms) != any(takes(case, value) for case in left_out)


def test_arms_of_other_constructors_are_not_looked_at() -> None:
    """As many arms as constructors take time by their number, not by its square."""
    looked = 0

    def overlap(candidate: Pattern, arm: Pattern) -> str:
        nonlocal looked
        looked += 1
        return original(candidate, arm)

    original, count = unmatched._overlap, 500
    many = [Constructor(f"C{k}", [], T, k) for k in range(count)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unmatched, "_overlap", overlap)
        left = unmatched_cases(match(*map(PatternConstructor, many[1:])), lambda _: many)
    assert [pattern_text(case) for case in left] == ["C0"]
    assert looked <= 2 * count
