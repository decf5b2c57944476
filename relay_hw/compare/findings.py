"""The findings of a comparison, as records, JSON and CSV: rows, the best strategy. In: rows. Out: `Findings`."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from relay_hw.compare.energy import table as energy_table
from relay_hw.compare.front import front, run_time
from relay_hw.compare.measures import Quality
from relay_hw.compare.rows import FORMAT, FloatRow, Key, LayerRow, Row, row_json
from relay_hw.errors import InputError
from relay_hw.support.names import one_of
from relay_hw.support.quote import csv_cell

CSV_COLUMNS: Final = (
    "name", "config", "top1", "top5", "mse", "agreement", "agreement_low", "agreement_high", "logit_sqnr_db", "gained",
    "lost", "top1_change", "top1_change_low", "top1_change_high", "p_value", "cycles", "board", "clock_hz",
    "samples_per_second", "dram_bytes", "weight_bytes", "energy_uj", "accel_mac_share", "lut", "multipliers",
    "front", "compile_seconds", "engine", "hardware_note", "summary",
)  # fmt: skip
BEST_BY: Final = (
    "least output noise (signal-to-noise ratio against float) on held-out calibration samples, among strategies whose "
    "widths the accelerator has and that are on the Pareto front of quality and time on the test data"
)
NO_BEST: Final = "too few calibration samples to hold any out, so none was chosen"
NO_GAIN: Final = "every strategy has widths that its accelerator stores in wider integers, so none was chosen"


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """Compared strategies of one network. `best`: name of the one with the least noise on held-out samples, None
    without any.

    `output` was compared on `images` samples of the test data; `is_logits`: before the softmax that follows it.
    `calibration_images` were seen by strategies, `held_out_images` were not. `notes` concern all strategies;
    `warnings`: what looks like a mistake in the data. `pages`: files with the report of a build, where it was kept.
    """

    model: str
    output: str
    is_logits: bool
    images: int
    calibration_images: int
    held_out_images: int
    float_row: FloatRow
    rows: tuple[Row, ...]
    best: str | None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    pages: Mapping[Key, Path] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Row:
        """The row of a strategy, on all configurations. Raises InputError for an unknown name."""
        for row in self.rows:
            if row.name == name:
                return row
        raise InputError(one_of("strategy", [row.name for row in self.rows], name))

    @property
    def points(self) -> tuple[Row, ...]:
        """A row for each strategy on each configuration."""
        return tuple(point for row in self.rows for point in row.points)

    def is_best(self, point: Row) -> bool:
        """Whether this is the best strategy, on its fastest configuration."""
        return point.name == self.best and point.key == self[point.name].key

    @property
    def layer_names(self) -> tuple[str, ...]:
        """Layers of all strategies, in order of evaluation."""
        return tuple(dict.fromkeys(layer.name for row in self.rows for layer in row.layers))

    def layer(self, name: str) -> dict[str, LayerRow]:
        """One layer under every strategy that has it. Raises InputError for an unknown name."""
        if name not in self.layer_names:
            raise InputError(one_of("layer", self.layer_names, name))
        return {row.name: layer for row in self.rows for layer in row.layers if layer.name == name}

    @property
    def best_by(self) -> str:
        """How the best strategy was chosen, or why none was."""
        if self.best is not None:
            return BEST_BY
        return NO_BEST if all(row.held_out is None for row in self.rows) else NO_GAIN

    def to_json(self) -> dict[str, Any]:
        """The object of `report.json`."""
        floats, unbeaten = self.float_row, front(self.rows)
        return {
            "format": FORMAT,
            "model": self.model,
            "output": self.output,
            "logits": self.is_logits,
            "images": self.images,
            "calibration_images": self.calibration_images,
            "held_out_images": self.held_out_images,
            "notes": list(self.notes),
            "warnings": list(self.warnings),
            "best": self.best,
            "best_by": self.best_by,
            "front": [row.name for row in self.rows if any(point.key in unbeaten for point in row.points)],
            "float": {
                "top1": floats.test.top1,
                "top1_interval": floats.test.top1_interval,
                "top5": floats.test.top5,
                "mse": floats.test.mse,
                "macs": floats.macs,
                "weight_bytes": floats.weight_bytes,
            },
            "strategies": [row_json(row, unbeaten) for row in self.rows],
            "energy": energy_table(),
        }

    def to_csv(self) -> str:
        """One line for each strategy on each configuration, under `CSV_COLUMNS`."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(CSV_COLUMNS)
        unbeaten = front(self.rows)
        for point in self.points:
            values = row_json(point, unbeaten)
            for key in ("agreement", "top1_change"):
                values[f"{key}_low"], values[f"{key}_high"] = values[f"{key}_interval"] or (None, None)
            writer.writerow([_cell(values[column]) for column in CSV_COLUMNS])
        return stream.getvalue()


def choose_best(rows: Sequence[Row]) -> str | None:
    """The strategy with the least noise on held-out data; ties go to the fastest, then to the first.

    Only those count whose widths the accelerator has, and that are on the front of quality and time; if all leave
    layers to the host, those of which the accelerator runs some, if there is one: float layers have no noise at all.
    """
    known = [(row, row.held_out) for row in rows if row.held_out is not None and row.gains]
    known = [(row, held) for row, held in known if row.cost is not None and row.host_share < 1] or known
    unbeaten = front(rows)
    known = [(row, held) for row, held in known if row.key in unbeaten] or known
    if not known:
        return None

    def rank(pair: tuple[Row, Quality]) -> tuple[float, float]:
        row, quality = pair
        noise = float("-inf") if quality.sqnr_db is None else -quality.sqnr_db
        time = run_time(row)
        return noise, float("inf") if time is None else time

    return min(known, key=rank)[0].name


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else csv_cell(value)
