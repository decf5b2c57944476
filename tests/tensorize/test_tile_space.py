"""Every legal tile computes the same bytes; the short list heads the ranking; a closer look takes the fastest."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from relay_hw.errors import TensorizeError
from relay_hw.interp import evaluate
from relay_hw.ir.module import IRModule
from relay_hw.tensorize import compile_function
from relay_hw.tensorize.kernel import ConvKernel, KernelSpec
from relay_hw.tensorize.lower.tile import plan_tile
from relay_hw.tensorize.match.composite import match
from relay_hw.tensorize.match.region import read_region
from relay_hw.tensorize.refine import Refiner, layer_cycles
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.geometry import conv_shape
from relay_hw.tensorize.tiles.im2col import shapes_of
from relay_hw.tensorize.tiles.inputs import fold_inputs
from relay_hw.tensorize.tiles.sizes import ConvTile, Tile, conv_trips
from relay_hw.tensorize.tiles.tile_space import SHORT_LIST, all_ranked, conv_tiles, ranked
from tests.targets import target_for


@dataclass(frozen=True)
class Given:
    """Chooses one tile for every layer."""

    tile: ConvTile

    def __call__(self, kernel: KernelSpec, config: Target) -> Tile:
        return self.tile

    def reason(self, kernel: KernelSpec, tile: Tile, config: Target) -> str:
        return ""


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_legal_tile_is_exact(kit: SimpleNamespace, data: st.DataObject) -> None:
    config = target_for(data.draw(st.sampled_from(("default", "tiny", "ecp5", "wide"))))
    build = kit.Regions(data.draw(st.integers(0, 99)), config)
    size = data.draw(st.tuples(st.sampled_from((3, 20, 64, 130)), st.integers(1, 12), st.integers(1, 12)))
    kernel = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    assume(size[1] >= kernel[0] and size[2] >= kernel[1])
    strides = data.draw(st.sampled_from(((1, 1), (2, 2), (1, 2))))
    x = build.input(*size)
    function = build.function(build.conv(x, data.draw(st.sampled_from((5, 40, 100))), kernel, strides))
    spec = fold_inputs(read_region(function, config, "r"), config).layers[0].kernel
    assert isinstance(spec, ConvKernel)
    tiles = [tile for shape in shapes_of(spec, config) for tile, _ in conv_tiles(shape, config)]
    tile = data.draw(st.sampled_from(tiles))
    segment = compile_function(function, config, "accel_0", False, choose=Given(tile))
    assert segment.layers[0].tile == str(tile)
    value = np.random.default_rng(0).integers(-128, 128, (1, *size)).astype(np.int8)
    (found,) = kit.run(segment, [value], config)
    assert (found == np.asarray(evaluate(IRModule.from_expr(function), [value]))).all(), f"{tile}\n{segment.schedule}"


def kernel_of(kit: SimpleNamespace, config: Target, **case: object) -> ConvKernel:
    build = kit.Regions(0, config)
    kernel = match(build.conv(build.input(*case.pop("shape")), **case).op, config).kernel
    assert isinstance(kernel, ConvKernel)
    return kernel


def test_the_short_list_is_the_head_of_the_ranking(kit: SimpleNamespace) -> None:
    config = target_for("default")
    shape = conv_shape(kernel_of(kit, config, shape=(96, 7, 7), channels=96, kernel=(1, 1)), config)
    everything = all_ranked((shape,), config)
    assert len(everything) > SHORT_LIST
    assert ranked(shape, config) == everything[:SHORT_LIST]
    assert [c.cycles for c in everything] == sorted(c.cycles for c in everything)
    assert len({choice.tile for choice in everything}) == len(everything)


def test_trips_cover_all_blocks(kit: SimpleNamespace) -> None:
    config = target_for("default")
    shape = conv_shape(kernel_of(kit, config, shape=(100, 9, 9), channels=120), config)
    for tile, use in conv_tiles(shape, config):
        trips = conv_trips(shape, tile)
        assert use.trips == trips
        assert (trips.groups - 1) * tile.out_blocks < shape.out_blocks <= trips.groups * tile.out_blocks
        assert (trips.sets - 1) * tile.live < trips.groups <= trips.sets * tile.live
        assert use.kept.inp <= config.inp_depth and use.kept.wgt <= config.wgt_depth


@pytest.mark.parametrize("name", ["default", "tiny"])
def test_a_closer_look_takes_the_fastest(kit: SimpleNamespace, name: str) -> None:
    config = target_for(name)
    kernel = kernel_of(kit, config, shape=(64, 8, 8), channels=48)
    refiner = Refiner()
    found = refiner.compare(kernel, config)
    assert refiner(kernel, config) == found[0].choice.tile
    first = plan_tile(kernel, config)
    assert isinstance(first, ConvTile)
    cycles = layer_cycles(kernel, first, config)
    assert cycles is not None and found[0].cycles <= cycles
    assert refiner.reason(kernel, found[0].choice.tile, config).startswith("bound by ")
    assert "on chip" in refiner.reason(kernel, found[-1].choice.tile, config)


def test_no_tile(kit: SimpleNamespace) -> None:
    config = target_for("default")
    kernel = kernel_of(kit, config, shape=(16, 300, 300), channels=16, kernel=(280, 280))
    with pytest.raises(TensorizeError, match="convolution must have a tile that fits configuration default"):
        Refiner()(kernel, config)
