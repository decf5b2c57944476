"""The interface between the compiler or runtime and a target, as protocols.

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

# Operators that the strategy quantizes, and what each needs for that; None if nothing is quantized.
QuantizerRules = Mapping[str, str] | None
NO_RULES: Final[Mapping[str, str]] = MappingProxyType({})


class PartitionRules(Protocol):
    """The rules by which a network is partitioned for a target."""

    @property
    def name(self) -> str:
        """The target's name: attribute `Compiler` of functions that run there, and prefix of their names."""
        ...

    @property
    def anchors(self) -> frozenset[str]:
        """Operators that do the main work of a composite; a layer takes its name from them."""
        ...

    def composites(self) -> Pass:
        """The pass that groups operators that run as one layer into functions with the attribute `Composite`."""
        ...

    def why_not(self, composite: Function) -> str | None:
        """Why the target cannot run a composite; None if it can."""
        ...

    def why_on_host(self, call: Call, rules: QuantizerRules) -> str:
        """Why an operator outside of all composites stays on the host, and what would change that, in one sentence."""
        ...

    def takes_in(self, call: Call, composite: str) -> bool:
        """Whether a composite of this name may include `call` in front of its first operator."""
        ...


class Port(Protocol):
    """A tensor at the border of a region."""

    @property
    def name(self) -> str:
        """Its name in the program."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape in Relay."""
        ...


@dataclass(frozen=True, slots=True)
class TensorPort:
    """A plain `Port` with name and shape only."""

    name: str
    shape: tuple[int, ...]


class Region(Protocol):
    """A compiled function. Ports are in the order of the function's parameters and results."""

    @property
    def inputs(self) -> Sequence[Port]:
        """Tensors that it reads."""
        ...

    @property
    def outputs(self) -> Sequence[Port]:
        """Tensors that it writes."""
        ...

    def to_bytes(self) -> bytes:
        """The program as a build stores it."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """Options for compiling regions. `calls`: regions in the order in which one inference launches them.

    `resident`: constants may stay on the device between launches; `tune`: seconds to search for faster schedules, whose
    results are kept in the folder `cache`; `validate`: prove what programs compute; `progress` receives long steps. A
    target may have no use for these.
    """

    calls: tuple[str, ...]
    progress: Progress = SILENT
    resident: bool = True
    tune: float = 0
    cache: Path | None = None
    validate: bool = True


class Stats(Protocol):
    """Measurements of a launch."""

    @property
    def cycles(self) -> int | None:
        """Cycles from start to end; None if the device counts none."""
        ...

    @property
    def seconds(self) -> float:
        """Wall-clock time of the launch on this machine."""
        ...

    @property
    def begin(self) -> float | None:
        """When it began, by `time.perf_counter`; None if it ended just before its result was given."""
        ...

    @property
    def counters(self) -> Mapping[str, int]:
        """Other counters by name."""
        ...


@dataclass(frozen=True, slots=True)
class Measured:
    """Plain `Stats`."""

    cycles: int | None = None
    seconds: float = 0.0
    counters: Mapping[str, int] = field(default_factory=dict[str, int])
    begin: float | None = None


# A region's result for one sample, a tuple where it has several outputs, and its launch.
Answer = tuple[Any, Stats | None]


@runtime_checkable
class Session(Protocol):
    """The regions of one build on an open device."""

    def settle(self, region: str) -> Stats | None:
        """Make the region ready to run; returns the launch that loaded its weights, if one was needed."""
        ...

    def run(self, region: str, samples: Iterable[Sequence[Any]]) -> Generator[Answer, None, None]:
        """Run a settled region on samples: arrays in the order of its inputs."""
        ...

    def repeats(self, calls: Sequence[str], loads: Mapping[int, str]) -> frozenset[int]:
        """Which launches of `settle` repeat in every inference that makes these calls.

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
        """Bits of its requantization multipliers, a limit for the strategy's."""
        ...

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices that run its programs, the default one first."""
        ...

    def compile(self, functions: Mapping[str, Function], request: Request) -> Mapping[str, Region]:
        """Compile each function of a partitioned module to a program. Raises RelayHwError with one sentence."""
        ...

    def layers(self, records: Sequence[PartitionRecord], regions: Mapping[str, Region]) -> tuple[LayerInfo, ...]:
        """A layer row for each record, in their order."""
        ...

    def facts(self, regions: Mapping[str, Region], calls: Sequence[str]) -> Facts:
        """Facts about all regions, and what is needed to recreate this target."""
        ...

    def check(self, row: RegionInfo, program: bytes) -> None:
        """Raise ArtifactError if a build's program is invalid or has other ports than its row."""
        ...

    def open(self, device: str, regions: Sequence[RegionInfo], programs: Mapping[str, bytes]) -> Session:
        """Open a device with these programs. Raises InputError for an unknown device, UnsupportedError."""
        ...
