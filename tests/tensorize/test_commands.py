"""Loop nests: the instructions of a nest visit every index of it once, in an order that keeps each axis ascending."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from relay_hw.tensorize.commands import Axis, fit_loops

AXES = st.lists(
    st.builds(
        lambda count, a, b: Axis(count, {"a": a, "b": b}), st.integers(1, 4), st.integers(0, 12), st.integers(0, 12)
    ),
    min_size=1,
    max_size=4,
)


def visited(axes: list[Axis], lead: Axis | None) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for loops in fit_loops(axes, lead):
        for outer, inner in product(range(loops.outer.count), range(loops.inner.count)):
            index = tuple(
                loops.bases.get(name, 0)
                + outer * loops.outer.steps.get(name, 0)
                + inner * loops.inner.steps.get(name, 0)
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
    for loops in fit_loops(axes, lead):
        assert "lead" not in loops.inner.steps


@given(axes=AXES)
def test_two_axes_stay_in_order(axes: list[Axis]) -> None:
    assert visited(axes[:2], None) == wanted(axes[:2])


def test_neighbours_fuse() -> None:
    rows, cols = Axis(7, {"a": 14, "b": 28}), Axis(14, {"a": 1, "b": 2})
    (loops,) = fit_loops([rows, cols])
    assert (loops.outer.count, loops.inner.count) == (1, 98)
    channels = Axis(3, {"b": 1})
    (loops,) = fit_loops([rows, cols, channels])
    assert (loops.outer.count, loops.inner.count) == (98, 3)


def test_the_shortest_axis_becomes_instructions() -> None:
    axes = [Axis(5, {"a": 100}), Axis(2, {"a": 30}), Axis(6, {"a": 1})]
    cut = fit_loops(axes)
    assert [loops.bases for loops in cut] == [{"a": 0}, {"a": 30}]
    assert all((loops.outer.count, loops.inner.count) == (5, 6) for loops in cut)


def test_long_axes_are_not_fused_past_the_field() -> None:
    (loops,) = fit_loops([Axis(300, {"a": 300}), Axis(300, {"a": 1})])
    assert (loops.outer.count, loops.inner.count) == (300, 300)
