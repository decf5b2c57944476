"""Rows of one head's attention: scores, softmax and mixing take the same ones a step; of several heads each its own."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from relay_hw import op
from relay_hw.ir.expr import Expr
from relay_hw.tensorize.compile import plan_region
from relay_hw.tensorize.kernel import ProductKernel, RowKernel
from relay_hw.tensorize.lower.aligned import aligned
from relay_hw.tensorize.lower.product import product_cycles
from relay_hw.tensorize.lower.rows import rows_cycles
from relay_hw.tensorize.lower.tile import plan_tile
from relay_hw.tensorize.tiles.choose import chunk_sizes
from relay_hw.tensorize.tiles.sizes import OutputTile, RowTile
from tests.targets import target_for

CONFIG = target_for("default")


def _attention(kit: SimpleNamespace, heads: int, tokens: int) -> Expr:
    build = kit.Regions(heads, CONFIG)
    q, k = build.tensor(heads, tokens, 64), build.tensor(heads, tokens, 64)
    mixed = build.product(build.softmax(build.product(q, k)), build.tensor(heads, 64, tokens))
    return build.function(build.move(lambda y: op.transpose(y, (1, 0, 2)), mixed))


def _rows(kit: SimpleNamespace, heads: int, tokens: int) -> tuple[list[int], list[int]]:
    """Rows a step of products and softmax, of each layer alone and of all together."""
    region = plan_region(_attention(kit, heads, tokens), CONFIG, "accel_0")
    alone = tuple(plan_tile(layer.kernel, CONFIG) for layer in region.layers)
    kernels = [layer.kernel for layer in region.layers]
    both = (
        [
            tile.rows
            for kernel, tile in zip(kernels, tiles, strict=True)
            if isinstance(kernel, ProductKernel | RowKernel) and isinstance(tile, OutputTile | RowTile)
        ]
        for tiles in (alone, aligned(region, alone, CONFIG))
    )
    first, second = both
    return first, second


@pytest.mark.parametrize("tokens", [30, 99, 128])
def test_one_head_takes_the_cheapest_rows_together(kit: SimpleNamespace, tokens: int) -> None:
    _, found = _rows(kit, 1, tokens)
    assert len(found) == 3 and len(set(found)) == 1
    region = plan_region(_attention(kit, 1, tokens), CONFIG, "accel_0")

    def cycles(rows: int) -> int:
        total = 0
        for layer in region.layers:
            if isinstance(layer.kernel, ProductKernel):
                total += product_cycles(layer.kernel, rows, -(-layer.kernel.target.channels // 16), CONFIG)
            elif isinstance(layer.kernel, RowKernel):
                total += rows_cycles(layer.kernel, rows, CONFIG)
        return total

    smaller = [rows for rows in chunk_sizes(tokens) if rows <= 64]
    assert cycles(found[0]) == min(map(cycles, smaller))
    kit.compare(_attention(kit, 1, tokens), CONFIG, order=1)


def test_several_heads_keep_their_rows(kit: SimpleNamespace) -> None:
    alone, found = _rows(kit, 3, 99)
    assert alone == found and len(set(found)) > 1


def test_a_softmax_that_others_read_keeps_its_rows(kit: SimpleNamespace) -> None:
    build = kit.Regions(1, CONFIG)
    q, k = build.tensor(1, 99, 64), build.tensor(1, 99, 64)
    y = build.softmax(build.product(q, k))
    function = build.function(build.product(y, build.tensor(1, 64, 99)), build.rows(y, 40))
    region = plan_region(function, CONFIG, "accel_0")
    alone = tuple(plan_tile(layer.kernel, CONFIG) for layer in region.layers)
    assert aligned(region, alone, CONFIG) == alone
