"""Sums and products inside one another: any tree of them, operands with channels in another order, what is refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.accel.isa.spec import Dst, Op
from relay_hw.analysis import infer_type
from relay_hw.ir.expr import Expr, Function, Tuple, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.tensorize import why_not
from relay_hw.tensorize.compile import plan_region
from relay_hw.tensorize.kernel import PairsKernel
from relay_hw.tensorize.target import Target
from tests.targets import target_for
from tests.tensorize.regions import Regions, compare

ONES = {"y_multiplier": 3, "r_multiplier": 5, "shift": 3}


def turned(x: Expr, by: int = 2) -> Expr:
    """The channels [..., C] from one `by`-th of them on, then the first ones, as rotary embeddings have them."""
    assert isinstance(x, Var) and isinstance(x.type_annotation, TensorType)
    *_, channels = x.type_annotation.static_shape
    first = channels // by
    parts = [op.strided_slice(x, (low,), (high,), axes=(-1,)) for low, high in ((first, channels), (0, first))]
    return op.concatenate(Tuple(parts), axis=-1)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_any_tree_is_one_layer(kit: SimpleNamespace, config: Target, count: int) -> None:
    build = kit.Regions(30 + count, config)
    inputs = [build.input(20, 9, 7) for _ in range(3)]
    segment = kit.compare(build.function(build.pairs(count, *inputs)), config)
    assert len(segment.layers) == 1


@pytest.mark.parametrize("width", [16, 24, 48])
def test_channels_in_another_order(kit: SimpleNamespace, config: Target, width: int) -> None:
    """As in a rotary embedding: only the result is stored."""
    build = kit.Regions(width, config)
    x, cosines, sines = (build.tensor(2, 21, width) for _ in range(3))
    function = build.function(build.pairs(2, x, cosines, sines, reordered=turned))
    program = kit.compare(function, config).program
    pixel = -(-width // config.channel_align) * config.channel_align
    stored = sum(v["z"] * v["y"] * v["x"] * config.granule_bytes for o, v in program.instructions if o is Op.STORE)
    assert stored == 2 * 21 * pixel


def test_what_is_made_on_the_way_stays_among_the_accumulators(kit: SimpleNamespace) -> None:
    config = target_for("default")
    build = kit.Regions(5, config)
    inputs = [build.input(32, 8, 8) for _ in range(4)]
    program = kit.compare(build.function(build.pairs(3, *inputs)), config).program
    stages = [Dst(v["dst"]) for o, v in program.instructions if o is Op.REQUANT]
    assert stages.count(Dst.ACC) == 2 * stages.count(Dst.OUT) > 0


def test_a_reordered_operand_of_a_layer_on_chip(kit: SimpleNamespace) -> None:
    """What a convolution makes is both reordered and joined as it is."""
    config = target_for("default")
    build = kit.Regions(6, config)
    y = build.rows(build.tensor(9, 32), 48)
    kit.compare(build.function(build.rows(build.pairs(2, y, y, reordered=turned), 16)), config)


def test_what_a_product_reads_as_weights_lies_in_planes(kit: SimpleNamespace) -> None:
    config = target_for("default")
    build = kit.Regions(9, config)
    x, cosines, sines = (build.tensor(3, 21, 48) for _ in range(3))
    function = build.function(build.product(x, build.pairs(2, x, cosines, sines, reordered=turned)))
    pairs, _ = (layer.kernel for layer in plan_region(function, config, "accel_0").layers)
    assert isinstance(pairs, PairsKernel) and pairs.planes
    kit.compare(function, config)


@settings(max_examples=30, deadline=None)
@given(
    name=st.sampled_from(["default", "tiny", "ecp5", "w4", "wide"]),
    shape=st.tuples(st.integers(1, 3), st.integers(1, 40), st.integers(2, 70)),
    count=st.integers(1, 7),
    operands=st.integers(1, 4),
    by=st.none() | st.integers(1, 5),
    seed=st.integers(0, 1 << 16),
)
def test_random_trees(
    name: str, shape: tuple[int, int, int], count: int, operands: int, by: int | None, seed: int
) -> None:
    config = target_for(name)
    build = Regions(seed, config)
    inputs = [build.tensor(*shape) for _ in range(operands)]
    by = None if by is None or shape[2] // by in (0, shape[2]) else by
    reordered = None if by is None else lambda x: turned(x, by)
    compare(build.function(build.pairs(count, *inputs, reordered=reordered)), config, seed)


def _refused(body: Expr, *params: Var, name: str = "default") -> str | None:
    typed = infer_type(IRModule.from_expr(Function(params, body)))["main"]
    attrs = {"Primitive": 1, "Composite": "accel.pairs"}
    return why_not(Function(typed.params, typed.body, typed.ret_type, attrs=attrs), target_for(name))


def test_what_is_refused_has_a_reason() -> None:
    x, y = (Var(name, TensorType((2, 4, 32), "int8")) for name in "xy")
    joined = op.concatenate(Tuple([op.strided_slice(one, (0,), (16,), axes=(2,)) for one in (x, y)]), axis=2)
    assert _refused(op.fixed.add(x, joined, **ONES), x, y) == "channels must come from one operand, not 2"
    more = op.fixed.add(turned(x), turned(y), **ONES)
    assert _refused(more, x, y) == "one operand at most must have channels in another order, not 2"
    only = "operands of sums and products must only have channels in another order"
    assert _refused(op.fixed.add(x, op.reverse(y, 1), **ONES), x, y) == only
    assert _refused(op.clip(op.fixed.add(x, y, **ONES), 0, 1), x, y) == (
        "operator must be fixed.add or fixed.mul, not clip"
    )
    assert _refused(op.fixed.add(x, x, **ONES), x, y) == "parameters must be read, not only passed as y is"
    looked = x
    for number in range(3):
        results = op.const(np.full(256, number, np.int8))
        looked = op.fixed.table(op.fixed.add(looked, y, **ONES), results)
    assert _refused(looked, x, y, name="tiny") == "one layer's tables must be at most 2 on tiny, not 3"
    wide = Var("wide", TensorType((1, 2, 9000), "int8"))
    found = _refused(op.fixed.add(wide, turned(wide), **ONES), wide, name="tiny")
    assert found == "channels must be few enough to be reordered on tiny, not 9000"
