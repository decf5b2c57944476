"""Lowers sums and products of activations, one inside the other: operands are widened, the output stage joins them.

In: a kernel and its tile. Out: steps. All tensors have one layout, so they are taken as flat bytes. What a pair makes
stays among the accumulators for the next one; the last result is stored. Channels that change places come from a
product with zeros and ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.spec import Mem, Op
from relay_hw.errors import TensorizeError
from relay_hw.tensorize.commands import Axis, Buffer, Command, Key, Ref, Step
from relay_hw.tensorize.kernel import Leaf, Pair, PairsKernel, kernel_tables
from relay_hw.tensorize.layout import image_bytes, pair_record, pixel_bytes
from relay_hw.tensorize.lower.common import (
    LayerId,
    Part,
    Runs,
    entry_after_entry,
    pair_commands,
    store_flat,
    transfer,
    widening,
)
from relay_hw.tensorize.lower.select import Selection, choose_select, selected, selection
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.choose import choose_add
from relay_hw.tensorize.tiles.geometry import bank_round, parts
from relay_hw.tensorize.tiles.sizes import AddTile


def choose_pairs(kernel: PairsKernel, config: Target) -> AddTile:
    """Entries a step, of whole pixels where channels change places. Raises TensorizeError when too few fit."""
    tables = len(kernel_tables(kernel))
    if tables > config.tables:
        raise TensorizeError(f"one layer's tables must be at most {config.tables} on {config.name}, not {tables}")
    total, pairs = _entries(kernel, config), len(kernel.root.stages)
    select = kernel.select
    if select is None and not kernel.planes:
        return choose_add(total, config, pairs)
    pixel = total // kernel.source.pixels
    pixels = kernel.source.pixels if select is None else choose_select(select, config).cols
    return choose_add(total, config, pairs, pixel, pixels * pixel)


def _entries(kernel: PairsKernel, config: AccelConfig) -> int:
    """Accumulator entries of one operand."""
    return image_bytes(kernel.source, config) // config.out_bytes


@dataclass(frozen=True, slots=True)
class _Layer:
    """What every step of the layer needs to know."""

    named: LayerId
    kernel: PairsKernel
    selection: Selection | None
    pixel_entries: int
    records: bytes
    config: AccelConfig


def lower_pairs(named: LayerId, kernel: PairsKernel, tile: AddTile, config: AccelConfig) -> tuple[Step, ...]:
    """Steps of a layer; its tensors: operands, output."""
    chosen = None if kernel.select is None else selection(kernel.select, ("wgt", named.number), config)
    records = b"".join(pair_record(stage, config) for stage in kernel.root.stages)
    pixel = pixel_bytes(kernel.source, config) // config.out_bytes
    layer = _Layer(named, kernel, chosen, pixel, records, config)
    return tuple(_step(layer, chunk) for chunk in parts(_entries(kernel, config), tile.entries))


def _step(layer: _Layer, chunk: Part) -> Step:
    (begin, count), number = chunk, layer.named.number
    out, prm, stages = ("out", number, begin), ("prm", number, 0), len(layer.kernel.root.stages)
    places = _places(layer, chunk)
    buffers, commands = _operands(layer, places, chunk)
    buffers += [Buffer(prm, Mem.PRM, stages, data=layer.records), Buffer(out, Mem.OUT, count)]
    records = (Ref(prm, at) for at in range(stages))
    inner, sides = _sides(layer.kernel.root, iter(places), records, count)
    axes, store = _stored(layer, chunk, out)
    last = pair_commands(layer.kernel.root.stage, sides, Ref(out), next(records), axes)
    commands += [*inner, *last, store]
    return Step(number, f"{layer.named.name} entries {begin}", tuple(buffers), tuple(commands))


def _places(layer: _Layer, chunk: Part) -> list[Ref]:
    """Accumulators of each operand. Those of a single pair lie apart, so that one may come from a patch on chip; those
    of several share banks.
    """
    (begin, count), leaves = chunk, len(layer.kernel.root.leaves)
    if leaves == 2:
        return [Ref((role, layer.named.number, begin)) for role in ("acc", "res")]
    return [Ref(("acc", layer.named.number, begin), at * count) for at in range(leaves)]


def _operands(layer: _Layer, places: Sequence[Ref], chunk: Part) -> tuple[list[Buffer], list[Command]]:
    """Buffers of the operands, and the products that reorder channels."""
    config, (begin, count) = layer.config, chunk
    pixels = (begin // layer.pixel_entries, count // layer.pixel_entries)
    loads: dict[Key, list[Command]] = {place.key: [] for place in places}
    buffers: list[Buffer] = []
    commands: list[Command] = []
    for leaf, place in zip(layer.kernel.root.leaves, places, strict=True):
        tensor, chosen = layer.named.tensors[leaf.source], layer.selection
        if leaf.select is None or chosen is None:
            loads[place.key].append(widening(config, place, chunk, tensor))
        else:
            inputs, gemms = selected(chosen, [tensor], ("inp", layer.named.number), pixels, place, config)
            buffers += [chosen.wgt, *inputs]
            commands += gemms
    own = len(places) // len(loads) * count
    buffers += [Buffer(key, Mem.ACC, bank_round(config, own), loads=tuple(found)) for key, found in loads.items()]
    return buffers, commands


def _sides(
    pair: Pair, places: Iterator[Ref], records: Iterator[Ref], count: int
) -> tuple[list[Command], tuple[Ref, Ref]]:
    """What computes both operands of a pair, and where they are: where a pair's own first operand was."""
    commands: list[Command] = []
    sides: list[Ref] = []
    for side in (pair.y, pair.r):
        if isinstance(side, Leaf):
            sides.append(next(places))
        else:
            inner, operands = _sides(side, places, records, count)
            commands += inner
            commands += pair_commands(side.stage, operands, None, next(records), entry_after_entry(count))
            sides.append(operands[0])
    return commands, (sides[0], sides[1])


def _stored(layer: _Layer, chunk: Part, out: Key) -> tuple[list[Axis], Command]:
    """The loops of the last pair, and the STORE of its results: entry after entry, or blocks of channels apart."""
    (begin, count), blocks, config = chunk, layer.pixel_entries, layer.config
    if not layer.kernel.planes:
        return entry_after_entry(count), store_flat(config, chunk, out, layer.named.tensors[-1])
    first, pixels = begin // blocks, count // blocks
    axes = [Axis(pixels, {"acc": blocks, "dst": 1}), Axis(blocks, {"acc": 1, "dst": pixels})]
    runs = Runs(blocks, 1, pixels * config.out_bytes, layer.kernel.source.pixels * config.out_bytes)
    refs = {"dram": Ref(layer.named.tensors[-1], first * config.out_bytes), "sram": Ref(out)}
    return axes, Command(Op.STORE, {"mem": Mem.OUT, **transfer(config, runs)}, refs)
