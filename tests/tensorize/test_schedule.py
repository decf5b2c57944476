"""Tiles are legal and cover the layer, the plan of a small layer is the one in the file, cycles follow the work."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from relay_hw.accel.isa.spec import Mem
from relay_hw.tensorize import compile_function
from relay_hw.tensorize.commands import Step
from relay_hw.tensorize.match.composite import match
from relay_hw.tensorize.match.region import read_region
from relay_hw.tensorize.schedule.plan import schedules
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.choose import choose_conv
from relay_hw.tensorize.tiles.geometry import conv_shape, parts
from relay_hw.tensorize.tiles.sizes import conv_use
from relay_hw.tensorize.tiles.tile_space import conv_fits
from tests.targets import target_for

GOLDEN = Path(__file__).parent / "golden"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_tiles_fit_and_cover(kit: SimpleNamespace, data: st.DataObject) -> None:
    """Every output pixel and block is stored once, every buffer fits, every product is computed once."""
    config = target_for(data.draw(st.sampled_from(("default", "tiny", "ecp5", "wide"))))
    build = kit.Regions(0, config)
    size = data.draw(st.tuples(st.integers(1, 200), st.integers(1, 30), st.integers(1, 30)))
    kernel = data.draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    assume(size[1] >= kernel[0] and size[2] >= kernel[1])
    call = build.conv(build.input(*size), data.draw(st.integers(1, 200)), kernel)
    shape = conv_shape(match(call.op, config).kernel, config)
    tile = choose_conv((shape,), config)
    assert conv_fits(shape, tile, conv_use(shape, tile, config), config)
    for total, size in (
        (shape.out_height, tile.rows),
        (shape.out_width, tile.cols),
        (shape.in_blocks, tile.in_blocks),
    ):
        assert sum(count for _, count in parts(total, size)) == total
    region = read_region(build.function(call), config, "r")
    steps = schedules(region, config)[-1].steps
    products = sum(
        c.values["iter_out"] * c.values["iter_in"] * (c.refs["uop_end"].offset - c.refs["uop_begin"].offset)
        for step in steps
        for c in step.commands
        if c.op.name == "GEMM"
    )
    assert products == shape.out_height * shape.out_width * shape.out_blocks * sum(
        shape.depth(count) for _, count in parts(shape.in_blocks, tile.in_blocks)
    )
    stored = sum(
        c.values["z"] * c.values["y"] * c.values["x"] for step in steps for c in step.commands if c.op.name == "STORE"
    )
    assert stored * config.granule_bytes == shape.out_height * shape.out_width * shape.out_pixel_bytes
    assert all(fits(step, config) for step in steps)


def fits(step: Step, config: Target) -> bool:
    depth = {
        Mem.INP: config.inp_depth,
        Mem.WGT: config.wgt_depth,
        Mem.ACC: config.acc_depth,
        Mem.OUT: config.out_depth,
        Mem.UOP: config.uop_depth,
        Mem.PRM: config.prm_depth,
        Mem.TAB: config.tab_depth,
        Mem.COF: config.cof_depth,
    }
    return all(sum(b.entries for b in step.buffers if b.mem is mem) <= depth[mem] for mem in Mem)


def golden_text(kit: SimpleNamespace, name: str) -> str:
    """Schedule of a strided convolution with padding, a pool and a dense layer."""
    config = target_for(name)
    build = kit.Regions(12, config)
    y = build.conv(build.input(3, 9, 8), 20, (3, 3), (2, 1), (1, 1, 1, 1))
    y = build.max_pool(y, (2, 2), (2, 2))
    return compile_function(build.function(build.dense(y, 7)), config, "golden").schedule


@pytest.mark.parametrize("name", ["default", "tiny"])
def test_golden_schedule(kit: SimpleNamespace, name: str) -> None:
    """Where a change is meant: write `golden_text` to the file and read what changed."""
    text, path = golden_text(kit, name), GOLDEN / f"schedule_{name}.txt"
    assert text == path.read_text(), f"schedule differs from {path.name}:\n{text}"


def test_cycles_follow_the_bus_and_the_array(kit: SimpleNamespace) -> None:
    """One large layer each: bound by products, by weights, by stores."""
    config = target_for("default")

    def cycles(channels: int, size: int, units: int, kernel: tuple[int, int]) -> int:
        build = kit.Regions(1, config)
        pads = (kernel[0] // 2, kernel[1] // 2) * 2
        call = build.conv(build.input(channels, size, size), units, kernel, padding=pads)
        return compile_function(build.function(call), config, "a", resident=False).cycles

    products = 28 * 28 * 8 * 8 * 9
    assert products < cycles(128, 28, 128, (3, 3)) < 1.1 * products
    weights = 1024 * 512 // 8
    assert weights < cycles(1024, 1, 512, (1, 1)) < 1.1 * weights


def test_layers_overlap_where_rows_are_ready(kit: SimpleNamespace) -> None:
    """The second layer starts before the first one is over."""
    config = target_for("default")
    build = kit.Regions(1, config)
    y = build.conv(build.input(16, 28, 28), 16, padding=(1, 1, 1, 1))
    segment = compile_function(build.function(build.conv(y, 16, padding=(1, 1, 1, 1))), config, "a")
    first, second = segment.layers
    assert second.begin < first.end
    alone = 2 * 28 * 28 * 9
    assert segment.cycles < alone + 1800
