"""Lowers depthwise and grouped convolutions and pools to steps: load a patch, GEMM, output stage, store in chunks.

In: a kernel and its tile. Out: steps. Accumulators and outputs of a tile lie as [row][column][block]; patches as planes
of one channel block each, or as [row][column][in block] where whole blocks are multiplied.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from relay_hw.accel.isa.config import TAPS, AccelConfig
from relay_hw.accel.isa.spec import Dst, Form, GemmMode, Mem, Nibble, Op
from relay_hw.tensorize.commands import Axis, Buffer, Command, Key, Ref, Step, Uop
from relay_hw.tensorize.kernel import ConvKernel, Int8, PoolKernel
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
from relay_hw.tensorize.tiles.depthwise import (
    DepthwiseShape,
    channel_bytes,
    depthwise_patch,
    depthwise_shape,
    one_by_one,
    plane_lines,
    weight_entries,
)
from relay_hw.tensorize.tiles.geometry import bank_round, parts, span_of
from relay_hw.tensorize.tiles.operands import operand_mode, operand_starts, operand_tiles, stored_tiles
from relay_hw.tensorize.tiles.sizes import OutputTile

INT8 = (-128, 127)
# The results of a step leave in about this many chunks, so that the first are stored while others are computed.
STORE_CHUNKS = 4


@dataclass(frozen=True, slots=True)
class _Layer:
    """What every step of the layer needs to know. `weights`: [out block, ...], tiles or groups of four taps."""

    number: int
    name: str
    kernel: ConvKernel | PoolKernel
    shape: DepthwiseShape
    tile: OutputTile
    weights: Int8
    records: Records | None
    tensors: tuple[Key, ...]
    config: AccelConfig

    @property
    def pitch(self) -> int:
        """Pixels of a row of the patch; the same for the narrower last tile, so that micro-ops are shared."""
        return depthwise_patch(self.shape, 1, self.tile.cols)[1]

    @property
    def in_planes(self) -> bool:
        return self.shape.mode is not GemmMode.MATMUL


@dataclass(frozen=True, slots=True)
class _At:
    """One step: (begin, count) of rows, columns and out blocks."""

    rows: Part
    cols: Part
    blocks: Part

    @property
    def where(self) -> tuple[int, int, int]:
        return (self.rows[0], self.cols[0], self.blocks[0])


def lower_depthwise(
    named: LayerId, kernel: ConvKernel | PoolKernel, tile: OutputTile, config: Target
) -> tuple[Step, ...]:
    """Steps of a layer; its tensors: input, output."""
    shape = depthwise_shape(kernel, config)
    stage = kernel.requantize
    records = None if stage is None else requantize_records(stage, shape.out_blocks, config)
    weights = _weights(kernel, shape, config)
    layer = _Layer(named.number, named.name, kernel, shape, tile, weights, records, named.tensors, config)
    return tuple(
        _step(layer, _At(rows, cols, blocks))
        for blocks in parts(shape.out_blocks, tile.blocks)
        for rows in parts(shape.out_height, tile.rows)
        for cols in parts(shape.out_width, tile.cols)
    )


def _weights(kernel: ConvKernel | PoolKernel, shape: DepthwiseShape, config: AccelConfig) -> Int8:
    """int8 [out blocks, products, BLOCK_OUT, BLOCK_IN], or [out blocks, slots, BLOCK_OUT, 4]."""
    if shape.mode is GemmMode.MAX:
        return np.zeros((shape.out_blocks, 0), np.int8)
    if shape.mode is GemmMode.MATMUL:
        assert isinstance(kernel, ConvKernel)
        return _block_weights(kernel, shape, config)
    lanes = shape.out_blocks * config.block_out
    height, width = shape.window.kernel
    taps = np.zeros((lanes, height, width), np.int8)
    if isinstance(kernel, ConvKernel):
        taps[: kernel.target.channels] = kernel.weights.reshape(-1, height, width)
    else:
        taps[:] = 1
    found = np.zeros((len(shape.slots), lanes, TAPS), np.int8)
    for number, slot in enumerate(shape.slots):
        for position, tap in enumerate(slot.taps):
            if tap is not None:
                found[number, :, position] = taps[:, slot.kernel_row, tap]
    return found.reshape(len(shape.slots), shape.out_blocks, config.block_out, TAPS).swapaxes(0, 1)


def _block_weights(kernel: ConvKernel, shape: DepthwiseShape, config: AccelConfig) -> Int8:
    """The blocks of the weight matrix that each output block reads; between groups it is zero."""
    outputs, inputs = kernel.target.channels // kernel.groups, kernel.weights.shape[3]
    taps = shape.window.taps
    lanes = config.inp_lanes
    found = np.zeros((shape.out_blocks, config.block_out, taps, shape.reads * lanes), np.int8)
    flat = kernel.weights.reshape(kernel.target.channels, taps, inputs)
    for channel in range(kernel.target.channels):
        block, lane = divmod(channel, config.block_out)
        begin = channel // outputs * inputs - shape.first[block] * lanes
        found[block, lane, :, begin : begin + inputs] = flat[channel]
    rows = found.reshape(shape.out_blocks, config.block_out, taps, shape.reads, lanes)
    tiles = operand_tiles(rows.transpose(0, 2, 3, 1, 4), config)
    return tiles.reshape(shape.out_blocks, -1, config.block_out, config.block_in)


def _step(layer: _Layer, at: _At) -> Step:
    config = layer.config
    keys = {role: (role, layer.number, *at.where) for role in ("inp", "acc")}
    wgt: Key = ("wgt", layer.number, 0 if layer.shape.shared else at.blocks[0])
    buffers = [_patch(layer, at, keys["inp"])]
    if weight_entries(layer.shape, at.blocks[1], config):
        buffers.append(_weight_buffer(layer, at, wgt))
    entries = at.rows[1] * at.cols[1] * at.blocks[1]
    buffers.append(Buffer(keys["acc"], Mem.ACC, bank_round(config, entries)))
    commands = list(_gemms(layer, at, keys["inp"], wgt, keys["acc"]))
    if layer.records is not None:
        buffers.append(record_buffer(record_key(layer.number, layer.records, at.blocks), layer.records, at.blocks))
    for rows in _pieces(layer, at):
        more, output = _output(layer, at, rows, keys["acc"])
        buffers.append(more)
        commands += output
    label = f"{layer.name} rows {at.rows[0]} cols {at.cols[0]} blocks {at.blocks[0]}"
    return Step(layer.number, label, tuple(buffers), tuple(commands))


def _patch(layer: _Layer, at: _At, key: Key) -> Buffer:
    config, shape = layer.config, layer.shape
    first, run = channel_bytes(shape, at.blocks, config)
    height, width = depthwise_patch(shape, at.rows[1], layer.tile.cols)
    window = shape.window
    under = Under(shape.source, window, at.rows, at.cols, layer.pitch)
    values, refs = load_patch(config, under, (first, run), layer.tensors[0])
    size = height * width * run // config.inp_bytes
    if layer.in_planes:
        step = plane_lines(shape, layer.tile)
        values |= _runs(layer, at, run) | {"pitch": step // TAPS}
        size = ((run // config.line_bytes - 1) * step + height * width) * config.line_entries
    fields = {"mem": Mem.INP, "pad_value": window.pad_value, **values}
    load = Command(Op.LOAD, fields, {**refs, "sram": Ref(key)})
    return Buffer(key, Mem.INP, size, loads=(load,))


def _runs(layer: _Layer, at: _At, run: int) -> dict[str, int]:
    """Extents of a LOAD whose runs are pixels, which is what planes count."""
    source, window = layer.shape.source, layer.shape.window
    top, bottom = span_of(window, 0, *at.rows)
    left, right = span_of(window, 1, *at.cols)
    rows = min(bottom, source.height) - max(top, 0)
    cols = min(right, source.width) - max(left, 0)
    return {
        "z": run // layer.config.granule_bytes,
        "y": rows,
        "x": cols,
        "y_stride": source.row_stride if rows > 1 else 0,
        "x_stride": source.col_stride if cols > 1 else 0,
    }


def _weight_buffer(layer: _Layer, at: _At, key: Key) -> Buffer:
    config, shape = layer.config, layer.shape
    blocks = (0, 1) if shape.shared else at.blocks
    entries = weight_entries(shape, blocks[1], config)
    own = layer.weights[blocks[0] : blocks[0] + blocks[1]]
    if layer.in_planes:
        tiles = entries // shape.form.passes
        groups = np.zeros((tiles * config.tap_groups, config.block_out, TAPS), np.int8)
        groups[: own.shape[0] * own.shape[1]] = own.reshape(-1, config.block_out, TAPS)
        own = groups.reshape(tiles, config.tap_groups, config.block_out, TAPS).swapaxes(1, 2)
    stored = stored_tiles(own.reshape(1, -1, config.block_out, config.block_in), shape.form, config)
    return Buffer(key, Mem.WGT, entries, data=stored.tobytes(), packing=shape.form.packing)


def _gemms(layer: _Layer, at: _At, inp: Key, wgt: Key, acc: Key) -> tuple[Command, ...]:
    """Products of the step, of low halves of weights before those of high ones."""
    config, shape = layer.config, layer.shape
    entries = weight_entries(shape, at.blocks[1], config) // shape.form.passes
    scale = config.tap_groups if layer.in_planes else 1
    return tuple(
        command
        for number, nibble in shape.form.parts()
        for command in _pass(layer, at, inp, Ref(wgt, number * entries, scale), acc, nibble)
    )


def _pass(layer: _Layer, at: _At, inp: Key, wgt: Ref, acc: Key, nibble: Nibble) -> tuple[Command, ...]:
    config, shape = layer.config, layer.shape
    down, right = shape.window.strides
    blocks = at.blocks[1]
    pixel = config.line_parts if layer.in_planes else channel_bytes(shape, at.blocks, config)[1] // config.inp_bytes
    axes = [
        Axis(at.rows[1], {"acc": at.cols[1] * blocks, "inp": down * layer.pitch * pixel}),
        Axis(at.cols[1], {"acc": blocks, "inp": right * pixel}),
    ]
    refs = {"acc_base": Ref(acc), "inp_base": Ref(inp, scale=config.entry_parts if layer.in_planes else 1)}
    if shape.mode is not GemmMode.MAX:
        refs["wgt_base"] = wgt
    mode = shape.mode if layer.in_planes else operand_mode(shape.reads, config)
    values = {"mode": mode, "overwrite": int(nibble is not Nibble.HIGH)}
    values |= {"nibble": nibble} if nibble else {}
    if layer.in_planes:
        return looped(Op.GEMM, values, refs, axes, uops=tuple(_line_uops(layer, blocks)))
    begin = channel_bytes(shape, at.blocks, config)[0] // config.inp_bytes
    first = [shape.first[at.blocks[0] + block] - begin for block in range(blocks)]
    sources = _block_sources(layer, pixel)
    if not one_by_one(shape, blocks, config):
        uops = tuple(
            (block, base + source, block * shape.products + number, int(number == 0))
            for block, base in enumerate(first)
            for number, source in enumerate(sources)
        )
        return looped(Op.GEMM, values, refs, axes, uops=uops)
    own = tuple((0, source, number, int(number == 0)) for number, source in enumerate(sources))
    return tuple(
        command
        for block, base in enumerate(first)
        for command in looped(
            Op.GEMM,
            values,
            {
                "acc_base": Ref(acc, block),
                "inp_base": Ref(inp, base),
                "wgt_base": replace(wgt, offset=wgt.offset + block * shape.products),
            },
            axes,
            uops=own,
        )
    )


def _line_uops(layer: _Layer, blocks: int) -> Iterator[Uop]:
    """Micro-ops over blocks and groups of four lines."""
    config, shape = layer.config, layer.shape
    blocks_of_line = config.line_parts // config.block_parts
    step = plane_lines(shape, layer.tile)
    for block in range(blocks):
        plane, place = divmod(block, blocks_of_line)
        for number, slot in enumerate(shape.slots):
            line = plane * step + slot.row * layer.pitch + slot.col
            weight = number if shape.shared else block * shape.products + number
            wgt = slot.mask if shape.mode is GemmMode.MAX else weight
            yield (block, line * config.line_parts + place * config.block_parts, wgt, int(number == 0))


def _block_sources(layer: _Layer, pixel: int) -> tuple[int, ...]:
    """Entries over kernel rows, kernel columns and the in blocks that a block reads, from the first one on."""
    shape = layer.shape
    (height, width), (down, right) = shape.window.kernel, shape.window.dilation
    return tuple(
        (y * down * layer.pitch + x * right) * pixel + k
        for y in range(height)
        for x in range(width)
        for k in operand_starts(shape.reads, shape.operand)
    )


def _pieces(layer: _Layer, at: _At) -> tuple[Part, ...]:
    """(begin, count) of rows whose results leave together."""
    row = at.cols[1] * at.blocks[1]
    return parts(at.rows[1], max(1, layer.config.out_depth // STORE_CHUNKS // row))


def _output(layer: _Layer, at: _At, rows: Part, acc: Key) -> tuple[Buffer, list[Command]]:
    config, blocks = layer.config, at.blocks[1]
    out: Key = ("out", layer.number, *at.where, rows[0])
    row = at.cols[1] * blocks
    refs = {"acc_base": Ref(acc, rows[0] * row), "dst_base": Ref(out)}
    if layer.records is None:
        fields = {"form": Form.PASS, "dst": Dst.OUT, "clip_lo": INT8[0], "clip_hi": INT8[1]}
        commands = list(looped(Op.REQUANT, fields, refs, [Axis(rows[1] * row, {"acc": 1, "dst": 1})]))
    else:
        pixels = Axis(rows[1] * at.cols[1], {"acc": blocks, "dst": blocks})
        refs["prm_base"] = Ref(record_key(layer.number, layer.records, at.blocks))
        commands = list(scale_commands(layer.records, refs, blocks, [pixels]))
    place = (at.rows[0] + rows[0], rows[1])
    commands.append(
        store_tile(config, Outputs(place, at.cols, at.blocks), layer.shape.out_grid, out, layer.tensors[-1])
    )
    return Buffer(out, Mem.OUT, rows[1] * row), commands
