"""Lowers convolutions and dense layers to steps: load a patch and weights, GEMM, output stage, store.

In: a kernel, its shape and tile. Out: steps in an order that uses loaded weights or patches as long as it can.
Accumulators and outputs of a tile lie as [row][column][out block]; patches as [row][column][in block].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.program import align
from relay_hw.accel.isa.spec import Dst, Mem, Nibble, Op
from relay_hw.tensorize.commands import Axis, Buffer, Command, Key, Ref, Step, Uop
from relay_hw.tensorize.kernel import ConvKernel, Int8
from relay_hw.tensorize.layout import Records, pack_weights, pair_record, requantize_records
from relay_hw.tensorize.lower.common import (
    LayerId,
    Outputs,
    Part,
    Under,
    Visits,
    entry_after_entry,
    load_patch,
    looped,
    pair_commands,
    scale_commands,
    store_planes,
    store_tile,
    tile_transfer,
)
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.geometry import ConvShape, bank_round, conv_weights, granule_blocks, grid_of, parts
from relay_hw.tensorize.tiles.im2col import folded_weights, gather_fields, shape_under
from relay_hw.tensorize.tiles.operands import operand_mode, operand_starts, operand_tiles, stored_tiles
from relay_hw.tensorize.tiles.sizes import ConvTile, Kept, by_loop, conv_patch, conv_use


@dataclass(frozen=True, slots=True)
class _Position:
    """One step: (begin, count) of rows, columns, in blocks, the out blocks of its group and those of the step."""

    rows: Part
    cols: Part
    inp: Part
    group: Part
    out: Part

    @property
    def pixels(self) -> int:
        return self.rows[1] * self.cols[1]

    @property
    def closes(self) -> bool:
        """True for the last step of a group in one chunk of the sum."""
        return sum(self.out) == sum(self.group)


@dataclass(frozen=True, slots=True)
class _Layer:
    """What every step of the layer needs to know."""

    named: LayerId
    kernel: ConvKernel
    shape: ConvShape
    tile: ConvTile
    tiles: Int8
    records: Records
    kept: Kept
    # Bytes of the steps' weights by first out and in block; made once, so that equal ones are one object.
    weights: dict[tuple[int, int], bytes]
    # Micro-ops by the entries between rows and columns of the patch and the step's in blocks.
    uops: dict[tuple[int, int, int], tuple[Uop, ...]]
    config: AccelConfig

    def key(self, role: str, *where: int) -> Key:
        """Key of a buffer of this layer."""
        return (role, self.named.number, *self.named.part, *where)

    def depth(self, at: _Position) -> int:
        """Weight entries of one out block in the step."""
        return self.shape.depth(at.inp[1])

    def in_entries(self, at: _Position) -> int:
        """Input entries of one pixel of the patch."""
        return align(at.inp[1], granule_blocks(self.config, self.config.inp_lanes))

    @property
    def pitch(self) -> int:
        """Pixels of a row of the patch; the same for the narrower last tile, so that micro-ops are shared."""
        return conv_patch(self.shape, 1, self.tile.cols)[1]


def lower_conv(named: LayerId, kernel: ConvKernel, tile: ConvTile, config: Target) -> tuple[Step, ...]:
    """Steps of a layer; its tensors: input, residual if there is one, output."""
    shape = shape_under(kernel, tile.fold, config)
    weights = conv_weights(kernel, config) if shape.fold is None else folded_weights(kernel, shape, config)
    tiles = pack_weights(weights, config)
    records = requantize_records(kernel.requantize, shape.out_blocks, config)
    kept = conv_use(shape, tile, config).kept
    layer = _Layer(named, kernel, shape, tile, tiles, records, kept, {}, {}, config)
    visits = Visits()
    return tuple(_step(layer, at, visits) for at in _positions(shape, tile))


def _positions(shape: ConvShape, tile: ConvTile) -> Iterator[_Position]:
    groups = parts(shape.out_blocks, tile.out_blocks)
    sets = [groups[begin : begin + count] for begin, count in parts(len(groups), tile.live)]
    pixels = [(r, c) for r in parts(shape.out_height, tile.rows) for c in parts(shape.out_width, tile.cols)]
    if tile.weights_outer:
        order = [(live, r, c) for live in sets for r, c in pixels]
    else:
        order = [(live, r, c) for r, c in pixels for live in sets]
    for live, rows, cols in order:
        for inp in parts(shape.in_blocks, tile.in_blocks):
            for group in live:
                for begin, count in parts(group[1], tile.step_blocks):
                    yield _Position(rows, cols, inp, group, (group[0] + begin, count))


def _step(layer: _Layer, at: _Position, visits: Visits) -> Step:
    where = (at.rows[0], at.cols[0])
    inp = visits.key("inp", layer.key("inp", *where, at.inp[0]), layer.kept.inp > 0)
    wgt = visits.key("wgt", layer.key("wgt", at.out[0], at.inp[0]), layer.kept.wgt > 0)
    acc = layer.key("acc", at.group[0], *where)
    buffers = [_patch(layer, at, inp), _weights(layer, at, wgt)]
    buffers.append(Buffer(acc, Mem.ACC, bank_round(layer.config, at.pixels * at.group[1])))
    commands = list(_gemms(layer, at, inp, wgt, acc))
    if at.closes and sum(at.inp) == layer.shape.in_blocks:
        more, output = _output(layer, at, acc, visits)
        buffers += more
        commands += output
    label = f"{layer.named.name} rows {at.rows[0]} cols {at.cols[0]} out {at.out[0]} in {at.inp[0]}"
    return Step(layer.named.number, label, tuple(buffers), tuple(commands))


def _patch(layer: _Layer, at: _Position, key: Key) -> Buffer:
    config, entries = layer.config, layer.in_entries(at)
    rows = conv_patch(layer.shape, at.rows[1], at.cols[1])[0]
    size = rows * layer.pitch * entries
    if layer.shape.fold is not None:
        return Buffer(key, Mem.INP, size, loads=tuple(_gathers(layer, at, key)))
    under = Under(layer.shape.source, layer.shape.window, at.rows, at.cols, layer.pitch)
    channels = (at.inp[0] * config.inp_bytes, entries * config.inp_bytes)
    values, refs = load_patch(config, under, channels, layer.named.tensors[0])
    pad = {"pad_value": layer.shape.window.pad_value}
    load = Command(Op.LOAD, {"mem": Mem.INP, **pad, **values}, {**refs, "sram": Ref(key)})
    return Buffer(key, Mem.INP, size, loads=(load,))


def _gathers(layer: _Layer, at: _Position, key: Key) -> Iterator[Command]:
    for values in gather_fields(layer.shape, at.rows, at.cols, layer.pitch, layer.config):
        begin = values.pop("dram")
        yield Command(Op.GATHER, values, {"dram": Ref(layer.named.tensors[0], begin), "sram": Ref(key)})


def _weights(layer: _Layer, at: _Position, key: Key) -> Buffer:
    entries, form = at.out[1] * layer.depth(at), layer.shape.form
    where = (at.out[0], at.inp[0])
    if where not in layer.weights:
        blocks = layer.tiles[at.out[0] : sum(at.out), :, :, at.inp[0] : sum(at.inp)]
        runs = layer.shape.runs(at.inp[1])
        tiles = operand_tiles(blocks.reshape(blocks.shape[0], *runs, *blocks.shape[-2:]), layer.config)
        shape = (blocks.shape[0], -1, layer.config.block_out, layer.config.block_in)
        stored = stored_tiles(tiles.reshape(shape), form, layer.config).tobytes() if blocks.size else b""
        # Blocks of padding only have no weights; they add up zeros.
        layer.weights[where] = stored + bytes(form.stored_bytes(entries, layer.config) - len(stored))
    return Buffer(key, Mem.WGT, entries, data=layer.weights[where], packing=form.packing)


def _gemms(layer: _Layer, at: _Position, inp: Key, wgt: Key, acc: Key) -> tuple[Command, ...]:
    """Products of the step, of low halves of weights before those of high ones."""
    products = layer.shape.products(at.inp[1])
    return tuple(
        command
        for number, nibble in layer.shape.form.parts()
        for command in _pass(layer, at, inp, Ref(wgt, number * products), acc, nibble)
    )


def _pass(layer: _Layer, at: _Position, inp: Key, wgt: Ref, acc: Key, nibble: Nibble) -> tuple[Command, ...]:
    window, entries = layer.shape.window, layer.in_entries(at)
    row, col = layer.pitch * entries, entries
    run = layer.shape.runs(at.inp[1])[1]
    out = Axis(at.out[1], {"acc": 1, "wgt": layer.depth(at)})
    axes = [
        out,
        Axis(at.rows[1], {"acc": at.cols[1] * at.group[1], "inp": window.strides[0] * row}),
        Axis(at.cols[1], {"acc": at.group[1], "inp": window.strides[1] * col}),
    ]
    refs = {"acc_base": Ref(acc, at.out[0] - at.group[0]), "inp_base": Ref(inp), "wgt_base": wgt}
    opens = at.inp[0] == 0 and nibble is not Nibble.HIGH
    values = {"overwrite": int(opens)}
    values |= {"nibble": nibble} if nibble else {}
    mode = operand_mode(run, layer.config)
    values |= {"mode": mode} if mode else {}
    if not by_loop(layer.shape):
        return looped(Op.GEMM, values, refs, axes, uops=_reduction(layer, at, row, col))
    commands: list[Command] = []
    first = 0
    for count, step in _even_steps(operand_starts(run, layer.config.operand_entries), nibble is not Nibble.HIGH):
        begin = operand_starts(run, layer.config.operand_entries)[first]
        moved = refs | {"inp_base": Ref(inp, begin), "wgt_base": replace(wgt, offset=wgt.offset + first)}
        own = values | {"overwrite": int(opens and first == 0)}
        loops = [out, Axis(count, {"inp": step, "wgt": 1})]
        commands += looped(Op.GEMM, own, moved, loops if count > 1 else [out], uops=((0, 0, 0, 1),))
        first += count
    return tuple(commands)


def _even_steps(starts: tuple[int, ...], alone: bool) -> Iterator[tuple[int, int]]:
    """(count, step) of operands as loops of equal steps; with `alone` the first is one of its own."""
    begin = 0
    while begin < len(starts):
        count = 1
        if begin or not alone:
            step = starts[begin + 1] - starts[begin] if begin + 1 < len(starts) else 0
            while begin + count < len(starts) and starts[begin + count] - starts[begin + count - 1] == step:
                count += 1
        yield count, starts[begin + 1] - starts[begin] if count > 1 else 0
        begin += count


def _reduction(layer: _Layer, at: _Position, row: int, col: int) -> tuple[Uop, ...]:
    """Micro-ops over kernel rows, kernel columns and in blocks; the first of them starts the sum."""
    known = (row, col, at.inp[1])
    if known in layer.uops:
        return layer.uops[known]
    height, (down, right) = layer.shape.window.kernel[0], layer.shape.window.dilation
    runs, entries = layer.shape.runs(at.inp[1])
    sources = [
        y * down * row + x * right * col + begin
        for y in range(height)
        for x in range(runs // height)
        for begin in operand_starts(entries, layer.config.operand_entries)
    ]
    layer.uops[known] = tuple((0, source, number, int(number == 0)) for number, source in enumerate(sources))
    return layer.uops[known]


def _output(layer: _Layer, at: _Position, acc: Key, visits: Visits) -> tuple[list[Buffer], list[Command]]:
    config, kernel = layer.config, layer.kernel
    blocks, where = at.group[1], (at.group[0], at.rows[0], at.cols[0])
    records, data = layer.records, layer.records.of(*at.group)
    kept = layer.kept.prm > 0 or records.shared
    prm, out = visits.key("prm", layer.key("prm", records.first(at.group[0])), kept), layer.key("out", *where)
    entries = len(data) // config.prm_bytes
    buffers: list[Buffer] = []
    to, dst = (Ref(out), Dst.OUT) if kernel.residual is None else (Ref(acc), Dst.ACC)
    refs = {"acc_base": Ref(acc), "dst_base": to, "prm_base": Ref(prm)}
    commands = list(_scaled(layer, at, refs, dst))
    if kernel.residual is not None:
        res = layer.key("res", *where)
        buffers.append(_residual(layer, at, res))
        data += pair_record(kernel.residual, config)
        axes = entry_after_entry(at.pixels * blocks)
        commands += pair_commands(kernel.residual, (Ref(acc), Ref(res)), Ref(out), Ref(prm, entries), axes)
    buffers.append(Buffer(prm, Mem.PRM, len(data) // config.prm_bytes, data=data))
    buffers.append(Buffer(out, Mem.OUT, at.pixels * blocks))
    tile, grid, tensor = Outputs(at.rows, at.cols, at.group), layer.shape.out_grid, layer.named.tensors[-1]
    if grid.plane_blocks:
        commands += store_planes(config, tile, grid, out, tensor)
    else:
        commands.append(store_tile(config, tile, grid, out, tensor))
    return buffers, commands


def _scaled(layer: _Layer, at: _Position, refs: dict[str, Ref], dst: Dst) -> Iterator[Command]:
    """REQUANT of a group to [row][column][block], or to [line][piece of a plane][pixel][block]."""
    grid, records, blocks = layer.shape.out_grid, layer.records, at.group[1]
    if not grid.plane_blocks:
        yield from scale_commands(records, refs, blocks, [Axis(at.pixels, {"acc": blocks, "dst": blocks})], dst)
        return
    lines, pixels = grid.lines(at.rows[1], at.cols[1])
    over = Axis(lines, {"acc": pixels * blocks, "dst": pixels * blocks})
    if grid.plane_blocks == 1:
        axes = [over, Axis(pixels, {"acc": blocks, "dst": 1})]
        yield from scale_commands(records, refs, blocks, axes, dst, pixels)
        return
    for first, count in grid.pieces(*at.group):
        skipped = first - at.group[0]
        steps = {"acc_base": skipped, "dst_base": skipped * pixels, "prm_base": 0 if records.shared else skipped}
        moved = {name: replace(ref, offset=ref.offset + steps[name]) for name, ref in refs.items()}
        axes = [over, Axis(pixels, {"acc": blocks, "dst": count})]
        yield from scale_commands(records, moved, count, axes, dst)


def _residual(layer: _Layer, at: _Position, key: Key) -> Buffer:
    # It lies on its own, wherever the results go.
    grid = grid_of(layer.kernel.target, None, layer.config)
    values, begin = tile_transfer(layer.config, Outputs(at.rows, at.cols, at.group), grid)
    refs = {"dram": Ref(layer.named.tensors[1], begin), "sram": Ref(key)}
    load = Command(Op.LOAD, {"mem": Mem.ACC, "expand": 1, **values}, refs)
    return Buffer(key, Mem.ACC, bank_round(layer.config, at.pixels * at.group[1]), loads=(load,))
