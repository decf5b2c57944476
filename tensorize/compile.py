"""Compiles a region in the tensorizer's order: match, tile, lower, schedule, place, emit, add tokens, check.

In: one `@accel_k` function and a configuration. Out: `Segment`. The same input gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.program import Program, TensorSlot, WindowPlan
from relay_hw.accel.isa.program import Region as ProgramRegion
from relay_hw.accel.isa.rules import dram_granules
from relay_hw.accel.isa.spec import Op
from relay_hw.errors import TensorizeError
from relay_hw.ir.expr import MACS, Function
from relay_hw.tensorize.commands import gather_beats, tensor_key
from relay_hw.tensorize.emit.check import check_program
from relay_hw.tensorize.emit.draft import Draft, prepare, write_draft
from relay_hw.tensorize.emit.loading import Manner
from relay_hw.tensorize.match.join import join_in_place, read_in_place, store_heads
from relay_hw.tensorize.match.region import Region, read_region
from relay_hw.tensorize.refine import Refiner
from relay_hw.tensorize.schedule.on_chip_schedules import OnChipGroup, on_chip_groups
from relay_hw.tensorize.schedule.plan import Chooser, Schedule, schedules
from relay_hw.tensorize.schedule.resident import ALONE, WORTH, Stay, resident_sets, share_constants
from relay_hw.tensorize.segment import Layer, Port, Segment
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.inputs import fold_inputs, tile_inputs
from relay_hw.tensorize.tiles.planes import lay_in_planes
from relay_hw.tensorize.validate.proof import validate

# Cycles between the load of a constant and its use that are tried; only the first for regions of many steps.
MARGINS = (1500, 500, 1000, 4000, 200, 100)
FEW_STEPS = 200
# What another margin gains at most, as one part in this many: drafts that are slower by more need no other.
MARGIN_GAIN = 8
# Schedules that are tried with resident constants: without their loads another one may be the fastest.
TOPS = 6
# Of those with activations on chip and so many steps at most, some are tried in other orders: rough times order steps,
# and which order is the fastest is seen only by the clock.
REORDERED = 3
REORDERED_STEPS = 100


def compile_function(
    function: Function,
    config: Target,
    name: str,
    resident: bool = True,
    on_chip: bool = True,
    choose: Chooser | None = None,
) -> Segment:
    """One program for the whole function, with a device of its own. Raises TensorizeError when `config` cannot hold it.

    Where that saves cycles, constants may stay in the scratchpads between launches (`resident`), and activations
    may go from one layer to the next without DRAM (`on_chip`). `choose` picks each layer's tile; by default the best
    short-listed candidate.
    """
    plan = Plan(function, config, name, on_chip, choose)
    return plan.segment(plan.alone if resident else plan.plain)


class Plan:
    """One region with the drafts that compete for it. What stays on the device can be decided for several together.

    Raises TensorizeError when no draft fits the target.
    """

    def __init__(
        self, function: Function, target: Target, name: str, on_chip: bool = True, choose: Chooser | None = None
    ) -> None:
        self._target, self._name, self._choose = target, name, choose or Refiner()
        self._function = function
        region = plan_region(function, target, name)
        plans = schedules(region, target, self._choose)
        self._groups: dict[int, OnChipGroup] = {}
        chip: list[Draft] = []
        for group in on_chip_groups(region, plans[0], target) if on_chip else ():
            if draft := _chip_draft(group.schedules(target), target):
                chip.append(draft)
                self._groups[id(draft)] = group
        drafts = [*_plain_drafts(plans, target, min((draft.cycles for draft in chip), default=None)), *chip]
        if not drafts:
            raise TensorizeError(f"layers of {name} must fit the scratchpads of configuration {target.name}")
        fastest = {id(draft.schedule): draft for draft in sorted(drafts, key=lambda draft: -draft.cycles)}
        self._tops = sorted(fastest.values(), key=lambda draft: draft.cycles)[:TOPS]

    def with_tiles(self, choose: Chooser) -> Plan:
        """The region with the tiles that another one chooses. Raises TensorizeError."""
        return Plan(self._function, self._target, self._name, choose=choose)

    @property
    def layers(self) -> int:
        """Layers of the region."""
        return len(self.plain.schedule.region.layers)

    @property
    def plain(self) -> Draft:
        """The fastest draft that loads all constants in every launch."""
        return self._tops[0]

    @cached_property
    def alone(self) -> Draft:
        """The fastest draft for a device that runs nothing else: with constants that stay where that saves enough."""
        tops = [(top, *self._with_constants(top.schedule, top.manner.dense)) for top in self._tops]
        fastest = sorted(tops, key=lambda forms: min(draft.cycles for draft in forms))[:REORDERED]
        drafts = [draft for forms in (*tops, *map(self._reordered, fastest)) for draft in forms]
        plain = min((draft for draft in drafts if draft.stay == ALONE), key=lambda draft: draft.cycles)
        worth = plain.cycles - plain.cycles // WORTH
        kept = [draft for draft in drafts if draft.cycles < worth]
        return min([plain, *kept], key=lambda draft: draft.cycles)

    def redraft(self, top: Draft, stay: Stay) -> Draft | None:
        """The schedule of a draft with other constants in other places, or None where there is no room for that."""
        schedule = replace(top.schedule, steps=share_constants(top.schedule.steps))
        manners = dict.fromkeys((top.manner, replace(top.manner, margin=MARGINS[0])))
        sheet = prepare(schedule, self._target)
        tries = (write_draft(sheet, self._target, manner, stay) for manner in manners)
        return min((draft for draft in tries if draft), key=lambda draft: draft.cycles, default=None)

    def segment(self, draft: Draft) -> Segment:
        """The checked program of a draft."""
        return self.checked(self.candidate(draft))

    def candidate(self, draft: Draft) -> Segment:
        """The program of a draft that others compete with: `checked` before anybody runs it."""
        return _segment(draft, self._name, self._target, self._choose)

    def checked(self, segment: Segment) -> Segment:
        """A candidate that was chosen. Raises TensorizeError where its program is not sound."""
        check_program(segment.program, self._target)
        return segment

    def proved(self, segment: Segment) -> Segment:
        """A checked segment with its certificate. Raises TensorizeError where it computes something else."""
        return replace(segment, certificate=validate(self._function, segment, self._target))

    def _reordered(self, forms: Sequence[Draft]) -> list[Draft]:
        """A short draft with activations on chip in other orders, with constants that stay where that was faster.

        `forms`: the draft without and with them.
        """
        group = self._groups.get(id(forms[0]))
        if group is None or len(forms[0].schedule.steps) > REORDERED_STEPS:
            return []
        found: list[Draft] = []
        for tries in group.patient(self._target):
            if min(forms, key=lambda draft: draft.cycles) is forms[0]:
                draft = _chip_draft(tries, self._target)
                found += [draft] if draft else []
            else:
                written = (list(self._with_constants(schedule, dense=True)) for schedule in tries)
                found += next((drafts for drafts in written if drafts), list[Draft]())
        return found

    def _with_constants(self, schedule: Schedule, dense: bool) -> Iterator[Draft]:
        """Drafts with some constants left in the scratchpads."""
        few = len(schedule.steps) <= FEW_STEPS
        shared = replace(schedule, steps=share_constants(schedule.steps))
        sets = resident_sets(shared.steps, self._target, few)[1:]
        if not sets:
            return
        sheet = prepare(shared, self._target)
        for kept in sets:
            draft = write_draft(sheet, self._target, Manner(MARGINS[0], dense), Stay(kept))
            if draft is not None:
                yield draft


def plan_region(function: Function, config: Target, name: str) -> Region:
    """The function's layers, with all rewriting done that comes before tiles. Raises TensorizeError."""
    region = fold_inputs(read_region(function, config, name), config)
    region = store_heads(read_in_place(join_in_place(region, config), config), config)
    return lay_in_planes(tile_inputs(region), config)


