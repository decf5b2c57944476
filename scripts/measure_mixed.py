"""Mixed fronts against uniform strategies: no one width for all layers beats choices by noise and exact cycles.

In: networks of ../shared/models, three targets. Out: reports in build/mixed (a killed run goes on there), what the page
shows of them in docs/results/mixed.json, and the table in docs/quantization.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from relay_hw.compare.rows import Row
from scripts.figures import replaced
from scripts.quantization_tables import NETWORKS, PAGE, compared

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results" / "mixed.json"
FOLDER = ROOT / "build" / "mixed"
UNIFORM = ("int8", "int8-gptq", "int8-kl", "int8-twins", "w4a8", "w4a8-gptq", "w4a8-twins")
# Configurations among which the fastest counts, and the board that they run on.
TARGETS: dict[str, tuple[tuple[str, ...], str | None]] = {
    "default, w4": (("default", "w4"), None),
    "ecp5": (("ecp5",), "ulx3s-85f"),
    "ecp5w4": (("ecp5w4",), "ulx3s-85f"),
}
POINTS, IMAGES = 4, 200
COLUMNS = (
    "Network",
    "images",
    "on",
    "mixed: cycles, SQNR dB",
    "uniform: cycles, SQNR dB",
    "uniform ones that dominate",
)


@dataclass(frozen=True, slots=True)
class Point:
    """A strategy at a target."""

    name: str
    cycles: int
    sqnr_db: float

    def beats(self, other: Point) -> bool:
        """Whether this one is faster and has less noise."""
        return self.cycles < other.cycles and self.sqnr_db > other.sqnr_db

    def is_as_good(self, other: Point) -> bool:
        """Whether this one is no slower and has no more noise."""
        return self.cycles <= other.cycles and self.sqnr_db >= other.sqnr_db


def dominating(uniform: Sequence[Point], mixed: Sequence[Point]) -> list[str]:
    """Uniform strategies that beat a mixed point in noise and cycles, while no mixed point is as good as they are."""
    return [
        one.name
        for one in uniform
        if any(one.beats(point) for point in mixed) and not any(point.is_as_good(one) for point in mixed)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", type=Path, default=ROOT.parent / "shared" / "models", help="folder of the networks")
    parser.add_argument("--images", type=int, default=IMAGES, help="the first so many test images")
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    options = parser.parse_args()
    found: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in options.networks:
        targets = found.setdefault(name, {})
        for target in TARGETS:
            targets[target] = measure(name, options.models / name, target, options.images)
            RESULTS.write_text(json.dumps(found, indent=1) + "\n")
            PAGE.write_text(page(PAGE.read_text(), found))
    return 0


def measure(name: str, folder: Path, target: str, images: int) -> dict[str, Any]:
    """The points of one network at one target."""
    configs, board = TARGETS[target]
    work = FOLDER / name / target.replace(", ", "-")
    options: dict[str, Any] = {"images": images, "configs": configs, "board": board, "mixed": POINTS, "work": work}
    report = compared(name, folder, UNIFORM, f"{name} on {target}", **options)
    uniform = [point for row in report.rows if row.name in UNIFORM for point in points(row)]
    mixed = [point for row in report.rows if row.name not in UNIFORM for point in points(row)]
    summaries = {row.name: row.summary for row in report.rows if row.name not in UNIFORM}
    return {
        "images": report.images,
        "board": board,
        "uniform": [values(one) for one in uniform],
        "mixed": [values(one) | {"summary": summaries[one.name]} for one in mixed],
        "dominating": dominating(uniform, mixed),
    }


def points(row: Row) -> list[Point]:
    """A strategy where it is fastest; none for one that the host computes in part, or that is exact."""
    if row.cost is None or row.test.sqnr_db is None or row.host_share > 0:
        return []
    return [Point(row.name, row.cost.cycles, row.test.sqnr_db)]


def values(point: Point) -> dict[str, Any]:
    """A point as JSON."""
    return {"name": point.name, "cycles": point.cycles, "sqnr_db": round(point.sqnr_db, 2)}


def page(text: str, found: dict[str, Any]) -> str:
    """docs/quantization.md with the table."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    rows = ((name, target) for name in NETWORKS for target in TARGETS if target in found.get(name, {}))
    lines += [row(name, target, found[name][target]) for name, target in rows]
    return replaced(text, "mixed", "\n".join(lines) + "\n")


def row(name: str, target: str, result: dict[str, Any]) -> str:
    """One network at one target."""
    sides = (_listed(result[side]) for side in ("mixed", "uniform"))
    where = target if result["board"] is None else f"{target} on {result['board']}"
    return f"| {' | '.join((name, str(result['images']), where, *sides, ', '.join(result['dominating']) or 'none'))} |"


def _listed(side: Sequence[dict[str, Any]]) -> str:
    ordered = sorted(side, key=lambda one: (one["cycles"], -one["sqnr_db"]))
    return "; ".join(f"{one['cycles']:,}, {one['sqnr_db']:.1f}" for one in ordered)


if __name__ == "__main__":
    sys.exit(main())
