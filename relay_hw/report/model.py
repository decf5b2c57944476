"""The data of a report: one row for each layer, totals, facts of a run.

In: numbers from compiling and profiling. Out: frozen records with the derived numbers (utilisation), and their JSON
forms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from relay_hw.accel.sim.causes import Cause
from relay_hw.accel.sim.cycle.traffic import NO_TRAFFIC, Traffic, total_traffic
from relay_hw.report.network import Network
from relay_hw.report.picture import Picture
from relay_hw.report.speed import Speed, speed_json

FORMAT = 3


@dataclass(frozen=True, slots=True)
class LayerRow:
    """One operator of the partitioned model, or the loads that reload a region's resident constants.

    Numbers are those of one inference, whose layers run as often as control flow says. `cycles` is None if nothing
    was measured, 0 on the host.

    `traffic`: bytes that its instructions move. `roofline_cycles`: the least that the array needs for the
    MACs; no layer takes fewer. `output_slots`, `row_slots`: cycles of the output stage and of the row
    unit, which work while other layers compute, so they bound the network only. `other_products`: multiplications
    outside the array. `stalls`: by cause, the cycles in which no product of the model was made.
    """

    name: str
    operator: str
    where: str
    reason: str = ""
    function: str = ""
    shape: str = ""
    macs: int = 0
    traffic: Traffic = NO_TRAFFIC
    output_slots: int = 0
    row_slots: int = 0
    roofline_cycles: int | None = None
    cycles: int | None = None
    stalls: Mapping[Cause, int] = field(default_factory=dict)
    other_products: int = 0

    @property
    def on_accelerator(self) -> bool:
        return self.where != "host"

    @property
    def is_layer(self) -> bool:
        """Whether it is an operator of the model."""
        return self.operator != Cause.RELOAD

    def times(self, count: int) -> LayerRow:
        """The row for that many launches."""
        return replace(
            self,
            macs=self.macs * count,
            traffic=self.traffic * count,
            output_slots=self.output_slots * count,
            row_slots=self.row_slots * count,
            roofline_cycles=None if self.roofline_cycles is None else self.roofline_cycles * count,
            cycles=None if self.cycles is None else self.cycles * count,
            stalls={cause: cycles * count for cause, cycles in self.stalls.items()},
            other_products=self.other_products * count,
        )


@dataclass(frozen=True, slots=True)
class Bounds:
    """Cycles that each part of the machine needs at least for a region in one inference: the array for the products of
    the model, the output stage for its vectors, the row unit for its rows, the bus for the bytes of each direction."""

    function: str
    array: int
    output: int
    rows: int
    reads: int
    writes: int

    @property
    def cycles(self) -> int:
        """The largest bound: a lower bound on the cycles of all launches."""
        return max(self.array, self.output, self.rows, self.reads, self.writes)


def bounds_of(function: str, units: tuple[int, int, int], traffic: Traffic, bus_bytes: int) -> Bounds:
    """Bounds of launches that move `traffic`; `units`: cycles of array, output stage, row unit. Instructions and loads
    share the read direction of the bus."""
    reads = -(-(traffic.read + traffic.instructions) // bus_bytes)
    return Bounds(function, *units, reads, -(-traffic.written // bus_bytes))


# What runs segments on the host; `machine`: the code between them.
HOST_PARTS: Final = ("tvm", "numpy", "machine")


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """The cost of one function over a run of some samples. `where`: the name of a target, or one of HOST_PARTS.

    `seconds`: wall-clock time, which for a simulated accelerator is that of the simulator; `cycles`: of its launches.
    """

    name: str
    where: str
    calls: int
    seconds: float
    cycles: int | None = None

    @property
    def on_host(self) -> bool:
        """Whether it ran outside of the target."""
        return self.where in HOST_PARTS


@dataclass(frozen=True, slots=True)
class HostTime:
    """Wall-clock seconds of one sample outside the accelerator, measured on `machine` with `data`."""

    seconds: float
    machine: str
    data: str

    def __str__(self) -> str:
        return f"{1000 * self.seconds:,.3f} ms on the host ({self.machine}, {self.data})"


@dataclass(frozen=True, slots=True)
class Report:
    """A compiled model, and one measured inference in steady state where `device` is not None.

    `cycles`: of all its `launches`, those that load resident constants again included. `multipliers` are those of every
    unit together; `resident_cycles` come once, before the first inference. `facts` are further lines for people, such
    as accuracy: name to text. `segments`: a run of samples, where there was one. `speed`: that of a board.
    `pictures`: a launch of each region; `network`: the operators with their operands. `macs_per_cycle` and
    `bus_bytes` are 0 of a machine whose sizes are not known.
    """

    model: str
    config: str
    strategy: str
    macs_per_cycle: int
    bus_bytes: int
    layers: tuple[LayerRow, ...]
    device: str | None = None
    cycles: int | None = None
    simulated_cycles_per_second: float | None = None
    memory_model: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    multipliers: int | None = None
    resident_cycles: int | None = None
    pictures: tuple[Picture, ...] = ()
    segments: tuple[SegmentRow, ...] = ()
    host: HostTime | None = None
    launches: int | None = None
    speed: Speed | None = None
    network: Network | None = None

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the layers on the accelerator, unpadded."""
        return sum(row.macs for row in self.layers if row.on_accelerator)

    @property
    def all_macs(self) -> int:
        """Multiply-accumulates of all layers, on the host too."""
        return sum(row.macs for row in self.layers)

    @property
    def accel_share(self) -> float | None:
        """Share of the multiply-accumulates that run on the accelerator, or None if there are none."""
        return self.macs / self.all_macs if self.all_macs else None

    @property
    def utilisation(self) -> float | None:
        """MACs over what the array could have done in the cycles of the run."""
        return utilisation(self.macs, self.cycles, self.macs_per_cycle)

    @property
    def utilisation_all(self) -> float | None:
        """Multiplications of all units over what their multipliers could have done."""
        products = self.macs + sum(row.other_products for row in self.layers)
        return utilisation(products, self.cycles, self.multipliers) if self.multipliers else None

    @property
    def traffic(self) -> Traffic:
        """Bytes that an inference transfers."""
        return total_traffic(row.traffic for row in self.layers)

    @property
    def bounds(self) -> tuple[Bounds, ...]:
        """Bounds of each region, which run one after another. None for another target, whose sizes are unknown."""
        if not self.bus_bytes:
            return ()
        functions = dict.fromkeys(row.function for row in self.layers if row.on_accelerator)
        return tuple(self._bounds(name) for name in functions)

    def _bounds(self, function: str) -> Bounds:
        rows = [row for row in self.layers if row.function == function]
        units = (
            sum(row.roofline_cycles or 0 for row in rows),
            sum(row.output_slots for row in rows),
            sum(row.row_slots for row in rows),
        )
        return bounds_of(function, units, total_traffic(row.traffic for row in rows), self.bus_bytes)

    @property
    def roofline_cycles(self) -> int:
        """A lower bound on the cycles of an inference with any memory."""
        return sum(bounds.cycles for bounds in self.bounds)

    @property
    def stalls(self) -> dict[Cause, int]:
        """Cycles without products by cause, of all layers."""
        total: dict[Cause, int] = {}
        for row in self.layers:
            for cause, cycles in row.stalls.items():
                total[cause] = total.get(cause, 0) + cycles
        return total


