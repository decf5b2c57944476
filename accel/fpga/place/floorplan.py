"""Places block RAMs and multipliers, before logic, so that the wires between them are short.

In: yosys's netlist of a design and a part. Out: the netlist with a site for each of them, which nextpnr takes as given.

nextpnr's placer leaves them about where its first, rough solution threw them: in rows across the chip in any order,
with wires along those rows that no router finds room for. Here every wire is a spring. Logic, which goes wherever its
springs pull it, is taken out, so that what is left are springs between block RAMs and multipliers alone. Annealing then
finds sites for them (Kirkpatrick et al., Science 220, 1983), several times: of tries whose springs are about as long,
wires are apart by a tenth, so that the one counts whose wires are shortest once logic has settled between the sites.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from relay_hw.accel.fpga.parts import MACROS, FlowError, Part, Site
from relay_hw.accel.fpga.place.netlist import read_netlist, with_names
from relay_hw.accel.fpga.place.springs import (
    ELIMINATION_STEPS,
    FANOUT,
    GROUND,
    ROUNDING,
    Floats,
    Places,
    Settling,
    springs,
    wire_length,
)

# Tries, and moves of each for each cell.
TRIES: Final = 12
MOVES: Final = 1500
# The first and the last temperature in parts of a cell's mean cost, which is a spring's length to this power: 1 leaves
# the wires of `ecp5` 4 % longer, 2 about as long.
HOTTEST: Final = 1.0
COLDEST: Final = 1e-3
POWER: Final = 1.5
# What decides a floorplan beside its input: part of the key of what is made of it.
FLOORPLAN: Final = ("springs", FANOUT, ELIMINATION_STEPS, GROUND, ROUNDING, TRIES, MOVES, HOTTEST, COLDEST, POWER)


def floorplanned(module: Mapping[str, Any], part: Part, seed: int) -> dict[str, Any]:
    """The module with names for its cells and a site for each block RAM and multiplier. Raises FlowError.

    Floorplans of other seeds have wires about as long, and logic falls elsewhere between them.
    """
    netlist = read_netlist(module)
    cells = with_names(module, netlist)["cells"]
    names = list(cells)
    places = [place for kind in MACROS for place in netlist.of_type(kind)]
    if not places:
        return {**module, "cells": cells}
    kinds = [cells[names[place]]["type"] for place in places]
    sites = part.sites()
    for kind in MACROS:
        if kinds.count(kind) > (room := sum(site.kind == kind for site in sites)):
            raise FlowError(f"{kind} must be at most {room} on {part.name}, not {kinds.count(kind)}")
    settling = Settling(springs(netlist), places)
    pull, where = settling.pull(), _where(sites)
    random = np.random.default_rng(seed)
    tries = [annealed(pull, kinds, sites, random) for _ in range(TRIES)]
    chosen = min(tries, key=lambda at: wire_length(netlist, settling.settled(where[at])))
    for place, site in zip(places, chosen.tolist(), strict=True):
        cell = cells[names[place]]
        cells[names[place]] = {**cell, "attributes": {**cell["attributes"], "BEL": sites[site].bel}}
    return {**module, "cells": cells}


def annealed(
    pull: Floats, kinds: list[str], sites: tuple[Site, ...], random: np.random.Generator, moves_each: int = MOVES
) -> Places:
    """A site for each, of its kind, such that the springs are short."""
    where = _where(sites)
    far = np.abs(where[:, None] - where).sum(axis=2) ** POWER
    rooms = {kind: [k for k, site in enumerate(sites) if site.kind == kind] for kind in MACROS}
    moves = moves_each * len(kinds)
    at = _thrown(kinds, rooms, random)
    owner = {int(site): place for place, site in enumerate(at)}
    hot = HOTTEST * float((pull * far[np.ix_(at, at)]).sum()) / 2 / len(at)
    cooling = COLDEST / HOTTEST
    chosen = random.integers(len(at), size=moves).tolist()
    targets, luck = random.random(moves).tolist(), random.random(moves).tolist()
    for move, place in enumerate(chosen):
        room = rooms[kinds[place]]
        here, there = int(at[place]), room[int(targets[move] * len(room))]
        if here == there:
            continue
        other = owner.get(there)
        nearer = far[there, at] - far[here, at]
        change = float(pull[place] @ nearer)
        if other is not None:
            change += float(2 * pull[place, other] * far[here, there] - pull[other] @ nearer)
        if change >= 0 and luck[move] >= math.exp(-change / max(hot * cooling ** (move / moves), 1e-12)):
            continue
        at[place], owner[there] = there, place
        if other is None:
            del owner[here]
        else:
            at[other], owner[here] = here, other
    return at


def _thrown(kinds: list[str], rooms: Mapping[str, list[int]], random: np.random.Generator) -> Places:
    """A site of its kind for each, at random."""
    orders = {kind: iter(random.permutation(room).tolist()) for kind, room in rooms.items()}
    return np.array([next(orders[kind]) for kind in kinds], dtype=np.int64)


def _where(sites: tuple[Site, ...]) -> Floats:
    """[site, 2] columns and rows."""
    return np.array([(site.x, site.y) for site in sites], dtype=np.float64)
