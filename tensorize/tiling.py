"""Tiles: which pieces of a layer are computed at a time, which of them fit a configuration, and the cheapest.

In: shapes in blocks. Out: `ConvTile`, `PoolTile`, `AddTile`. Sizes not dividing the layer leave a shorter last tile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from accel.isa.config import AccelConfig
from accel.isa.program import align
from relay_hw.errors import TensorizeError
from tensorize.cost import add_cost, conv_cost, pool_cost
from tensorize.geometry import ConvShape, PoolShape, granule_blocks
from tensorize.nest import LOOP_LIMIT
from tensorize.tiles import AddTile, ConvTile, PoolTile, conv_entries, conv_patch, pool_entries, pool_patch

PAD_LIMIT = 255
EXTENT_LIMIT = 0xFFFF
# Bus cycles of the shortest pieces of weights.
PIECE_LIMIT = 96
# Ways to cut the sum that are tried, from the longest pieces that fit.
_SUM_SIZES = 4


@dataclass(frozen=True, slots=True)
class Choice:
    """A tile and its estimated time."""

    tile: ConvTile
    cycles: int


def choose_conv(shapes: Sequence[ConvShape], config: AccelConfig) -> ConvTile:
    """The legal tile with the smallest estimated time of any shape. Raises TensorizeError when none fits."""
    best = best_conv(shapes, config)
    if best is None:
        window = shapes[0].window if shapes else "one that cannot be gathered"
        raise TensorizeError(f"convolution must have a tile that fits configuration {config.name}, not {window}")
    return best.tile


def best_conv(shapes: Sequence[ConvShape], config: AccelConfig) -> Choice | None:
    """What `choose_conv` chooses, or None."""
    best: tuple[tuple[int, ...], ConvTile] | None = None
    for number, shape in enumerate(shapes):
        for tile in _conv_tiles(shape, config):
            cost = conv_cost(shape, tile, config)
            sizes = (tile.rows, tile.cols, tile.out_blocks, tile.in_blocks, tile.weights_outer, tile.live, tile.piece)
            rank = (cost.cycles, cost.steps, *sizes, number)
            if best is None or rank < best[0]:
                best = (rank, tile)
    return None if best is None else Choice(best[1], best[0][0])


def choose_pool(shape: PoolShape, config: AccelConfig) -> PoolTile:
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


def choose_add(entries: int, config: AccelConfig) -> AddTile:
    """Entries a step for a sum of two activations of `entries` accumulator entries each."""
    step = granule_blocks(config, config.block_out)
    most = min(config.out_depth, config.acc_depth // 2)
    sizes = {align(-(-entries // count), step) for count in _counts(entries)}
    fitting = sorted(size for size in sizes if size <= most)
    return AddTile(min(fitting, key=lambda size: (add_cost(entries, AddTile(size), config).cycles, size)))


def _counts(total: int) -> Iterator[int]:
    """Numbers of pieces that give different piece sizes."""
    previous = 0
    for count in range(1, total + 1):
        size = -(-total // count)
        if size != previous:
            yield count
        previous = size


def piece_sizes(total: int, step: int = 1) -> list[int]:
    """Piece sizes, largest first; those below `total` are multiples of `step`."""
    units = -(-total // step)
    sizes = [min(total, step * -(-units // count)) for count in _counts(units)]
    return list(dict.fromkeys(sizes))


def _conv_tiles(shape: ConvShape, config: AccelConfig) -> Iterator[ConvTile]:
    out_sizes = piece_sizes(shape.out_blocks, granule_blocks(config, config.block_out))
    in_sizes = piece_sizes(shape.in_blocks, granule_blocks(config, config.block_in))
    if shape.fold is not None:
        in_sizes = in_sizes[:1]
    useful = 0
    for in_blocks in in_sizes:
        found = False
        for cols in piece_sizes(shape.out_width):
            for rows in piece_sizes(shape.out_height):
                for out_blocks in out_sizes:
                    tile = ConvTile(rows, cols, out_blocks, in_blocks, True, shape.fold)
                    fitting = [t for t in _variants(shape, tile, config) if conv_fits(shape, t, config)]
                    found |= bool(fitting)
                    yield from fitting
            # Rows are cut only where whole ones do not fit twice.
            smallest = conv_entries(shape, ConvTile(1, cols, out_sizes[-1], in_blocks, True), config)
            if found and 2 * smallest.inp <= config.inp_depth:
                break
        useful += found
        if useful == _SUM_SIZES:
            return


def _variants(shape: ConvShape, tile: ConvTile, config: AccelConfig) -> Iterator[ConvTile]:
    """Both orders, pieces of weights, and groups that are summed together where the sum is cut."""
    groups = -(-shape.out_blocks // tile.out_blocks)
    lives = piece_sizes(groups)[::-1] if tile.in_blocks < shape.in_blocks else [1]
    for live in lives:
        for piece in _weight_pieces(shape, tile, config):
            yield replace(tile, live=live, piece=piece)
            yield replace(tile, live=live, piece=piece, weights_outer=False)


def _weight_pieces(shape: ConvShape, tile: ConvTile, config: AccelConfig) -> list[int]:
    """Out blocks a step: all of a group, and the fewest that take the bus long enough to hide a step's overhead."""
    block = shape.window.taps * tile.in_blocks * config.wgt_bytes // config.bus_bytes
    sizes = [size for size in piece_sizes(tile.out_blocks)[1:] if size * block >= PIECE_LIMIT]
    return [0, *sizes[-2:]]


def conv_fits(shape: ConvShape, tile: ConvTile, config: AccelConfig) -> bool:
    """True when every buffer of one step fits its scratchpad and every field its width."""
    use = conv_entries(shape, tile, config)
    window, pitch = shape.window, conv_patch(shape, 1, tile.cols)[1]
    return (
        use.inp <= config.inp_depth
        and use.wgt <= config.wgt_depth
        and tile.live * use.acc <= config.acc_depth
        and use.out <= config.out_depth
        and use.prm <= min(config.prm_depth, PAD_LIMIT)
        and use.uops * (2 if shape.in_blocks % tile.in_blocks else 1) <= config.uop_depth
        and tile.rows * tile.cols <= LOOP_LIMIT
        and max(window.padding) <= PAD_LIMIT
        and (tile.cols == shape.out_width or pitch <= PAD_LIMIT)
        and max(shape.source.height, shape.source.width) <= EXTENT_LIMIT
    )


def _pool_tiles(shape: PoolShape, config: AccelConfig) -> Iterator[PoolTile]:
    for cols in piece_sizes(shape.out_width):
        for rows in piece_sizes(shape.out_height):
            for blocks in piece_sizes(shape.blocks, granule_blocks(config, config.block_out)):
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
