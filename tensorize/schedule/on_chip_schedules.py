"""Makes schedules whose activations stay in INP: their tiles, the tensors kept there, an order with few of them live.

In: a region. Out: groups of `Schedule` values to try beside those that move every activation through DRAM.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.spec import Mem
from relay_hw.tensorize.commands import Key, Step, tensor_key
from relay_hw.tensorize.kernel import ConvKernel, KernelSpec, PoolKernel
from relay_hw.tensorize.layout import image_bytes
from relay_hw.tensorize.match.region import Region
from relay_hw.tensorize.schedule.clocks import Clocks, flow_of
from relay_hw.tensorize.schedule.live import Live
from relay_hw.tensorize.schedule.on_chip import Patch, forward_on_chip, patches
from relay_hw.tensorize.schedule.order import layer_groups
from relay_hw.tensorize.schedule.plan import Schedule, lower_layers
from relay_hw.tensorize.schedule.step_work import work_of
from relay_hw.tensorize.schedule.uops import place_uops
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.depthwise import depthwise_fits, depthwise_shape
from relay_hw.tensorize.tiles.geometry import acc_unit
from relay_hw.tensorize.tiles.im2col import shape_under
from relay_hw.tensorize.tiles.sizes import ConvTile, OutputTile, Tile, conv_use
from relay_hw.tensorize.tiles.tile_space import conv_fits

# Accumulator entries of a tile, as parts of a bank, of convolutions and depthwise layers: the smaller, the sooner the
# next layer starts.
GRAINS = ((1, 1), (2, 2), (4, 4), (2, 4))
# Those that are tried with operands of sums on chip as well.
MOVING = (None, (4, 4))
# Regions of more steps gain little: their layers are long beside what starting one costs.
MOST_STEPS = 1000
# Schedules with fewer and fewer tensors on chip that are tried, where the emitter finds no room for the first.
RETRIES = 4
# The part of INP that patches may fill: loads ahead need room, and gaps stay between them.
ROOM_PARTS = (7, 8)
# Parts of the mean step on the array by which a deeper layer may be late and still come first: other orders to try.
PATIENCE = (4, 2)


@dataclass(frozen=True, slots=True, eq=False)
class OnChipGroup:
    """Schedules on chip with one choice of tiles. `moves`: operands of sums stay on chip as well."""

    region: Region
    tiles: tuple[Tile, ...]
    steps: tuple[Step, ...]
    moves: bool

    def schedules(self, config: Target, patience: int = 0) -> Iterator[Schedule]:
        """Fewer and fewer tensors on chip: those that crowd INP by their sizes go first, then those of large patches.

        The first that finds room is worth trying. `patience`: see `depth_order`.
        """
        chosen = forwardable(self.region, self.steps, config, self.moves)
        for _ in range(RETRIES):
            if not chosen:
                return
            kept = frozenset(tensor_key(n) for n in self.region.outputs) | _read_from_dram(self.steps, chosen)
            moved = place_uops(forward_on_chip(self.steps, chosen, kept, config), config)
            ordered = tuple(moved[number] for number in depth_order(moved, config, patience))
            yield Schedule(self.region, self.tiles, ordered)
            largest = max(chosen, key=lambda key: max(patch.buffer.entries for patch in chosen[key]))
            dropped = crowding(ordered, chosen, config) or {largest}
            chosen = {key: found for key, found in chosen.items() if key not in dropped}

    def patient(self, config: Target) -> Iterator[Iterator[Schedule]]:
        """The same schedules with orders in which deeper layers wait less."""
        mean = sum(work_of(step, config).compute for step in self.steps) // len(self.steps)
        for part in PATIENCE:
            yield self.schedules(config, mean // part)


def on_chip_groups(region: Region, plan: Schedule, config: Target) -> Iterator[OnChipGroup]:
    """Choices of tiles to try. `plan`: the schedule through DRAM."""
    between = {number for layer in region.layers for number in layer.inputs} & {one.output for one in region.layers}
    if not between or len(plan.steps) > MOST_STEPS:
        return
    seen: set[tuple[Tile, ...]] = set()
    for grains in (None, *GRAINS):
        tiles = plan.tiles
        if grains is not None:
            tiles = tuple(
                _small_tile(layer.kernel, tile, grains, config)
                for layer, tile in zip(region.layers, tiles, strict=True)
            )
        if tiles in seen:
            continue
        seen.add(tiles)
        steps = lower_layers(region, tiles, config)
        if len(steps) <= MOST_STEPS:
            yield OnChipGroup(region, tiles, steps, moves=False)
            if grains in MOVING and any(b.mem is Mem.ACC and b.loads for step in steps for b in step.buffers):
                yield OnChipGroup(region, tiles, steps, moves=True)


def forwardable(
    region: Region, steps: Sequence[Step], config: AccelConfig, moves: bool = False
) -> dict[Key, tuple[Patch, ...]]:
    """Tensors that layers of the region compute and that others load into INP, or into ACC with `moves`."""
    found: dict[Key, tuple[Patch, ...]] = {}
    for number in dict.fromkeys(layer.output for layer in region.layers):
        activation = region.activations[number]
        size = image_bytes(activation.image, config, activation.layout)
        own = patches(steps, tensor_key(number), size, config, moves)
        if own:
            found[tensor_key(number)] = own
    return found


def _read_from_dram(steps: Sequence[Step], chosen: Mapping[Key, tuple[Patch, ...]]) -> frozenset[Key]:
    """Tensors of `chosen` that are loaded elsewhere as well, such as the second operand of a sum."""
    filled = {patch.replaces for found in chosen.values() for patch in found}
    loads = [load for step in steps for b in step.buffers if b.key not in filled for load in b.loads]
    return frozenset(load.refs["dram"].key for load in loads) & chosen.keys()


def crowding(steps: Sequence[Step], chosen: Mapping[Key, tuple[Patch, ...]], config: AccelConfig) -> set[Key]:
    """Tensors of `chosen` to give back to DRAM so that the patches that are live at a time may fit INP.

    Where they would not, in program order, the tensor goes that takes the most room then.
    """
    owners = {patch.buffer.key: tensor for tensor, found in chosen.items() for patch in found}
    last = {b.key: at for at, step in enumerate(steps) for b in step.buffers if b.mem is Mem.INP}
    live: dict[Key, int] = {}
    dropped: set[Key] = set()
    limit = config.inp_depth * ROOM_PARTS[0] // ROOM_PARTS[1]
    for at, step in enumerate(steps):
        for buffer in step.buffers:
            if buffer.mem is Mem.INP and owners.get(buffer.key) not in dropped:
                live[buffer.key] = buffer.entries
        while sum(live.values()) > limit:
            rooms: dict[Key, int] = {}
            for key, size in live.items():
                if key in owners:
                    rooms[owners[key]] = rooms.get(owners[key], 0) + size
            if not rooms:
                break
            worst = max(rooms, key=lambda tensor: rooms[tensor])
            dropped.add(worst)
            live = {key: size for key, size in live.items() if owners.get(key) != worst}
        live = {key: size for key, size in live.items() if last[key] > at}
    return dropped


def _small_tile(kernel: KernelSpec, tile: Tile, grains: tuple[int, int], config: Target) -> Tile:
    """Whole rows of all channels, as many as fit a part of a bank; `tile` where that is impossible."""
    most = acc_unit(config) // grains[isinstance(tile, OutputTile)]
    match kernel, tile:
        case ConvKernel(), ConvTile():
            shape = shape_under(kernel, tile.fold, config)
            rows = max(1, min(shape.out_height, most // (shape.out_width * shape.out_blocks)))
            rows = _even(shape.out_height, rows)
            found = ConvTile(rows, shape.out_width, shape.out_blocks, shape.in_blocks, False, tile.fold)
            return found if conv_fits(shape, found, conv_use(shape, found, config), config) else tile
        case ConvKernel() | PoolKernel(), OutputTile():
            shape = depthwise_shape(kernel, config)
            rows = max(1, min(shape.out_height, most // (shape.out_width * shape.out_blocks)))
            found = OutputTile(_even(shape.out_height, rows), shape.out_width, shape.out_blocks)
            return found if depthwise_fits(shape, found, config) else tile
        case _:
            return tile


def _even(total: int, size: int) -> int:
    """Chunks of about the same size, none larger than `size`."""
    return -(-total // -(-total // size))


def depth_order(steps: Sequence[Step], config: Target, patience: int = 0) -> tuple[int, ...]:
    """List scheduling that prefers the deepest layer among the steps that can start at once.

    So patches are used up soon after they are written. Steps whose patches have no room come last. `patience`: cycles
    for which the array may wait for a deeper layer.
    """
    clocks = Clocks(flow_of([work_of(step, config) for step in steps]), config.memory.latency)
    live = Live(steps, Mem.INP, config.inp_depth)
    result: list[int] = []
    for group in layer_groups(steps, config):
        waiting = {layer: [n for n, step in enumerate(steps) if step.layer == layer] for layer in group}
        while any(waiting.values()):
            heads = {layer: numbers[0] for layer, numbers in waiting.items() if numbers}
            layer = min(heads, key=lambda layer: _rank(clocks, live, heads[layer], layer, patience))
            number = waiting[layer].pop(0)
            clocks.run_step(number)
            live.place(number)
            result.append(number)
    return tuple(result)


def _rank(clocks: Clocks, live: Live, number: int, layer: int, patience: int) -> tuple[int, int, int]:
    """Smaller is better."""
    arrival = clocks.arrival(number)
    if arrival is None:
        return (3, 0, -layer)
    return (1 if live.fits(number) else 2, max(clocks.compute + patience, arrival), -layer)
