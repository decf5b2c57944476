"""What the compiler and the runtime ask of an accelerator. Whoever answers is a target.

In: composites, functions that were put together for it, samples. Out: reasons, programs, results with their cycles.
`relay_hw.target.registry` knows targets by name; `relay_hw.target.accel` is the one that comes with this package.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol, runtime_checkable

from relay_hw.ir.expr import Call, Function
from relay_hw.support.progress import SILENT, Progress
from relay_hw.target.records import Facts, LayerInfo, PartitionRecord, RegionInfo
from relay_hw.transform.base import Pass

# Operators that the strategy quantizes, and what each needs for that; None where nothing is quantized.
QuantizerRules = Mapping[str, str] | None
NO_RULES: Final[Mapping[str, str]] = MappingProxyType({})


class PartitionRules(Protocol):
    """What partitioning asks of a target."""

    @property
    def name(self) -> str:
        """Of the target: the attribute `Compiler` of functions that run there, and what their names begin with."""
        ...

    @property
    def anchors(self) -> frozenset[str]:
        """Operators that do the work of a composite: the layer has the name that the source gives them."""
        ...

    def composites(self) -> Pass:
        """The pass that turns what the target runs as one into calls of functions with the attribute `Composite`."""
        ...

    def why_not(self, composite: Function) -> str | None:
        """Why the target cannot run a composite; None where it can."""
        ...

    def why_on_host(self, call: Call, rules: QuantizerRules) -> str:
        """Why an operator outside of all composites stays on the host, and what would change that, in one sentence."""
        ...

    def takes_in(self, call: Call, composite: str) -> bool:
        """Whether a composite of this name could hold `call` in front of its first operator."""
        ...


class Port(Protocol):
    """A tensor at the border of a region."""

    @property
    def name(self) -> str:
        """In the program."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """In Relay."""
        ...


@dataclass(frozen=True, slots=True)
class TensorPort:
    """A `Port` of a program that knows no more of it."""

    name: str
    shape: tuple[int, ...]


class Region(Protocol):
    """What a target made of one function. Ports are in the order of the function's parameters and results."""

    @property
    def inputs(self) -> Sequence[Port]:
        """What it reads."""
        ...

    @property
    def outputs(self) -> Sequence[Port]:
        """What it writes."""
        ...

    def to_bytes(self) -> bytes:
        """The program, as a build keeps it."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """What a build wants of its regions. `calls`: regions in the order in which one inference launches them.

    `resident`: constants may stay on the device between launches; `tune`: seconds to search for faster schedules, whose
    results are kept in the folder `cache`; `progress` hears of long steps. A target may have no use for these.
    """

    calls: tuple[str, ...]
    progress: Progress = SILENT
    resident: bool = True
    tune: float = 0
    cache: Path | None = None


class Stats(Protocol):
    """What a device measured of a launch."""

    @property
    def cycles(self) -> int | None:
        """From start to end; None where the device has no time."""
        ...

    @property
    def seconds(self) -> float:
        """Wall-clock time that it took here."""
        ...

    @property
    def counters(self) -> Mapping[str, int]:
        """Whatever else was counted, by name."""
        ...


@dataclass(frozen=True, slots=True)
class Measured:
    """`Stats` of a device that counts cycles, or nothing."""

    cycles: int | None = None
    seconds: float = 0.0
    counters: Mapping[str, int] = field(default_factory=dict[str, int])


# A region's result for one sample, a tuple where it has several outputs, and its launch.
Answer = tuple[Any, Stats | None]


@runtime_checkable
class Session(Protocol):
    """The regions of one build on an open device."""

    def settle(self, region: str) -> Stats | None:
        """Make the region ready; the launch that this took, if it took one."""
        ...

    def run(self, region: str, samples: Iterable[Sequence[Any]]) -> Generator[Answer, None, None]:
        """A region that was made ready, on samples: arrays in the order of its inputs."""
        ...

    def repeats(self, calls: Sequence[str], loads: Mapping[int, str]) -> frozenset[int]:
        """Which launches of `settle` come again in every inference that makes these calls.

        `loads`: for each such launch the number of the call that it came before, and the region.
        """
        ...

    def close(self) -> None:
        """Free the device."""
        ...


class Target(PartitionRules, Protocol):
    """An accelerator, or another machine that runs parts of a network."""

    @property
    def multiplier_bits(self) -> int:
        """Bits of the multipliers that its requantization has: the strategy makes none that are longer."""
        ...

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of what runs its programs, the usual one first."""
        ...

    def compile(self, functions: Mapping[str, Function], request: Request) -> Mapping[str, Region]:
        """A program for each function of a partitioned module. Raises RelayHwError with one sentence."""
        ...

    def layers(self, records: Sequence[PartitionRecord], regions: Mapping[str, Region]) -> tuple[LayerInfo, ...]:
        """A row for each record, in their order."""
        ...

    def facts(self, regions: Mapping[str, Region], calls: Sequence[str]) -> Facts:
        """What a build has to say of them all, with what makes this target again."""
        ...

    def check(self, row: RegionInfo, program: bytes) -> None:
        """Raise ArtifactError where the program of a build is none, or has other ports than the row says."""
        ...

    def open(self, device: str, regions: Sequence[RegionInfo], programs: Mapping[str, bytes]) -> Session:
        """A device with these programs. Raises InputError for a device that there is not, UnsupportedError."""
        ...
