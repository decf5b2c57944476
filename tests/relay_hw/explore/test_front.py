"""Fronts against the definition, the sentences of losers, searches, and the journal."""

from __future__ import annotations

import numpy as np
import pytest

from relay_hw.errors import InputError
from relay_hw.explore.front import Objective, beaten_by, beats, best_rival, read_objectives, unbeaten
from relay_hw.explore.search import ROUND, Search, read_search, rounds
from relay_hw.explore.space import spanned

SPACE = spanned(
    {"block_in": (4, 8, 16, 32), "block_out": (4, 8, 16, 32), "inp_depth": tuple(2**k for k in range(6, 14))}
)


def test_the_front_is_what_nobody_beats() -> None:
    rng = np.random.default_rng(5)
    for size in (1, 2, 40, 200):
        amounts = {n: tuple(map(float, row)) for n, row in enumerate(rng.integers(0, 9, size=(size, 3)))}
        slow = {n for n, own in amounts.items() if not any(beats(other, own) for other in amounts.values())}
        front = unbeaten(amounts)
        assert front == slow
        for number, own in amounts.items():
            rival = best_rival(own, amounts, front)
            assert (rival is None) == (number in front)
            assert rival is None or (rival in front and beats(amounts[rival], own))


def test_a_loser_hears_who_beats_it_and_by_how_much() -> None:
    objectives = (Objective.CYCLES, Objective.LUTS, Objective.BLOCK_RAMS, Objective.ACCURACY)
    text = beaten_by(7, (2000, 100, 8, -0.5), (1500, 100, 4, -0.75), objectives)
    assert text == "#7 beats it: cycles -25.0%, the same luts, block rams -50.0%, accuracy +0.25"


def test_objectives_by_name() -> None:
    assert read_objectives("cycles, luts") == (Objective.CYCLES, Objective.LUTS)
    with pytest.raises(InputError, match="objective must be one of cycles, ms,"):
        read_objectives("speed")
    with pytest.raises(InputError, match="objectives must differ, not have luts twice"):
        read_objectives("luts,luts")


def drained(search: Search, points: int, seed: int, front: tuple[int, ...] = ()) -> list[list[int]]:
    found = rounds(search, SPACE, points, seed, lambda number: number % 3 > 0, float)
    numbers, every = next(found), list[list[int]]()
    while True:
        every.append(numbers)
        try:
            numbers = found.send(front)
        except StopIteration:
            return every


def test_a_grid_has_every_point_once_the_promising_first() -> None:
    every = drained(Search.GRID, 1, 0)
    assert [n for numbers in every for n in numbers] == list(range(SPACE.size))
    assert {len(numbers) for numbers in every} == {ROUND}


@pytest.mark.parametrize("search", [Search.RANDOM, Search.SMART])
def test_other_searches_have_as_many_legal_points_as_asked_for(search: Search) -> None:
    one = [n for numbers in drained(search, 40, 1, (5, 77)) for n in numbers]
    assert one == [n for numbers in drained(search, 40, 1, (5, 77)) for n in numbers]
    assert one != [n for numbers in drained(search, 40, 2, (5, 77)) for n in numbers]
    assert len(set(one)) == len(one) and sum(n % 3 > 0 for n in one) == 40
    all_legal = sum(n % 3 > 0 for n in range(SPACE.size))
    most = [n for numbers in drained(search, 10_000, 1) for n in numbers]
    assert sum(n % 3 > 0 for n in most) == all_legal


def test_a_smart_search_looks_beside_the_front() -> None:
    numbers = {n for numbers in drained(Search.SMART, 100, 1, (5, 77)) for n in numbers}
    near = {n for one in (5, 77) for n in SPACE.near(one) if n % 3 > 0}
    assert near <= numbers


def test_searches_by_name_and_grids_that_are_too_large() -> None:
    assert read_search("smart") is Search.SMART
    with pytest.raises(InputError, match="search must be one of grid, random, smart, not lucky"):
        read_search("lucky")
    large = spanned(
        {
            name: tuple(2**k for k in range(6))
            for name in ("inp_depth", "wgt_depth", "acc_depth", "out_depth", "uop_depth", "prm_depth")
        }
    )
    with pytest.raises(InputError, match="a grid must have at most 20,000 points, not 46,656: search random or smart"):
        rounds(Search.GRID, large, 1, 0, lambda _: True, float)
