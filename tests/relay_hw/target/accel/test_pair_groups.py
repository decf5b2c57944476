"""Which sums and products become one layer: those that are computed for each other only."""

from __future__ import annotations

import pytest

from relay_hw import op
from relay_hw.ir.expr import Expr, Tuple
from relay_hw.target.accel.composites import COMPOSITES
from relay_hw.target.accel.groups import PAIRS
from relay_hw.target.accel.pair_groups import LAYERS, MOST_OPERANDS
from relay_hw.tensorize import why_not
from tests.relay_hw.target.accel.test_composites import ONES, _ints, _merge, inner
from tests.relay_hw.transform.checks import var
from tests.targets import target_for

X, C, S = (var(name, 2, 8, 32, dtype="int8") for name in "xcs")
SCALE = {"multiplier": 3, "shift": 5}


def legal(function):
    return why_not(function, target_for("default"))


def turned(x: Expr, first: int) -> Expr:
    parts = [op.strided_slice(x, (low,), (high,), axes=(2,)) for low, high in ((first, 32), (0, first))]
    return op.concatenate(Tuple(parts), axis=2)


def rotary(x: Expr, first: int) -> Expr:
    return op.fixed.add(op.fixed.mul(x, C, **SCALE), op.fixed.mul(turned(x, first), S, **SCALE), **ONES)


@pytest.mark.parametrize("first", [8, 16])
def test_a_rotary_embedding_is_one_layer(first: int):
    """Where half of a head is a whole block of channels and where it is not."""
    body = rotary(op.fixed.mul(X, X, **SCALE), first)
    _mul, found = _merge(body, "accel.mul", "accel.pairs", legal=legal, params=(X, C, S))
    assert inner(found).count("fixed.mul") == 2 and "concatenate" in inner(found) and len(found.params) == 3


def test_what_moves_pixels_is_a_layer_of_its_own():
    x = op.fixed.mul(X, X, **SCALE)
    body = op.fixed.add(op.fixed.mul(x, C, **SCALE), op.fixed.mul(op.reverse(x, 1), S, **SCALE), **ONES)
    _mul, _move, pairs = _merge(body, "accel.mul", "accel.move", "accel.pairs", legal=legal, params=(X, C, S))
    assert sorted(inner(pairs)) == ["fixed.add", "fixed.mul", "fixed.mul"]


def test_tables_on_the_way_lie_inside():
    results = _ints(256)
    body = op.fixed.table(op.fixed.mul(op.fixed.table(op.fixed.add(X, C, **ONES), results), S, **SCALE), results)
    (found,) = _merge(body, "accel.pairs", params=(X, C, S))
    assert inner(found) == ["fixed.add", "fixed.table", "fixed.mul", "fixed.table"] and len(found.params) == 3


def test_what_others_read_is_a_layer_of_its_own():
    product = op.fixed.mul(X, C, **SCALE)
    _merge(Tuple([op.fixed.add(product, S, **ONES), product]), "accel.mul", "accel.add", params=(X, C, S))


def test_a_layer_keeps_what_it_can_take_in():
    """A gate behind a dense layer costs nothing there."""
    dense = op.fixed.requantize(
        op.nn.dense(X, _ints(32, 32), out_dtype="int32"), _ints(32, dtype="int32"), 3, 10, axis=2
    )
    body = op.fixed.add(op.fixed.mul(dense, C, **SCALE), op.fixed.mul(X, S, **SCALE), **ONES)
    first, second = _merge(body, "accel.dense", "accel.pairs", params=(X, C, S))
    assert "fixed.mul" in inner(first) and inner(second) == ["fixed.mul", "fixed.add"]


def test_these_are_the_layers_that_may_take_one_in():
    assert {one.anchor for one in COMPOSITES if {*PAIRS} & {*one.after}} == {*LAYERS}


def test_a_sum_of_many_is_cut():
    total = X
    for _ in range(2 * MOST_OPERANDS):
        total = op.fixed.add(total, C, **ONES)
    found = _merge(total, *["accel.pairs"] * 3, params=(X, C))
    assert [len(inner(function)) for function in found] == [2, MOST_OPERANDS - 1, MOST_OPERANDS - 1]


def test_where_no_tree_fits_each_is_a_layer():
    body = op.fixed.add(op.fixed.mul(X, C, **SCALE), S, **ONES)

    def single(function):
        return None if len(inner(function)) == 1 else "no"

    _merge(body, "accel.mul", "accel.add", legal=single, params=(X, C, S))
    _merge(body, "accel.mul", "accel.add", legal=lambda _: "no", params=(X, C, S))
