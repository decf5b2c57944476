"""Lowers residual adds to steps: both activations are loaded widened into accumulators, the output stage adds them.

In: a kernel and its tile. Out: steps. Both tensors have the same layout, so they are taken as flat bytes.
"""

from __future__ import annotations

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.spec import Mem
from relay_hw.tensorize.commands import Buffer, Ref, Step
from relay_hw.tensorize.kernel import AddKernel
from relay_hw.tensorize.layout import add_record, image_bytes
from relay_hw.tensorize.lower.common import LayerId, Part, pair_commands, store_flat, widened
from relay_hw.tensorize.tiles.geometry import parts
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
    acc, res, out, prm = ("acc", number, begin), ("res", number, begin), ("out", number, begin), ("prm", number, 0)
    buffers = (
        widened(config, acc, chunk, tensors[0]),
        widened(config, res, chunk, tensors[1]),
        Buffer(prm, Mem.PRM, 1, data=add_record(kernel.stage, config)),
        Buffer(out, Mem.OUT, count),
    )
    commands = pair_commands(kernel.stage, Ref(acc), Ref(res), Ref(out), Ref(prm), count)
    store = store_flat(config, chunk, out, tensors[2])
    return Step(number, f"{layer.name} entries {begin}", buffers, (*commands, store))
