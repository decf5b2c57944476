"""Activations in planes: which ones, tiles of weights as one run each, and the interpreter's bytes."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.accel.isa.spec import Mem
from relay_hw.ir.expr import Expr
from relay_hw.tensorize.compile import plan_region
from relay_hw.tensorize.kernel import ConvKernel, Image, MoveKernel, Origin, Place, ProductKernel, SwapKernel
from relay_hw.tensorize.match.region import Region
from relay_hw.tensorize.schedule.plan import plan_steps
from relay_hw.tensorize.tiles.planes import origin_in_planes
from tests.targets import target_for

CONFIGS = ("default", "wide", "ecp5x2")


def _heads(tokens: int, heads: int, width: int, part: int = 0, turned: bool = False) -> Callable[[Expr], Expr]:
    """Heads of one part of a joint result."""

    def moved(y: Expr) -> Expr:
        cut = op.strided_slice(y, (part * heads * width,), ((part + 1) * heads * width,), axes=(1,))
        found = op.transpose(op.reshape(cut, (tokens, heads, width)), (1, 0, 2))
        return op.transpose(found, (0, 2, 1)) if turned else found

    return moved


def _attention(kit: SimpleNamespace, name: str, sizes: tuple[int, int, int], joint: bool, seed: int = 0) -> Expr:
    """Attention without softmax of `sizes` (tokens, heads, width); its queries, keys and values from one layer or
    from three."""
    tokens, heads, width = sizes
    build = kit.Regions(seed, target_for(name))
    x = build.tensor(tokens, 40)
    wide = heads * width
    layers = [build.rows(x, 3 * wide)] * 3 if joint else [build.rows(x, wide) for _ in range(3)]
    q, k, v = (
        build.move(_heads(tokens, heads, width, number if joint else 0, number == 2), layer)
        for number, layer in enumerate(layers)
    )
    y = build.product(build.product(q, k), v)
    y = build.move(lambda y: op.reshape(op.transpose(y, (1, 0, 2)), (tokens, wide)), y)
    return build.function(build.rows(y, 9))


def _region(kit: SimpleNamespace, function: Expr, name: str = "default") -> Region:
    return plan_region(function, target_for(name), "accel_0")


def _in_planes(region: Region) -> list[str]:
    """Kinds of kernels whose results lie as planes."""
    found: list[str] = []
    for layer in region.layers:
        match layer.kernel:
            case ConvKernel(place=Place(plane_blocks=1)):
                found.append("conv")
            case SwapKernel(place=place) if place is not None:
                found.append("swap")
            case _:
                pass
    return found


def _runs_of_weights(region: Region, name: str) -> list[int]:
    """Bytes of the runs of each LOAD of weights that are no constants."""
    config = target_for(name)
    buffers = {b.key: b for step in plan_steps(region, config)[1] for b in step.buffers if b.mem is Mem.WGT}
    return [load.values["z"] * config.granule_bytes for b in buffers.values() for load in b.loads]


@pytest.mark.parametrize("joint", [False, True])
def test_keys_and_values_lie_as_planes(kit: SimpleNamespace, joint: bool) -> None:
    region = _region(kit, _attention(kit, "default", (32, 2, 32), joint))
    assert _in_planes(region) == (["conv", "swap"] if joint else ["conv", "conv", "swap"])
    products = [layer.kernel for layer in region.layers if isinstance(layer.kernel, ProductKernel)]
    # Two blocks of 16 channels of 32 tokens: planes of 512 bytes, a head after two of them.
    scores = products[0].origins[1]
    assert scores is not None and (scores.row_stride, scores.col_stride, scores.block_stride) == (1024, 16, 512)
    assert (products[0].origins[0] is not None and products[0].origins[0].block_stride == 512) == joint


@pytest.mark.parametrize("name", CONFIGS)
def test_tiles_of_weights_are_runs(kit: SimpleNamespace, name: str) -> None:
    """Where tokens are whole blocks, every load of computed weights is of runs of a tile or more."""
    config = target_for(name)
    tokens = 2 * config.block_out
    function = _attention(kit, name, (tokens, 2, 2 * config.block_in), joint=True)
    runs = _runs_of_weights(_region(kit, function, name), name)
    assert runs and min(runs) >= config.wgt_bytes
    kit.compare(function, config)


@pytest.mark.parametrize("what", ["result", "read by a layer", "sum"])
def test_what_stays_in_the_order_of_pixels(kit: SimpleNamespace, what: str) -> None:
    config = target_for("default")
    build = kit.Regions(5, config)
    x = build.tensor(20, 40)
    k = build.rows(x, 64, build.tensor(20, 64) if what == "sum" else None)
    y = build.product(build.tensor(2, 20, 32), build.move(_heads(20, 2, 32), k))
    others = {"result": (k,), "read by a layer": (build.rows(k, 9),)}.get(what, ())
    function = build.function(y, *others)
    assert _in_planes(_region(kit, function)) == []
    kit.compare(function, config)


def test_other_configurations_have_no_planes(kit: SimpleNamespace) -> None:
    build = kit.Regions(5, target_for("tiny"))
    function = build.function(build.rows(build.tensor(20, 40), 9))
    assert _in_planes(_region(kit, function, "tiny")) == []


def test_pixels_of_an_image(kit: SimpleNamespace) -> None:
    """A convolution's rows and columns are the tokens: tiles that are no whole rows store line by line."""
    config = target_for("default")
    build = kit.Regions(3, config)
    image = build.conv(build.input(20, 9, 70), 32, (3, 3))
    flat: Callable[[Expr], Expr] = lambda y: op.reshape(op.transpose(y, (0, 2, 3, 1)), (1, 7 * 68, 32))  # noqa: E731
    k = build.move(flat, image)
    function = build.function(build.product(build.tensor(1, 10, 32), k))
    assert _in_planes(_region(kit, function)) == ["conv"]
    kit.compare(function, config)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_attention(kit: SimpleNamespace, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(CONFIGS))
    config = target_for(name)
    tokens, heads = data.draw(st.integers(1, 90)), data.draw(st.integers(1, 3))
    width = data.draw(st.integers(1, 3)) * config.channel_align
    seed = data.draw(st.integers(0, 1 << 20))
    function = _attention(kit, name, (tokens, heads, width), data.draw(st.booleans()), seed)
    kit.compare(function, config, seed, order=seed)


