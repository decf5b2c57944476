"""The interface that every device implements: functional simulator, cycle simulator, Verilog under Verilator, FPGA.

In: a `Program` and bytes for its window. Out: bytes of the window and `LaunchStats`. Scratchpads keep their content
between launches and programs. Launches that do not wait for one another are given as `Job`s, one behind the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.errors import ProgramError
from relay_hw.accel.isa.program import Program, SectionKind
from relay_hw.accel.isa.tensors import pack_tensor, slot_bytes, unpack_tensor

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class LaunchStats:
    """One launch: cycles from the launch write to done (None where time has no meaning), counters by register name,
    wall-clock seconds, and when it began by `time.perf_counter` (None if it ended just before it was given)."""

    cycles: int | None
    counters: Mapping[str, int] = field(default_factory=dict[str, int])
    seconds: float = 0.0
    begin: float | None = None


class Device(Protocol):
    """One accelerator with its DRAM window."""

    @property
    def config(self) -> AccelConfig:
        """Sizes of the accelerator."""
        ...

    def load(self, program: Program) -> None:
        """Make a zeroed window of the program's size and write its data sections. Raises ProgramError."""
        ...

    def write(self, offset: int, data: Bytes) -> None:
        """Write uint8 `data` at byte `offset` of the window. Raises ProgramError outside it."""
        ...

    def read(self, offset: int, size: int) -> Bytes:
        """A copy of `size` bytes at byte `offset` of the window. Raises ProgramError outside it."""
        ...

    def launch(self, stream: SectionKind = SectionKind.PROGRAM) -> LaunchStats:
        """Run a stream of the loaded program to its end: its instructions, or those that make weights resident.

        Raises Fault, DeadlockError or another AccelError, such as ProgramError where the program has no such stream.
        """
        ...


@dataclass(frozen=True, slots=True)
class Job:
    """A launch of the loaded program: bytes to write before it, each from an offset of the window on, and places,
    offset and size, to read after it. Both lie in the program's inputs and outputs."""

    writes: tuple[tuple[int, Bytes], ...]
    reads: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Done:
    """A launch that has ended, and the bytes that were to be read, in order."""

    found: tuple[Bytes, ...]
    stats: LaunchStats


@runtime_checkable
class Overlapping(Protocol):
    """A device that takes and gives the bytes of one launch while it works on another."""

    def launches(self, jobs: Iterable[Job]) -> Iterator[Done]:
        """The jobs' launches, in order; each is asked for when there is room for its bytes. Raises as `launch`."""
        ...


def run_jobs(device: Device, jobs: Iterable[Job]) -> Iterator[Done]:
    """The launches of jobs, in order: overlapping where the device can, else one after the other."""
    if isinstance(device, Overlapping):
        yield from device.launches(jobs)
        return
    for job in jobs:
        for offset, data in job.writes:
            device.write(offset, data)
        stats = device.launch()
        yield Done(tuple(device.read(offset, size) for offset, size in job.reads), stats)


class Window:
    """The DRAM window of a device in host memory: uint8 bytes with checked reads and writes."""

    def __init__(self) -> None:
        self.bytes: Bytes = np.zeros(0, np.uint8)

    def load(self, config: AccelConfig, program: Program) -> None:
        """Zero the window and write the data sections. Raises ProgramError for another configuration."""
        program.check_config(config)
        self.bytes = np.zeros(program.window_bytes, np.uint8)
        for section in program.sections:
            if section.data is not None:
                self.bytes[section.offset : section.end] = np.frombuffer(section.data, np.uint8)

    def write(self, offset: int, data: Bytes) -> None:
        """Copy `data` in. Raises ProgramError."""
        if data.dtype != np.uint8 or data.ndim != 1:
            raise ProgramError(f"window data must be uint8 of one axis, not {data.dtype} of {data.ndim}")
        self._check(offset, data.size)
        self.bytes[offset : offset + data.size] = data

    def read(self, offset: int, size: int) -> Bytes:
        """Copy `size` bytes out. Raises ProgramError."""
        self._check(offset, size)
        return self.bytes[offset : offset + size].copy()

    def _check(self, offset: int, size: int) -> None:
        if offset < 0 or size < 0 or offset + size > self.bytes.size:
            raise ProgramError(f"window access must lie in [0, {self.bytes.size}), not [{offset}, {offset + size})")


def write_tensor(device: Device, program: Program, name: str, array: NDArray[Any]) -> None:
    """Write a named tensor of the loaded program. Raises ProgramError for another shape or dtype."""
    device.write(program.tensor_offset(name), pack_tensor(device.config, program.tensor(name), array))


def read_tensor(device: Device, program: Program, name: str) -> NDArray[Any]:
    """Read a named tensor of the loaded program. Raises ProgramError."""
    slot = program.tensor(name)
    data = device.read(program.tensor_offset(name), slot_bytes(device.config, slot))
    return unpack_tensor(device.config, slot, data)
