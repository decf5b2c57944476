"""The result of a run: outputs, launches with their measurements, and the cost of each segment.

In: a run. Out: frozen records, and sums over them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from relay_hw.accel.isa.program import SectionKind
from relay_hw.report import SegmentRow
from relay_hw.target.base import Stats

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch: which sample, region and stream, and what the device measured."""

    sample: int
    function: str
    stats: Stats
    stream: SectionKind = SectionKind.PROGRAM


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of wall-clock time, in seconds: a host function or a launch for one sample, and where it ran."""

    function: str
    where: str
    sample: int
    begin: float
    end: float

    def since(self, start: float) -> Span:
        """The same, counted from another beginning."""
        return replace(self, begin=self.begin - start, end=self.end - start)


@dataclass(frozen=True, slots=True)
class Result:
    """Outputs by name, samples on a first axis; launches in the order in which they ran; wall-clock seconds.

    An output that is no tensor of known shape is a list of values. `residents`: launches that loaded weights which
    stay; they belong to no sample. Those that come again in each turn of `chunk` samples are among `launches`.
    `regions`: outputs of each accelerator function by name, where they were asked for. `segments`: what each function
    cost, in the order of first use, the machine last. `spans`: when what ran, from the start of the run.
    """

    outputs: Mapping[str, Any]
    launches: tuple[Launch, ...]
    samples: int
    seconds: float
    regions: Mapping[str, tuple[Array, ...]] = field(default_factory=dict)
    residents: tuple[Launch, ...] = ()
    segments: tuple[SegmentRow, ...] = ()
    chunk: int = 1
    spans: tuple[Span, ...] = ()

    @property
    def resident_cycles(self) -> int | None:
        """Cycles of the launches that loaded resident weights; None if the device counts no cycles."""
        counts = [launch.stats.cycles for launch in self.residents]
        known = [count for count in counts if count is not None]
        return sum(known) if self.chunk_cycles is not None and len(known) == len(counts) else None

    @property
    def cycles(self) -> list[int] | None:
        """Cycles of each sample, with repeated loads; None for chunks, or if the device counts no cycles."""
        return self.chunk_cycles if self.chunk == 1 else None

    @property
    def chunk_cycles(self) -> list[int] | None:
        """Cycles of each chunk of samples, with repeated loads; None if the device counts no cycles."""
        total = [0] * -(-self.samples // self.chunk)
        for launch in self.launches:
            if launch.stats.cycles is None:
                return None
            total[launch.sample // self.chunk] += launch.stats.cycles
        return total if self.launches else None

    @property
    def host_seconds(self) -> float:
        """Wall-clock seconds of a sample outside the accelerator: host functions and the code between segments."""
        return sum(row.seconds for row in self.segments if row.on_host) / max(self.samples, 1)

    @property
    def chunk_launches(self) -> list[int]:
        """Launches of each chunk of samples, with repeated loads."""
        counts = Counter(launch.sample // self.chunk for launch in self.launches)
        return [counts[number] for number in range(-(-self.samples // self.chunk))]

    @property
    def calls(self) -> list[str]:
        """Regions in the order in which their programs were launched."""
        return [launch.function for launch in self.launches if launch.stream is SectionKind.PROGRAM]

    @property
    def device_seconds(self) -> float:
        """Wall-clock seconds inside launches."""
        return sum(launch.stats.seconds for launch in (*self.launches, *self.residents))

    @property
    def simulated_cycles_per_second(self) -> float | None:
        """Cycles of all launches over the seconds that they took."""
        total = sum(self.chunk_cycles or ()) + (self.resident_cycles or 0)
        return total / self.device_seconds if total and self.device_seconds else None
