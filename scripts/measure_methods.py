"""What methods bring: strategies on two MobileNets, the second one tuned on by nobody, and training on four networks.

In: networks of ../shared/models, the folder of scripts/train_mobilenet.py. Out: docs/results/methods.json, two tables
of docs/quantization.md. Every fourth calibration sample is left out, as in `relay-hw compare`; no test sample chooses.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from relay_hw.compare.main import HELD_OUT
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import copy_with
from relay_hw.quantize import realize_module
from relay_hw.quantize.batch import run_samples
from relay_hw.quantize.main import Realized, reference_of
from relay_hw.quantize.methods.mixed import logits
from relay_hw.quantize.methods.train import Gain
from relay_hw.quantize.report import decibel
from relay_hw.runtime.compile import bind_params
from relay_hw.runtime.models import load_model
from scripts.figures import replaced
from scripts.quantization_tables import NETWORKS, PAGE
from scripts.train_mobilenet import OUTPUT, trained

Array = NDArray[Any]
ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results" / "methods.json"
FIRST, SECOND = "mobilenet_v1_0.25_128", "mobilenet_cifar"
STRATEGIES = ("int8", "int8-gptq", "int8-twins", "w4a8-gptq", "w4a8-twins", "w4a8-mixed")
TRAINED = "qat-w4a8"
IMAGES = 250


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", type=Path, default=ROOT.parent / "shared" / "models", help="folder of the networks")
    parser.add_argument("names", nargs="*", default=[FIRST, SECOND, TRAINED], help="what to measure anew")
    options = parser.parse_args()
    found: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in options.names:
        found[name] = gains(options.models) if name == TRAINED else network(name, options.models)
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
        PAGE.write_text(page(PAGE.read_text(), found))
    return 0


def network(name: str, models: Path) -> dict[str, Any]:
    """Noise and agreement of each strategy on one network."""
    folder = OUTPUT if name == SECOND else models / name
    mod = trained(folder) if name == SECOND else _loaded(folder)
    test, calibration = data(mod, folder, "test", IMAGES), shown(data(mod, folder, "calibration"))
    wanted = results(reference_of(mod), test)
    rows: dict[str, Any] = {}
    for strategy in STRATEGIES:
        given = results(realize_module(mod, strategy, calibration).mod, test)
        rows[strategy] = {"sqnr_db": round(decibels(wanted, given), 2), "agreement": agreement(wanted, given)}
        print(f"{name} {strategy}: {rows[strategy]}", flush=True)
    return {"images": len(wanted), "strategies": rows}


def gains(models: Path) -> dict[str, Any]:
    """What training brought on samples that were held out, network by network."""
    found: dict[str, Any] = {}
    for name in NETWORKS:
        mod = _loaded(models / name)
        realized = realize_module(mod, TRAINED, shown(data(mod, models / name, "calibration")))
        parts = [
            {"start_db": round(one.start_db, 2), "end_db": round(one.end_db, 2), "samples": one.samples}
            for one in _gains(realized)
        ]
        found[name] = parts
        print(f"{name} {TRAINED}: {parts}", flush=True)
    return found


def _gains(realized: Realized) -> Iterator[Gain]:
    if realized.gain is not None:
        yield realized.gain
    for fragment in realized.fragments.values():
        yield from _gains(fragment.realized)


def _loaded(folder: Path) -> IRModule:
    model = load_model(folder / "model.onnx")
    return bind_params(model.mod, model.params)


def data(mod: IRModule, folder: Path, file: str, most: int | None = None) -> dict[str, Array]:
    """The first samples of a file, by input."""
    with np.load(folder / f"{file}.npz") as arrays:
        return {p.name_hint: arrays[p.name_hint][:most].astype(np.float32) for p in mod["main"].params}


def shown(samples: Mapping[str, Array]) -> dict[str, Array]:
    """All but every fourth."""
    return {name: array[np.arange(len(array)) % HELD_OUT != HELD_OUT - 1] for name, array in samples.items()}


def results(mod: IRModule, samples: Mapping[str, Array]) -> Array:
    """[samples, classes], in front of a softmax."""
    main = mod["main"]
    cut = IRModule({"main": copy_with(main, body=logits(main.body), ret_type=None, checked_type=None)}, mod.types)
    found = np.asarray(run_samples(cut, samples), np.float64)
    return found.reshape(len(found), -1)


def decibels(wanted: Array, given: Array) -> float:
    """Signal-to-noise ratio."""
    return decibel(float(np.square(wanted).sum()), float(np.square(wanted - given).sum()))


def agreement(wanted: Array, given: Array) -> float:
    """Share of samples with the largest output of float."""
    return round(float((wanted.argmax(axis=1) == given.argmax(axis=1)).mean()), 4)


def page(text: str, found: dict[str, Any]) -> str:
    """docs/quantization.md with both tables."""
    names = [name for name in (FIRST, SECOND) if name in found]
    heads = "".join(f" {name}: SQNR dB | agrees |" for name in names)
    lines = [f"| Strategy |{heads}", "|---" * (1 + 2 * len(names)) + "|"]
    for strategy in STRATEGIES:
        cells = (found[name]["strategies"][strategy] for name in names)
        lines.append(f"| `{strategy}` |" + "".join(f" {c['sqnr_db']:.1f} | {c['agreement']:.1%} |" for c in cells))
    text = replaced(text, "mobilenets", "\n".join(lines) + "\n")
    lines = ["| Network | start, dB | trained, dB | gain | held-out samples |", "|---|---|---|---|---|"]
    for name, parts in found.get(TRAINED, {}).items():
        for number, part in enumerate(parts, 1):
            label = name if len(parts) == 1 else f"{name}, fragment {number}"
            gain = part["end_db"] - part["start_db"]
            lines.append(
                f"| {label} | {part['start_db']:.1f} | {part['end_db']:.1f} | {gain:.1f} | {part['samples']} |"
            )
    return replaced(text, "training", "\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
