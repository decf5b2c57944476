"""A device that works on one launch while it takes the bytes of the next, as boards do, and sleeps for its cycles.

What it computes was recorded from another device, so that a launch takes none of this machine's processor.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.program import Program, SectionKind
from relay_hw.accel.sim.device import Bytes, Done, Job, LaunchStats
from relay_hw.accel.sim.functional import FunctionalDevice

# By the bytes written: those that are read.
Known = dict[bytes, tuple[Bytes, ...]]


@dataclass(frozen=True, slots=True)
class _Running:
    found: tuple[Bytes, ...]
    begin: float


class TwoBuffers:
    """`seconds`: how long a launch sleeps. `known` grows with what is computed here."""

    def __init__(self, config: AccelConfig, seconds: float, known: Known | None = None) -> None:
        self.known: Known = {} if known is None else known
        self._seconds = seconds
        self._data = FunctionalDevice(config)

    @property
    def config(self) -> AccelConfig:
        return self._data.config

    def load(self, program: Program) -> None:
        self._data.load(program)

    def write(self, offset: int, data: Bytes) -> None:
        self._data.write(offset, data)

    def read(self, offset: int, size: int) -> Bytes:
        return self._data.read(offset, size)

    def launch(self, stream: SectionKind = SectionKind.PROGRAM) -> LaunchStats:
        return self._data.launch(stream)

    def launches(self, jobs: Iterable[Job]) -> Iterator[Done]:
        running: _Running | None = None
        for job in jobs:
            ended = None if running is None else self._end(running)
            running = _Running(self._compute(job), time.perf_counter())
            if ended is not None:
                yield ended
        if running is not None:
            yield self._end(running)

    def _compute(self, job: Job) -> tuple[Bytes, ...]:
        key = b"".join(data.tobytes() for _, data in job.writes)
        if key not in self.known:
            for offset, data in job.writes:
                self._data.write(offset, data)
            self._data.launch()
            self.known[key] = tuple(self._data.read(offset, size) for offset, size in job.reads)
        return self.known[key]

    def _end(self, running: _Running) -> Done:
        time.sleep(max(0.0, running.begin + self._seconds - time.perf_counter()))
        return Done(running.found, LaunchStats(None, {}, time.perf_counter() - running.begin, running.begin))
