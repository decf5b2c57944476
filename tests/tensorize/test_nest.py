"""Loop nests: the pieces of a nest visit every index of it once, in an order that keeps each axis ascending."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from relay_hw.tensorize.nest import Axis, fit_loops

AXES = st.lists(
    st.builds(
        lambda count, a, b: Axis(count, {"a": a, "b": b}), st.integers(1, 4), st.integers(0, 12), st.integers(0, 12)
    ),
    min_size=1,
    max_size=4,
)


def visited(axes: list[Axis], lead: Axis | None) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for piece in fit_loops(axes, lead):
        for outer, inner in product(range(piece.outer.count), range(piece.inner.count)):
            index = tuple(
                piece.bases.get(name, 0)
                + outer * piece.outer.steps.get(name, 0)
                + inner * piece.inner.steps.get(name, 0)
                for name in ("a", "b")
            )
            found.append((index[0], index[1]))
    return found


def wanted(axes: list[Axis]) -> list[tuple[int, int]]:
    trips = product(*(range(axis.count) for axis in axes))
    return [
        (
            sum(t * axis.steps.get("a", 0) for t, axis in zip(trip, axes, strict=True)),
            sum(t * axis.steps.get("b", 0) for t, axis in zip(trip, axes, strict=True)),
        )
        for trip in trips
    ]


@given(axes=AXES)
def test_every_index_once(axes: list[Axis]) -> None:
    assert sorted(visited(axes, None)) == sorted(wanted(axes))


@given(axes=AXES, count=st.integers(1, 4))
def test_lead_is_outer_or_apart(axes: list[Axis], count: int) -> None:
    lead = Axis(count, {"a": 5, "b": 1, "lead": 1})
    assert sorted(visited(axes, lead)) == sorted(wanted([lead, *axes]))
    for piece in fit_loops(axes, lead):
        assert "lead" not in piece.inner.steps


@given(axes=AXES)
def test_two_axes_stay_in_order(axes: list[Axis]) -> None:
    assert visited(axes[:2], None) == wanted(axes[:2])


def test_neighbours_fuse() -> None:
    rows, cols = Axis(7, {"a": 14, "b": 28}), Axis(14, {"a": 1, "b": 2})
    (piece,) = fit_loops([rows, cols])
    assert (piece.outer.count, piece.inner.count) == (1, 98)
    channels = Axis(3, {"b": 1})
    (piece,) = fit_loops([rows, cols, channels])
    assert (piece.outer.count, piece.inner.count) == (98, 3)


def test_the_shortest_axis_becomes_instructions() -> None:
    axes = [Axis(5, {"a": 100}), Axis(2, {"a": 30}), Axis(6, {"a": 1})]
    pieces = fit_loops(axes)
    assert [piece.bases for piece in pieces] == [{"a": 0}, {"a": 30}]
    assert all((piece.outer.count, piece.inner.count) == (5, 6) for piece in pieces)


def test_long_axes_are_not_fused_past_the_field() -> None:
    (piece,) = fit_loops([Axis(300, {"a": 300}), Axis(300, {"a": 1})])
    assert (piece.outer.count, piece.inner.count) == (300, 300)
