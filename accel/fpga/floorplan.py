"""Where block RAMs and multipliers go, before logic is placed: where the wires between them are shortest.

In: yosys's netlist of a design and a part. Out: the netlist with a site for each of them, which nextpnr takes as given.

nextpnr's placer leaves them about where its first, rough solution threw them: in rows across the chip in any order,
with wires along those rows that no router finds room for. Here every wire is a spring. Logic, which goes wherever its
springs pull it, is taken out (the Schur complement of the springs' Laplacian), so that what is left are springs between
block RAMs and multipliers alone. Annealing then finds sites for them (Kirkpatrick et al., Science 220, 1983).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from accel.fpga.netlist import Netlist, read_netlist, with_names
from accel.fpga.parts import MACROS, FlowError, Part, Site

Floats = npt.NDArray[np.float64]

# Nets of more cells than this say nothing of who belongs together: clock, enables, addresses.
FANOUT: Final = 48
# Steps of the elimination, and the share of a spring that holds each cell where nothing pulls it.
ELIMINATION_STEPS: Final = 60
GROUND: Final = 1e-3
# Tries, moves of each for each cell, and the first and the last temperature in parts of a cell's mean cost. The springs
# of `ecp5` come out 6 % shorter than after 400,000 moves from a start three times less hot.
STARTS: Final = 3
MOVES: Final = 2500
HOTTEST: Final = 1.0
COLDEST: Final = 1e-3
# Springs are rounded to this part of the strongest, so that the last bits of a machine's sums decide nothing.
ROUNDING: Final = 2.0**-20
# What decides a floorplan beside its input: part of the key of what is made of it.
FLOORPLAN: Final = ("springs", FANOUT, ELIMINATION_STEPS, GROUND, STARTS, MOVES, HOTTEST, COLDEST, ROUNDING)


@dataclass(frozen=True, slots=True)
class Springs:
    """Edges (two places and a strength each) among `size` places, the first of which are a netlist's cells."""

    size: int
    ends: npt.NDArray[np.int64]
    strength: Floats


def floorplanned(module: Mapping[str, Any], part: Part) -> dict[str, Any]:
    """The module with names for its cells and a site for each block RAM and multiplier. Raises FlowError."""
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
    pull = eliminated(springs(netlist), places)
    chosen = annealed(pull, kinds, sites)
    for place, site in zip(places, chosen, strict=True):
        cell = cells[names[place]]
        cells[names[place]] = {**cell, "attributes": {**cell["attributes"], "BEL": sites[site].bel}}
    return {**module, "cells": cells}


def springs(netlist: Netlist) -> Springs:
    """A spring for each net of two cells, a star of them for each larger one."""
    ends: list[tuple[int, int]] = []
    strength: list[float] = []
    size = len(netlist.cells)
    for places in netlist.pins.values():
        if len(places) == 2:
            ends.append((places[0], places[1]))
            strength.append(1.0)
        elif 2 < len(places) <= FANOUT:
            ends.extend((place, size) for place in places)
            strength.extend([2.0 / len(places)] * len(places))
            size += 1
    return Springs(size, np.array(ends, dtype=np.int64).reshape(-1, 2), np.array(strength))


def eliminated(given: Springs, kept: list[int]) -> Floats:
    """Springs among the places `kept` that act on them as all the given ones do, symmetric, zero on the diagonal.

    Solved for all of them at once by conjugate gradients; what is left of the residue moves no site.
    """
    from scipy.sparse import coo_matrix, diags_array

    first, second = given.ends.T
    both = (np.concatenate([first, second]), np.concatenate([second, first]))
    links = coo_matrix((np.tile(given.strength, 2), both), shape=(given.size, given.size)).tocsr()
    is_kept = np.zeros(given.size, dtype=bool)
    is_kept[kept] = True
    free = np.flatnonzero(~is_kept)
    across = links[free][:, kept].toarray()
    scale = 1.0 / np.sqrt(np.asarray(links.sum(axis=1)).ravel()[free] + GROUND)
    inner = (diags_array(scale) @ links[free][:, free] @ diags_array(scale)).tocsr().astype(np.float32)
    right = (scale[:, None] * across).astype(np.float32)
    pull = links[kept][:, kept].toarray() + across.T @ (scale[:, None] * _solved(inner, right))
    pull = (pull + pull.T) / 2
    np.fill_diagonal(pull, 0.0)
    step = max(float(pull.max(initial=0.0)), 1e-9) * ROUNDING
    return np.round(pull / step) * step


def _solved(inner: Any, right: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """x with x - inner x = right, column by column."""
    x, residue = right.copy(), inner @ right
    direction, size = residue.copy(), (residue * residue).sum(axis=0)
    for _step in range(ELIMINATION_STEPS):
        image = direction - inner @ direction
        length = size / np.maximum((direction * image).sum(axis=0), 1e-30)
        x += length * direction
        residue -= length * image
        last, size = size, (residue * residue).sum(axis=0)
        direction = residue + size / np.maximum(last, 1e-30) * direction
    return x


def annealed(pull: Floats, kinds: list[str], sites: tuple[Site, ...], moves_each: int = MOVES) -> list[int]:
    """A site for each, of its kind, such that the springs are short: of several tries the best, always the same one."""
    far = _distances(sites)
    rooms = {kind: [k for k, site in enumerate(sites) if site.kind == kind] for kind in MACROS}
    random = np.random.default_rng(1)
    tries = [_cooled(pull, far, kinds, rooms, moves_each * len(kinds), random) for _ in range(STARTS)]
    return [int(site) for site in min(tries, key=lambda at: _length(pull, far, at))]


def _cooled(
    pull: Floats, far: Floats, kinds: list[str], rooms: Mapping[str, list[int]], moves: int, random: np.random.Generator
) -> npt.NDArray[np.int64]:
    """One try, from a random start on."""
    at = _thrown(kinds, rooms, random)
    owner = {int(site): place for place, site in enumerate(at)}
    hot = HOTTEST * _length(pull, far, at) / len(at)
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


def _length(pull: Floats, far: Floats, at: npt.NDArray[np.int64]) -> float:
    """Of all springs, by their strengths."""
    return float((pull * far[np.ix_(at, at)]).sum()) / 2


def _thrown(kinds: list[str], rooms: Mapping[str, list[int]], random: np.random.Generator) -> npt.NDArray[np.int64]:
    """A site of its kind for each, at random."""
    orders = {kind: iter(random.permutation(room).tolist()) for kind, room in rooms.items()}
    return np.array([next(orders[kind]) for kind in kinds], dtype=np.int64)


def _distances(sites: tuple[Site, ...]) -> Floats:
    """Columns plus rows between any two sites."""
    x, y = np.array([site.x for site in sites]), np.array([site.y for site in sites])
    return (np.abs(x[:, None] - x) + np.abs(y[:, None] - y)).astype(np.float64)
