"""A board as a device: programs run on an FPGA, or on its SoC in simulation, behind a link to the host.

In: a program, a link, the map of the SoC. Out: the window after its launch, cycles and every counter register.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, Protocol

import numpy as np

from relay_hw.accel.fpga.board_memory import BoardMemory
from relay_hw.accel.fpga.buffers import Buffers, end_of_buffers, second_buffers
from relay_hw.accel.fpga.link import Link, LinkError
from relay_hw.accel.fpga.soc_map import SocMap
from relay_hw.accel.fpga.uartbone import BITS_A_BYTE
from relay_hw.accel.isa.config import INSTRUCTION_BYTES, AccelConfig
from relay_hw.accel.isa.errors import AccelError, EncodeError, ProgramError
from relay_hw.accel.isa.program import WINDOW_ALIGN, Program, SectionKind, align
from relay_hw.accel.isa.rules import dram_extent
from relay_hw.accel.isa.spec import Op, decode
from relay_hw.accel.sim.bounds import cycle_bound
from relay_hw.accel.sim.device import Bytes, Done, Job, LaunchStats, Window
from relay_hw.accel.sim.dram_timing import MemoryModel
from relay_hw.accel.sim.registers import Core
from relay_hw.support.progress import SILENT, Progress

# Memory of a board is slower than any model that bounds are made for: SDRAM with refresh, shared with the host.
MEMORY: Final = MemoryModel(latency=400, read_outstanding=1, write_outstanding=1)
# A launch may end unnoticed for so much of the time that it has taken.
_POLL_SHARE: Final = 1 / 64


class Timer(Protocol):
    """Time as the driver sees it, in seconds."""

    def now(self) -> float: ...
    def sleep(self, seconds: float, /) -> None: ...


class WallClock:
    """The time of day."""

    def now(self) -> float:
        """See `Timer`."""
        return time.perf_counter()

    def sleep(self, seconds: float, /) -> None:
        """See `Timer`."""
        time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class _Work:
    """What is known of instructions: cycles that they take at most, and where they change the window."""

    limit: int
    stores: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class _Loaded:
    """A program with the place of its window.

    `second`: other buffers behind it, sent when they pay; `can_double`: whether there may be any; `lost`: seconds in
    which either launches or the link has waited for the other.
    """

    program: Program
    base: int
    room: int
    can_double: bool
    second: Buffers | None = None
    lost: float = 0.0


@dataclass(frozen=True, slots=True)
class _Running:
    """A launch under way. `limit`: cycles that it takes at most; `begin`: when it was launched."""

    job: Job
    buffers: Buffers
    limit: int
    begin: float


class FpgaDevice:
    """Runs programs on a board. What the memory holds is remembered, so that only what differs is sent.

    A program that comes back keeps a window of its own, others share the one behind those; where the memory is full,
    windows start anew.

    `timeout`: seconds that a launch may take beyond its watchdog. `progress` hears of long transfers. `timer`: the
    clock on the wall unless another one is given.
    Raises LinkError, ProgramError (another accelerator than `config`), AccelError (busy).
    """

    def __init__(
        self,
        config: AccelConfig,
        link: Link,
        soc: SocMap,
        timeout: float = 10.0,
        progress: Progress = SILENT,
        timer: Timer | None = None,
    ) -> None:
        self._config = config
        self._timer = timer or WallClock()
        self._link = link
        self._soc = soc
        self._timeout = timeout
        self._window = Window()
        self.core = Core(self._write_registers, self._read_registers)
        self._memory = BoardMemory(link, soc, self._timer.sleep, lambda: self.core.get("MAGIC"), progress)
        self._loaded: _Loaded | None = None
        # Programs that came once, and those that came back, whose windows stay; `next`: behind all of these.
        self._seen: list[Program] = []
        self._placed: list[_Loaded] = []
        self._next = 0
        # By instructions: reading them takes long.
        self._known_work: dict[bytes, _Work] = {}

    def close(self) -> None:
        """Close the link."""
        self._link.close()

    @property
    def config(self) -> AccelConfig:
        """Sizes of the accelerator."""
        return self._config

    def load(self, program: Program) -> None:
        """See `Device.load`; checks first that the board is there, idle, and what the configuration says."""
        self.core.check(self._config)
        if self.core.busy:
            raise AccelError(f"board {self._soc.board} must be idle, not busy with another launch; wait, or reset it")
        self._memory.prepare()
        if program.window_bytes > self._soc.memory_bytes:
            size = self._soc.memory_bytes
            raise ProgramError(f"window must fit the {size} bytes of {self._soc.board}, not be {program.window_bytes}")
        self._window.load(self._config, program)
        self._loaded = loaded = self._place(program)
        self._memory.reach(loaded.base + loaded.room)
        self._memory.send(loaded.base, self._window.bytes)
        self.core.window(self._soc.memory_base + loaded.base, loaded.room)

    def _place(self, program: Program) -> _Loaded:
        """The program with the place of its window."""
        for known in self._placed:
            if known.program is program:
                return known
        if self._next + program.window_bytes > self._soc.memory_bytes:
            self._placed.clear()
            self._next = 0
        is_new = not any(known is program for known in self._seen)
        # Windows that stay are worth more than second buffers.
        all_ends = sum(end_of_buffers(known) for known in ([*self._seen, program] if is_new else self._seen))
        can_double = max(all_ends, self._next + end_of_buffers(program)) <= self._soc.memory_bytes
        room = end_of_buffers(program) if can_double else program.window_bytes
        loaded = _Loaded(program, self._next, room, can_double)
        if is_new:
            self._seen.append(program)
            # More than fit beside one another could not keep windows of their own.
            while sum(known.window_bytes for known in self._seen) > self._soc.memory_bytes:
                self._seen.pop(0)
        elif self._loaded is None or program is not self._loaded.program:
            self._placed.append(loaded)
            self._next = align(loaded.base + room, WINDOW_ALIGN)
        return loaded

    def write(self, offset: int, data: Bytes) -> None:
        """See `Device.write`."""
        self._window.write(offset, data)
        self._memory.send(self._base + offset, data)

    def read(self, offset: int, size: int) -> Bytes:
        """See `Device.read`."""
        self._window.read(offset, size)
        return self._memory.read(self._base + offset, size)

    @property
    def memory_bytes(self) -> int:
        """Bytes of the board's memory."""
        return self._soc.memory_bytes

    def poke(self, offset: int, data: Bytes) -> None:
        """Write whole words at byte `offset` of the memory, whatever the window is. Raises ProgramError outside it."""
        self._memory.poke(offset, data)

    def peek(self, offset: int, size: int) -> Bytes:
        """Whole words at byte `offset` of the memory, as they are there now. Raises ProgramError outside it."""
        return self._memory.peek(offset, size)

    def launch(self, stream: SectionKind = SectionKind.PROGRAM) -> LaunchStats:
        """See `Device.launch`. Raises LinkError when the board does not end in time."""
        running = self._begin(Job((), ()), Buffers(self._current.program.stream(stream)))
        self._wait(running)
        counters = self.core.counters()
        return LaunchStats(counters["CYCLES"], counters, self._timer.now() - running.begin)

    def launches(self, jobs: Iterable[Job]) -> Generator[Done, None, None]:
        """See `Overlapping.launches`; of the counters CYCLES alone is read.

        Second buffers are sent when launches and link have waited for each other for as long as sending them takes.
        """
        own, running = Buffers(self._current.program.code), None
        try:
            for job in jobs:
                second = self._second()
                if second is None and running is not None:
                    ended, running = running, None
                    yield self._take(ended, self._end(ended))
                buffers = second if second is not None and (running is None or running.buffers is own) else own
                self._give(job, buffers)
                ended, running = running, None
                stats = None if ended is None else self._end(ended)
                running = self._begin(job, buffers)
                if ended is not None and stats is not None:
                    yield self._take(ended, stats)
            if running is not None:
                ended, running = running, None
                yield self._take(ended, self._end(ended))
        finally:
            # Whoever wants no more of them leaves an idle board behind.
            if running is not None:
                self._wait(running)

    def double(self) -> None:
        """Send second buffers of the loaded program before they have become worth it, where there can be any."""
        if self._loaded is not None:
            self._loaded.lost = inf

    @property
    def _current(self) -> _Loaded:
        if self._loaded is None:
            raise AccelError("a program must be loaded before it is launched")
        return self._loaded

    @property
    def _base(self) -> int:
        return 0 if self._loaded is None else self._loaded.base

    def _second(self) -> Buffers | None:
        """The second buffers of the program, where they are or have become worth their time on the link."""
        loaded = self._current
        if not loaded.can_double or loaded.lost < self._line_seconds(loaded.program.code.size):
            return None
        if loaded.second is None:
            loaded.second = second_buffers(self._config, loaded.program)
            loaded.can_double = loaded.second is not None
            for section in loaded.second.sections if loaded.second is not None else ():
                self._memory.send(loaded.base + section.offset, np.frombuffer(section.data or b"", np.uint8))
        return loaded.second

    def _line_seconds(self, size: int) -> float:
        """How long bytes take on a serial line; nothing is known of others, which are fast."""
        return size * BITS_A_BYTE / self._soc.baud if self._soc.baud else 0.0

    def _give(self, job: Job, buffers: Buffers) -> None:
        for offset, data in job.writes:
            self._window.write(offset, data)
            self._memory.send(self._base + buffers.place(offset), data)

    def _take(self, ended: _Running, stats: LaunchStats) -> Done:
        """What is to be read after a launch."""
        found: list[Bytes] = []
        for offset, size in ended.job.reads:
            self._window.read(offset, size)
            found.append(self._memory.read(self._base + ended.buffers.place(offset), size))
        return Done(tuple(found), stats)

    def _begin(self, job: Job, buffers: Buffers) -> _Running:
        """Launch the instructions of a set of buffers."""
        code = buffers.code
        instructions = (code.data or b"") if buffers.moves else self._window.read(code.offset, code.size).tobytes()
        work = self._work(instructions)
        for first, last in work.stores:
            self._memory.forget(self._base + first, self._base + last)
        begin = self._timer.now()
        self.core.launch(code, work.limit)
        return _Running(job, buffers, work.limit, begin)

    def _work(self, instructions: bytes) -> _Work:
        if instructions not in self._known_work:
            limit = cycle_bound(self._config, MEMORY, instructions)
            self._known_work[instructions] = _Work(limit, tuple(_stores(self._config, instructions)))
        return self._known_work[instructions]

    def _wait(self, running: _Running) -> None:
        """Wait for the end of a launch. Raises Fault, LinkError."""
        deadline = running.begin + running.limit / self._soc.clock_hz + self._timeout
        while not self.core.is_done():
            if self._timer.now() > deadline:
                limit = running.limit
                raise LinkError(f"board {self._soc.board} must end a launch of at most {limit} cycles, not stay busy")
            self._timer.sleep(_POLL_SHARE * (self._timer.now() - running.begin))

    def _end(self, running: _Running) -> LaunchStats:
        """Wait for a launch of many, and learn whether others should travel meanwhile."""
        self._wait(running)
        cycles, loaded, job = self.core.get("CYCLES"), self._current, running.job
        if loaded.second is None:
            size = sum(data.size for _, data in job.writes) + sum(size for _, size in job.reads)
            loaded.lost += min(cycles / self._soc.clock_hz, self._line_seconds(size))
        begin = running.begin if isinstance(self._timer, WallClock) else None
        return LaunchStats(cycles, {"CYCLES": cycles}, self._timer.now() - running.begin, begin)

    def _write_registers(self, offset: int, values: Sequence[int]) -> None:
        self._link.write(self._soc.registers_base + offset, values)

    def _read_registers(self, offset: int, count: int) -> list[int]:
        return self._link.read(self._soc.registers_base + offset, count)


def _stores(config: AccelConfig, code: bytes) -> Iterator[tuple[int, int]]:
    """First and one past the last byte of the window that each STORE may write."""
    for at in range(0, len(code), INSTRUCTION_BYTES):
        try:
            row, values = decode(int.from_bytes(code[at : at + INSTRUCTION_BYTES], "little"))
        except EncodeError:
            # The hardware stops here, too.
            return
        if row.op is Op.STORE:
            yield values["dram"], values["dram"] + dram_extent(config, row.op, values)
