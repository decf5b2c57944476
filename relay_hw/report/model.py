"""What a report says: one row for each layer, totals, and the facts of a run.

In: numbers from compiling and profiling. Out: frozen records with the derived numbers (utilisation), and their JSON
forms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from accel.sim.causes import Cause

FORMAT = 2


@dataclass(frozen=True, slots=True)
class Band:
    """Cycles [begin, end) in which the array worked for a layer, or waited for it."""

    layer: str
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """One launch in equal parts of its cycles: share of each part in which a unit was busy, by unit; share that went to
    each cause."""

    function: str
    cycles: int
    bands: tuple[Band, ...]
    units: Mapping[str, tuple[float, ...]]
    causes: Mapping[Cause, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class LayerRow:
    """One operator of the partitioned model. `cycles` is None where nothing was measured, 0 on the host.

    `bytes_read` and `bytes_written` are those that the bus moved (measured), else each needed byte once, unpadded.
    `other_products`: multiplications outside the array. `stalls`: by cause, the cycles in which no product of the model
    was made.
    """

    name: str
    operator: str
    where: str
    reason: str = ""
    function: str = ""
    shape: str = ""
    macs: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    roofline_cycles: int | None = None
    cycles: int | None = None
    stalls: Mapping[Cause, int] = field(default_factory=dict)
    other_products: int = 0

    @property
    def on_accelerator(self) -> bool:
        return self.where == "accel"


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """What one function cost over a run of some samples. `where`: accel, tvm, numpy, or machine for what lies between.

    `seconds`: wall-clock time, which for a simulated accelerator is that of the simulator; `cycles`: of its launches.
    """

    name: str
    where: str
    calls: int
    seconds: float
    cycles: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """A compiled model, and one measured launch of it where `device` is not None.

    `bytes_read` and `bytes_written` are those that the bus moved (measured), or the layers' sums before any launch.
    `multipliers` are those of every unit together; `resident_cycles` come once, before the first launch. `facts` are
    further lines for people, such as accuracy: name to text. `segments`: a run of samples, where there was one.
    """

    model: str
    config: str
    strategy: str
    macs_per_cycle: int
    layers: tuple[LayerRow, ...]
    device: str | None = None
    cycles: int | None = None
    bytes_read: int | None = None
    bytes_written: int | None = None
    simulated_cycles_per_second: float | None = None
    memory_model: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    bytes_fetched: int | None = None
    multipliers: int | None = None
    resident_cycles: int | None = None
    timelines: tuple[Timeline, ...] = ()
    segments: tuple[SegmentRow, ...] = ()

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the layers on the accelerator, unpadded."""
        return sum(row.macs for row in self.layers if row.on_accelerator)

    @property
    def utilisation(self) -> float | None:
        """MACs over what the array could have done in the cycles of the run."""
        return utilisation(self.macs, self.cycles, self.macs_per_cycle)

    @property
    def utilisation_all(self) -> float | None:
        """Multiplications of every unit over what all multipliers could have done."""
        products = self.macs + sum(row.other_products for row in self.layers)
        return utilisation(products, self.cycles, self.multipliers) if self.multipliers else None

    @property
    def roofline_cycles(self) -> int:
        """Least cycles of all layers together."""
        return sum(row.roofline_cycles or 0 for row in self.layers)

    @property
    def stalls(self) -> dict[Cause, int]:
        """Cycles without products by cause, of all layers."""
        total: dict[Cause, int] = {}
        for row in self.layers:
            for cause, cycles in row.stalls.items():
                total[cause] = total.get(cause, 0) + cycles
        return total


def utilisation(macs: int, cycles: int | None, macs_per_cycle: int) -> float | None:
    """Share of the array's multiply-accumulates that were useful, or None without cycles."""
    return macs / (cycles * macs_per_cycle) if cycles else None


def layer_utilisation_all(report: Report, row: LayerRow) -> float | None:
    """Share of the multiplications of every unit's multipliers that a layer used, or None without cycles."""
    if not report.multipliers:
        return None
    return utilisation(row.macs + row.other_products, row.cycles, report.multipliers)


def profile_json(report: Report) -> dict[str, Any]:
    """The object that `relay-hw profile --json` prints."""
    return {
        "cycles": report.cycles,
        "utilisation": report.utilisation,
        "utilisation_all": report.utilisation_all,
        "macs": report.macs,
        "bytes_read": report.bytes_read,
        "bytes_written": report.bytes_written,
        "bytes_fetched": report.bytes_fetched,
        "resident_cycles": report.resident_cycles,
        "simulated_cycles_per_second": report.simulated_cycles_per_second,
        "stalls": dict(sorted(report.stalls.items())),
        "layers": [layer_json(report, row) for row in report.layers],
        "segments": [asdict(row) for row in report.segments],
    }


def layer_json(report: Report, row: LayerRow) -> dict[str, Any]:
    """One layer, with its utilisation."""
    fields = asdict(row) | {"stalls": dict(sorted(row.stalls.items()))}
    fields["utilisation"] = utilisation(row.macs, row.cycles, report.macs_per_cycle)
    return fields | {"utilisation_all": layer_utilisation_all(report, row)}


def report_json(report: Report) -> dict[str, Any]:
    """Everything but the pictures, for `report.json`."""
    return {
        "format": FORMAT,
        "model": report.model,
        "config": report.config,
        "strategy": report.strategy,
        "device": report.device,
        "memory_model": report.memory_model,
        "macs_per_cycle": report.macs_per_cycle,
        "multipliers": report.multipliers,
        "roofline_cycles": report.roofline_cycles,
        "facts": dict(report.facts),
    } | profile_json(report)
