"""The tensorizer's walk: match, tile, lower, order, place, emit, add tokens, check.

In: one `@accel_k` function and a configuration. Out: `Segment`. The same input gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from accel.isa.config import AccelConfig
from accel.isa.program import Program, TensorSlot, code_place
from accel.isa.program import Region as ProgramRegion
from accel.isa.spec import BY_OP, Mem, Op
from relay_hw.errors import TensorizeError
from relay_hw.ir.expr import Function
from tensorize.check import check_program
from tensorize.chip import MOST_STEPS, chip_schedules
from tensorize.constants import constant_data, constant_loads, data_key
from tensorize.emit import Line, NoRoomError, emit
from tensorize.hoist import hoist
from tensorize.inputs import fold_inputs
from tensorize.join import join_in_place, read_in_place
from tensorize.layout import image_bytes, pack_activation
from tensorize.memory import Life, Window, plan_window
from tensorize.nest import Key, Step, gather_beats, tensor_key
from tensorize.refine import Refiner
from tensorize.region import Region, read_region
from tensorize.resident import WORTH, constant_buffers, resident_sets, share_constants
from tensorize.schedule import Chooser, Schedule, schedules
from tensorize.segment import Layer, Port, Segment
from tensorize.target import Target
from tensorize.tokens import assign_tokens
from tensorize.work import work_of

Instruction = tuple[Op, dict[str, int]]

# Cycles between the load of a constant and its use that are tried; only the first for regions of many steps.
MARGINS = (1500, 500, 1000, 4000, 200, 100)
FEW_STEPS = 200
# Schedules that are tried with resident constants: without their loads another one may be the fastest.
TOPS = 6


@dataclass(frozen=True, slots=True)
class _Draft:
    """One schedule turned into instructions."""

    schedule: Schedule
    window: Window
    instructions: tuple[Instruction, ...]
    resident: tuple[Instruction, ...]
    owners: tuple[int, ...]
    cycles: int
    dense: bool


def compile_function(
    function: Function,
    config: Target,
    name: str,
    resident: bool = True,
    on_chip: bool = True,
    choose: Chooser | None = None,
    taken: Mapping[Mem, int] | None = None,
) -> Segment:
    """One program for the whole function. Raises TensorizeError when `config` cannot hold it.

    Where that saves cycles, constants may stay in the scratchpads between launches (`resident`), and activations
    may go from one layer to the next without DRAM (`on_chip`). `choose` says which tile a layer is computed with, where
    it is not the best of those that a closer look is taken at. `taken`: entries at the beginning of each memory of
    constants that other programs' residents have; they are spared where this program's stay all.
    """
    region = plan_region(function, config, name)
    choose = choose or Refiner()
    plans = schedules(region, config, choose)
    drafts = _plain_drafts(plans, config)
    if on_chip:
        drafts += _chip_drafts(region, plans[0], config)
    if not drafts:
        raise TensorizeError(f"layers of {name} must fit the scratchpads of configuration {config.name}")
    best = min(drafts, key=lambda draft: draft.cycles)
    if resident:
        fastest = {id(draft.schedule): draft for draft in sorted(drafts, key=lambda draft: -draft.cycles)}
        tops = sorted(fastest.values(), key=lambda draft: draft.cycles)[:TOPS]
        kept = [draft for top in tops for draft in _resident_drafts(top, config, taken or {})]
        best = min([best, *(d for d in kept if d.cycles < best.cycles - best.cycles // WORTH)], key=lambda d: d.cycles)
    segment = _segment(best, name, config, choose)
    check_program(segment.program, config)
    return segment


def plan_region(function: Function, config: Target, name: str) -> Region:
    """The function's layers, with all rewriting done that comes before tiles. Raises TensorizeError."""
    region = fold_inputs(read_region(function, config, name), config)
    return read_in_place(join_in_place(region, config), config)


def _plain_drafts(plans: Sequence[Schedule], config: Target) -> list[_Draft]:
    """Drafts that move every activation through DRAM."""
    margins = MARGINS if len(plans[0].steps) <= FEW_STEPS else MARGINS[:1]
    tries = [_draft(plan, config, margin) for plan in plans for margin in margins]
    drafts = [draft for draft in tries if draft is not None] or [_draft(plans[-1], config, None)]
    return [draft for draft in drafts if draft is not None]


def _chip_drafts(region: Region, plan: Schedule, config: Target) -> list[_Draft]:
    """Drafts with activations on chip: of each choice of tiles the one with most of them that finds room."""
    drafts: list[_Draft] = []
    for tries in chip_schedules(region, plan, config):
        written = (_draft(one, config, MARGINS[0], dense=True) for one in tries)
        found = (draft for draft in written if draft is not None)
        drafts += [draft for draft in (next(found, None),) if draft is not None]
    return drafts


def _resident_drafts(top: _Draft, config: Target, taken: Mapping[Mem, int]) -> Iterator[_Draft]:
    """The draft with some constants left in the scratchpads: behind `taken` where all of them find room there."""
    few = len(top.schedule.steps) <= FEW_STEPS
    shared = replace(top.schedule, steps=share_constants(top.schedule.steps))
    for kept in resident_sets(shared.steps, config, few)[1:]:
        whole = kept.issuperset(constant_buffers(shared.steps))
        draft = _draft(shared, config, MARGINS[0], kept, top.dense, taken) if whole and taken else None
        draft = draft or _draft(shared, config, MARGINS[0], kept, top.dense)
        if draft is not None:
            yield draft


