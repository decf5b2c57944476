"""Lowers residual adds to steps: both activations are loaded widened into accumulators, the output stage adds them.

In: a kernel and its tile. Out: steps. Both tensors have the same layout, so they are taken as flat bytes.
"""

from __future__ import annotations

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.spec import Mem, Op
from relay_hw.tensorize.commands import Buffer, Command, Key, Ref, Step
from relay_hw.tensorize.kernel import AddKernel
from relay_hw.tensorize.layout import add_record, image_bytes
from relay_hw.tensorize.lower.common import LayerId, Part, Runs, add_commands, transfer
from relay_hw.tensorize.tiles.geometry import bank_round, parts
from relay_hw.tensorize.tiles.sizes import AddTile


def add_total(kernel: AddKernel, config: AccelConfig) -> int:
    """Accumulator entries of one operand."""
    return image_bytes(kernel.source, config) // config.out_bytes


def lower_add(layer: LayerId, kernel: AddKernel, tile: AddTile, config: AccelConfig) -> tuple[Step, ...]:
    """Steps of a layer; its tensors: y, r, output."""
    chunks = parts(add_total(kernel, config), tile.entries)
    return tuple(_step(layer, kernel, chunk, config) for chunk in chunks)


def _step(layer: LayerId, kernel: AddKernel, chunk: Part, config: AccelConfig) -> Step:
    (begin, count), number, tensors = chunk, layer.number, layer.tensors
    first, size = begin * config.out_bytes, count * config.out_bytes
    values = transfer(config, Runs(1, 1, size))
    acc, res, out = (role_key(role, number, begin) for role in ("acc", "res", "out"))
    prm: Key = ("prm", number, 0)
    buffers = [
        _operand(config, key, count, values, Ref(tensor, first))
        for key, tensor in ((acc, tensors[0]), (res, tensors[1]))
    ]
    buffers.append(Buffer(prm, Mem.PRM, 1, data=add_record(kernel.stage, config)))
    buffers.append(Buffer(out, Mem.OUT, count))
    commands = add_commands(kernel.stage, Ref(acc), Ref(res), Ref(out), Ref(prm), count)
    store = Command(Op.STORE, {"mem": Mem.OUT, **values}, {"dram": Ref(tensors[2], first), "sram": Ref(out)})
    return Step(number, f"{layer.name} entries {begin}", tuple(buffers), (*commands, store))


def role_key(role: str, number: int, begin: int) -> Key:
    """Key of one operand's buffer."""
    return (role, number, begin)


def _operand(config: AccelConfig, key: Key, count: int, values: dict[str, int], dram: Ref) -> Buffer:
    load = Command(Op.LOAD, {"mem": Mem.ACC, "expand": 1, **values}, {"dram": dram, "sram": Ref(key)})
    return Buffer(key, Mem.ACC, bank_round(config, count), loads=(load,))