def _plain_drafts(plans: Sequence[Schedule], config: Target, rival: int | None) -> list[Draft]:
    """Drafts that move every activation through DRAM. `rival`: cycles of the best that does not."""
    margins = MARGINS if len(plans[0].steps) <= FEW_STEPS else MARGINS[:1]
    drafts: list[Draft] = []
    for plan in plans:
        sheet = prepare(plan, config)
        for margin in margins:
            # Loads ahead that leave no room for sums or computed weights give way only where the program would not fit.
            manners = (Manner(margin), Manner(margin, careful=True))
            draft = next(filter(None, (write_draft(sheet, config, manner) for manner in manners)), None)
            drafts += [draft] if draft else []
            if draft and rival is not None and draft.cycles - draft.cycles // MARGIN_GAIN > rival:
                break
    last = None if drafts else write_draft(prepare(plans[-1], config), config, Manner(None))
    return [last] if last else drafts


def _chip_draft(tries: Iterator[Schedule], config: Target) -> Draft | None:
    """The draft with the most activations on chip that finds room."""
    written = (write_draft(prepare(one, config), config, Manner(MARGINS[0], dense=True)) for one in tries)
    return next((draft for draft in written if draft is not None), None)


def _segment(draft: Draft, name: str, config: Target, choose: Chooser) -> Segment:
    region = draft.schedule.region
    inputs = tuple(_port(draft, f"input_{i}", number) for i, (_, number) in enumerate(region.inputs))
    outputs = tuple(_port(draft, f"output_{i}", number) for i, number in enumerate(region.outputs))
    slots = [_slot(port) for port in (*inputs, *outputs)]
    program = Program.build(
        config, draft.instructions, WindowPlan(draft.window.sections, slots), _regions(draft), resident=draft.resident
    )
    layers = tuple(_layer(draft, number, config, choose) for number in range(len(region.layers)))
    return Segment(name, program, inputs, outputs, layers, draft.owners, str(draft.schedule), draft.launch)


