"""The plan of one region before addresses: layers with their tiles, and the order of their steps. Printable.

In: a region and a configuration. Out: `Schedule`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from relay_hw.accel.isa.spec import Op
from relay_hw.tensorize.commands import Command, Step, tensor_key
from relay_hw.tensorize.kernel import (
    ConvKernel,
    GateKernel,
    KernelSpec,
    MoveKernel,
    PairsKernel,
    PoolKernel,
    ProductKernel,
    RowKernel,
    SelectKernel,
    SwapKernel,
    TransposeKernel,
)
from relay_hw.tensorize.lower.aligned import aligned
from relay_hw.tensorize.lower.common import LayerId, with_tables
from relay_hw.tensorize.lower.conv import lower_conv
from relay_hw.tensorize.lower.depthwise import lower_depthwise
from relay_hw.tensorize.lower.gate import lower_gate
from relay_hw.tensorize.lower.move import lower_move
from relay_hw.tensorize.lower.pairs import lower_pairs
from relay_hw.tensorize.lower.pool import lower_pool
from relay_hw.tensorize.lower.product import lower_product, lower_swap
from relay_hw.tensorize.lower.rows import lower_rows
from relay_hw.tensorize.lower.select import lower_select
from relay_hw.tensorize.lower.tile import plan_tile
from relay_hw.tensorize.match.region import LayerSpec, Region
from relay_hw.tensorize.schedule.constants import merge_parameters
from relay_hw.tensorize.schedule.order import interleaved_orders, sequential_order
from relay_hw.tensorize.schedule.uops import place_uops
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.sizes import (
    AddTile,
    ConvTile,
    MoveTile,
    OutputTile,
    PoolTile,
    RowTile,
    Tile,
    TransposeTile,
)


class Chooser(Protocol):
    """Says which tile a layer is computed with, and why."""

    def __call__(self, kernel: KernelSpec, config: Target) -> Tile:
        """The tile. Raises TensorizeError when none fits."""
        ...

    def reason(self, kernel: KernelSpec, tile: Tile, config: Target) -> str:
        """Why it was chosen; may be empty."""
        ...


@dataclass(frozen=True, slots=True)
class Schedule:
    """Tiles of the layers and all steps in program order."""

    region: Region
    tiles: tuple[Tile, ...]
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        """Layers, then steps with their buffers and commands."""
        lines = [f"region {self.region.name}"]
        for layer, tile in zip(self.region.layers, self.tiles, strict=True):
            operands = " ".join(f"t{number}" for number in layer.inputs)
            lines.append(f"layer {layer.name} {layer.composite} {operands} -> t{layer.output}: {tile}")
        for step in self.steps:
            lines.append(f"step {step.label}")
            lines += [f"  {line}" for line in _step_lines(step)]
        return "\n".join(lines) + "\n"


def plan_steps(
    region: Region, config: Target, tiles: tuple[Tile, ...] | None = None
) -> tuple[tuple[Tile, ...], tuple[Step, ...]]:
    """Tiles (the cheapest ones where none are given) and the steps of all layers, layer after layer.

    Raises TensorizeError when a layer fits no tile.
    """
    if tiles is None:
        tiles = aligned(region, tuple(plan_tile(layer.kernel, config) for layer in region.layers), config)
    return tiles, place_uops(lower_layers(region, tiles, config), config)


def lower_layers(region: Region, tiles: Sequence[Tile], config: Target) -> tuple[Step, ...]:
    """Steps of all layers, layer after layer; their micro-ops have no place yet."""
    steps = [
        step
        for number, (layer, tile) in enumerate(zip(region.layers, tiles, strict=True))
        for step in with_tables(_lower(number, layer, tile, config), layer.kernel)
    ]
    return merge_parameters(steps, config)


def schedules(
    region: Region, config: Target, choose: Callable[[KernelSpec, Target], Tile] = plan_tile
) -> tuple[Schedule, ...]:
    """Schedules to choose from: layers interleaved in two ways, and one after the other. Raises as `choose` does."""
    chosen = aligned(region, tuple(choose(layer.kernel, config) for layer in region.layers), config)
    tiles, steps = plan_steps(region, config, chosen)
    distinct = dict.fromkeys([*interleaved_orders(steps, config), sequential_order(steps)])
    return tuple(Schedule(region, tiles, tuple(steps[number] for number in order)) for order in distinct)


def _lower(number: int, layer: LayerSpec, tile: Tile, config: Target) -> tuple[Step, ...]:
    named = LayerId(number, layer.name, tuple(tensor_key(index) for index in (*layer.inputs, layer.output)))
    match layer.kernel, tile:
        case ConvKernel() as kernel, ConvTile() as chosen:
            return lower_conv(named, kernel, chosen, config)
        case TransposeKernel() as kernel, TransposeTile() as chosen:
            phases = enumerate(zip(kernel.phases, chosen.phases, strict=True))
            return tuple(
                step
                for part, (phase, own) in phases
                for step in lower_conv(replace(named, part=(part,)), phase, own, config)
            )
        case (ConvKernel() | PoolKernel()) as kernel, OutputTile() as chosen:
            return lower_depthwise(named, kernel, chosen, config)
        case ProductKernel() as kernel, OutputTile() as chosen:
            return lower_product(named, kernel, chosen, config)
        case SelectKernel() as kernel, OutputTile() as chosen:
            return lower_select(named, kernel, chosen, config)
        case SwapKernel() as kernel, OutputTile() as chosen:
            return lower_swap(named, kernel, chosen, config)
        case MoveKernel() as kernel, MoveTile() as chosen:
            return lower_move(named, kernel, chosen, config)
        case PoolKernel() as kernel, PoolTile() as chosen:
            return lower_pool(named, kernel, chosen, config)
        case GateKernel() as kernel, AddTile() as chosen:
            return lower_gate(named, kernel, chosen, config)
        case RowKernel() as kernel, RowTile() as chosen:
            return lower_rows(named, kernel, chosen, config)
        case PairsKernel() as kernel, AddTile() as chosen:
            return lower_pairs(named, kernel, chosen, config)
        case _:
            raise AssertionError(f"{layer.kernel} cannot be lowered with {tile}")


def _step_lines(step: Step) -> list[str]:
    lines: list[str] = []
    for buffer in step.buffers:
        fill = "constant" if buffer.data is not None else "loaded" if buffer.loads else "computed"
        name = ".".join(str(part) for part in buffer.key)
        lines.append(f"{buffer.mem.name.lower()} {name}: {buffer.entries} entries, {fill}")
        lines += [f"  {_command_line(load)}" for load in buffer.loads]
    return lines + [_command_line(command) for command in step.commands]


def _command_line(command: Command) -> str:
    fields = {name: str(int(value)) for name, value in command.values.items()}
    for name, ref in command.refs.items():
        part = ref.offset * ref.scale + ref.part
        offset = f"+{part}" + (f"/{ref.scale}" if ref.scale > 1 else "") if part else ""
        fields[name] = ".".join(str(part) for part in ref.key) + offset
    if command.op is Op.FINISH:
        return "finish"
    return f"{command.op.name.lower()} " + " ".join(f"{name}={value}" for name, value in fields.items())