def utilisation(macs: int, cycles: int | None, macs_per_cycle: int) -> float | None:
    """Share of the array's multiply-accumulates that were useful, or None without cycles or a known array."""
    return macs / (cycles * macs_per_cycle) if cycles and macs_per_cycle else None


def layer_utilisation_all(report: Report, row: LayerRow) -> float | None:
    """Share of the multiplications of every unit's multipliers that a layer used, or None without cycles."""
    if not report.multipliers:
        return None
    return utilisation(row.macs + row.other_products, row.cycles, report.multipliers)


def profile_json(report: Report) -> dict[str, Any]:
    """The object that `relay-hw profile --json` prints."""
    return {
        "cycles": report.cycles,
        "launches": report.launches,
        "utilisation": report.utilisation,
        "utilisation_all": report.utilisation_all,
        "macs": report.macs,
        "all_macs": report.all_macs,
        "accel_mac_share": report.accel_share,
        "bytes": traffic_json(report.traffic),
        "roofline_cycles": report.roofline_cycles,
        "bounds": [asdict(bounds) | {"cycles": bounds.cycles} for bounds in report.bounds],
        "resident_cycles": report.resident_cycles,
        "simulated_cycles_per_second": report.simulated_cycles_per_second,
        "stalls": dict(sorted(report.stalls.items())),
        "layers": [layer_json(report, row) for row in report.layers],
        "segments": [asdict(row) for row in report.segments],
        "host": asdict(report.host) if report.host is not None else None,
        "speed": speed_json(report.speed),
    }


def traffic_json(traffic: Traffic) -> dict[str, int]:
    """Bytes by kind, and the sums: `read` by loads, `written` by stores, `total` with instructions."""
    return asdict(traffic) | {"read": traffic.read, "written": traffic.written, "total": traffic.total}


def layer_json(report: Report, row: LayerRow) -> dict[str, Any]:
    """One layer, with its utilisation."""
    fields = asdict(row) | {"stalls": dict(sorted(row.stalls.items()))}
    fields["bytes"] = traffic_json(row.traffic)
    del fields["traffic"]
    fields["utilisation"] = utilisation(row.macs, row.cycles, report.macs_per_cycle)
    return fields | {"utilisation_all": layer_utilisation_all(report, row)}


def report_json(report: Report) -> dict[str, Any]:
    """Everything except the timelines, for `report.json`."""
    return {
        "format": FORMAT,
        "model": report.model,
        "config": report.config,
        "strategy": report.strategy,
        "device": report.device,
        "memory_model": report.memory_model,
        "macs_per_cycle": report.macs_per_cycle,
        "multipliers": report.multipliers,
        "facts": dict(report.facts),
    } | profile_json(report)
