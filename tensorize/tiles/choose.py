"""Chooses the cheapest tile of each kind of layer: which part of the layer one step computes.

In: shapes in blocks. Out: `ConvTile`, `PoolTile`, `AddTile`. Sizes not dividing the layer leave a shorter last tile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import lcm

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.program import align
from relay_hw.errors import TensorizeError
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.geometry import ConvShape, PoolShape, granule_blocks
from relay_hw.tensorize.tiles.sizes import AddTile, ConvTile, PoolTile, pool_entries, pool_patch
from relay_hw.tensorize.tiles.tile_cost import Constants, add_cost, pool_cost
from relay_hw.tensorize.tiles.tile_space import EXTENT_LIMIT, PAD_LIMIT, SHORT_LIST, Choice, chunk_sizes, counts, ranked


def choose_conv(shapes: Sequence[ConvShape], config: AccelConfig) -> ConvTile:
    """The legal tile with the smallest estimated time of any shape. Raises TensorizeError when none fits."""
    best = best_conv(shapes, config)
    if best is None:
        window = shapes[0].window if shapes else "one that cannot be gathered"
        raise TensorizeError(f"convolution must have a tile that fits configuration {config.name}, not {window}")
    return best.tile


def best_conv(shapes: Sequence[ConvShape], config: AccelConfig) -> Choice | None:
    """What `choose_conv` chooses, or None."""
    return next(iter(short_list(shapes, config)), None)


def short_list(
    shapes: Sequence[ConvShape], config: AccelConfig, constants: Constants = Constants.LOADED
) -> tuple[Choice, ...]:
    """The legal tiles of least estimated time of all shapes, the cheapest first."""
    found = [choice for shape in shapes for choice in ranked(shape, config, constants)]
    return tuple(sorted(found, key=lambda choice: choice.cycles)[:SHORT_LIST])


def choose_pool(shape: PoolShape, config: Target) -> PoolTile:
    """The legal tile with the smallest estimated time. Raises TensorizeError when none fits."""
    best: tuple[tuple[int, ...], PoolTile] | None = None
    for tile in _pool_tiles(shape, config):
        cost = pool_cost(shape, tile, config)
        rank = (cost.cycles, cost.steps, tile.rows, tile.cols, tile.blocks)
        if best is None or rank < best[0]:
            best = (rank, tile)
    if best is None:
        raise TensorizeError(f"pool must have a tile that fits configuration {config.name}, not {shape.window}")
    return best[1]


def choose_add(entries: int, config: Target, pairs: int = 1, step: int = 1, most: int | None = None) -> AddTile:
    """Entries a step for sums and products, so many `pairs`, of activations of `entries` accumulator entries each.

    A multiple of `step`, `most` at most. Raises TensorizeError when one step's do not fit.
    """
    step = lcm(step, granule_blocks(config, config.block_out))
    room = min(config.out_depth, config.acc_depth // (pairs + 1))
    most = room if most is None else min(room, most)
    sizes = {align(-(-entries // count), step) for count in counts(entries)}
    fitting = sorted(size for size in sizes if size <= most)
    if not fitting:
        raise TensorizeError(f"a pixel's channels must fit configuration {config.name}, not need {step} entries")
    return AddTile(min(fitting, key=lambda size: (add_cost(entries, AddTile(size), config, pairs).cycles, size)))


def _pool_tiles(shape: PoolShape, config: AccelConfig) -> Iterator[PoolTile]:
    for cols in chunk_sizes(shape.out_width):
        for rows in chunk_sizes(shape.out_height):
            for blocks in chunk_sizes(shape.blocks, granule_blocks(config, config.block_out)):
                tile = PoolTile(rows, cols, blocks)
                if pool_fits(shape, tile, config):
                    yield tile


def pool_fits(shape: PoolShape, tile: PoolTile, config: AccelConfig) -> bool:
    """True when every buffer of one step fits its scratchpad and every field its width."""
    use = pool_entries(shape, tile, config)
    return (
        use.acc <= config.acc_depth
        and use.out <= config.out_depth
        and use.prm <= min(config.prm_depth, PAD_LIMIT)
        and use.uops <= config.uop_depth
        and max(shape.window.padding) <= PAD_LIMIT
        and (tile.cols == shape.out_width or pool_patch(shape, 1, tile.cols)[1] <= PAD_LIMIT)
        and max(shape.source.height, shape.source.width) <= EXTENT_LIMIT
    )
