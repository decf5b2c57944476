"""What integers do to the two trained transformers of `examples/`: agreement on digits, perplexity of a language model.

In: examples/mnist_vit.onnx on 1,000 digits, examples/opticks_lm.onnx on the text that was held out. Out:
docs/results/trained.json, two tables of docs/quantization.md. Calibration sees digits and text that training saw, so
that nothing unseen chooses anything.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from relay_hw.analysis import infer_type
from relay_hw.build_module import bind_params_by_name
from relay_hw.demo.digits import INPUT_NAME, Digits, read_digits
from relay_hw.frontend import from_onnx
from relay_hw.ir.module import IRModule
from relay_hw.quantize import realize_module
from relay_hw.quantize.batch import run_samples
from relay_hw.quantize.main import Realized, reference_of
from relay_hw.quantize.report import layer_noise
from scripts.figures import replaced
from scripts.ngram import KneserNey
from scripts.quantization_tables import PAGE
from scripts.text_data import CONTEXT, STRIDE, Text, judged, load_text, spread, windows

Array = NDArray[Any]
ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results" / "trained.json"
VIT, LANGUAGE = (ROOT / "examples" / f"{name}.onnx" for name in ("mnist_vit", "opticks_lm"))
TEXT_NAME = "bytes"
STRATEGIES = ("int8", "w4a8", "w4g32a8")
# Windows of learned text that calibration sees, and samples that noise of layers is measured on.
CALIBRATION, NOISE = 32, 4
# How many of the noisiest layers are kept, and how many the page names.
NOISIEST, SHOWN = 12, 3


def float_network(path: Path) -> IRModule:
    """The network as the quantizer meets it, in float."""
    mod, params = from_onnx(path, shape=None)
    return reference_of(infer_type(mod.with_functions({"main": bind_params_by_name(mod["main"], params)})))


def language_logits(mod: IRModule, symbols: Array) -> Array:
    """What the network says of the byte behind each that is judged, float64 [windows, STRIDE, 256]."""
    found = np.asarray(run_samples(mod, {TEXT_NAME: symbols}), np.float64)
    return found.reshape(len(symbols), CONTEXT, -1)[:, -STRIDE:]


def bits_a_byte(logits: Array, following: Array) -> float:
    """The mean cost of the bytes that follow."""
    top = logits.max(axis=-1)
    total = top + np.log(np.exp(logits - top[..., None]).sum(axis=-1))
    chosen = np.take_along_axis(logits, following[:, -STRIDE:, None], axis=-1)[..., 0]
    return float((total - chosen).mean()) / math.log(2)


def agreement(wanted: Array, given: Array) -> float:
    """How often both have the same largest number."""
    return float((wanted.argmax(axis=-1) == given.argmax(axis=-1)).mean())


def language(mod: IRModule, text: Text) -> dict[str, Any]:
    """Bits a byte of float, of three bytes in a row, and of each strategy, with perplexity and next bytes."""
    symbols, following = windows(text.unseen)
    wanted = language_logits(mod, symbols)
    bits = bits_a_byte(wanted, following)
    counted = KneserNey(text.learned)
    three = float(np.concatenate([counted.bits(part, begin) for part, begin in judged(text.unseen)]).mean())
    rows: dict[str, Any] = {}
    for strategy in STRATEGIES:
        realized = realize_module(mod, strategy, {TEXT_NAME: spread(text, CALIBRATION)})
        given = language_logits(realized.mod, symbols)
        own = bits_a_byte(given, following)
        rows[strategy] = {
            "bits_a_byte": round(own, 4),
            "perplexity_ratio": round(2 ** (own - bits), 4),
            "next_byte_agreement": round(agreement(wanted, given), 4),
            "noisiest": noisiest(realized, {TEXT_NAME: symbols[:: len(symbols) // NOISE][:NOISE]}),
        }
        print(f"{LANGUAGE.name} {strategy}: {rows[strategy]}", flush=True)
    return {
        "sha256": sha256(LANGUAGE),
        "bytes_judged": len(symbols) * STRIDE,
        "bits_a_byte": round(bits, 4),
        "three_bytes": round(three, 4),
        "less": round(1 - bits / three, 4),
        "strategies": rows,
    }


def vit(mod: IRModule, calibration: Digits, test: Digits) -> dict[str, Any]:
    """Accuracy of float, and each strategy's accuracy and agreement with it."""
    wanted = run_samples(mod, {INPUT_NAME: test.images})
    rows: dict[str, Any] = {}
    for strategy in STRATEGIES:
        realized = realize_module(mod, strategy, {INPUT_NAME: calibration.images})
        given = run_samples(realized.mod, {INPUT_NAME: test.images})
        rows[strategy] = {
            "accuracy": accuracy(given, test),
            "agreement": round(agreement(wanted, given), 4),
            "noisiest": noisiest(realized, {INPUT_NAME: test.images[:NOISE]}),
        }
        print(f"{VIT.name} {strategy}: {rows[strategy]}", flush=True)
    return {
        "sha256": sha256(VIT),
        "images": len(test.labels),
        "accuracy": accuracy(wanted, test),
        "strategies": rows,
    }


def accuracy(logits: Array, digits: Digits) -> float:
    """Share of digits whose largest output is the label."""
    return round(float((logits.argmax(axis=1) == digits.labels).mean()), 4)


def noisiest(realized: Realized, data: dict[str, Array]) -> dict[str, float]:
    """The layers with the lowest signal-to-noise ratio, in decibel."""
    rows = sorted(layer_noise(realized, data), key=lambda row: row.sqnr_db)
    return {f"{row.name} ({row.operator})": round(row.sqnr_db, 2) for row in rows[:NOISIEST]}


def page(text: str, found: dict[str, Any]) -> str:
    """docs/quantization.md with both tables."""
    digits, words = found["vit"], found["language"]
    lines = ["| | accuracy | agrees with float | noisiest layers, dB |", "|---|---|---|---|"]
    lines.append(f"| float | {digits['accuracy']:.1%} | | |")
    for name, row in digits["strategies"].items():
        lines.append(f"| `{name}` | {row['accuracy']:.1%} | {row['agreement']:.1%} | {_named(row['noisiest'])} |")
    text = replaced(text, "vit", "\n".join(lines) + "\n")
    lines = ["| | bits a byte | perplexity | same next byte | noisiest layers, dB |", "|---|---|---|---|---|"]
    lines.append(f"| three bytes, Kneser-Ney | {words['three_bytes']:.3f} | | | |")
    lines.append(f"| float | {words['bits_a_byte']:.3f} | | | |")
    for name, row in words["strategies"].items():
        more = f"{row['perplexity_ratio'] - 1:+.2%} | {row['next_byte_agreement']:.1%}"
        lines.append(f"| `{name}` | {row['bits_a_byte']:.3f} | {more} | {_named(row['noisiest'])} |")
    return replaced(text, "language", "\n".join(lines) + "\n")


def _named(noisiest: dict[str, float]) -> str:
    """The first of the noisiest layers."""
    return ", ".join(f"{name.split(' ')[0]} {decibels:.1f}" for name, decibels in list(noisiest.items())[:SHOWN])


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", default=["vit", "language"], help="what to measure anew")
    options = parser.parse_args()
    found: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in options.names:
        match name:
            case "vit":
                found[name] = vit(float_network(VIT), *read_digits())
            case "language":
                found[name] = language(float_network(LANGUAGE), load_text())
            case _:
                parser.error(f"a name must be vit or language, not {name}")
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
        PAGE.write_text(page(PAGE.read_text(), found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
