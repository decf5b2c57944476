"""Tile sizes of the three kinds of layers, and the scratchpad entries that one step of each takes.

In: shapes in blocks. Out: `ConvTile`, `PoolTile`, `AddTile`, `Entries`.
"""

from __future__ import annotations

from dataclasses import dataclass

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.program import align
from relay_hw.tensorize.tiles.geometry import ConvShape, Fold, PoolShape, bank_round, granule_blocks, span_of

# Reductions of this many tiles and more run as a loop where a loop is free; shorter ones as micro-ops.
_LOOP_DEPTH = 9


@dataclass(frozen=True, slots=True)
class ConvTile:
    """A tile of a convolution.

    `rows` x `cols` output pixels x `out_blocks`: the accumulators of one group, requantized and stored together.

    A step adds up `in_blocks` for `weight_blocks` out blocks of a group (0: for all), which one load of weights brings.
    `live` groups are summed at the same time: all of them for one chunk of the sum, then for the next one.
    weights_outer: all pixels for `live` groups, then the next ones; otherwise all groups for one tile of pixels.
    """

    rows: int
    cols: int
    out_blocks: int
    in_blocks: int
    weights_outer: bool
    fold: Fold | None = None
    live: int = 1
    weight_blocks: int = 0

    @property
    def step_blocks(self) -> int:
        """Out blocks of one step."""
        return self.weight_blocks or self.out_blocks

    def __str__(self) -> str:
        order = "weights outer" if self.weights_outer else "pixels outer"
        text = f"{self.rows}x{self.cols} pixels, {self.out_blocks} out, {self.in_blocks} in, {order}"
        if self.live > 1:
            text += f", {self.live} groups live"
        if self.step_blocks < self.out_blocks:
            text += f", {self.step_blocks} out a step"
        return f"{text}, {self.fold.rows} rows folded" if self.fold is not None else text


@dataclass(frozen=True, slots=True)
class PoolTile:
    """A tile of a pool. `rows` x `cols` output pixels x `blocks`."""

    rows: int
    cols: int
    blocks: int

    def __str__(self) -> str:
        return f"{self.rows}x{self.cols} pixels, {self.blocks} blocks"


@dataclass(frozen=True, slots=True)
class OutputTile:
    """A tile of a layer whose output blocks need few input blocks, such as a depthwise convolution.

    `rows` x `cols` output pixels x `blocks`.
    """

    rows: int
    cols: int
    blocks: int

    def __str__(self) -> str:
        return f"{self.rows}x{self.cols} pixels, {self.blocks} blocks"


@dataclass(frozen=True, slots=True)
class AddTile:
    """A tile of sums and products of activations: `entries` consecutive accumulator entries of each operand."""

    entries: int

    def __str__(self) -> str:
        return f"{self.entries} entries"


@dataclass(frozen=True, slots=True)
class RowTile:
    """A tile of a function of rows. `rows` consecutive rows, each a pixel's channels."""

    rows: int

    def __str__(self) -> str:
        return f"{self.rows} rows"


@dataclass(frozen=True, slots=True)
class TransposeTile:
    """A tile for each phase."""

    phases: tuple[ConvTile, ...]

    def __str__(self) -> str:
        different = dict.fromkeys(str(tile) for tile in self.phases)
        return f"{len(self.phases)} phases of {'; '.join(different)}"


@dataclass(frozen=True, slots=True)
class MoveTile:
    """A tile for each copy; its blocks are those of channel_align channels."""

    moves: tuple[OutputTile, ...]

    def __str__(self) -> str:
        different = dict.fromkeys(str(tile) for tile in self.moves)
        return f"{len(self.moves)} copies of {'; '.join(different)}" if self.moves else "in place"


Tile = ConvTile | TransposeTile | MoveTile | OutputTile | PoolTile | AddTile | RowTile


@dataclass(frozen=True, slots=True)
class Entries:
    """Scratchpad entries of one step; acc and res (a residual's operand in the accumulators) in whole banks."""

    inp: int = 0
    wgt: int = 0
    acc: int = 0
    res: int = 0
    out: int = 0
    prm: int = 0
    uops: int = 0


def by_loop(shape: ConvShape) -> bool:
    """True where the reduction runs as a loop of one micro-op: a dense layer leaves both loops to it."""
    return shape.out_height * shape.out_width == 1 and shape.window.taps == 1 and shape.in_blocks >= _LOOP_DEPTH


def conv_patch(shape: ConvShape, rows: int, cols: int) -> tuple[int, int]:
    """Input rows and columns under `rows` x `cols` outputs, padding included."""
    top, bottom = span_of(shape.window, 0, 0, rows)
    left, right = span_of(shape.window, 1, 0, cols)
    return bottom - top, right - left