def _draft(
    schedule: Schedule,
    config: Target,
    margin: int | None,
    resident: frozenset[Key] = frozenset(),
    dense: bool = False,
    taken: Mapping[Mem, int] | None = None,
) -> _Draft | None:
    """Instructions of a schedule with tokens, or None when its live buffers do not fit."""
    steps = schedule.steps
    few = len(steps) <= MOST_STEPS
    window = _window(schedule, config)
    addresses = window.tensors | window.constants
    try:
        found = emit(steps, constant_loads(steps, config), addresses, config, margin, resident, dense, taken or {})
    except NoRoomError:
        return None
    lines = hoist(found.lines, config) if few else found.lines
    instructions = _with_tokens(lines, config, window.end)
    stays = _with_tokens(found.resident, config, window.end) if found.resident else ()
    owners = tuple(line.layer for line in lines) + (lines[-1].layer,)
    place = code_place(window.sections, len(stays))
    return _Draft(schedule, window, instructions, stays, owners, config.cycles(instructions, place), dense)


def _with_tokens(lines: Sequence[Line], config: AccelConfig, window_bytes: int) -> tuple[Instruction, ...]:
    work = [(unit, line.ranges) for line in lines if (unit := BY_OP[line.op].unit) is not None]
    masks = assign_tokens(work, config, window_bytes)
    body = tuple(
        (line.op, {**line.values, "wait": mask.wait, "set": mask.set}) for line, mask in zip(lines, masks, strict=True)
    )
    return (*body, (Op.FINISH, {}))


def _window(schedule: Schedule, config: AccelConfig) -> Window:
    region, steps = schedule.region, schedule.steps
    sizes = {tensor_key(n): image_bytes(a.image, config, a.layout) for n, a in enumerate(region.activations)}
    fixed = {tensor_key(n): a.value for n, a in enumerate(region.activations) if a.value is not None}
    inputs = {tensor_key(number): sizes[tensor_key(number)] for _, number in region.inputs}
    outputs = {tensor_key(number): sizes[tensor_key(number)] for number in region.outputs}
    constants = [(data_key(key), mem, data) for key, mem, data in constant_data(steps)]
    values = {key: pack_activation(value, config).tobytes() for key, value in fixed.items()}
    outside = inputs.keys() | outputs.keys() | fixed.keys()
    lives = {key: life for key, life in _lives(steps, sizes, config).items() if key not in outside}
    return plan_window(constants, values, inputs, outputs, lives, config)


def _lives(steps: Sequence[Step], sizes: dict[Key, int], config: AccelConfig) -> dict[Key, Life]:
    """First and last step that touches each activation."""
    found: dict[Key, tuple[int, int]] = {}
    for at, step in enumerate(steps):
        work = work_of(step, config)
        for span in work.reads + work.writes:
            begin, _ = found.get(span.key, (at, at))
            found[span.key] = (begin, at)
    return {key: Life(sizes[key], begin, end) for key, (begin, end) in found.items()}


def _segment(draft: _Draft, name: str, config: Target, choose: Chooser) -> Segment:
    region = draft.schedule.region
    inputs = tuple(_port(draft, f"input_{i}", number) for i, (_, number) in enumerate(region.inputs))
    outputs = tuple(_port(draft, f"output_{i}", number) for i, number in enumerate(region.outputs))
    slots = [_slot(port) for port in (*inputs, *outputs)]
    program = Program.build(
        config, draft.instructions, draft.window.sections, slots, _regions(draft), resident=draft.resident
    )
    layers = tuple(_layer(draft, number, config, choose) for number in range(len(region.layers)))
    return Segment(name, program, inputs, outputs, layers, draft.owners, str(draft.schedule), draft.cycles)


def _port(draft: _Draft, name: str, number: int) -> Port:
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


def _regions(draft: _Draft) -> list[ProgramRegion]:
    layers = draft.schedule.region.layers
    return [ProgramRegion(layers[layer].name, begin, end) for layer, begin, end in _runs(draft.owners)]


def _layer(draft: _Draft, number: int, config: Target, choose: Chooser) -> Layer:
    spec = draft.schedule.region.layers[number]
    own = [instruction for instruction, owner in zip(draft.instructions, draft.owners, strict=True) if owner == number]
    moved = {op: sum(_bytes(v, config) for o, v in own if o is op) for op in (Op.LOAD, Op.GATHER, Op.STORE)}
    return Layer(
        name=spec.name,
        composite=spec.function,
        ranges=tuple((begin, end) for layer, begin, end in _runs(draft.owners) if layer == number),
        macs=spec.kernel.macs,
        tile=str(draft.schedule.tiles[number]),
        bytes_read=moved[Op.LOAD] + moved[Op.GATHER],
        bytes_written=moved[Op.STORE],
        reason=choose.reason(spec.kernel, draft.schedule.tiles[number], config),
    )


def _bytes(v: dict[str, int], config: AccelConfig) -> int:
    if "row_bytes" in v:
        return v["y"] * gather_beats(config, v)[0] * config.bus_bytes
    return v["z"] * v["y"] * v["x"] * config.granule_bytes
