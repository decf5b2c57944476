"""Lowers products of an activation and a single pixel: both are loaded widened, the output stage multiplies.

In: a kernel and its tile. Out: steps. Each vector of the pixel stays in the inner loop, over the pixels of a step.
"""

from __future__ import annotations

from math import lcm

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.spec import Form, Mem, Op
from relay_hw.errors import TensorizeError
from relay_hw.tensorize.commands import Axis, Buffer, Ref, Step
from relay_hw.tensorize.kernel import GateKernel
from relay_hw.tensorize.layout import image_bytes, pair_record, pixel_bytes
from relay_hw.tensorize.lower.common import LayerId, Part, looped, stage_fields, store_flat, table_refs, widened
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.choose import choose_add
from relay_hw.tensorize.tiles.geometry import granule_blocks, parts
from relay_hw.tensorize.tiles.sizes import AddTile


def choose_gate(kernel: GateKernel, config: Target) -> AddTile:
    """Entries a step. Raises TensorizeError where a pixel has more than fit."""
    blocks = _blocks(kernel, config)
    step = lcm(blocks, granule_blocks(config, config.block_out))
    most = min(config.out_depth, config.acc_depth // 2 - blocks)
    if step > most:
        raise TensorizeError(f"a pixel's channels must fit configuration {config.name}, not need {step} entries")
    chosen = choose_add(image_bytes(kernel.source, config) // config.out_bytes, config).entries
    return AddTile(min(max(chosen // step, 1), most // step) * step)


def lower_gate(layer: LayerId, kernel: GateKernel, tile: AddTile, config: AccelConfig) -> tuple[Step, ...]:
    """Steps of a layer; its tensors: activation, pixel, output."""
    total = image_bytes(kernel.source, config) // config.out_bytes
    return tuple(_step(layer, kernel, chunk, config) for chunk in parts(total, tile.entries))


def _blocks(kernel: GateKernel, config: AccelConfig) -> int:
    """Accumulator entries of a pixel."""
    return pixel_bytes(kernel.source, config) // config.out_bytes


def _step(layer: LayerId, kernel: GateKernel, chunk: Part, config: AccelConfig) -> Step:
    (begin, count), number, tensors = chunk, layer.number, layer.tensors
    acc, out, prm = ("acc", number, begin), ("out", number, begin), ("prm", number, 0)
    blocks, res = _blocks(kernel, config), ("res", number, 0)
    buffers = (
        widened(config, acc, chunk, tensors[0]),
        widened(config, res, (0, blocks), tensors[1]),
        Buffer(prm, Mem.PRM, 1, data=pair_record(kernel.stage, config)),
        Buffer(out, Mem.OUT, count),
    )
    refs = {"acc_base": Ref(acc), "res_base": Ref(res), "dst_base": Ref(out), "prm_base": Ref(prm)}
    fields = stage_fields(Form.MUL, kernel.stage) | {"still": 1}
    # The loop over the pixel's vectors must be the outer one.
    axes = [Axis(count // blocks, {"acc": blocks, "dst": blocks})], Axis(blocks, {"acc": 1, "dst": 1})
    commands = looped(Op.REQUANT, fields, refs | table_refs(kernel.stage.table), *axes)
    store = store_flat(config, chunk, out, tensors[2])
    return Step(number, f"{layer.name} entries {begin}", buffers, (*commands, store))