def conv_entries(shape: ConvShape, tile: ConvTile, config: AccelConfig) -> Entries:
    """Scratchpad entries of the tile's largest step; acc: of one group."""
    height, width = conv_patch(shape, tile.rows, tile.cols)
    depth = shape.depth(tile.in_blocks)
    pixels = tile.rows * tile.cols
    acc = bank_round(config, pixels * tile.out_blocks)
    return Entries(
        inp=height * width * align(tile.in_blocks, granule_blocks(config, config.inp_lanes)),
        wgt=tile.step_blocks * depth,
        acc=acc,
        res=acc if shape.residual else 0,
        out=pixels * tile.out_blocks,
        prm=tile.out_blocks + shape.residual,
        uops=1 if by_loop(shape) else shape.products(tile.in_blocks),
    )


@dataclass(frozen=True, slots=True)
class Trips:
    """How often the loops of a tile run: tiles of pixels, sets of live groups, all groups, chunks of the sum.

    `steps`: chunks of weights of all groups for one chunk of the sum.
    """

    pixels: int
    sets: int
    groups: int
    chunks: int
    steps: int


def conv_trips(shape: ConvShape, tile: ConvTile) -> Trips:
    """Counts of the tile's loops."""
    groups = -(-shape.out_blocks // tile.out_blocks)
    last = shape.out_blocks - (groups - 1) * tile.out_blocks
    return Trips(
        pixels=-(-shape.out_height // tile.rows) * -(-shape.out_width // tile.cols),
        sets=-(-groups // tile.live),
        groups=groups,
        chunks=-(-shape.in_blocks // tile.in_blocks),
        steps=(groups - 1) * -(-tile.out_blocks // tile.step_blocks) + -(-last // tile.step_blocks),
    )


@dataclass(frozen=True, slots=True)
class Kept:
    """Entries that stay in INP, WGT and PRM until the loops come back; 0 where they are loaded again instead."""

    inp: int
    wgt: int
    prm: int


@dataclass(frozen=True, slots=True)
class ConvUse:
    """A convolution under a tile: scratchpad entries, loop trips and kept buffers."""

    entries: Entries
    trips: Trips
    kept: Kept


def conv_use(shape: ConvShape, tile: ConvTile, config: AccelConfig) -> ConvUse:
    """Entries, trips and what is kept."""
    use, trips = conv_entries(shape, tile, config), conv_trips(shape, tile)
    return ConvUse(use, trips, _kept(shape, tile, use, trips, config))


def _kept(shape: ConvShape, tile: ConvTile, use: Entries, trips: Trips, config: AccelConfig) -> Kept:
    """What is kept: all buffers that lie between two uses, where their memory has places for them at any time.

    Buffers start on multiples of their size; a shorter one may lie across two places of the others.
    """
    chunks = trips.chunks + (shape.in_blocks % tile.in_blocks > 0)
    inputs = chunks
    if tile.weights_outer:
        cut = shape.out_height % tile.rows > 0 or shape.out_width % tile.cols > 0
        inputs *= trips.pixels * (1 + cut)
    weights = chunks * trips.steps
    if tile.weights_outer:
        weights = chunks * tile.live * -(-tile.out_blocks // tile.step_blocks)
    if tile.out_blocks % tile.step_blocks or shape.out_blocks % tile.out_blocks:
        weights *= 2
    records = tile.live if tile.weights_outer else trips.groups + (shape.out_blocks % tile.out_blocks > 0)
    again = trips.pixels > 1
    return Kept(
        prm=records * use.prm if again and records <= config.prm_depth // use.prm else 0,
        inp=inputs * use.inp
        if trips.sets > 1 and inputs <= _places(config.inp_depth, use.inp, config.line_entries)
        else 0,
        wgt=weights * use.wgt if again and weights <= _places(config.wgt_depth, use.wgt, 1) else 0,
    )


def _places(depth: int, size: int, step: int) -> int:
    """Buffers of `size` entries that a memory holds where each takes a multiple of `step`."""
    return depth // align(size, step)


def pool_patch(shape: PoolShape, rows: int, cols: int) -> tuple[int, int]:
    """Input rows and columns under `rows` x `cols` outputs, padding included."""
    top, bottom = span_of(shape.window, 0, 0, rows)
    left, right = span_of(shape.window, 1, 0, cols)
    return bottom - top, right - left


def pool_by_loop(shape: PoolShape, tile: PoolTile) -> bool:
    """True where the pixels of the window are a loop: one output, and whole rows of the patch are met."""
    one = shape.out_height * shape.out_width == 1 and shape.window.taps >= _LOOP_DEPTH
    return one and shape.window.extent == shape.window.kernel


def pool_entries(shape: PoolShape, tile: PoolTile, config: AccelConfig) -> Entries:
    """Scratchpad entries of the tile's largest step."""
    height, width = pool_patch(shape, tile.rows, tile.cols)
    return Entries(
        acc=bank_round(config, height * width * tile.blocks),
        out=tile.rows * tile.cols * tile.blocks,
        prm=tile.blocks,
        uops=1 if pool_by_loop(shape, tile) else shape.window.taps,
    )
