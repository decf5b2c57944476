"""A board as a device: programs run on an FPGA, or on its System in simulation, behind a line to the host.

In: a program, a line, the map of the System. Out: the window after its launch, cycles and every counter register.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from accel.fpga.link import Line, LinkError
from accel.fpga.soc_map import SocMap
from accel.isa.config import INSTRUCTION_BYTES, AccelConfig
from accel.isa.errors import AccelError, EncodeError, ProgramError
from accel.isa.program import WINDOW_ALIGN, Program, SectionKind, align
from accel.isa.spec import Op, decode
from accel.sim.bounds import cycle_bound
from accel.sim.device import Bytes, LaunchStats, Window
from accel.sim.memory import MemoryModel
from accel.sim.registers import Core

# Memory of a board is slower than any model that bounds are made for: SDRAM with refresh, shared with the host.
MEMORY: Final = MemoryModel(latency=400, read_outstanding=1, write_outstanding=1)
_CHUNK_BYTES: Final = 4096
# A launch may end unnoticed for so much of the time that it has taken.
_POLL_SHARE: Final = 1 / 64
# Every data pin high and low, alone among the others and beside them.
_PATTERN: Final = (0x0000FFFF, 0xFFFF0000, 0x55AA33CC, 0xAA55CC33, *(1 << bit for bit in range(32)))


class Timer(Protocol):
    """Time as the driver sees it, in seconds."""

    def now(self) -> float: ...
    def sleep(self, seconds: float, /) -> None: ...


class WallClock:
    """The time of day."""

    def now(self) -> float:
        """See `Timer`."""
        return time.monotonic()

    def sleep(self, seconds: float, /) -> None:
        """See `Timer`."""
        time.sleep(seconds)


class FpgaDevice:
    """Runs programs on a board. What the memory holds is remembered, so that only what differs is sent.

    A program that comes back keeps a window of its own, others share the one behind those; where the memory is full,
    windows start anew.

    `timeout`: seconds that a launch may take beyond its watchdog. `progress` gets lines on long steps. `timer`: the
    clock on the wall unless another one is given.
    Raises LinkError, ProgramError (another accelerator than `config`), AccelError (busy).
    """

    def __init__(
        self,
        config: AccelConfig,
        link: Line,
        soc: SocMap,
        timeout: float = 10.0,
        progress: Callable[[str], None] | None = None,
        timer: Timer | None = None,
    ) -> None:
        self._config = config
        self._timer = timer or WallClock()
        self._link = link
        self._soc = soc
        self._timeout = timeout
        self._progress = progress
        self._window = Window()
        # What the board's memory is known to hold; -1 for bytes that the accelerator may have changed.
        self._known: NDArray[np.int16] = np.full(0, -1, np.int16)
        self._program: Program | None = None
        # Programs that came once, and where the windows of those that came back begin; `next`: behind all of these.
        self._seen: list[Program] = []
        self._places: list[tuple[Program, int]] = []
        self._base = self._next = 0
        self.core = Core(self._write_register, self._read_register)

    def close(self) -> None:
        """Give the line back."""
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
        self._prepare_memory()
        if program.window_bytes > self._soc.memory_bytes:
            size = self._soc.memory_bytes
            raise ProgramError(f"window must fit the {size} bytes of {self._soc.board}, not be {program.window_bytes}")
        self._window.load(self._config, program)
        self._base = self._place(program)
        end = self._base + program.window_bytes
        if self._known.size < end:
            self._known = np.concatenate([self._known, np.full(end - self._known.size, -1, np.int16)])
        self._send(self._base, self._window.bytes)
        self.core.window(self._soc.memory_base + self._base, program.window_bytes)
        self._program = program

    def _place(self, program: Program) -> int:
        """Where the window of a program begins."""
        for known, base in self._places:
            if known is program:
                return base
        if self._next + program.window_bytes > self._soc.memory_bytes:
            self._places.clear()
            self._next = 0
        base = self._next
        if not any(known is program for known in self._seen):
            self._seen.append(program)
            # More than fit beside one another could not keep windows of their own.
            while sum(known.window_bytes for known in self._seen) > self._soc.memory_bytes:
                self._seen.pop(0)
        elif program is not self._program:
            self._places.append((program, base))
            self._next = align(base + program.window_bytes, WINDOW_ALIGN)
        return base

    def write(self, offset: int, data: Bytes) -> None:
        """See `Device.write`."""
        self._window.write(offset, data)
        self._send(self._base + offset, data)

    def read(self, offset: int, size: int) -> Bytes:
        """See `Device.read`."""
        self._window.read(offset, size)
        offset += self._base
        begin, end = _word_bounds(offset, size)
        found = self._receive(begin, end)
        self._known[begin:end] = found
        return found[offset - begin : offset - begin + size].copy()

    @property
    def memory_bytes(self) -> int:
        """Bytes of the board's memory."""
        return self._soc.memory_bytes

    def poke(self, offset: int, data: Bytes) -> None:
        """Write whole words at byte `offset` of the memory, whatever the window is. Raises ProgramError outside it."""
        self._check_words(offset, data.size)
        self._prepare_memory()
        self._known[offset : offset + data.size] = -1
        self._link.write(self._soc.memory_base + offset, data.view("<u4").tolist())

    def peek(self, offset: int, size: int) -> Bytes:
        """Whole words at byte `offset` of the memory, as they are there now. Raises ProgramError outside it."""
        self._check_words(offset, size)
        self._prepare_memory()
        return self._receive(offset, offset + size)

    def _check_words(self, offset: int, size: int) -> None:
        if offset % 4 or size % 4 or not 0 <= offset <= offset + size <= self.memory_bytes:
            where = f"[{offset}, {offset + size})"
            raise ProgramError(f"memory access must be words in [0, {self.memory_bytes}), not {where}")

    def launch(self, stream: SectionKind = SectionKind.PROGRAM) -> LaunchStats:
        """See `Device.launch`. Raises LinkError when the board does not end in time."""
        if self._program is None:
            raise AccelError("a program must be loaded before it is launched")
        code = self._program.stream(stream)
        instructions = self._window.read(code.offset, code.size).tobytes()
        limit = cycle_bound(self._config, MEMORY, instructions)
        for first, last in _stores(self._config, instructions):
            self._known[self._base + first : self._base + last] = -1
        begin = self._timer.now()
        self.core.launch(code, limit)
        deadline = begin + limit / self._soc.clock_hz + self._timeout
        while not self.core.ended:
            if self._timer.now() > deadline:
                raise LinkError(f"board {self._soc.board} must end a launch of at most {limit} cycles, not stay busy")
            self._timer.sleep(_POLL_SHARE * (self._timer.now() - begin))
        counters = self.core.finish()
        return LaunchStats(counters["CYCLES"], counters, self._timer.now() - begin)

    def _prepare_memory(self) -> None:
        """Tell the memory how to work, once after the board was configured, and see that it keeps what it gets."""
        setup = self._soc.setup
        if setup is None or self._link.read(setup.address, 1) == [setup.ready]:
            return
        for step in setup.steps:
            for address, word in step.writes:
                self._link.write(address, [word])
            self._timer.sleep(step.pause_us / 1e6)
        base = self._soc.memory_base
        self._link.write(base, _PATTERN)
        found = self._link.read(base, len(_PATTERN))
        if found != list(_PATTERN):
            given, got = next((a, b) for a, b in zip(_PATTERN, found, strict=True) if a != b)
            raise AccelError(
                f"memory of {self._soc.board} must give back {given:#010x}, not {got:#010x}, after its setup"
            )

    def _send(self, offset: int, data: Bytes) -> None:
        """Write what differs from what is known at byte `offset` of the memory, in whole words."""
        begin, end = _word_bounds(offset, data.size)
        whole = self._whole_words(begin, end, offset, data)
        for at in range(0, whole.size, _CHUNK_BYTES):
            part = whole[at : at + _CHUNK_BYTES]
            known = self._known[begin + at : begin + at + part.size]
            if np.array_equal(known, part):
                continue
            self._link.write(self._soc.memory_base + begin + at, part.view("<u4").tolist())
            known[:] = part
            # An answer says that all before it has arrived: a line that is gone is noticed here, and no answer that
            # comes later has long to wait.
            self.core.get("MAGIC")
            if self._progress is not None:
                self._progress(f"sending {begin + at + part.size} of {end} bytes")

    def _whole_words(self, begin: int, end: int, offset: int, data: Bytes) -> Bytes:
        """`data` with the bytes of its first and last word that are not its own, read from the board."""
        if (begin, end) == (offset, offset + data.size):
            return np.ascontiguousarray(data)
        whole = self._receive(begin, end)
        whole[offset - begin : offset - begin + data.size] = data
        return whole

    def _receive(self, begin: int, end: int) -> Bytes:
        """Bytes `begin` to `end` of the board's memory, whole words."""
        words = self._link.read(self._soc.memory_base + begin, (end - begin) // 4)
        return np.array(words, "<u4").view(np.uint8)

    def _write_register(self, offset: int, value: int) -> None:
        self._link.write(self._soc.registers_base + offset, [value])

    def _read_register(self, offset: int) -> int:
        return self._link.read(self._soc.registers_base + offset, 1)[0]


def _word_bounds(offset: int, size: int) -> tuple[int, int]:
    """The words around `size` bytes at `offset`, as bytes: first and one past the last."""
    return offset // 4 * 4, -(-(offset + size) // 4) * 4


def _stores(config: AccelConfig, code: bytes) -> Iterator[tuple[int, int]]:
    """First and one past the last byte of the window that each STORE may write."""
    for at in range(0, len(code), INSTRUCTION_BYTES):
        try:
            row, values = decode(int.from_bytes(code[at : at + INSTRUCTION_BYTES], "little"))
        except EncodeError:
            # The hardware stops here, too.
            return
        if row.op is Op.STORE:
            last = (values["y"] - 1) * values["y_stride"] + (values["x"] - 1) * values["x_stride"]
            yield values["dram"], values["dram"] + last + values["z"] * config.granule_bytes
