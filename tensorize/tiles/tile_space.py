"""Enumerates the legal tiles of a convolution and ranks them by estimated time.

In: a shape in blocks. Out: `ConvTile`s. docs/schedules.md describes this space, `make test-schedules` searches it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from heapq import nsmallest

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.tensorize.commands import LOOP_LIMIT
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.geometry import ConvShape, granule_blocks
from relay_hw.tensorize.tiles.sizes import ConvTile, ConvUse, conv_entries, conv_patch, conv_use
from relay_hw.tensorize.tiles.tile_cost import Constants, Cost, conv_cost

# Tiles that are worth a closer look.
SHORT_LIST = 16
PAD_LIMIT = 255
EXTENT_LIMIT = 0xFFFF
# Bus cycles of the shortest chunks of weights.
MIN_CHUNK_CYCLES = 96
# Ways to cut the sum that are tried, from the longest chunks that fit.
_SUM_SIZES = 4


@dataclass(frozen=True, slots=True)
class Choice:
    """A tile and its estimated time by the closed form."""

    tile: ConvTile
    cost: Cost

    @property
    def cycles(self) -> int:
        """Cycles of the whole layer."""
        return self.cost.cycles


@lru_cache(maxsize=256)
def ranked(shape: ConvShape, config: Target, constants: Constants = Constants.LOADED) -> tuple[Choice, ...]:
    """The legal tiles of least estimated time, the cheapest first. Equal layers are searched once."""
    return tuple(nsmallest(SHORT_LIST, _choices(shape, config, constants), key=_rank))


def all_ranked(shapes: Sequence[ConvShape], config: Target) -> tuple[Choice, ...]:
    """All legal tiles of all shapes, the cheapest first."""
    found = (choice for shape in shapes for choice in _choices(shape, config, Constants.LOADED))
    return tuple(sorted(found, key=_rank))


def _choices(shape: ConvShape, config: Target, constants: Constants) -> Iterator[Choice]:
    for tile, use in conv_tiles(shape, config):
        # Sums that are not cut take their weights in one order.
        if constants is not Constants.SHARED or tile.in_blocks == shape.in_blocks:
            yield Choice(tile, conv_cost(shape, tile, use, config, constants))


def _rank(choice: Choice) -> tuple[int, ...]:
    tile, cost = choice.tile, choice.cost
    sizes = (tile.rows, tile.cols, tile.out_blocks, tile.in_blocks, tile.weights_outer, tile.live, tile.weight_blocks)
    return (cost.cycles, cost.steps, *sizes)


def conv_tiles(shape: ConvShape, config: AccelConfig) -> Iterator[tuple[ConvTile, ConvUse]]:
    """All legal tiles and what they make of the shape."""
    out_sizes = chunk_sizes(shape.out_blocks, granule_blocks(config, config.block_out))
    in_sizes = chunk_sizes(shape.in_blocks, granule_blocks(config, config.inp_lanes))
    if shape.fold is not None:
        in_sizes = in_sizes[:1]
    useful = 0
    for in_blocks in in_sizes:
        found = False
        for cols in chunk_sizes(shape.out_width):
            for rows in chunk_sizes(shape.out_height):
                for out_blocks in out_sizes:
                    base = ConvTile(rows, cols, out_blocks, in_blocks, True, shape.fold)
                    for tile in _variants(shape, base, config):
                        use = conv_use(shape, tile, config)
                        if conv_fits(shape, tile, use, config):
                            found = True
                            yield tile, use
            # Rows of pixels are cut only where whole ones do not fit twice, or where there is but one.
            smallest = conv_entries(shape, ConvTile(1, cols, out_sizes[-1], in_blocks, True), config)
            if found and shape.out_height > 1 and 2 * smallest.inp <= config.inp_depth:
                break
        useful += found
        if useful == _SUM_SIZES:
            return


def _variants(shape: ConvShape, tile: ConvTile, config: AccelConfig) -> Iterator[ConvTile]:
    """Both orders, chunks of weights, and groups that are summed together where the sum is cut."""
    groups = -(-shape.out_blocks // tile.out_blocks)
    acc = conv_entries(shape, tile, config).acc
    lives = chunk_sizes(groups)[::-1] if tile.in_blocks < shape.in_blocks else [1]
    for live in lives:
        if live * acc > config.acc_depth:
            return
        for blocks in _weight_blocks(shape, tile, config):
            yield replace(tile, live=live, weight_blocks=blocks)
            if groups > live and (tile.rows < shape.out_height or tile.cols < shape.out_width):
                yield replace(tile, live=live, weight_blocks=blocks, weights_outer=False)


def _weight_blocks(shape: ConvShape, tile: ConvTile, config: AccelConfig) -> list[int]:
    """Out blocks a step: all of a group, and the fewest that take the bus long enough to hide a step's overhead."""
    block = shape.form.stored_bytes(shape.depth(tile.in_blocks), config) // config.bus_bytes
    sizes = [size for size in chunk_sizes(tile.out_blocks)[1:] if size * block >= MIN_CHUNK_CYCLES]
    return [0, *sizes[-2:]]


def conv_fits(shape: ConvShape, tile: ConvTile, use: ConvUse, config: AccelConfig) -> bool:
    """True when every buffer of one step fits its scratchpad and every field its width."""
    entries, window = use.entries, shape.window
    return (
        entries.inp <= config.inp_depth
        and entries.wgt <= config.wgt_depth
        and tile.live * entries.acc + entries.res <= config.acc_depth
        and entries.out <= config.out_depth
        and entries.prm <= min(config.prm_depth, PAD_LIMIT)
        and entries.uops * (2 if shape.in_blocks % tile.in_blocks else 1) <= config.uop_depth
        and tile.rows * tile.cols <= LOOP_LIMIT
        and max(window.padding) <= PAD_LIMIT
        and (tile.cols == shape.out_width or conv_patch(shape, 1, tile.cols)[1] <= PAD_LIMIT)
        and max(shape.source.height, shape.source.width) <= EXTENT_LIMIT
    )


def counts(total: int) -> Iterator[int]:
    """Numbers of chunks that give different chunk sizes."""
    previous = 0
    for count in range(1, total + 1):
        size = -(-total // count)
        if size != previous:
            yield count
        previous = size


def chunk_sizes(total: int, step: int = 1) -> list[int]:
    """Chunk sizes, largest first; those below `total` are multiples of `step`."""
    units = -(-total // step)
    sizes = [min(total, step * -(-units // count)) for count in counts(units)]
    return list(dict.fromkeys(sizes))
