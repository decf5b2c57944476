"""What a report says: one row for each layer, totals, and the facts of a run.

In: numbers from compiling and profiling. Out: frozen records with the derived numbers (utilisation), and their JSON
forms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

FORMAT = 1


@dataclass(frozen=True, slots=True)
class LayerRow:
    """One operator of the partitioned model. `cycles` is None where nothing was measured, 0 on the host.

    `bytes_read` and `bytes_written` count each needed byte once, unpadded; `stalls` are cycles by counter name.
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
    stalls: Mapping[str, int] = field(default_factory=dict)

    @property
    def on_accelerator(self) -> bool:
        return self.where == "accel"


@dataclass(frozen=True, slots=True)
class Report:
    """A compiled model, and one measured launch of it where `device` is not None.

    `bytes_read` and `bytes_written` are those that the bus moved (measured), or the layers' sums before any launch.
    `facts` are further lines for people, such as accuracy: name to text.
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

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the layers on the accelerator, unpadded."""
        return sum(row.macs for row in self.layers if row.on_accelerator)

    @property
    def utilisation(self) -> float | None:
        """MACs over what the array could have done in the cycles of the run."""
        return utilisation(self.macs, self.cycles, self.macs_per_cycle)

    @property
    def roofline_cycles(self) -> int:
        """Least cycles of all layers together."""
        return sum(row.roofline_cycles or 0 for row in self.layers)


def utilisation(macs: int, cycles: int | None, macs_per_cycle: int) -> float | None:
    """Share of the array's multiply-accumulates that were useful, or None without cycles."""
    return macs / (cycles * macs_per_cycle) if cycles else None


def profile_json(report: Report) -> dict[str, Any]:
    """The object that `relay-hw profile --json` prints."""
    return {
        "cycles": report.cycles,
        "utilisation": report.utilisation,
        "macs": report.macs,
        "bytes_read": report.bytes_read,
        "bytes_written": report.bytes_written,
        "simulated_cycles_per_second": report.simulated_cycles_per_second,
        "layers": [layer_json(report, row) for row in report.layers],
    }


def layer_json(report: Report, row: LayerRow) -> dict[str, Any]:
    """One layer, with its utilisation."""
    fields = asdict(row) | {"stalls": dict(sorted(row.stalls.items()))}
    return fields | {"utilisation": utilisation(row.macs, row.cycles, report.macs_per_cycle)}


def report_json(report: Report) -> dict[str, Any]:
    """Everything, for `report.json`."""
    return {
        "format": FORMAT,
        "model": report.model,
        "config": report.config,
        "strategy": report.strategy,
        "device": report.device,
        "memory_model": report.memory_model,
        "macs_per_cycle": report.macs_per_cycle,
        "roofline_cycles": report.roofline_cycles,
        "facts": dict(report.facts),
    } | profile_json(report)
