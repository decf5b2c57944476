"""Writes one schedule as instructions, with addresses in DRAM and in the scratchpads, and counts a launch's cycles.

In: a schedule, a target, what stays on the device and where. Out: `Draft`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relay_hw.accel.isa.config import SEMAPHORE_MAX, AccelConfig
from relay_hw.accel.isa.program import code_place
from relay_hw.accel.isa.spec import BY_OP, Op
from relay_hw.tensorize.commands import Key, tensor_key
from relay_hw.tensorize.emit.dram import Life, Window, plan_window
from relay_hw.tensorize.emit.emit import Line, emit
from relay_hw.tensorize.emit.hoist import hoist
from relay_hw.tensorize.emit.loading import Manner, NoRoomError
from relay_hw.tensorize.emit.tokens import assign_tokens, most_open
from relay_hw.tensorize.layout import image_bytes, pack_activation
from relay_hw.tensorize.schedule.clocks import Flow
from relay_hw.tensorize.schedule.constants import constant_data, data_key
from relay_hw.tensorize.schedule.on_chip_schedules import MOST_STEPS
from relay_hw.tensorize.schedule.ordered import Ordered, ordered
from relay_hw.tensorize.schedule.plan import Schedule
from relay_hw.tensorize.schedule.resident import ALONE, Stay
from relay_hw.tensorize.target import Launch, Target

Instruction = tuple[Op, dict[str, int]]


@dataclass(frozen=True, slots=True)
class Draft:
    """One schedule turned into instructions. `resident`: those of the stream that loads what stays."""

    schedule: Schedule
    manner: Manner
    stay: Stay
    window: Window
    instructions: tuple[Instruction, ...]
    resident: tuple[Instruction, ...]
    owners: tuple[int, ...]
    launch: Launch

    @property
    def cycles(self) -> int:
        """Cycles of a launch."""
        return self.launch.cycles


@dataclass(frozen=True, slots=True)
class Sheet:
    """A schedule with what all of its drafts have in common: what is known of its steps, and addresses in DRAM."""

    schedule: Schedule
    order: Ordered
    window: Window


def prepare(schedule: Schedule, config: Target) -> Sheet:
    """Prepare a schedule for `write_draft`."""
    order = ordered(schedule.steps, config)
    return Sheet(schedule, order, _window(schedule, order.flow, config))


def write_draft(sheet: Sheet, config: Target, manner: Manner, stay: Stay = ALONE) -> Draft | None:
    """Instructions of a schedule with tokens, or None when its live buffers or open tokens do not fit."""
    window = sheet.window
    try:
        found = emit(sheet.order, window.tensors | window.constants, config, manner, stay)
        lines = hoist(found.lines, config) if len(sheet.order.steps) <= MOST_STEPS else found.lines
        instructions = _with_tokens(lines, config, window.end)
        stays = _with_tokens(found.resident, config, window.end) if found.resident else ()
    except NoRoomError:
        return None
    owners = tuple(line.layer for line in lines) + (lines[-1].layer,)
    place = code_place(window.sections, len(stays))
    return Draft(sheet.schedule, manner, stay, window, instructions, stays, owners, config.launch(instructions, place))


def _with_tokens(lines: Sequence[Line], config: AccelConfig, window_bytes: int) -> tuple[Instruction, ...]:
    work = [(unit, line.ranges) for line in lines if (unit := BY_OP[line.op].unit) is not None]
    masks = assign_tokens(work, config, window_bytes)
    if most_open(masks) + config.queue_depth > SEMAPHORE_MAX:
        raise NoRoomError("semaphores have no room for tokens whose takers come so late")
    body = tuple(
        (line.op, {**line.values, "wait": mask.wait, "set": mask.set}) for line, mask in zip(lines, masks, strict=True)
    )
    return (*body, (Op.FINISH, {}))


def _window(schedule: Schedule, flow: Flow, config: AccelConfig) -> Window:
    region = schedule.region
    sizes = {tensor_key(n): image_bytes(a.image, config, a.layout) for n, a in enumerate(region.activations)}
    fixed = {tensor_key(n): a.value for n, a in enumerate(region.activations) if a.value is not None}
    inputs = {tensor_key(number): sizes[tensor_key(number)] for _, number in region.inputs}
    outputs = {tensor_key(number): sizes[tensor_key(number)] for number in region.outputs}
    constants = [(data_key(key), mem, data) for key, mem, data in constant_data(schedule.steps)]
    values = {key: pack_activation(value, config).tobytes() for key, value in fixed.items()}
    outside = inputs.keys() | outputs.keys() | fixed.keys()
    lives = {key: life for key, life in _lives(flow, sizes).items() if key not in outside}
    return plan_window(constants, values, inputs, outputs, lives, config)


def _lives(flow: Flow, sizes: dict[Key, int]) -> dict[Key, Life]:
    """First and last step that touches each activation."""
    found: dict[Key, tuple[int, int]] = {}
    for at, work in enumerate(flow.work):
        for span in work.reads + work.writes:
            begin, _ = found.get(span.key, (at, at))
            found[span.key] = (begin, at)
    return {key: Life(sizes[key], begin, end) for key, (begin, end) in found.items()}
