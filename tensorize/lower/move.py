"""Lowers copies of channel blocks to steps: LOAD into accumulators, output stage, STORE.

In: a kernel and its tiles. Out: steps. A copy that a layer before it makes in its stead is left out, see `join`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.spec import Dst, Form, Mem, Op
from relay_hw.errors import TensorizeError
from relay_hw.tensorize.commands import Axis, Buffer, Command, Key, Ref, Step
from relay_hw.tensorize.kernel import Move, MoveKernel
from relay_hw.tensorize.layout import pixel_bytes
from relay_hw.tensorize.lower.common import LayerId, Outputs, looped, table_refs, tile_transfer
from relay_hw.tensorize.tiles.choose import EXTENT_LIMIT, chunk_sizes
from relay_hw.tensorize.tiles.geometry import Grid, bank_round, parts
from relay_hw.tensorize.tiles.sizes import MoveTile, OutputTile


def choose_move(kernel: MoveKernel, config: AccelConfig) -> MoveTile:
    """Choose the largest chunks of which several fit at a time."""
    return MoveTile(tuple(_choose(move, config) for move in kernel.moves))


def _choose(move: Move, config: AccelConfig) -> OutputTile:
    per_block = config.channel_align // config.out_bytes
    most = min(config.acc_depth // 4, config.out_depth // 2)
    height, width, blocks = move.size
    for count in chunk_sizes(blocks):
        for cols in chunk_sizes(width):
            for rows in chunk_sizes(height):
                if rows * cols * count * per_block <= most and max(rows, cols) <= EXTENT_LIMIT:
                    return OutputTile(rows, cols, count)
    raise TensorizeError(f"a channel block must fit configuration {config.name}, not need {per_block} entries")


def lower_move(layer: LayerId, kernel: MoveKernel, tile: MoveTile, config: AccelConfig) -> tuple[Step, ...]:
    """Steps of a layer; its tensors: inputs, output."""
    steps = enumerate(zip(kernel.moves, tile.moves, strict=True))
    return tuple(
        _step(replace(layer, part=(part,)), kernel, move, tile_of, config)
        for part, (move, own) in steps
        for tile_of in _pieces(move, own)
    )


def _pieces(move: Move, tile: OutputTile) -> Iterator[Outputs]:
    """Tiles of a copy; `blocks` are those of channels, of which each has some of the accelerator's."""
    height, width, blocks = move.size
    for own, rows, cols in product(parts(blocks, tile.blocks), parts(height, tile.rows), parts(width, tile.cols)):
        yield Outputs(rows, cols, own)


def _step(layer: LayerId, kernel: MoveKernel, move: Move, tile: Outputs, config: AccelConfig) -> Step:
    (blocks, blocks_count), rows, cols, tensors = tile.blocks, tile.rows, tile.cols, layer.tensors
    scale = config.channel_align // config.out_bytes
    own = Outputs(rows, cols, (blocks * scale, blocks_count * scale))
    entries = rows[1] * cols[1] * own.blocks[1]
    key = (layer.number, *layer.part, blocks, rows[0], cols[0])
    acc: Key = ("acc", *key)
    out: Key = ("out", *key)
    source = Grid(move.begin, move.row_stride, move.col_stride)
    values, begin = tile_transfer(config, own, source)
    refs = {"dram": Ref(tensors[move.source], begin), "sram": Ref(acc)}
    load = Command(Op.LOAD, {"mem": Mem.ACC, "expand": 1, **values}, refs)
    fields = {"form": Form.PASS, "dst": Dst.OUT, "clip_lo": kernel.bounds[0], "clip_hi": kernel.bounds[1]}
    refs = {"acc_base": Ref(acc), "dst_base": Ref(out), **table_refs(kernel.table)}
    passed = looped(Op.REQUANT, fields, refs, [Axis(entries, {"acc": 1, "dst": 1})])
    values, begin = tile_transfer(config, own, _target(kernel, move, config))
    store = Command(Op.STORE, {"mem": Mem.OUT, **values}, {"dram": Ref(tensors[-1], begin), "sram": Ref(out)})
    buffers = (
        Buffer(acc, Mem.ACC, bank_round(config, entries), loads=(load,)),
        Buffer(out, Mem.OUT, entries),
    )
    return Step(
        layer.number, f"{layer.name} copy {layer.part[0]} rows {rows[0]} cols {cols[0]}", buffers, (*passed, store)
    )


def _target(kernel: MoveKernel, move: Move, config: AccelConfig) -> Grid:
    pixel = pixel_bytes(kernel.target, config)
    row = kernel.target.width * pixel
    begin = move.first[0] * row + move.first[1] * pixel + move.block * config.channel_align
    return Grid(begin, move.step[0] * row, move.step[1] * pixel)
