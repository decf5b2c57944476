"""Rows of a comparison: one per strategy, and one for the float network.

In: measurements. Out: frozen records, their JSON, and back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from relay_hw.compare.energy import Energy
from relay_hw.compare.hardware_cost import Cost
from relay_hw.compare.histogram import Histogram
from relay_hw.compare.measures import Quality
from relay_hw.compare.probes import LayerRow
from relay_hw.compare.targets import Elsewhere

FORMAT: Final = 1
# Names of a strategy and of a configuration.
Key = tuple[str, str]
WORST: Final = 3


@dataclass(frozen=True, slots=True)
class Row:
    """One strategy, on all configurations or (of `points`) on one. `test` and `held_out`: measured on those data,
    `held_out` None if there is none.

    `costs`: on every configuration that suits it, fastest first; empty with the `reason`. `unplaced_bytes`: of weights
    where there are none. `engine` evaluated it, `note` says why no other. `seconds`: by step. `elsewhere`: on other
    targets.
    """

    name: str
    summary: str
    test: Quality
    held_out: Quality | None
    costs: tuple[Cost, ...]
    reason: str
    unplaced_bytes: int
    layers: tuple[LayerRow, ...]
    engine: str
    note: str
    seconds: Mapping[str, float]
    elsewhere: tuple[Elsewhere, ...] = ()

    @property
    def cost(self) -> Cost | None:
        """The cost on the fastest configuration."""
        return self.costs[0] if self.costs else None

    @property
    def points(self) -> tuple[Row, ...]:
        """A row for each configuration, fastest first; this one if there are none."""
        return tuple(replace(self, costs=(cost,)) for cost in self.costs) or (self,)

    @property
    def key(self) -> Key:
        """Names of the strategy and of its fastest configuration, empty without one: what points differ in."""
        return self.name, self.cost.config if self.cost is not None else ""

    @property
    def gains(self) -> bool:
        """Whether the fastest configuration stores no width in wider numbers."""
        return self.cost is None or not self.cost.no_gain

    @property
    def weight_bytes(self) -> int:
        """Bytes of weights as the fastest configuration stores them."""
        return self.cost.weight_bytes if self.cost is not None else self.unplaced_bytes

    @property
    def area(self) -> Mapping[str, int]:
        """Synthesis results of the fastest configuration; empty if unknown."""
        return self.cost.area if self.cost is not None else {}

    @property
    def host_share(self) -> float:
        """Share of the multiply-accumulates that the host computes, outside of the cycles; 0 without hardware."""
        return 1 - self.cost.accel_share if self.cost is not None else 0.0

    @property
    def worst_layers(self) -> tuple[LayerRow, ...]:
        """The layers with the most noise, worst first."""
        noisy = [layer for layer in self.layers if layer.sqnr_db is not None]
        return tuple(sorted(noisy, key=lambda layer: layer.sqnr_db or 0.0)[:WORST])


@dataclass(frozen=True, slots=True)
class FloatRow:
    """The network before quantization."""

    test: Quality
    macs: int
    weight_bytes: int


def row_content(row: Row) -> dict[str, Any]:
    """The whole row, in the form that the store keeps."""
    return asdict(row)


def read_row(content: Mapping[str, Any]) -> Row:
    """The row of `row_content`. Raises KeyError, TypeError for other content."""
    values = dict(content)
    values["test"] = _quality(values["test"])
    values["held_out"] = _quality(values["held_out"]) if values["held_out"] else None
    values["costs"] = tuple(Cost(**{**cost, "energy": Energy(**cost["energy"])}) for cost in values["costs"])
    values["elsewhere"] = tuple(Elsewhere(**one) for one in values["elsewhere"])
    values["layers"] = tuple(_layer(layer) for layer in values["layers"])
    return Row(**values)


def _quality(values: Mapping[str, Any]) -> Quality:
    plain: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
    return Quality(**plain)


def _layer(values: Mapping[str, Any]) -> LayerRow:
    counts = values["histogram"]
    histogram = Histogram(counts["low"], counts["high"], tuple(counts["counts"]))
    clip = values["clip"]
    return LayerRow(**{**values, "histogram": histogram, "clip": tuple(clip) if clip else None})


def quality_json(quality: Quality | None) -> dict[str, Any]:
    """Measures under their names in `report.json`."""
    if quality is None:
        return {}
    return {
        "images": quality.samples,
        "top1": quality.top1,
        "top1_interval": quality.top1_interval,
        "top5": quality.top5,
        "mse": quality.mse,
        "agreement": quality.agreement,
        "agreement_interval": quality.agreement_interval,
        "logit_sqnr_db": quality.sqnr_db,
        "gained": quality.gained,
        "lost": quality.lost,
        "top1_change": quality.change,
        "top1_change_interval": quality.change_interval,
        "p_value": quality.p_value,
    }


def cost_json(cost: Cost | None) -> dict[str, Any]:
    """Hardware cost of one row; all values are null if there is none."""
    if cost is None:
        places = ("config", "memory", "board", "clock_hz", "samples_per_second")
        names = (
            "cycles",
            "instructions",
            "launches",
            "dram_bytes",
            "resident_bytes",
            "energy_uj",
            "energy_parts_uj",
            "macs",
        )
        others = ("accel_mac_share", "accel_layers", "host_layers", "compile_seconds", "host_seconds", "machine")
        return dict.fromkeys((*places, *names, *others, "lut", "multipliers", "block_rams"))
    return {
        "config": cost.config,
        "memory": cost.memory,
        "board": cost.board or None,
        "clock_hz": cost.clock_hz,
        "samples_per_second": cost.samples_per_second,
        "cycles": cost.cycles,
        "instructions": cost.instructions,
        "launches": cost.launches,
        "dram_bytes": cost.dram_bytes,
        "resident_bytes": cost.resident_bytes,
        "energy_uj": round(cost.energy.total, 4),
        "energy_parts_uj": {key: round(value, 4) for key, value in asdict(cost.energy).items()},
        "macs": cost.macs,
        "accel_mac_share": cost.accel_share,
        "accel_layers": cost.accel_layers,
        "host_layers": cost.host_layers,
        "compile_seconds": round(cost.compile_seconds, 3),
        "host_seconds": cost.host_seconds,
        "machine": cost.machine,
        "lut": cost.area.get("luts"),
        "multipliers": cost.area.get("multipliers"),
        "block_rams": cost.area.get("block_rams"),
    }


def point_json(point: Row, is_on_front: bool) -> dict[str, Any]:
    """One strategy on one configuration, without what is the same on all of them."""
    return {
        **cost_json(point.cost),
        "weight_bytes": point.weight_bytes,
        "gains": point.gains,
        "hardware_note": "; ".join(hardware_notes(point)),
        "front": is_on_front,
    }


def hardware_notes(row: Row) -> list[str]:
    """What the fastest configuration stores in wider numbers, and what no configuration runs."""
    return [text for text in (row.cost.no_gain if row.cost is not None else "", row.reason) if text]


def row_json(row: Row, front: Collection[tuple[str, str]]) -> dict[str, Any]:
    """One strategy of `report.json`, with the keys of the points on the front: its fastest point, and all of them."""
    points = [point_json(point, point.key in front) for point in row.points]
    return {
        "name": row.name,
        "summary": row.summary,
        **quality_json(row.test),
        **points[0],
        "held_out": quality_json(row.held_out) or None,
        "engine": row.engine,
        "engine_note": row.note,
        "seconds": {key: round(value, 3) for key, value in row.seconds.items()},
        "costs": points if row.costs else [],
        "targets": [asdict(one) for one in row.elsewhere],
        "worst_layers": [layer.name for layer in row.worst_layers],
        "layers": [layer_json(layer) for layer in row.layers],
    }


def layer_json(layer: LayerRow) -> dict[str, Any]:
    """One layer with its histogram, for `report.json`."""
    return {
        "name": layer.name,
        "operator": layer.operator,
        "sqnr_db": layer.sqnr_db,
        "clip": layer.clip,
        "histogram": asdict(layer.histogram),
    }
