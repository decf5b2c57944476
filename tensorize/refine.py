"""Times the cheapest tiles of a convolution exactly: each is written as a program of its own and run on the clock.

In: a kernel and a configuration. Out: the tile to use. The closed form ranks all legal tiles, this looks at few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.nibbles import fits_bits
from relay_hw.accel.isa.program import TensorLayout, align
from relay_hw.accel.isa.spec import BY_OP, Op
from relay_hw.tensorize.commands import Key, Step, tensor_key
from relay_hw.tensorize.emit.dram import burst_bytes
from relay_hw.tensorize.emit.emit import emit
from relay_hw.tensorize.emit.loading import Manner, NoRoomError
from relay_hw.tensorize.emit.tokens import assign_tokens
from relay_hw.tensorize.kernel import ConvKernel, KernelSpec
from relay_hw.tensorize.layout import image_bytes
from relay_hw.tensorize.lower.common import LayerId, with_tables
from relay_hw.tensorize.lower.conv import lower_conv
from relay_hw.tensorize.lower.tile import plan_tile
from relay_hw.tensorize.schedule.constants import constant_data, data_key, merge_parameters
from relay_hw.tensorize.schedule.ordered import ordered
from relay_hw.tensorize.schedule.resident import ALONE, Stay, constant_buffers
from relay_hw.tensorize.schedule.uops import place_uops
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.choose import short_list
from relay_hw.tensorize.tiles.im2col import shapes_of
from relay_hw.tensorize.tiles.operands import WeightForm, weight_form
from relay_hw.tensorize.tiles.sizes import ConvTile, Tile
from relay_hw.tensorize.tiles.tile_cost import Constants
from relay_hw.tensorize.tiles.tile_space import Choice

# Steps that are written for one layer in all, beside those of its cheapest tile.
STEP_LIMIT = 200
# Cycles between the load of a constant and its use: what a program of one layer is written with.
MARGIN = 1500


@dataclass(frozen=True, slots=True)
class Timed:
    """A tile and the cycles of a program of this layer alone."""

    choice: Choice
    cycles: int


class Refiner:
    """Chooses tiles for constants in this place; equal convolutions are looked at once."""

    def __init__(self, constants: Constants = Constants.LOADED) -> None:
        self._constants = constants
        self._known: dict[tuple[object, ...], tuple[Timed, ...]] = {}

    def __call__(self, kernel: KernelSpec, config: Target) -> Tile:
        """The tile for `kernel`. Raises TensorizeError when none fits."""
        if not isinstance(kernel, ConvKernel) or kernel.groups > 1:
            return plan_tile(kernel, config)
        found = self.compare(kernel, config)
        return found[0].choice.tile if found else plan_tile(kernel, config)

    def compare(self, kernel: ConvKernel, config: Target) -> tuple[Timed, ...]:
        """Tiles that were looked at, the fastest first; none where none finds places for its buffers."""
        key = (*shapes_of(kernel, config), config)
        if key not in self._known:
            self._known[key] = tuple(sorted(_timed(kernel, config, self._constants), key=lambda timed: timed.cycles))
        return self._known[key]

    def reason(self, kernel: KernelSpec, tile: Tile, config: Target) -> str:
        """Why the layer is computed with `tile`, in a few words; empty where there was nothing to choose by time."""
        if not isinstance(kernel, ConvKernel) or not isinstance(tile, ConvTile) or kernel.groups > 1:
            return ""
        found = self.compare(kernel, config)
        if not found or found[0].choice.tile != tile:
            return "rows are cut so that results stay on chip"
        return explain([(timed.choice, timed.cycles) for timed in found])


def explain(found: Sequence[tuple[Choice, int]]) -> str:
    """What binds the first of the choices, and what the next best one costs. `found`: choices with their cycles."""
    cycles, cost = found[0][1], found[0][0].cost
    units = {"products": cost.compute, "loads": cost.load, "the output stage": cost.output, "stores": cost.store}
    bound = max(units, key=lambda unit: units[unit])
    text = f"bound by {bound}, {min(units[bound] / max(cycles, 1), 1):.0%} of {cycles:,} cycles alone"
    if len(found) == 1:
        return f"{text}; no other tile was timed"
    (other, slower), count = found[1], len(found)
    return f"{text}; best of {count} timed, next {slower / cycles - 1:+.1%}: {other.tile}"


def _timed(kernel: ConvKernel, config: Target, constants: Constants) -> Iterator[Timed]:
    blank, left = without_weights(kernel, config), STEP_LIMIT
    for number, choice in enumerate(short_list(shapes_of(kernel, config), config, constants)):
        if number and choice.cost.steps > left:
            continue
        left -= choice.cost.steps if number else 0
        cycles = layer_cycles(blank, choice.tile, config, constants)
        if cycles is not None:
            yield Timed(choice, cycles)


def layer_cycles(
    kernel: ConvKernel, tile: ConvTile, config: Target, constants: Constants = Constants.LOADED
) -> int | None:
    """Cycles of a program of this layer alone; None where its buffers find no places."""
    lines = layer_program(kernel, tile, config, constants)
    return None if lines is None else config.launch(lines).cycles


def layer_program(
    kernel: ConvKernel, tile: ConvTile, config: Target, constants: Constants = Constants.LOADED
) -> list[tuple[Op, dict[str, int]]] | None:
    """Instructions of this layer alone, with addresses in an imaginary window; None where buffers find no places."""
    sizes = _sizes(kernel, config)
    tensors = tuple(tensor_key(number) for number in range(len(sizes)))
    lowered = with_tables(lower_conv(LayerId(0, "layer", tensors), kernel, tile, config), kernel)
    steps = place_uops(merge_parameters(tuple(lowered), config), config)
    places, end = _places(sizes, steps, config)
    stay = Stay(frozenset(constant_buffers(steps))) if constants.stay else ALONE
    try:
        found = emit(ordered(steps, config), places, config, Manner(MARGIN), stay)
    except NoRoomError:
        return None
    work = [(unit, line.ranges) for line in found.lines if (unit := BY_OP[line.op].unit) is not None]
    masks = assign_tokens(work, config, end)
    lines = zip(found.lines, masks, strict=True)
    return [*((line.op, {**line.values, "wait": m.wait, "set": m.set}) for line, m in lines), (Op.FINISH, {})]


def without_weights(kernel: ConvKernel, config: Target) -> ConvKernel:
    """The kernel without tables, with equal weights that are stored alike: times depend on sizes only."""
    bits = next((bits for bits in (2, 4) if fits_bits(kernel.weights, bits)), 8)
    value = np.int8((1 << (bits - 1)) - 1)
    if weight_form(kernel.weights, config, rows=True) is WeightForm.FACTORED:
        value = np.int8(2 * ((1 << (config.wgt_bits // 2 - 1)) - 1))
    stage, residual = replace(kernel.requantize, table=None), kernel.residual
    return replace(
        kernel,
        weights=np.broadcast_to(value, kernel.weights.shape),
        requantize=stage,
        residual=None if residual is None else replace(residual, table=None),
    )


def _sizes(kernel: ConvKernel, config: AccelConfig) -> list[int]:
    """Bytes of the input, of the residual operand if there is one, and of the result."""
    layout = TensorLayout.ROWS if kernel.rows else TensorLayout.NHWC
    result = image_bytes(kernel.target if kernel.place is None else kernel.place.image, config)
    return [image_bytes(kernel.source, config, layout), *([result] if kernel.residual else []), result]


def _places(sizes: Iterable[int], steps: Sequence[Step], config: AccelConfig) -> tuple[dict[Key, int], int]:
    """Byte addresses of tensors and constants, one behind the other, and the end."""
    sized = [(tensor_key(number), size) for number, size in enumerate(sizes)]
    sized += [(data_key(key), len(data)) for key, _, data in constant_data(steps)]
    places: dict[Key, int] = {}
    end = 0
    for key, size in sized:
        places[key] = end
        end = align(end + size, burst_bytes(config))
    return places, end
