"""Tile sizes of the three kinds of layers, and the scratchpad entries that one step of each takes.

In: shapes in blocks. Out: `ConvTile`, `PoolTile`, `AddTile`, `Entries`.
"""

from __future__ import annotations

from dataclasses import dataclass

from accel.isa.config import AccelConfig
from accel.isa.program import align
from tensorize.geometry import ConvShape, Fold, PoolShape, bank_round, granule_blocks, span_of

# Reductions of this many tiles and more run as a loop where a loop is free; shorter ones as micro-ops.
_LOOP_DEPTH = 9


@dataclass(frozen=True, slots=True)
class ConvTile:
    """`rows` x `cols` output pixels x `out_blocks`, adding up `in_blocks` at a time.

    weights_outer: all pixels for one group of out blocks, then the next group; otherwise all groups for one tile.
    """

    rows: int
    cols: int
    out_blocks: int
    in_blocks: int
    weights_outer: bool
    fold: Fold | None = None

    def __str__(self) -> str:
        order = "weights outer" if self.weights_outer else "pixels outer"
        text = f"{self.rows}x{self.cols} pixels, {self.out_blocks} out, {self.in_blocks} in, {order}"
        return f"{text}, {self.fold.rows} rows folded" if self.fold is not None else text


@dataclass(frozen=True, slots=True)
class PoolTile:
    """`rows` x `cols` output pixels x `blocks`."""

    rows: int
    cols: int
    blocks: int

    def __str__(self) -> str:
        return f"{self.rows}x{self.cols} pixels, {self.blocks} blocks"


@dataclass(frozen=True, slots=True)
class LocalTile:
    """`rows` x `cols` output pixels x `blocks` of a layer whose blocks need few others."""

    rows: int
    cols: int
    blocks: int

    def __str__(self) -> str:
        return f"{self.rows}x{self.cols} pixels, {self.blocks} blocks"


@dataclass(frozen=True, slots=True)
class AddTile:
    """`entries` consecutive accumulator entries of both operands."""

    entries: int

    def __str__(self) -> str:
        return f"{self.entries} entries"


@dataclass(frozen=True, slots=True)
class TransposeTile:
    """A tile for each phase."""

    phases: tuple[ConvTile, ...]

    def __str__(self) -> str:
        different = dict.fromkeys(str(tile) for tile in self.phases)
        return f"{len(self.phases)} phases of {'; '.join(different)}"


Tile = ConvTile | TransposeTile | LocalTile | PoolTile | AddTile


@dataclass(frozen=True, slots=True)
class Entries:
    """Scratchpad entries of one step; acc in whole banks."""

    inp: int = 0
    wgt: int = 0
    acc: int = 0
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
    """Largest step of the tile."""
    height, width = conv_patch(shape, tile.rows, tile.cols)
    depth = shape.window.taps * tile.in_blocks
    pixels = tile.rows * tile.cols
    acc = bank_round(config, pixels * tile.out_blocks)
    return Entries(
        inp=height * width * align(tile.in_blocks, granule_blocks(config, config.block_in)),
        wgt=tile.out_blocks * depth,
        acc=2 * acc if shape.residual else acc,
        out=pixels * tile.out_blocks,
        prm=tile.out_blocks + shape.residual,
        uops=1 if by_loop(shape) else depth,
    )


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
    """Largest step of the tile."""
    height, width = pool_patch(shape, tile.rows, tile.cols)
    return Entries(
        acc=bank_round(config, height * width * tile.blocks),
        out=tile.rows * tile.cols * tile.blocks,
        prm=tile.blocks,
        uops=1 if pool_by_loop(shape, tile) else shape.window.taps,
    )
