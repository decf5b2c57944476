"""Gives the layers of one head's attention the same rows a step: scores, softmax, and the product that reads it.

In: a region and the tiles that suit each layer alone. Out: tiles. A step of the softmax then waits for one step of the
scores, and the next product for one of the softmax. Of several heads the steps that end inside of a head fill gaps of
the others, so that they keep their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from relay_hw.tensorize.kernel import ProductKernel, RowKernel
from relay_hw.tensorize.lower.product import product_cycles, product_fits
from relay_hw.tensorize.lower.rows import rows_cycles, rows_fit
from relay_hw.tensorize.match.region import Region
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.choose import chunk_sizes
from relay_hw.tensorize.tiles.sizes import OutputTile, RowTile, Tile


def aligned(region: Region, tiles: Sequence[Tile], config: Target) -> tuple[Tile, ...]:
    """The tiles with those of each chain set to the rows that cost its layers the least together."""
    found = list(tiles)
    for number, layer in enumerate(region.layers):
        if isinstance(layer.kernel, RowKernel) and layer.kernel.source.height == 1:
            chain = _chain(region, number)
            rows = _best_rows(region, chain, found, config) if chain else None
            for at in chain if rows else ():
                found[at] = _with_rows(found[at], rows or 0)
    return tuple(found)


def _chain(region: Region, number: int) -> tuple[int, ...]:
    """The product that the rows come from, the rows, and the products that alone read them as left operands."""
    layer = region.layers[number]
    before = [at for at, one in enumerate(region.layers) if one.output == layer.inputs[0]]
    behind = [at for at, one in enumerate(region.layers) if layer.output in one.inputs]
    products = [region.layers[at] for at in (*before, *behind)]
    whole = all(
        isinstance(one.kernel, ProductKernel) and one.kernel.target.width == layer.kernel.target.width
        for one in products
    )
    first = all(region.layers[at].inputs.index(layer.output) == 0 for at in behind)
    return (*before, number, *behind) if len(before) == 1 and behind and whole and first else ()


def _best_rows(region: Region, chain: Sequence[int], tiles: Sequence[Tile], config: Target) -> int | None:
    """Rows a step that fit every layer of the chain and cost the least; the larger of equal ones."""
    costs: dict[int, int] = {}
    for rows in chunk_sizes(region.layers[chain[0]].kernel.target.width):
        found = [_cycles(region, at, tiles[at], rows, config) for at in chain]
        known = [cycles for cycles in found if cycles is not None]
        if len(known) == len(found):
            costs[rows] = sum(known)
    return min(costs, key=lambda rows: (costs[rows], -rows), default=None)


def _cycles(region: Region, at: int, tile: Tile, rows: int, config: Target) -> int | None:
    """Estimated cycles of a layer alone; None where so many rows do not fit."""
    match region.layers[at].kernel, tile:
        case ProductKernel() as kernel, OutputTile(blocks=blocks):
            fits = product_fits(kernel, rows, blocks, config)
            return product_cycles(kernel, rows, blocks, config) if fits else None
        case RowKernel() as kernel, RowTile():
            return rows_cycles(kernel, rows, config) if rows_fit(kernel, rows, config) else None
        case _:
            return None


def _with_rows(tile: Tile, rows: int) -> Tile:
    return replace(tile, rows=rows) if isinstance(tile, OutputTile | RowTile) else tile
