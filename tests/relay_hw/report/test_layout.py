"""The layout of graphs: boxes that do not meet, lines that lead downwards, few crossings."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from relay_hw.report.layout import HEIGHT, Layout, lay_out

WIDE = 100.0


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[float], list[tuple[int, int]]]:
    """Widths, and edges to nodes of higher numbers."""
    widths = draw(st.lists(st.sampled_from([40.0, WIDE, 180.0]), min_size=1, max_size=14))
    pairs = list(combinations(range(len(widths)), 2))
    return widths, draw(st.lists(st.sampled_from(pairs), max_size=24)) if pairs else []


@given(graphs())
def test_boxes_do_not_meet_and_lines_lead_down(graph: tuple[list[float], list[tuple[int, int]]]) -> None:
    widths, edges = graph
    found = lay_out(widths, edges)
    assert found == lay_out(widths, edges)
    for (a, (x, y)), (b, (left, top)) in combinations(enumerate(found.places), 2):
        assert abs(y - top) >= HEIGHT or x + widths[a] < left or left + widths[b] < x
    for (x, y), width in zip(found.places, widths, strict=True):
        assert x >= 0 and y >= 0 and x + width <= found.width and y + HEIGHT <= found.height
    assert {(wire.begin, wire.end) for wire in found.wires} == set(edges)
    for wire in found.wires:
        (x, y), (left, top) = found.places[wire.begin], found.places[wire.end]
        assert abs(wire.points[0][0] - (x + widths[wire.begin] / 2)) < 0.2 and wire.points[0][1] == y + HEIGHT
        assert abs(wire.points[-1][0] - (left + widths[wire.end] / 2)) < 0.2 and wire.points[-1][1] == top
        heights = [point[1] for point in wire.points]
        assert heights == sorted(heights) and y + HEIGHT < top


def columns(found: Layout) -> list[float]:
    return [x for x, _ in found.places]


def test_a_chain_is_one_straight_line() -> None:
    found = lay_out([WIDE] * 5, [(k, k + 1) for k in range(4)])
    assert len(set(columns(found))) == 1 and all(len({x for x, _ in wire.points}) == 1 for wire in found.wires)


def test_a_shortcut_runs_beside_what_it_leaves_out() -> None:
    found = lay_out([WIDE] * 4, [(0, 1), (1, 2), (2, 3), (0, 3)])
    shortcut = next(wire for wire in found.wires if (wire.begin, wire.end) == (0, 3))
    for node in (1, 2):
        left, top = found.places[node]
        assert not any(left <= x <= left + WIDE and top <= y <= top + HEIGHT for x, y in shortcut.points)


def test_branches_do_not_cross() -> None:
    # Two chains whose nodes come in turns, the second one first in half of the ranks.
    found = lay_out([WIDE] * 8, [(0, 2), (1, 3), (2, 5), (3, 4), (4, 6), (5, 7)])
    x = columns(found)
    assert (x[0] < x[1]) == (x[2] < x[3]) == (x[5] < x[4]) == (x[7] < x[6])


def test_what_reads_nothing_stands_right_above_its_reader() -> None:
    found = lay_out([WIDE] * 4, [(0, 1), (1, 3), (2, 3)])
    assert found.places[2][1] == found.places[1][1]
    assert lay_out([], []).places == ()
