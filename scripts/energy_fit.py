"""Does the energy table rank as netlists switch? Its shares fitted to points, and the agreement on others.

In: docs/results/energy.json, where scripts/measure_energy.py keeps its points; relay_hw/compare/energy.py. Out: what
`SHARES` and `REGISTERS` there must be, and with `--write` the agreement in the file and the table in the page.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from relay_hw.accel.fpga.multipliers import dsp_products
from relay_hw.accel.fpga.parts import find_part
from relay_hw.accel.isa.config import load_config
from relay_hw.compare.energy import SHARES, Energy, Shares, estimate
from scripts.figures import replaced

ROOT: Final = Path(__file__).resolve().parents[1]
RESULTS: Final = ROOT / "docs" / "results" / "energy.json"
PAGE: Final = ROOT / "docs" / "quantization.md"
# The parts whose multiplier blocks the netlists of configurations have.
PARTS: Final = {"tiny": "lfe5u-25f", "ecp5": "lfe5u-85f", "ecp5w4": "lfe5u-85f", "default": "lfe5u-85f"}
# Networks whose points take no part in the fit.
HELD_OUT: Final = ("ds_cnn", "wake_words")
# What a count of each kind weighs, in switches of one routed branch of a net: wires within a slice and bits within a
# multiplier are short, a bit of a memory's access is about half a branch, a slice's clock a sixteenth.
WEIGHTS: Final[Mapping[str, float]] = {
    **dict.fromkeys(("lut", "carry", "flip_flop", "lut_memory", "ram", "product", "input"), 1.0),
    **{"local": 0.1, "read": 0.5, "write": 0.5, "idle": 0.5, "partial": 0.25, "clock": 1 / 16},
}
# Groups of kinds whose weights are doubted together, and by which factors.
DOUBTED: Final = (
    ("clock", "idle"), ("read", "write", "idle"), ("partial",), ("local",), ("flip_flop",), ("lut", "carry"),
)  # fmt: skip
FACTORS: Final = (0.25, 4.0)
# Shares that leave the source's figures as they are.
PLAIN: Final = Shares(products=1.0, scratchpads=1.0, output=1.0, registers=0.0)
_EACH: Final = (
    Shares(1.0, 0.0, 0.0, 0.0),
    Shares(0.0, 1.0, 0.0, 0.0),
    Shares(0.0, 0.0, 1.0, 0.0),
    Shares(0.0, 0.0, 0.0, 1.0),
)

Point = Mapping[str, Any]
Vector = NDArray[np.float64]


def switched(point: Point, weights: Mapping[str, float] = WEIGHTS) -> float:
    """What switches in a point, in millions of routed branches."""
    return 1e-6 * sum(weights[kind] * count for kind, count in point["activity"].items())


def estimated(point: Point, shares: Shares = SHARES) -> Energy:
    """What the table says of a point."""
    macs = {int(bits): count for bits, count in point["macs"].items()}
    return estimate(load_config(point["config"]), point["counters"], macs, {}, shares)


def spearman(one: Sequence[float] | Vector, other: Sequence[float] | Vector) -> float:
    """Rank correlation; equal numbers share their ranks."""
    return float(np.corrcoef(_ranks(one), _ranks(other))[0, 1])


def _ranks(values: Sequence[float] | Vector) -> Vector:
    found, order = np.asarray(values, np.float64), np.sort(values)
    return (np.searchsorted(order, found, "left") + np.searchsorted(order, found, "right")) / 2


def agreement(points: Sequence[Point], shares: Shares = SHARES, weights: Mapping[str, float] = WEIGHTS) -> float:
    """Rank correlation of the table's parts on the chip with what switches."""
    on_chip = [round(estimated(point, shares).on_chip, 9) for point in points]
    return spearman([switched(point, weights) for point in points], on_chip)


def fit(points: Sequence[Point]) -> Shares:
    """Shares with the least relative errors on points that are not held out; the level stays that of the source.

    The level: one factor of all figures of the source, fitted likewise.
    """
    fitted = [point for point in points if point["network"] not in HELD_OUT]
    seen = np.array([switched(point) for point in fitted])
    parts = np.array([[estimated(point, each).on_chip for each in _EACH] for point in fitted]) / seen[:, None]
    plain = np.array([estimated(point, PLAIN).on_chip for point in fitted]) / seen
    level = plain.sum() / (plain @ plain)
    return Shares(*(float(f"{share / level:.3g}") for share in _least(parts)))


def _least(columns: NDArray[np.float64]) -> Vector:
    """Numbers of 0 or more whose products with the columns sum up to 1 with the least squares of errors."""
    best, least = np.zeros(columns.shape[1]), np.inf
    for chosen in range(1, 1 << columns.shape[1]):
        places = [place for place in range(columns.shape[1]) if chosen >> place & 1]
        found = np.linalg.lstsq(columns[:, places], np.ones(len(columns)), rcond=None)[0]
        error = float(((columns[:, places] @ found - 1) ** 2).sum())
        if found.min() >= 0 and error < least:
            best, least = np.zeros(columns.shape[1]), error
            best[places] = found
    return best


