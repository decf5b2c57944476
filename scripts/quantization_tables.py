"""The measured tables of docs/quantization.md: every strategy on the networks of ../shared/models.

In: models with calibration and test data. Out: reports in build/compare (a killed run goes on there), what the tables
show of them in docs/results/strategies.json, and the tables. After a change of the energy table `--energy` is enough.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from relay_hw.cli.console import Console
from relay_hw.compare import CompareOptions, Comparison, compare
from relay_hw.compare.table import decibels, share
from relay_hw.report import number, percent
from relay_hw.runtime.models import load_model
from relay_hw.support.progress import Labelled
from relay_hw.sweep.workers import default_processes
from scripts.figures import replaced

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "quantization.md"
RESULTS = ROOT / "docs" / "results" / "strategies.json"
FOLDER = ROOT / "build" / "compare"
# File of the test data, what it is, strategies.
NETWORKS = {
    "mnist_cnn8": ("test", "10,000 test digits of MNIST"),
    "resnet8_cifar10": ("agreement", "2,000 images of CIFAR-10, JPEG"),
    "mobilenet_v1_0.25_128": ("test", "250 images of ImageNet"),
    "mnist_lstm": ("test", "500 digits of MNIST"),
}
STRATEGIES = (
    "int8", "int8-gptq", "int8-minmax", "int8-percentile", "int8-kl", "int8-mse", "int8-average", "int8-tensor",
    "int8-pow2", "int8-equalized", "int8-twins", "w4a8", "w4a8-adaround", "w4a8-gptq", "w4a8-twins", "mixed",
    "tvm", "fp8-e4m3", "mxint8", "mxfp4",
)  # fmt: skip
# Test images where only counts are asked for.
FEW = 4
# What the tables show of a report and of each of its strategies.
KEPT = ("best", "images", "calibration_images", "held_out_images")
KEPT_FLOAT = ("top1", "macs", "weight_bytes")
KEPT_ROW = (
    "name", "config", "top1", "agreement", "agreement_interval", "gained", "lost", "logit_sqnr_db", "cycles",
    "dram_bytes", "weight_bytes", "energy_uj", "accel_mac_share",
)  # fmt: skip
COLUMNS = (
    "Strategy", "on", "top-1", "agrees (95 %)", "pairs", "SQNR dB",
    "cycles", "DRAM bytes", "weight bytes", "µJ", "on accelerator",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, default=ROOT.parent / "shared" / "models", help="folder of the networks")
    parser.add_argument("--images", type=int, help="the first so many test images only")
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    parser.add_argument("--energy", action="store_true", help="only the energy anew, of what was measured before")
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    options = parser.parse_args()
    found: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in options.networks:
        if options.energy:
            rows = found[name]["strategies"]
            few = {"images": FEW, "processes": default_processes()}
            report = compared(name, options.models / name, representatives(rows), name, **few)
            found[name]["strategies"] = with_energy(rows, report.to_json()["strategies"])
        else:
            measure(name, options.models / name, options.strategies.split(","), options.images)
            found[name] = kept(json.loads((FOLDER / name / "report.json").read_text()))
    RESULTS.write_text(json.dumps({name: found[name] for name in NETWORKS if name in found}, indent=1) + "\n")
    PAGE.write_text(page(PAGE.read_text(), found))
    return 0


def measure(name: str, folder: Path, strategies: list[str], images: int | None) -> None:
    """Compare, and keep the report."""
    work = FOLDER / name / "work"
    found = compared(name, folder, strategies, name, images=images, processes=default_processes(), work=work, area=True)
    found.save(FOLDER / name)
    print(found.to_text())


def representatives(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """One strategy of each set of rows with the same counts, by name."""
    return list({_counts(row): row["name"] for row in reversed(rows) if row["config"]}.values())


def with_energy(rows: Sequence[Mapping[str, Any]], fresh: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows with the energy of their representatives; None where programs do not count what they did."""
    known = {_counts(row): row["energy_uj"] for row in fresh}
    for row in rows:
        if row["config"] and _counts(row) not in known:
            print(
                f"{row['name']} on {row['config']} does not count as when it was measured: no energy", file=sys.stderr
            )
    return [{**row, "energy_uj": known.get(_counts(row)) if row["config"] else None} for row in rows]


def _counts(row: Mapping[str, Any]) -> tuple[object, ...]:
    """Rows that agree in these agree in what the energy is made of."""
    return tuple(row[key] for key in ("config", "cycles", "dram_bytes", "accel_mac_share"))


def compared(name: str, folder: Path, strategies: Sequence[str], what: str, **options: Any) -> Comparison:
    """Strategies on the network in `folder`, on its own test data. `what`: in front of lines of progress."""
    model = load_model(folder / "model.onnx")
    test, calibration = (dict(np.load(folder / f"{file}.npz")) for file in (NETWORKS[name][0], "calibration"))
    console = Console(as_json=False)
    with console.progress():
        return compare(
            model.mod,
            test,
            CompareOptions(strategies=strategies, name=name, **options),
            calibration=calibration,
            params=model.params,
            progress=Labelled(console, what),
        )


def kept(report: dict[str, Any]) -> dict[str, Any]:
    """What the page shows of a report."""
    rows = [{key: row[key] for key in KEPT_ROW} for row in report["strategies"]]
    floats = {key: report["float"][key] for key in KEPT_FLOAT}
    return {key: report[key] for key in KEPT} | {"float": floats, "strategies": rows}


def page(text: str, found: dict[str, Any]) -> str:
    """docs/quantization.md with the tables of what was found."""
    tables = [table(name, found[name]) for name in NETWORKS if name in found]
    return replaced(text, "strategies", "".join(f"\n{part}" for part in tables))


def table(name: str, report: dict[str, Any]) -> str:
    """One network as Markdown."""
    floats = report["float"]
    what = NETWORKS[name][1] if report["images"] >= 250 else f"{report['images']} images"
    lines = [
        f"### {name}: {what}\n",
        f"Float: top-1 {share(floats['top1'])}, {floats['macs']:,} multiply-accumulates, {floats['weight_bytes']:,} "
        f"bytes of weights. {report['calibration_images']} samples to calibrate with; ★ is the least noise on "
        f"{report['held_out_images']} others.\n",
        f"| {' | '.join(COLUMNS)} |",
        "|---" * len(COLUMNS) + "|",
    ]
    return "\n".join([*lines, *(row(report, strategy) for strategy in report["strategies"])]) + "\n"


def row(report: dict[str, Any], values: dict[str, Any]) -> str:
    """One strategy."""
    low, high = values["agreement_interval"]
    star = " ★" if values["name"] == report["best"] else ""
    energy = values["energy_uj"]
    cells = (
        f"`{values['name']}`{star}",
        values["config"] or "no hardware",
        share(values["top1"]),
        f"{share(values['agreement'])} ({100 * low:.1f} to {100 * high:.1f})",
        f"+{values['gained']} -{values['lost']}",
        decibels(values["logit_sqnr_db"]),
        number(values["cycles"]),
        number(values["dram_bytes"]),
        number(values["weight_bytes"]),
        "-" if energy is None else f"{energy:.1f}",
        percent(values["accel_mac_share"]),
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
