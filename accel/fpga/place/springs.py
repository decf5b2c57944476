"""Quadratic placement: wires as springs, and how they pull on some cells once all others have settled.

In: cells and nets. Out: springs between the cells that are kept, by which sites for them are compared; and, for sites
that are given, where all other cells end up and how long the wires are then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from relay_hw.accel.fpga.place.netlist import Netlist

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

# Nets of more cells than this say nothing of who belongs together: clock, enables, addresses.
FANOUT: Final = 48
# Steps of the elimination, and the share of a spring that holds each cell where nothing pulls it.
ELIMINATION_STEPS: Final = 60
GROUND: Final = 1e-3
# Springs are rounded to this part of the strongest, so that the last bits of a machine's sums decide nothing.
ROUNDING: Final = 2.0**-20


@dataclass(frozen=True, slots=True)
class Springs:
    """Edges (two places and a strength each) among `size` places, the first of which are a netlist's cells."""

    size: int
    ends: Places
    strength: Floats


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


class Settling:
    """Springs some of whose places are kept where one puts them, and all others settle between them.

    All others are taken out by conjugate gradients on the normalised Laplacian (the Schur complement); what is left of
    the residue moves no site.
    """

    def __init__(self, given: Springs, kept: Sequence[int]) -> None:
        from scipy.sparse import coo_matrix, diags_array

        first, second = given.ends.T
        both = (np.concatenate([first, second]), np.concatenate([second, first]))
        links = coo_matrix((np.tile(given.strength, 2), both), shape=(given.size, given.size)).tocsr()
        self._kept = np.array(kept, dtype=np.int64)
        self._free = np.setdiff1d(np.arange(given.size), self._kept)
        self._scale = 1.0 / np.sqrt(np.asarray(links.sum(axis=1)).ravel()[self._free] + GROUND)
        free_rows = links[self._free]
        inner = diags_array(self._scale) @ free_rows[:, self._free] @ diags_array(self._scale)
        self._inner: Any = inner.tocsr().astype(np.float32)
        self._across: Any = free_rows[:, self._kept]
        self._direct: Floats = links[self._kept][:, self._kept].toarray()

    def pull(self) -> Floats:
        """Springs among the kept places that act on them as all the given ones do, symmetric, zero on the diagonal."""
        across: Floats = self._across.toarray()
        pull = self._direct + across.T @ self._solved(across)
        pull = (pull + pull.T) / 2
        np.fill_diagonal(pull, 0.0)
        step = max(float(pull.max(initial=0.0)), 1e-9) * ROUNDING
        return np.round(pull / step) * step

    def settled(self, at: Floats) -> Floats:
        """[place, 2] where all end up with the kept ones at `at` [kept, 2]; what nothing pulls, amid them."""
        middle = at.mean(axis=0)
        found = np.empty((self._kept.size + self._free.size, 2))
        found[self._kept] = at
        found[self._free] = middle + self._solved(self._across @ (at - middle))
        return found

    def _solved(self, force: Floats) -> Floats:
        """Of all free places, for each column of forces on them."""
        right = (self._scale[:, None] * force).astype(np.float32)
        x, residue = right.copy(), self._inner @ right
        direction, size = residue.copy(), (residue * residue).sum(axis=0)
        for _step in range(ELIMINATION_STEPS):
            image = direction - self._inner @ direction
            length = size / np.maximum((direction * image).sum(axis=0), 1e-30)
            x += length * direction
            residue -= length * image
            last, size = size, (residue * residue).sum(axis=0)
            direction = residue + size / np.maximum(last, 1e-30) * direction
        return self._scale[:, None] * x


def wire_length(netlist: Netlist, at: Floats) -> float:
    """Half the bounding boxes' edges, of all nets but the largest, of cells at `at` [place, 2]."""
    nets = [np.array(places) for places in netlist.pins.values() if 1 < len(places) <= FANOUT]
    if not nets:
        return 0.0
    begins = np.cumsum([0, *(net.size for net in nets[:-1])])
    ends = at[np.concatenate(nets)]
    return float((np.maximum.reduceat(ends, begins) - np.minimum.reduceat(ends, begins)).sum())
