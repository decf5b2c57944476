"""Lowers pools to steps: load int8 pixels widened into accumulators, combine them in place, output stage, store.

In: a kernel and its tile. Out: steps. A window is combined into its first pixel; windows are taken row by row, so that
a pixel is overwritten only after every earlier window that meets it.
"""

from __future__ import annotations

from dataclasses import dataclass

from relay_hw.accel.isa.alu import AluOp
from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.spec import Dst, Form, Mem, Op
from relay_hw.tensorize.commands import Axis, Buffer, Command, Key, Ref, Step
from relay_hw.tensorize.kernel import PoolKernel, PoolKind
from relay_hw.tensorize.layout import Records, requantize_records
from relay_hw.tensorize.lower.common import (
    LayerId,
    Outputs,
    Part,
    Under,
    load_patch,
    looped,
    record_buffer,
    record_key,
    scale_commands,
    store_tile,
)
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.geometry import PoolShape, bank_round, parts, pool_shape
from relay_hw.tensorize.tiles.sizes import PoolTile, pool_by_loop, pool_patch

INT8 = (-128, 127)


@dataclass(frozen=True, slots=True)
class _Layer:
    """What every step of the layer needs to know."""

    number: int
    name: str
    kernel: PoolKernel
    shape: PoolShape
    tile: PoolTile
    records: Records | None
    tensors: tuple[Key, ...]
    config: AccelConfig

    @property
    def pitch(self) -> int:
        """Pixels of a row of the patch; the same for the narrower last tile, so that micro-ops are shared."""
        return pool_patch(self.shape, 1, self.tile.cols)[1]


def lower_pool(named: LayerId, kernel: PoolKernel, tile: PoolTile, config: Target) -> tuple[Step, ...]:
    """Steps of a layer; its tensors: input, output."""
    shape = pool_shape(kernel, config)
    stage = kernel.requantize
    records = None if stage is None else requantize_records(stage, shape.blocks, config)
    layer = _Layer(named.number, named.name, kernel, shape, tile, records, named.tensors, config)
    return tuple(
        _step(layer, rows, cols, blocks)
        for blocks in parts(shape.blocks, tile.blocks)
        for rows in parts(shape.out_height, tile.rows)
        for cols in parts(shape.out_width, tile.cols)
    )


def _step(layer: _Layer, rows: Part, cols: Part, blocks: Part) -> Step:
    config, shape = layer.config, layer.shape
    where = (layer.number, rows[0], cols[0], blocks[0])
    acc, out = ("acc", *where), ("out", *where)
    buffers = [_patch(layer, rows, cols, blocks, acc)]
    commands = _combine(layer, rows, cols, blocks, acc) + _output(layer, rows, cols, blocks, acc, out)
    if layer.records is not None:
        buffers.append(record_buffer(record_key(layer.number, layer.records, blocks), layer.records, blocks))
    buffers.append(Buffer(out, Mem.OUT, rows[1] * cols[1] * blocks[1]))
    store = store_tile(config, Outputs(rows, cols, blocks), shape.out_grid, out, layer.tensors[-1])
    label = f"{layer.name} rows {rows[0]} cols {cols[0]} blocks {blocks[0]}"
    return Step(layer.number, label, tuple(buffers), (*commands, store))


def _patch(layer: _Layer, rows: Part, cols: Part, blocks: Part, key: Key) -> Buffer:
    config, shape = layer.config, layer.shape
    channels = (blocks[0] * config.out_bytes, blocks[1] * config.out_bytes)
    under = Under(shape.source, shape.window, rows, cols, layer.pitch)
    values, refs = load_patch(config, under, channels, layer.tensors[0])
    fields = {"mem": Mem.ACC, "expand": 1, "pad_value": shape.window.pad_value, **values}
    load = Command(Op.LOAD, fields, {**refs, "sram": Ref(key)})
    entries = pool_patch(shape, rows[1], cols[1])[0] * layer.pitch * blocks[1]
    return Buffer(key, Mem.ACC, bank_round(config, entries), loads=(load,))


def _axes(layer: _Layer, rows: Part, cols: Part, blocks: Part, dst: tuple[int, int]) -> list[Axis]:
    """Rows and columns of windows: steps of the window's first pixel (src) and of its result (dst row, dst column)."""
    down, right = layer.shape.window.strides
    row, col = layer.pitch * blocks[1], blocks[1]
    return [
        Axis(rows[1], {"src": down * row, "dst": dst[0]}),
        Axis(cols[1], {"src": right * col, "dst": dst[1]}),
    ]


def _combine(layer: _Layer, rows: Part, cols: Part, blocks: Part, acc: Key) -> tuple[Command, ...]:
    window = layer.shape.window
    if window.taps == 1:
        return ()
    row, col = layer.pitch * blocks[1], blocks[1]
    values = {"alu_op": AluOp.MAX if layer.kernel.kind is PoolKind.MAX else AluOp.ADD}
    channels = Axis(blocks[1], {"dst": 1, "src": 1})
    if pool_by_loop(layer.shape, layer.tile):
        refs = {"dst_base": Ref(acc), "src_base": Ref(acc, col)}
        pixels = Axis(window.taps - 1, {"src": col})
        return looped(Op.ALU, values, refs, [channels, pixels], uops=((0, 0, 0, 0),))
    sources = [
        y * window.dilation[0] * row + x * window.dilation[1] * col
        for y in range(window.kernel[0])
        for x in range(window.kernel[1])
    ]
    uops = tuple((0, source, 0, 0) for source in sources[1:])
    refs = {"dst_base": Ref(acc), "src_base": Ref(acc)}
    in_place = (window.strides[0] * row, window.strides[1] * col)
    axes = [*_axes(layer, rows, cols, blocks, in_place), channels]
    return looped(Op.ALU, values, refs, axes, uops=uops)


def _output(layer: _Layer, rows: Part, cols: Part, blocks: Part, acc: Key, out: Key) -> tuple[Command, ...]:
    count = blocks[1]
    axes = [
        Axis(axis.count, {"acc": axis.steps["src"], "dst": axis.steps["dst"]})
        for axis in _axes(layer, rows, cols, blocks, (cols[1] * count, count))
    ]
    refs = {"acc_base": Ref(acc), "dst_base": Ref(out)}
    if layer.records is None:
        fields = {"form": Form.PASS, "dst": Dst.OUT, "clip_lo": INT8[0], "clip_hi": INT8[1]}
        return looped(Op.REQUANT, fields, refs, [*axes, Axis(count, {"acc": 1, "dst": 1})])
    refs["prm_base"] = Ref(record_key(layer.number, layer.records, blocks))
    return scale_commands(layer.records, refs, count, axes)
