"""Allocates each buffer in the scratchpads, and orders loads among the commands of steps.

In: ordered steps, the step with which each load of constants may be written. Out: `Placed`: commands in order, places.
Loads are written one step ahead of the commands that need them, constants further ahead where the bus has time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.spec import Mem
from relay_hw.accel.isa.state import depth, element_bytes
from relay_hw.tensorize.commands import Buffer, Command, Key, Step
from relay_hw.tensorize.emit.scratchpad import Scratchpad, Slots
from relay_hw.tensorize.schedule.clocks import Clocks
from relay_hw.tensorize.schedule.constants import ConstantLoad
from relay_hw.tensorize.schedule.ordered import Ordered
from relay_hw.tensorize.schedule.resident import Stay, resident_loads
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.geometry import acc_unit

# Memories of constants, in the order in which a step needs them.
_CONSTANTS = (Mem.UOP, Mem.WGT, Mem.COF, Mem.PRM, Mem.TAB)
# A load of constants, and the step with whose look-ahead it is written at the earliest.
Windowed = tuple[ConstantLoad, int]


class NoRoomError(Exception):
    """Buffers that are live, or tokens that are open, at the same time in this order do not fit; another order may."""


@dataclass(frozen=True, slots=True)
class Manner:
    """Options of writing a schedule.

    `margin`: cycles between the load of a constant and its use, where the bus allows; None writes every load right
    before its step, which needs the least room. `dense`: buffers of INP live long, so that room matters more than its
    age. `careful`: what is loaded ahead leaves room for what the steps before it compute.
    """

    margin: int | None
    dense: bool = False
    careful: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """A command, its layer, and the step that it is written with."""

    command: Command
    layer: int
    step: int


@dataclass(frozen=True, slots=True)
class Placed:
    """The first entry of each buffer, and all commands in program order."""

    places: Mapping[Key, int]
    written: tuple[Written, ...]


class Loader:
    """Writes the steps of one program: what stays on the device first (`settle`), then the rest (`run`)."""

    def __init__(self, order: Ordered, windows: Sequence[Windowed], config: Target, manner: Manner) -> None:
        self._order = order
        self._steps = order.steps
        self._latency = config.memory.latency
        self._clocks = Clocks(order.flow, self._latency)
        self._waiting = {mem: deque(w for w in windows if w[0].mem is mem) for mem in Mem}
        self._config = config
        self._at = 0
        self._margin = manner.margin
        # When the loads that are written have arrived, as far as they have not.
        self._flying = deque[int]()
        # When the products and the results of each step are computed.
        self._finished: list[tuple[int, int]] = []
        self._last_use = {buffer.key: at for at, step in enumerate(order.steps) for buffer in step.buffers}
        self._sizes = {buffer.key: buffer.entries for step in order.steps for buffer in step.buffers}
        self._pads = {mem: _scratchpad(config, mem, manner.dense) for mem in Mem}
        self._careful = manner.careful
        self._computed = [_computed_weights(step) for step in order.steps] if manner.careful else []
        self._places: dict[Key, int] = {}
        self._loaded: set[Key] = set()
        self._written: list[Written] = []

    def settle(self, stay: Stay) -> tuple[Written, ...]:
        """Place constants that nothing may take the room of, between those of other programs; their loads."""
        self._reserve("before", stay.before)
        loads = resident_loads(self._steps, stay.keys, self._config)
        for command in loads:
            key, mem = command.refs["sram"].key, Mem(command.values["mem"])
            place = self._pads[mem].settle(key, self._sizes[key])
            if place is None:
                raise NoRoomError(f"{mem.name.lower()} has no room for what stays in it")
            self._places[key] = place
            del self._last_use[key]
        self._reserve("behind", stay.behind)
        return tuple(Written(command, 0, 0) for command in loads)

    def _reserve(self, what: str, entries: Mapping[Mem, int]) -> None:
        """Keep the next entries of each memory for other programs."""
        for mem, count in entries.items():
            if count and self._pads[mem].settle((what,), count) is None:
                raise NoRoomError(f"{mem.name.lower()} has no room beside other programs")

    def run(self) -> Placed:
        """All steps, each behind the loads that it needs and the loads that are ahead of their step."""
        for at, step in enumerate(self._steps):
            self._at = at
            self._require(at)
            if self._margin is not None:
                self._look_ahead(at, self._margin)
            self._clocks.run_step(at)
            self._finished.append((self._clocks.compute, self._clocks.output))
            for command in step.commands:
                self._write(command, step.layer)
            for buffer in step.buffers:
                if self._last_use.get(buffer.key) == at:
                    self._pads[buffer.mem].free(buffer.key, at)
        return Placed(self._places, tuple(self._written))

    def _write(self, command: Command, layer: int) -> None:
        self._written.append(Written(command, layer, self._at))

    def _require(self, at: int) -> None:
        """Everything that step `at` needs and that is not there yet; parameters last, since they are needed last."""
        step = self._steps[at]
        self._force(at, (Mem.UOP, Mem.WGT))
        room = 0
        for buffer in step.buffers:
            if buffer.data is None:
                free = self._fetch(buffer, step.layer)
                if free is None:
                    what = f"{buffer.mem.name.lower()} has no room for {buffer.entries} entries"
                    raise NoRoomError(f"{step.label}: {what}")
                room = max(room, free if buffer.loads else 0)
        self._clocks.load_step(at, room)
        self._force(at, (Mem.COF, Mem.PRM, Mem.TAB))

    def _force(self, at: int, mems: tuple[Mem, ...]) -> None:
        for mem in mems:
            if not self._load_constants(mem, at):
                raise NoRoomError(f"{self._steps[at].label}: {mem.name.lower()} has no room")

    def _look_ahead(self, at: int, margin: int) -> None:
        """Loads of the next step and of those that start within `margin` cycles, as long as there is room.

        Where the next step's input is not stored yet, constants of later steps go first: they hold up nothing.
        """
        spent, start = False, 0
        now = max(self._clocks.compute, self._clocks.arrival(at) or 0)
        while self._flying and self._flying[0] <= now:
            self._flying.popleft()
        for following in range(at + 1, len(self._steps)):
            start += self._order.flow.work[following - 1].compute
            if following > at + 1 and (start > margin or self._crowded):
                break
            if not all([self._load_constants(mem, following) for mem in _CONSTANTS]):
                break
            if self._waits_for(following, max(at - 1, 0)):
                self._spend(at)
                spent = True
                if self._waits_for(following, at):
                    break
            if not self._prefetch(following):
                break
        if not spent:
            self._spend(at)

    def _load_constants(self, mem: Mem, deadline: int) -> bool:
        """Constants of steps up to `deadline`; False when there is no room for one."""
        waiting = self._waiting[mem]
        while waiting and waiting[0][0].deadline <= deadline:
            if not self._load_constant(waiting[0][0]):
                return False
            waiting.popleft()
        return True

    def _spend(self, at: int) -> None:
        """Constants of later steps whose turn has come."""
        for mem in _CONSTANTS:
            waiting = self._waiting[mem]
            while waiting and waiting[0][1] <= at and not self._crowded and self._load_constant(waiting[0][0]):
                waiting.popleft()

    @property
    def _crowded(self) -> bool:
        """True where one load more would wait in front of its queue, and with it all commands behind."""
        return len(self._flying) >= self._config.queue_depth

    def _prefetch(self, at: int) -> bool:
        """Activations of step `at`; False when there is no room yet."""
        step, before = self._steps[at], len(self._written)
        if self._careful and not self._leaves_sums(at):
            return False
        rooms = [self._fetch(buffer, step.layer) for buffer in step.buffers if buffer.loads]
        if None in rooms:
            return False
        self._clocks.load_step(at, max((room for room in rooms if room is not None), default=0))
        self._flying += [self._clocks.load + self._latency] * (len(self._written) - before)
        return True

    def _waits_for(self, at: int, since: int) -> bool:
        """True where steps from `since` on write what step `at` reads."""
        return any(other >= since for other in self._order.flow.producers[at])

    def _fetch(self, buffer: Buffer, layer: int) -> int | None:
        """Place a buffer that is not constant and load it: when its place is free, None when there is no room."""
        if buffer.key in self._loaded:
            return 0
        room = self._place(buffer.key, buffer.mem, buffer.entries)
        if room is None:
            return None
        self._loaded.add(buffer.key)
        for load in buffer.loads:
            self._write(load, layer)
        return room

    def _load_constant(self, load: ConstantLoad) -> bool:
        if load.key not in self._places and not self._leaves_room(load):
            return False
        room = self._place(load.key, load.mem, self._sizes[load.key])
        if room is None:
            return False
        self._clocks.load_constant(load.cycles, room)
        self._flying.append(self._clocks.load + self._latency)
        self._write(load.command, load.layer)
        return True

    def _leaves_room(self, load: ConstantLoad) -> bool:
        """Whether steps up to the one that needs a constant still find room for weights that are computed."""
        if not self._careful or load.mem is not Mem.WGT or load.deadline <= self._at:
            return True
        computed = max(self._computed[self._at : load.deadline + 1])
        return not computed or self._pads[Mem.WGT].free_entries >= self._sizes[load.key] + computed

    def _leaves_sums(self, at: int) -> bool:
        """Whether steps in front of step `at` find room for their sums beside what is loaded for it into ACC."""
        *before, own = (
            sum(b.entries for b in step.buffers if b.mem is Mem.ACC and b.key not in self._places)
            for step in self._steps[self._at + 1 : at + 1]
        )
        return not own or self._pads[Mem.ACC].free_entries >= own + max(before, default=0)

    def _place(self, key: Key, mem: Mem, entries: int) -> int | None:
        """When the buffer's place is free, 0 where it has one already; None when there is no room."""
        if key in self._places:
            return 0
        place = self._pads[mem].allocate(key, entries)
        if place is None:
            return None
        self._places[key] = place.begin
        computed, stored = self._finished[place.age] if place.age >= 0 else (0, 0)
        return computed if mem in (Mem.INP, Mem.WGT, Mem.UOP) else stored


def _computed_weights(step: Step) -> int:
    """Entries of WGT that the step needs for weights that other steps compute."""
    return sum(buffer.entries for buffer in step.buffers if buffer.mem is Mem.WGT and buffer.data is None)


def _scratchpad(config: AccelConfig, mem: Mem, dense: bool) -> Scratchpad:
    entries = depth(config, mem)
    beat = max(1, config.bus_bytes // element_bytes(config, mem))
    if mem is Mem.INP:
        beat = config.line_entries
    match mem:
        case Mem.ACC:
            return Scratchpad(entries, acc_unit(config), Slots.POWER)
        case Mem.INP if dense:
            return Scratchpad(entries, beat, Slots.GAP)
        case Mem.INP | Mem.WGT | Mem.PRM | Mem.TAB | Mem.COF:
            return Scratchpad(entries, beat, Slots.SIZE)
        case Mem.OUT | Mem.UOP:
            return Scratchpad(entries, beat)