def _split(kit: SimpleNamespace, name: str, sizes: tuple[int, int, int], seed: int = 0) -> Expr:
    """Heads of a dense layer's result, as a sum that lies like them."""
    tokens, heads, width = sizes
    build = kit.Regions(seed, target_for(name))
    y = build.move(_heads(tokens, heads, width), build.rows(build.tensor(tokens, 40), heads * width))
    return build.function(build.add(y, build.tensor(heads, tokens, width)), y)


@pytest.mark.parametrize("name", [*CONFIGS, "tiny", "ecp5", "w4"])
@pytest.mark.parametrize("sizes", [(20, 3, 3), (70, 2, 1), (1, 6, 2), (33, 1, 4)])
def test_a_layer_stores_heads_itself(kit: SimpleNamespace, name: str, sizes: tuple[int, int, int]) -> None:
    """`sizes`: tokens, heads, blocks of channels of a head."""
    function = _split(kit, name, (*sizes[:2], sizes[2] * target_for(name).channel_align))
    moves = [one.kernel for one in _region(kit, function, name).layers if isinstance(one.kernel, MoveKernel)]
    config = target_for(name)
    # A single head is the whole result, wherever it lies.
    assert all(not kernel.moves for kernel in moves) == (sizes[1] == 1 or config.out_bytes == config.channel_align)
    kit.compare(function, config, order=1)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_heads(kit: SimpleNamespace, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(CONFIGS))
    config, seed = target_for(name), data.draw(st.integers(0, 1 << 20))
    sizes = data.draw(st.integers(1, 150)), data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    function = _split(kit, name, (sizes[0], sizes[1], sizes[2] * config.channel_align), seed)
    kit.compare(function, config, seed, order=seed)


@pytest.mark.parametrize("what", ["read by a layer", "sum", "part"])
def test_heads_that_are_copied(kit: SimpleNamespace, what: str) -> None:
    config = target_for("default")
    build = kit.Regions(7, config)
    x = build.tensor(20, 40)
    k = build.rows(x, 96, build.tensor(20, 96) if what == "sum" else None)
    y = build.move(_heads(20, 2 if what == "part" else 3, 32), k)
    function = build.function(y, *((build.rows(k, 9),) if what == "read by a layer" else ()))
    assert any(isinstance(one.kernel, MoveKernel) and one.kernel.moves for one in _region(kit, function).layers)
    kit.compare(function, config)


@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 4), st.data())
def test_every_block_is_found(height: int, width: int, blocks: int, data: st.DataObject) -> None:
    """The bytes of each pixel's blocks, by strides of pixels and by strides of planes."""
    config = target_for("default")
    whole = Image(height, width, blocks * 16)
    count = data.draw(st.integers(1, blocks))
    part = Image(1, height * width, count * 16)
    first = data.draw(st.integers(0, blocks - count))
    moved = origin_in_planes(Origin(first * 16, 0, blocks * 16), part, whole, config)
    assert moved is not None
    for pixel in range(height * width):
        for block in range(count):
            byte = first * 16 + pixel * blocks * 16 + block * 16
            plane = (byte // 16 % blocks) * height * width * 16 + byte // (16 * blocks) * 16
            assert moved.begin + pixel * moved.col_stride * (part.width > 1) + block * moved.block_stride == plane