def clock_pins(points: Sequence[Point]) -> dict[str, int]:
    """Pins of the clock by configuration."""
    return {point["config"]: point["activity"]["clock"] // (2 * point["cycles"]) for point in points}


def fit_registers(points: Sequence[Point]) -> tuple[int, float]:
    """`REGISTERS`: the line with the least relative errors."""
    pins = clock_pins(points)
    sizes = [load_config(name) for name in pins]
    count = np.array(list(pins.values()), np.float64)
    columns = np.array([[1.0, config.macs_per_cycle * config.wgt_bits] for config in sizes]) / count[:, None]
    begin, bit = np.linalg.lstsq(columns, np.ones(len(pins)), rcond=None)[0]
    return 100 * round(float(begin) / 100), float(f"{bit:.3g}")


def doubted() -> list[Mapping[str, float]]:
    """Weights of kinds, those of one group after the other four times lighter and heavier."""
    return [
        {kind: weight * (factor if kind in group else 1) for kind, weight in WEIGHTS.items()}
        for group in DOUBTED
        for factor in FACTORS
    ]


def summary(points: Sequence[Point]) -> dict[str, Any]:
    """Numbers for the page."""
    held = [point for point in points if point["network"] in HELD_OUT]
    networks = dict.fromkeys(point["network"] for point in points)

    def of(name: str) -> list[Point]:
        return [point for point in points if point["network"] == name]

    errors = _errors(points)
    return {
        "points": len(points),
        "held_out_points": len(held),
        "all": agreement(points),
        "held_out": agreement(held),
        "doubted": min(agreement(points, weights=weights) for weights in doubted()),
        "plain": agreement(points, PLAIN),
        "plain_held_out": agreement(held, PLAIN),
        "networks": {name: agreement(of(name)) for name in networks},
        "plain_networks": {name: agreement(of(name), PLAIN) for name in networks},
        "error": float(100 * np.sqrt((errors**2).mean())),
        "worst_error": float(100 * np.abs(errors).max()),
        "config_error": _by_config(points, 100 * errors),
        "products_of_luts": {name: _of_luts(name) for name in clock_pins(points)},
        "fixed_share": {name: 100 * share for name, share in _fixed(points).items()},
        "accesses": 100 * float(np.mean([_accesses(point) for point in points])),
        "plain_scratchpads": 100 * float(np.mean([_part(point, "scratchpads", PLAIN) for point in points])),
        "registers": 100 * float(np.mean([_part(point, "registers", SHARES) for point in points])),
        "equal_counts": 100 * _equal_counts(points),
        "clock_pins": clock_pins(points),
    }


def _errors(points: Sequence[Point]) -> Vector:
    """Relative errors of the table once it is scaled to what switches in the points."""
    seen = np.array([switched(point) for point in points])
    told = np.array([estimated(point).on_chip for point in points]) / seen
    return told * told.sum() / (told @ told) - 1


def _by_config(points: Sequence[Point], errors: Vector) -> dict[str, float]:
    """The mean of errors by configuration; what is below is positive."""
    found: dict[str, list[float]] = {}
    for point, error in zip(points, errors, strict=True):
        found.setdefault(point["config"], []).append(-float(error))
    return {name: float(np.mean(each)) for name, each in found.items()}


def _of_luts(name: str) -> int:
    """Products of a cycle that have no multiplier block on the part whose netlist was measured."""
    config, part = load_config(name), find_part(PARTS[name])
    return config.macs_per_cycle - dsp_products(config, part.multipliers) * config.block_out


def _fixed(points: Sequence[Point]) -> dict[str, float]:
    """By configuration the share of what switches in every cycle, whatever is done: clock, reads nobody asked for."""
    found: dict[str, list[float]] = {}
    for point in points:
        each = sum(WEIGHTS[kind] * point["activity"][kind] for kind in ("clock", "idle"))
        found.setdefault(point["config"], []).append(1e-6 * each / switched(point))
    return {name: float(np.mean(shares)) for name, shares in found.items()}


def _accesses(point: Point) -> float:
    """Share of accesses to block RAMs that somebody asked for."""
    return 1e-6 * sum(WEIGHTS[kind] * point["activity"][kind] for kind in ("read", "write")) / switched(point)


def _part(point: Point, name: str, shares: Shares) -> float:
    """Share of a part in what the table says of the chip."""
    found = estimated(point, shares)
    return float(getattr(found, name)) / found.on_chip


def _equal_counts(points: Sequence[Point]) -> float:
    """By how much points differ at most that have the same counters on the same accelerator."""
    found: dict[str, list[float]] = {}
    for point in points:
        found.setdefault(json.dumps([point["config"], point["counters"]]), []).append(switched(point))
    return max(1 - min(same) / max(same) for same in found.values())


def body(points: Sequence[Point]) -> str:
    """The table of the page."""
    lines = ["| Network | Strategy | on | cycles | switched, millions | on the chip, µJ | µJ in the source's shares |"]
    lines.append("|---" * 7 + "|")
    for row in sorted(points, key=switched):
        cells = (row["network"], f"`{row['strategy']}`", f"`{row['config']}`", f"{row['cycles']:,}")
        numbers = (switched(row), estimated(row).on_chip, estimated(row, PLAIN).on_chip)
        lines.append(f"| {' | '.join((*cells, f'{numbers[0]:,.0f}', *(f'{n:.2f}' for n in numbers[1:])))} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Say what the table must be; 1 where it is not."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="renew the agreement in the results and the page's table")
    options = parser.parse_args(arguments)
    results: dict[str, Any] = json.loads(RESULTS.read_text())
    points = list(results["points"].values())
    print(f"SHARES must be {fit(points)}, REGISTERS {fit_registers(points)}")
    print(json.dumps(summary(points), indent=1))
    if options.write:
        RESULTS.write_text(json.dumps(results | {"agreement": summary(points)}, indent=1) + "\n")
        PAGE.write_text(replaced(PAGE.read_text(), "energy", body(points)))
    return int(fit(points) != SHARES)


if __name__ == "__main__":
    sys.exit(main())
