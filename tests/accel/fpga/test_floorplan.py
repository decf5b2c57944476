"""Sites for block RAMs and multipliers: the annealing against all orders."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest

from relay_hw.accel.fpga.parts import ECP5_PARTS, MACROS, FlowError, Part, Site, find_part
from relay_hw.accel.fpga.place.floorplan import POWER, TRIES, annealed, floorplanned

pytest.importorskip("scipy", reason="scipy comes with pip install 'relay-hw[fpga]'")


@pytest.mark.parametrize("part", ECP5_PARTS, ids=lambda part: part.name)
def test_a_part_has_a_site_for_each_that_it_counts(part: Part) -> None:
    sites = part.sites()
    assert len({site.bel for site in sites}) == len(sites)
    assert [sum(site.kind == kind for site in sites) for kind in MACROS] == [part.block_rams, part.multipliers]


@pytest.mark.parametrize("seed", range(4))
def test_annealing_finds_the_best_of_all_orders(seed: int) -> None:
    random = np.random.default_rng(seed)
    pull = np.triu(random.uniform(0, 1, (6, 6)) ** 4, 1)
    pull += pull.T
    kinds = ["DP16KD"] * 4 + ["MULT18X18D"] * 2
    rams = [Site("DP16KD", f"r{x}", x, 0) for x in (0, 2, 3, 7, 9)]
    sites = (*rams, *(Site("MULT18X18D", f"m{x}", x, 4) for x in (1, 6, 8)))

    def length(at: Sequence[int]) -> float:
        return sum(
            pull[a, b] * (abs(sites[at[a]].x - sites[at[b]].x) + abs(sites[at[a]].y - sites[at[b]].y)) ** POWER
            for a in range(6)
            for b in range(a)
        )

    def tries() -> list[list[int]]:
        random = np.random.default_rng(1)
        return [annealed(pull, kinds, sites, random).tolist() for _ in range(TRIES)]

    best = min(length((*r, *m)) for r in permutations(range(5), 4) for m in permutations(range(5, 8), 2))
    found = tries()
    assert all([sites[site].kind for site in at] == kinds and len(set(at)) == 6 for at in found)
    assert min(map(length, found)) == pytest.approx(best)
    assert tries() == found


def module(rams: int) -> dict[str, Any]:
    """A chain of block RAMs in the order of their numbers, a LUT between any two."""
    cells = {
        f"ram{k}": {
            "type": "DP16KD",
            "connections": {"ADA0": [2 * k + 2], "DOA0": [2 * k + 3]},
            "port_directions": {"ADA0": "input", "DOA0": "output"},
            "attributes": {"src": "x"},
        }
        for k in range(rams)
    } | {
        f"$lut{k}": {
            "type": "LUT4",
            "connections": {"A": [2 * k + 3], "Z": [2 * k + 4]},
            "port_directions": {"A": "input", "Z": "output"},
            "attributes": {},
        }
        for k in range(rams)
    }
    return {"cells": cells, "netnames": {}}


def test_a_chain_lies_in_a_row() -> None:
    part = find_part("lfe5u-25f")
    cells = floorplanned(module(5), part, 1)["cells"]
    where = {site.bel: (site.x, site.y) for site in part.sites()}
    at = [where[cells[f"ram{k}"]["attributes"]["BEL"]] for k in range(5)]
    steps = [abs(a[0] - b[0]) + abs(a[1] - b[1]) for a, b in pairwise(at)]
    assert sum(steps) <= 4 * 3
    assert cells["ram0"]["attributes"]["src"] == "x"
    assert sum("BEL" in cell["attributes"] for cell in cells.values()) == 5


def test_a_seed_gives_one_floorplan() -> None:
    part = find_part("lfe5u-25f")
    first, again, other = (floorplanned(module(12), part, seed)["cells"] for seed in (1, 1, 2))
    assert first == again != other


def test_nothing_to_place_leaves_all_as_it_is() -> None:
    cells = floorplanned({"cells": {"a": {**module(1)["cells"]["$lut0"]}}, "netnames": {}}, ECP5_PARTS[0], 1)["cells"]
    assert list(cells) == ["a"]


def test_more_than_a_part_has() -> None:
    with pytest.raises(FlowError, match="DP16KD must be at most 56 on lfe5u-25f, not 57"):
        floorplanned(module(57), find_part("lfe5u-25f"), 1)
