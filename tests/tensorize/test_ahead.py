"""Ordering and loading ahead: dependences are kept, constants come before their use, the bus is shared."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.accel.isa.spec import Mem, Op
from relay_hw.ir.expr import Expr
from relay_hw.tensorize.commands import Command
from relay_hw.tensorize.compile import plan_region
from relay_hw.tensorize.emit.draft import prepare, write_draft
from relay_hw.tensorize.emit.loading import Manner
from relay_hw.tensorize.match.region import read_region
from relay_hw.tensorize.schedule.clocks import Clocks, flow_of
from relay_hw.tensorize.schedule.constants import ConstantLoad, constant_loads
from relay_hw.tensorize.schedule.order import First, interleaved_orders, layer_groups
from relay_hw.tensorize.schedule.plan import plan_steps, schedules
from relay_hw.tensorize.schedule.prefetch import load_windows, starts_of
from relay_hw.tensorize.schedule.step_work import ByteRange, Work, work_of
from tests.targets import target_for

WORK = st.builds(lambda compute, load: Work(compute, 5, load, 5, (), ()), st.integers(0, 800), st.integers(0, 600))


def constant(deadline: int, cycles: int) -> ConstantLoad:
    return ConstantLoad(("c", deadline, cycles), Mem.WGT, 0, deadline, cycles, Command(Op.LOAD, {}, {}))


@given(work=st.lists(WORK, min_size=1, max_size=12), data=st.data(), margin=st.sampled_from((0, 500, 5000)))
def test_windows_come_before_their_deadlines(work: list[Work], data: st.DataObject, margin: int) -> None:
    chunks = data.draw(st.lists(st.tuples(st.integers(0, len(work) - 1), st.integers(1, 300)), max_size=10))
    loads = [constant(*chunk) for chunk in sorted(chunks)]
    windows = load_windows(work, starts_of(flow_of(work), 100), loads, margin)
    assert windows == sorted(windows)
    for load, window in zip(loads, windows, strict=True):
        assert 0 <= window <= load.deadline


def test_steps_that_start_together_keep_their_order() -> None:
    work = [Work(0, 5, 0, 5, (), ()), Work(1, 5, 0, 5, (), ())]
    assert load_windows(work, starts_of(flow_of(work), 100), [constant(0, 1)], 0) == [0]


def test_windows_use_the_gaps_of_the_bus() -> None:
    """Step 1 leaves 700 cycles free and step 2 none: what step 3 needs is loaded during step 1."""
    work = [Work(100, 0, 100, 0, (), ()), Work(1000, 0, 100, 0, (), ()), Work(300, 0, 300, 0, (), ())]
    work += [Work(50, 0, 300, 0, (), ())]
    starts = starts_of(flow_of(work), 100)
    assert load_windows(work, starts, [constant(3, 250), constant(3, 250)], 0) == [1, 1]


def test_clocks_wait_for_stored_rows() -> None:
    first = Work(400, 20, 100, 30, (), (ByteRange(("tensor", 1), 0, 512),))
    other = Work(400, 20, 100, 30, (), (ByteRange(("tensor", 1), 512, 1024),))
    reader = Work(10, 1, 50, 5, (ByteRange(("tensor", 1), 256, 600),), ())
    flow = flow_of([first, other, reader])
    clocks = Clocks(flow, 100)
    assert flow.producers[2] == (0, 1)
    assert clocks.stored(2) is None and clocks.arrival(2) is None
    clocks.run_step(0)
    assert clocks.stored(2) is None
    clocks.run_step(1)
    stored = clocks.stored(2)
    assert stored is not None and stored > clocks.compute
    assert clocks.arrival(2) == stored + 100 + 50


def region_steps(kit: SimpleNamespace, name: str) -> tuple[list, object]:
    config = target_for(name)
    build = kit.Regions(4, config)
    y = build.conv(build.input(3, 16, 16), 16, padding=(1, 1, 1, 1))
    z = build.conv(y, 16, padding=(1, 1, 1, 1), residual=y)
    y = build.max_pool(z, (2, 2), (2, 2))
    y = build.conv(y, 24, (3, 3), (2, 2), (1, 1, 1, 1))
    region = read_region(build.function(build.dense(y, 10)), config, "r")
    return list(plan_steps(region, config)[1]), config


@pytest.mark.parametrize("first", First)
def test_order_keeps_layers_and_dependences(kit: SimpleNamespace, first: First) -> None:
    for name in ("default", "tiny", "ecp5", "wide"):
        steps, config = region_steps(kit, name)
        order = dict(zip(First, interleaved_orders(steps, config), strict=True))[first]
        assert sorted(order) == list(range(len(steps)))
        for layer in {step.layer for step in steps}:
            own = [number for number in order if steps[number].layer == layer]
            assert own == sorted(own)
        flow = flow_of([work_of(step, config) for step in steps])
        place = {number: at for at, number in enumerate(order)}
        for number in order:
            assert all(place[producer] < place[number] for producer in flow.producers[number])


def test_constants_are_needed_where_they_say(kit: SimpleNamespace) -> None:
    """Every entry of every constant is loaded once, no later than the first step that holds its buffer and uses it."""
    for name in ("default", "tiny"):
        steps, config = region_steps(kit, name)
        buffers = {b.key: b for step in steps for b in step.buffers if b.data is not None}
        loads = constant_loads(steps, config)
        covered = {key: [0] * buffer.entries for key, buffer in buffers.items()}
        bytes_of = {Mem.UOP: 8, Mem.WGT: config.wgt_bytes, Mem.PRM: config.prm_bytes}
        for load in loads:
            begin = load.command.refs["sram"].offset
            count = load.command.values["z"] * config.granule_bytes // bytes_of[load.mem]
            for entry in range(begin, begin + count):
                covered[load.key][entry] += 1
        assert all(set(entries) == {1} for entries in covered.values())
        first = {key: min(at for at, s in enumerate(steps) if key in [b.key for b in s.buffers]) for key in buffers}
        assert all(load.deadline >= first[load.key] for load in loads)


def test_layers_are_grouped_by_what_fits(kit: SimpleNamespace) -> None:
    config = target_for("tiny")
    build = kit.Regions(4, config)
    y = build.input(64, 5, 5)
    for _ in range(4):
        y = build.conv(y, 64, (1, 1))
    region = read_region(build.function(y), config, "r")
    groups = layer_groups(plan_steps(region, config)[1], config)
    # 256 of 1024 entries of weights each: all four fit, so they are one group.
    assert groups == ((0, 1, 2, 3),)
    y = build.conv(y, 64, (1, 1))
    region = read_region(build.function(y), config, "r")
    groups = layer_groups(plan_steps(region, config)[1], config)
    assert groups == ((0, 1), (2, 3), (4,))


def test_a_careful_draft_leaves_room_for_computed_weights(kit: SimpleNamespace) -> None:
    """Layer after layer: weights of wide layers, loaded ahead, would take all of WGT before keys are loaded there."""
    config, (tokens, heads, width) = target_for("default"), (64, 6, 48)
    build = kit.Regions(1, config)
    x = build.tensor(tokens, heads * width)
    split: Callable[[Expr], Expr] = lambda y: op.transpose(op.reshape(y, (tokens, heads, width)), (1, 0, 2))  # noqa: E731
    q, k = (build.move(split, build.rows(x, heads * width)) for _ in range(2))
    v = build.move(lambda y: op.transpose(split(y), (0, 2, 1)), build.rows(x, heads * width))
    y = build.product(build.softmax(build.product(q, k)), v)
    y = build.move(lambda y: op.reshape(op.transpose(y, (1, 0, 2)), (tokens, heads * width)), y)
    for units in (heads * width, 768, heads * width):
        y = build.rows(y, units)
    sheet = prepare(schedules(plan_region(build.function(y), config, "accel_0"), config)[-1], config)
    assert write_draft(sheet, config, Manner(1500)) is None
    assert write_draft(sheet, config, Manner(1500, careful=True)) is not None
