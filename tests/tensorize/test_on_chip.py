"""Activations on chip: every vector lands where a LOAD would have put it, results stay equal to the interpreter's."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from relay_hw.accel.isa.spec import Dst, GemmMode, Mem, Op
from relay_hw.ir.expr import Function
from relay_hw.tensorize import Segment, compile_function
from relay_hw.tensorize.commands import Command, Key, Ref, tensor_key
from relay_hw.tensorize.compile import _segment  # pyright: ignore[reportPrivateUsage]
from relay_hw.tensorize.emit.draft import prepare, write_draft
from relay_hw.tensorize.emit.loading import Manner
from relay_hw.tensorize.match.region import read_region
from relay_hw.tensorize.refine import Refiner
from relay_hw.tensorize.schedule.clocks import Clocks, flow_of
from relay_hw.tensorize.schedule.on_chip import cut, forward_on_chip, loops
from relay_hw.tensorize.schedule.on_chip_schedules import depth_order, forwardable
from relay_hw.tensorize.schedule.plan import Schedule, lower_layers, plan_steps
from relay_hw.tensorize.schedule.step_work import Work
from relay_hw.tensorize.schedule.uops import place_uops
from relay_hw.tensorize.target import Target
from tests.targets import target_for


def forced(
    function: Function, config: Target, drop: Sequence[int] = (), kept: Sequence[int] = (), moves: bool = False
) -> Segment | None:
    """The region with every activation on chip that can be, but for `drop`; those of `kept` are stored as well.

    None where they do not fit INP together.
    """
    region = read_region(function, config, "r")
    tiles = plan_steps(region, config)[0]
    steps = lower_layers(region, tiles, config)
    chosen = forwardable(region, steps, config, moves)
    chosen = {key: found for key, found in chosen.items() if key not in {tensor_key(n) for n in drop}}
    outside = {tensor_key(n) for n in (*region.outputs, *kept)}
    moved_away = {patch.replaces for found in chosen.values() for patch in found}
    loads = [load for step in steps for b in step.buffers if b.key not in moved_away for load in b.loads]
    outside |= {load.refs["dram"].key for load in loads} & chosen.keys()
    moved = place_uops(forward_on_chip(steps, chosen, frozenset(outside), config), config)
    ordered = tuple(moved[n] for n in depth_order(moved, config))
    draft = write_draft(prepare(Schedule(region, tiles, ordered), config), config, Manner(None, dense=True))
    return _segment(draft, "r", config, Refiner()) if draft is not None else None


def check_equal(kit: SimpleNamespace, function: Function, segment: Segment, config: Target, seed: int) -> None:
    from relay_hw.interp import evaluate
    from relay_hw.ir.module import IRModule
    from relay_hw.tensorize.emit.check import check_program

    check_program(segment.program, config)
    rng = np.random.default_rng(seed)
    values = [rng.integers(-128, 128, p.type_annotation.static_shape).astype(np.int8) for p in function.params]
    wanted = evaluate(IRModule.from_expr(function), values)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for have, want in zip(kit.run(segment, values, config, seed), wanted, strict=True):
        np.testing.assert_array_equal(have, np.asarray(want), err_msg=segment.schedule)


def chain(kit: SimpleNamespace, config: Target, draw: st.DataObject | None, seed: int) -> tuple[Function, object]:
    """Layers of all kinds one after the other, some of them read twice."""
    build = kit.Regions(seed, config)
    rng = np.random.default_rng(seed)
    x = build.input(int(rng.integers(1, 40)), int(rng.integers(6, 11)), int(rng.integers(6, 11)))
    values = [x]
    kinds = [
        lambda y: build.conv(y, int(rng.integers(1, 40)), padding=(1, 1, 1, 1), pad_value=int(rng.integers(-9, 9))),
        lambda y: build.conv(y, int(rng.integers(1, 40)), (1, 1)),
        lambda y: build.conv(y, int(rng.integers(1, 40)), (3, 2), (2, 1), padding=(1, 0, 0, 1)),
        lambda y: build.conv(y, build.shape(y)[1], padding=(1, 1, 1, 1), residual=y),
        lambda y: build.max_pool(y, (2, 2), (1, 1), padding=(1, 0, 0, 1)),
        lambda y: build.sum_pool(y, (2, 2)),
        lambda y: build.add(y, y),
    ]
    for _ in range(int(rng.integers(2, 5))):
        y = values[-1]
        if min(build.shape(y)[2:]) < 4:
            break
        values.append(kinds[int(rng.integers(len(kinds)))](y))
    last = build.dense(values[-1], int(rng.integers(1, 20)))
    results = [last] if rng.random() < 0.7 or len(values) < 3 else [last, values[-2]]
    return build.function(*results), build


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1 << 20), name=st.sampled_from(("default", "tiny", "ecp5", "ecp5w4", "wide")))
def test_any_chain_on_chip_equals_the_interpreter(kit: SimpleNamespace, seed: int, name: str) -> None:
    config = target_for(name)
    function, _ = chain(kit, config, None, seed)
    found = [forced(function, config, moves=moves) for moves in (False, True)]
    found += [forced(function, config, range(0, 9, 2)), forced(function, config, (), range(9), moves=True)]
    assume(any(found))
    for segment in filter(None, found):
        check_equal(kit, function, segment, config, seed)


@pytest.mark.parametrize("name", ["default", "tiny", "ecp5", "ecp5w4", "wide"])
def test_depthwise_layers_take_planes_from_the_output_stage(kit: SimpleNamespace, name: str) -> None:
    config = target_for(name)
    build = kit.Regions(3, config)
    x = build.conv(build.input(16, 5, 5), 24, (1, 1))
    y = build.max_pool(x, (3, 3), (1, 1), padding=(1, 1, 1, 1))
    function = build.function(build.conv(y, 20, (1, 1)))
    segment = forced(function, config)
    assert segment is not None
    check_equal(kit, function, segment, config, 0)
    written = [v["dst"] for op, v in segment.program.instructions if op is Op.REQUANT]
    assert Dst.INP in written
    stored = sum(v["z"] * v["y"] * v["x"] for op, v in segment.program.instructions if op is Op.STORE)
    assert stored * config.granule_bytes == 5 * 5 * -(-20 // config.channel_align) * config.channel_align


@pytest.mark.parametrize("name", ["default", "tiny", "ecp5", "ecp5w4", "wide"])
def test_sums_take_their_operands_from_inp(kit: SimpleNamespace, name: str) -> None:
    """A residual block whose second operand, and a sum whose operands never see DRAM."""
    config = target_for(name)
    build = kit.Regions(8, config)
    x = build.conv(build.input(8, 5, 5), 16, (1, 1))
    y = build.conv(x, 16, padding=(1, 1, 1, 1), residual=x)
    z = build.add(y, x)
    function = build.function(build.conv(z, 9, (1, 1)))
    segment = forced(function, config, moves=True)
    assert segment is not None
    check_equal(kit, function, segment, config, 4)
    instructions = segment.program.instructions
    assert sum(op is Op.GEMM and v["mode"] == GemmMode.MAX for op, v in instructions) >= 3
    assert not any(op is Op.LOAD and v["mem"] == Mem.ACC for op, v in instructions)
    assert not any(section.name == "scratch" for section in segment.program.sections)


def test_small_networks_are_faster_on_chip(kit: SimpleNamespace) -> None:
    """Many short layers: the way over DRAM costs more than computing them."""
    config = target_for("default")
    build = kit.Regions(1, config)
    x = build.input(32, 6, 6)
    for _ in range(5):
        x = build.conv(x, 32, (1, 1))
    function = build.function(x)
    on, off = (compile_function(function, config, "r", on_chip=chip) for chip in (True, False))
    assert on.cycles < 0.7 * off.cycles
    scratch = [section.name for section in on.program.sections if section.name == "scratch"]
    assert not scratch and any(section.name == "scratch" for section in off.program.sections)


GRID = st.tuples(st.integers(1, 5), st.integers(1, 6), st.integers(0, 9), st.integers(0, 9))


@given(grid=GRID, prm=st.integers(0, 2), data=st.data())
def test_cut_keeps_every_vector(grid: tuple[int, int, int, int], prm: int, data: st.DataObject) -> None:
    """Any set of targets: each vector goes to its entry with its accumulator and parameter, nothing else is written."""
    outer, inner, acc_out, acc_in = grid
    size = outer * inner
    targets = data.draw(st.lists(st.integers(-1, 60), min_size=size, max_size=size))
    entries = np.array(targets, np.int64).reshape(outer, inner)
    values = {"iter_out": outer, "iter_in": inner, "acc_out": acc_out, "acc_in": acc_in, "prm_out": prm, "form": 0}
    refs = {"acc_base": Ref(("acc",), 7), "dst_base": Ref(("out",)), "prm_base": Ref(("prm",), 2)}
    found: list[tuple[int, int, int]] = []
    for c in cut(Command(Op.REQUANT, values, refs), entries, Ref(("patch",))):
        v = c.values
        assert c.refs["dst_base"].key == ("patch",) and v["dst"] == Dst.INP
        assert min(v["acc_out"], v["acc_in"], v["dst_out"], v["dst_in"]) >= 0
        found += [
            (
                c.refs["dst_base"].part + o * v["dst_out"] + i * v["dst_in"],
                c.refs["acc_base"].offset - 7 + o * v["acc_out"] + i * v["acc_in"],
                c.refs["prm_base"].offset - 2 + o * v["prm_out"],
            )
            for o in range(v["iter_out"])
            for i in range(v["iter_in"])
        ]
    wanted = [
        (int(entries[o, i]), o * acc_out + i * acc_in, o * prm)
        for o in range(outer)
        for i in range(inner)
        if entries[o, i] >= 0
    ]
    assert sorted(found) == sorted(wanted)


def test_rows_with_a_border_take_one_loop_a_block() -> None:
    """8 x 8 pixels of two blocks into rows of 10: two REQUANTs; without the border one."""
    values = {"iter_out": 2, "iter_in": 64, "acc_out": 1, "acc_in": 2, "prm_out": 1, "form": 0}
    refs: dict[str, Ref] = {name: Ref((name,)) for name in ("acc_base", "dst_base", "prm_base")}
    pixel = np.arange(64)
    plain = np.stack([pixel * 2, pixel * 2 + 1])
    bordered = np.stack([(pixel // 8 + 1) * 20 + (pixel % 8 + 1) * 2 + block for block in range(2)])
    command, target = Command(Op.REQUANT, values, refs), Ref(("patch",))
    assert len(cut(command, plain, target)) == 1
    assert len(cut(command, bordered, target)) == 2
    still = np.zeros(36, np.int64)
    frame = np.array([r * 10 + c for r in range(10) for c in range(10) if not (0 < r < 9 and 0 < c < 9)])
    assert len(list(loops(still, still, frame))) == 3


def test_clocks_start_a_step_when_its_patch_is_written() -> None:
    key: Key = ("inp", 1)
    giver = Work(400, 50, 100, 0, (), (), (), (key,))
    taker = Work(10, 1, 0, 5, (), (), (key,), ())
    clocks = Clocks(flow_of([giver, taker]), 100)
    assert clocks.arrival(1) is None
    clocks.run_step(0)
    arrival = clocks.arrival(1)
    assert arrival is not None and clocks.compute + 50 <= arrival < clocks.compute + 100
    loaded = clocks.load
    clocks.run_step(1)
    assert clocks.load == loaded, "a step without loads does not hold up the bus"


def test_patience_lets_a_deeper_layer_go_first(kit: SimpleNamespace) -> None:
    config = target_for("default")
    function, _ = chain(kit, config, None, 3)
    region = read_region(function, config, "r")
    steps = lower_layers(region, plan_steps(region, config)[0], config)
    moved = place_uops(forward_on_chip(steps, forwardable(region, steps, config), frozenset(), config), config)
    orders = {patience: depth_order(moved, config, patience) for patience in (0, 10**6)}
    for order in orders.values():
        assert sorted(order) == list(range(len(moved)))
        places = {number: place for place, number in enumerate(order)}
        for layer in {step.layer for step in moved}:
            own = [places[number] for number, step in enumerate(moved) if step.layer == layer]
            assert own == sorted(own)
    depths = {patience: [moved[number].layer for number in order] for patience, order in orders.items()}
    assert depths[10**6] > depths[0]
