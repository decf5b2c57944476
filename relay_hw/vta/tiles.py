"""Tiles of a layer: sizes that fit into half of every buffer, for two of them are under way at once.

In: a kernel, a geometry. Out: the `Tile` with the fewest estimated cycles. Raises InputError where not even the
smallest fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

from relay_hw.errors import InputError
from relay_hw.vta.geometry import Buffer, Geometry
from relay_hw.vta.kernel import Kernel, Kind
from relay_hw.vta.layout import blocks

# Tiles and pieces of them that are under way at once.
THREADS: Final = 2
# Bytes that the memory port of a PYNQ moves in a cycle, and cycles before an instruction does anything.
_PORT_BYTES: Final = 8
_START: Final = 16


@dataclass(frozen=True, slots=True)
class Tile:
    """`rows` x `columns` of results of `outs` blocks, summed over pieces of `ins` blocks of the data."""

    rows: int
    columns: int
    outs: int
    ins: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A kernel with its tile: what every part of lowering asks for."""

    kernel: Kernel
    tile: Tile
    geometry: Geometry

    @property
    def in_blocks(self) -> int:
        """Blocks of channels of the data."""
        return blocks(self.kernel.data[1], self.geometry.block)

    @property
    def out_blocks(self) -> int:
        """Blocks of channels of the result."""
        return blocks(self.kernel.result[1], self.geometry.block)

    @property
    def batches(self) -> int:
        """Entries along the batch."""
        return blocks(self.kernel.data[0], self.geometry.batch)

    @property
    def skips_rows(self) -> bool:
        """Whether rows that no window reads are left in DRAM."""
        return self.kernel.window.size[0] == 1 and not self.kernel.window.before[0]

    @property
    def row_step(self) -> int:
        """Rows of loaded data from one window to the next."""
        return 1 if self.skips_rows else self.kernel.window.strides[0]

    @property
    def in_rows(self) -> int:
        """Rows of data of a tile."""
        return (self.tile.rows - 1) * self.row_step + self.kernel.window.extent[0]

    @property
    def in_columns(self) -> int:
        """Columns of data of a tile."""
        return (self.tile.columns - 1) * self.kernel.window.strides[1] + self.kernel.window.extent[1]

    @property
    def pieces(self) -> int:
        """Loads of data and weights for a tile."""
        return self.in_blocks // self.tile.ins if self.kernel.kind is Kind.DENSE else len(self.kernel.scales)

    @property
    def area(self) -> int:
        """Accumulators of one block of a tile."""
        return self.tile.rows * self.tile.columns

    @property
    def vectors(self) -> int:
        """Parameters of each block."""
        return 0 if self.kernel.tail is None else len(self.kernel.tail.vectors)

    def used(self) -> dict[Buffer, int]:
        """Entries of each buffer that one of the threads needs."""
        kernel, tile = self.kernel, self.tile
        data = tile.ins * self.in_rows * self.in_columns
        held = tile.outs * (self.area + self.vectors)
        taps = kernel.window.taps
        if kernel.kind is Kind.MAXIMUM:
            # The data is unpacked into accumulators, and each place of the window has its own pairs.
            return {
                Buffer.INP: data,
                Buffer.WGT: 1,
                Buffer.ACC: held + data,
                # Taps at the border of the data have other ranges than in the middle.
                Buffer.UOP: 2 + tile.outs * (1 + 3 * taps),
            }
        products = taps * tile.outs * (tile.ins if kernel.kind is Kind.DENSE else 1)
        return {
            Buffer.INP: data,
            Buffer.WGT: products if kernel.kind is Kind.DENSE else 1,
            Buffer.ACC: held,
            # Pieces alternate between halves of INP and WGT, tiles between halves of ACC.
            Buffer.UOP: products * min(self.pieces, THREADS) + tile.outs * self.vectors + 1,
        }

    def fits(self) -> bool:
        """Whether all threads have room."""
        return all(THREADS * count <= self.geometry.depth(buffer) for buffer, count in self.used().items())

    def places(self) -> int:
        """Tiles of the whole layer."""
        _, _, height, width = self.kernel.result
        tile = self.tile
        spots = blocks(height, tile.rows) * blocks(width, tile.columns)
        return self.batches * spots * blocks(self.out_blocks, tile.outs)

    def cycles(self) -> float:
        """An estimate that ranks tiles: the busier of DMA and compute, and what each instruction costs."""
        kernel, tile, g = self.kernel, self.tile, self.geometry
        tiles, groups = self.places(), blocks(self.out_blocks, tile.outs)
        dense = kernel.kind is Kind.DENSE
        products = kernel.window.taps * (tile.ins * self.pieces if dense else self.pieces)
        tail = 0 if kernel.tail is None else 5 + len(kernel.tail.shifts)
        compute = tiles * tile.outs * self.area * (products + 1 + tail)
        data = tiles * self.pieces * self.used()[Buffer.INP] * g.entry_bytes(Buffer.INP)
        weights = self.used()[Buffer.WGT] * g.entry_bytes(Buffer.WGT) * (groups if self.pieces <= THREADS else tiles)
        stored = tiles * tile.outs * self.area * g.entry_bytes(Buffer.OUT)
        moved = (data + weights * self.pieces + stored) / _PORT_BYTES
        split = kernel.window.taps * tile.ins if tile.outs == 1 else 1
        steps = tiles * (self.pieces * (tile.ins + 1 + split) + tail + 3)
        return max(compute, moved) + min(compute, moved) / 8 + _START * steps


def choose(kernel: Kernel, geometry: Geometry) -> Plan:
    """The best tile. Raises InputError."""
    plans = (Plan(kernel, tile, geometry) for tile in candidates(kernel, geometry))
    fitting = [plan for plan in plans if plan.fits()]
    if not fitting:
        raise InputError(f"a tile of one result must fit into half of each buffer of {geometry.title}, not be larger")
    return min(fitting, key=lambda plan: (plan.cycles(), plan.tile.outs))


def can_tile(kernel: Kernel, geometry: Geometry) -> bool:
    """Whether any tile fits."""
    return Plan(kernel, Tile(1, 1, 1, 1), geometry).fits()


def candidates(kernel: Kernel, geometry: Geometry) -> Iterator[Tile]:
    """Tiles worth trying. Pieces of the data divide it; of the rest, the last tile overlaps the one before it."""
    _, _, height, width = kernel.result
    outs = _sizes(blocks(kernel.result[1], geometry.block))
    ins = _divisors(blocks(kernel.data[1], geometry.block))
    for columns, rows, out in product(_sizes(width), _sizes(height), outs):
        for piece in ins if kernel.kind is Kind.DENSE else (out,):
            yield Tile(rows, columns, out, piece)


def _sizes(count: int) -> list[int]:
    """Sizes that cut `count` into nearly equal parts, few enough to try them all."""
    parts = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 112, 128, count]
    return sorted({-(-count // part) for part in parts if part <= count})


def _divisors(count: int) -> list[int]:
    return [n for n in range(1, count + 1) if count % n == 0]