def _port(draft: Draft, name: str, number: int) -> Port:
    place = draft.window.tensors[tensor_key(number)]
    section = next(s for s in draft.window.sections if s.offset <= place < s.end)
    activation = draft.schedule.region.activations[number]
    return Port(name, section.name, place - section.offset, activation.shape, activation.layout)


def _slot(port: Port) -> TensorSlot:
    shape = port.shape
    if len(shape) == 4:
        shape = (shape[0], shape[2], shape[3], shape[1])
    return TensorSlot(port.name, port.section, port.offset, shape, "int8", port.layout)


def _runs(owners: Sequence[int]) -> list[tuple[int, int, int]]:
    """(layer, begin, end) of consecutive instructions of one layer."""
    runs: list[tuple[int, int, int]] = []
    begin = 0
    for layer, members in groupby(owners):
        end = begin + len(list(members))
        runs.append((layer, begin, end))
        begin = end
    return runs


def _regions(draft: Draft) -> list[ProgramRegion]:
    layers = draft.schedule.region.layers
    return [ProgramRegion(layers[layer].name, begin, end) for layer, begin, end in _runs(draft.owners)]


def _layer(draft: Draft, number: int, config: Target, choose: Chooser) -> Layer:
    spec = draft.schedule.region.layers[number]
    own = [instruction for instruction, owner in zip(draft.instructions, draft.owners, strict=True) if owner == number]
    moved = {op: sum(_bytes(v, config) for o, v in own if o is op) for op in (Op.LOAD, Op.GATHER, Op.STORE)}
    return Layer(
        name=spec.name,
        composite=spec.function,
        ranges=tuple((begin, end) for layer, begin, end in _runs(draft.owners) if layer == number),
        macs=int(spec.function.attrs.get(MACS, spec.kernel.macs)),
        tile=str(draft.schedule.tiles[number]),
        bytes_read=moved[Op.LOAD] + moved[Op.GATHER],
        bytes_written=moved[Op.STORE],
        reason=choose.reason(spec.kernel, draft.schedule.tiles[number], config),
    )


def _bytes(v: dict[str, int], config: AccelConfig) -> int:
    if "row_bytes" in v:
        return v["y"] * gather_beats(config, v)[0] * config.bus_bytes
    return dram_granules(config, v) * v["y"] * v["x"] * config.granule_bytes
