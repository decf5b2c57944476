"""Springs against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest

from relay_hw.accel.fpga.place.netlist import Netlist
from relay_hw.accel.fpga.place.springs import FANOUT, GROUND, Settling, Springs, springs, wire_length

pytest.importorskip("scipy", reason="scipy comes with pip install 'relay-hw[fpga]'")


def test_a_net_of_two_is_a_spring_and_a_larger_one_a_star() -> None:
    cells = {name: {"type": "LUT4"} for name in "abcd"}
    found = springs(Netlist(cells, {7: (0, 1), 8: (1, 2, 3), 9: (3,)}))
    assert found.size == 5
    assert found.ends.tolist() == [[0, 1], [1, 4], [2, 4], [3, 4]]
    assert found.strength.tolist() == [1, 2 / 3, 2 / 3, 2 / 3]


SIZE, KEPT = 40, [3, 4, 11, 30]
FREE = [k for k in range(SIZE) if k not in KEPT]


def tangle(seed: int) -> tuple[Springs, np.ndarray, np.ndarray]:
    """Springs at random, their strengths as a matrix, and what a move of each free place costs in forces."""
    random = np.random.default_rng(seed)
    ends = np.array([pair for pair in random.integers(SIZE, size=(160, 2)) if pair[0] != pair[1]])
    given = Springs(SIZE, ends, random.uniform(0.1, 2.0, len(ends)))
    links = np.zeros((SIZE, SIZE))
    for (a, b), strength in zip(given.ends, given.strength, strict=True):
        links[a, b] += strength
        links[b, a] += strength
    return given, links, np.diag(links.sum(axis=1)[FREE] + GROUND) - links[np.ix_(FREE, FREE)]


@pytest.mark.parametrize("seed", range(5))
def test_what_is_left_is_the_schur_complement(seed: int) -> None:
    given, links, laplacian = tangle(seed)
    want = links[np.ix_(KEPT, KEPT)] + links[np.ix_(KEPT, FREE)] @ np.linalg.solve(laplacian, links[np.ix_(FREE, KEPT)])
    np.fill_diagonal(want, 0.0)
    np.testing.assert_allclose(Settling(given, KEPT).pull(), want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("seed", range(5))
def test_everything_else_settles_where_no_force_is_left(seed: int) -> None:
    given, links, laplacian = tangle(seed)
    at = np.random.default_rng(seed).uniform(-50, 50, (len(KEPT), 2))
    found = Settling(given, KEPT).settled(at)
    np.testing.assert_array_equal(found[KEPT], at)
    middle = at.mean(axis=0)
    want = middle + np.linalg.solve(laplacian, links[np.ix_(FREE, KEPT)] @ (at - middle))
    np.testing.assert_allclose(found[FREE], want, rtol=1e-4, atol=1e-3)


def test_what_nothing_pulls_lies_amid_what_is_kept() -> None:
    given = Springs(3, np.array([[0, 1]]), np.array([1.0]))
    np.testing.assert_allclose(Settling(given, [0, 1]).settled(np.array([[2.0, 0.0], [6.0, 10.0]]))[2], [4, 5])


def test_wires_are_half_their_bounding_boxes_edges() -> None:
    at = np.array([[0.0, 0.0], [3.0, 1.0], [1.0, 5.0]])
    wide = tuple(range(3, 4 + FANOUT))
    at = np.concatenate([at, 100.0 * np.arange(2 * len(wide)).reshape(-1, 2)])
    netlist = Netlist({}, {7: (0, 1), 8: (0, 1, 2), 9: (2,), 10: wide})
    assert wire_length(netlist, at) == (3 + 1) + (3 + 5)
    assert wire_length(Netlist({}, {}), at) == 0
