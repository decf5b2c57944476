"""Lowers permutations of channels to steps: one operand after the other times a matrix of zeros and ones.

In: a kernel and its tile. Out: steps. Only blocks of the matrix that are not zero are stored and multiplied. Pixels are
taken as they lie, row after row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.program import align
from relay_hw.accel.isa.spec import Dst, Form, Mem, Op
from relay_hw.errors import TensorizeError
from relay_hw.tensorize.commands import Axis, Buffer, Command, Key, Ref, Step, Uop
from relay_hw.tensorize.kernel import Image, Int8, SelectKernel
from relay_hw.tensorize.layout import pixel_bytes
from relay_hw.tensorize.lower.common import LayerId, Part, Runs, looped, transfer
from relay_hw.tensorize.tiles.choose import chunk_sizes
from relay_hw.tensorize.tiles.geometry import bank_round, granule_blocks, parts
from relay_hw.tensorize.tiles.operands import WeightForm, operand_mode, stored_tiles
from relay_hw.tensorize.tiles.sizes import OutputTile

INT8 = (-128, 127)


@dataclass(frozen=True, slots=True)
class _Block:
    """A block of the matrix: from block `inp` of operand `source` to block `out`."""

    out: int
    source: int
    inp: int


def choose_select(kernel: SelectKernel, config: AccelConfig) -> OutputTile:
    """The most pixels at a time of which two tiles fit. Raises TensorizeError."""
    blocks, count = _out_blocks(kernel, config), len(_blocks(kernel, config))
    pixel = sum(_entries(image, config) for image in kernel.sources)
    step = granule_blocks(config, config.block_out)
    for pixels in chunk_sizes(kernel.target.pixels, 1 if blocks % step == 0 else step):
        fits = (
            2 * pixels * pixel <= config.inp_depth
            and 2 * pixels * blocks <= min(config.acc_depth, config.out_depth)
            and count <= min(config.wgt_depth, config.uop_depth // 2)
        )
        if fits:
            return OutputTile(1, pixels, blocks)
    raise TensorizeError(f"channels must be few enough to be reordered on {config.name}, not {kernel.target.channels}")


def _entries(image: Image, config: AccelConfig) -> int:
    return pixel_bytes(image, config) // config.inp_bytes


def _out_blocks(kernel: SelectKernel, config: AccelConfig) -> int:
    return pixel_bytes(kernel.target, config) // config.block_out


def _blocks(kernel: SelectKernel, config: AccelConfig) -> list[_Block]:
    """Blocks that are not zero, operand by operand; of an output block without channels any one."""
    found = {
        _Block(channel // config.block_out, source, picked // config.inp_lanes): None
        for channel, (source, picked) in enumerate(kernel.picks)
    }
    filled = {block.out for block in found}
    found |= {_Block(out, 0, 0): None for out in range(_out_blocks(kernel, config)) if out not in filled}
    return sorted(found, key=lambda block: (block.source, block.out, block.inp))


def _weights(kernel: SelectKernel, blocks: list[_Block], config: AccelConfig) -> Int8:
    number = {block: n for n, block in enumerate(blocks)}
    found = np.zeros((len(blocks), config.block_out, config.block_in), np.int8)
    for channel, (source, picked) in enumerate(kernel.picks):
        block = _Block(channel // config.block_out, source, picked // config.inp_lanes)
        found[number[block], channel % config.block_out, picked % config.inp_lanes] = 1
    return found


@dataclass(frozen=True, slots=True)
class Selection:
    """The matrix of a kernel: its blocks, and the buffer that holds them."""

    kernel: SelectKernel
    blocks: list[_Block]
    wgt: Buffer


def selection(kernel: SelectKernel, key: Key, config: AccelConfig) -> Selection:
    """The matrix in a buffer of this key."""
    blocks = _blocks(kernel, config)
    form = WeightForm.NARROW if config.wgt_bits == 4 else WeightForm.BYTES
    weights = stored_tiles(_weights(kernel, blocks, config)[None], form, config)
    step = max(1, config.granule_bytes // config.wgt_bytes)
    data = weights.tobytes() + bytes((align(len(blocks), step) - len(blocks)) * config.wgt_bytes)
    return Selection(kernel, blocks, Buffer(key, Mem.WGT, align(len(blocks), step), data=data))


def lower_select(layer: LayerId, kernel: SelectKernel, tile: OutputTile, config: AccelConfig) -> tuple[Step, ...]:
    """Steps of a layer; its tensors: operands, result."""
    chosen = selection(kernel, ("wgt", layer.number), config)
    chunks = parts(kernel.target.pixels, tile.cols)
    return tuple(_step(layer, chosen, chunk, config) for chunk in chunks)


def _step(layer: LayerId, chosen: Selection, chunk: Part, config: AccelConfig) -> Step:
    (begin, count), number = chunk, layer.number
    outs = _out_blocks(chosen.kernel, config)
    acc, out = ("acc", number, begin), ("out", number, begin)
    inputs, gemms = selected(chosen, layer.tensors, ("inp", number), chunk, Ref(acc), config)
    buffers = [chosen.wgt, Buffer(acc, Mem.ACC, bank_round(config, count * outs)), Buffer(out, Mem.OUT, count * outs)]
    fields = {"form": Form.PASS, "dst": Dst.OUT, "clip_lo": INT8[0], "clip_hi": INT8[1]}
    refs = {"acc_base": Ref(acc), "dst_base": Ref(out)}
    passed = looped(Op.REQUANT, fields, refs, [Axis(count * outs, {"acc": 1, "dst": 1})])
    size = pixel_bytes(chosen.kernel.target, config)
    values = {"mem": Mem.OUT, **transfer(config, Runs(1, 1, count * size))}
    store = Command(Op.STORE, values, {"dram": Ref(layer.tensors[-1], begin * size), "sram": Ref(out)})
    return Step(number, f"{layer.name} pixels {begin}", (*buffers, *inputs), (*gemms, *passed, store))


def selected(
    chosen: Selection, tensors: Sequence[Key], prefix: Key, chunk: Part, acc: Ref, config: AccelConfig
) -> tuple[list[Buffer], list[Command]]:
    """Products that put pixels `chunk` (begin, count) of the result to `acc`, and the buffers of their operands, whose
    keys begin with `prefix`.
    """
    begin, count = chunk
    outs = _out_blocks(chosen.kernel, config)
    buffers: list[Buffer] = []
    commands: list[Command] = []
    started: set[int] = set()
    for source, image in enumerate(chosen.kernel.sources):
        own = [(n, block) for n, block in enumerate(chosen.blocks) if block.source == source]
        if not own:
            continue
        pixel, inp = pixel_bytes(image, config), (*prefix, source, begin)
        values = {"mem": Mem.INP, **transfer(config, Runs(1, 1, count * pixel))}
        load = Command(Op.LOAD, values, {"dram": Ref(tensors[source], begin * pixel), "sram": Ref(inp)})
        entries = _entries(image, config)
        buffers.append(Buffer(inp, Mem.INP, count * entries, loads=(load,)))
        uops: list[Uop] = []
        for n, block in own:
            uops.append((block.out, block.inp, n, int(block.out not in started)))
            started.add(block.out)
        refs = {"acc_base": acc, "inp_base": Ref(inp), "wgt_base": Ref(chosen.wgt.key)}
        axes = [Axis(count, {"acc": outs, "inp": entries})]
        fields = {"overwrite": 1, "mode": operand_mode(1, config)}
        commands += looped(Op.GEMM, fields, refs, axes, uops=tuple(uops))
    return buffers, commands
