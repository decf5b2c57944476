"""Top-1 of int8 models of ../shared/models here and in onnxruntime, for docs/prequantized.md.

In: models that come quantized, with labelled test images. Out: docs/results/prequantized.json. A few minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.frontend import from_onnx
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.execute import Executor

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "docs" / "results" / "prequantized.json"
MODELS = ROOT.parent / "shared" / "models"


@dataclass(frozen=True, slots=True)
class File:
    """A model and its test images, without their suffixes."""

    folder: str
    model: str
    data: str


# By the names that the page uses.
FILES = {
    "qdq": File("resnet8_cifar10", "model_int8_qdq_from_tflite", "test_int8_nhwc"),
    "qop": File("resnet8_cifar10", "model_int8_qop_ort", "test"),
}


def measured(file: File, models: Path) -> dict[str, float]:
    """Images, and shares of them in percent: where both find one class, where onnxruntime is right, where we are."""
    model = models / file.folder / f"{file.model}.onnx"
    with np.load(models / file.folder / f"{file.data}.npz") as archive:
        arrays = dict(archive)
    theirs, mine = _onnxruntime(model, arrays), _functional(model, arrays)
    labels = arrays["labels"]
    shares = {"agreement": theirs == mine, "onnxruntime": theirs == labels, "top1": mine == labels}
    return {"images": len(labels)} | {name: round(100 * float(hits.mean()), 4) for name, hits in shares.items()}


def _onnxruntime(model: Path, arrays: dict[str, Any]) -> Any:
    """The class of each image."""
    import onnxruntime

    session: Any = onnxruntime.InferenceSession(str(model))
    name = session.get_inputs()[0].name
    return np.array([session.run(None, {name: one[None]})[0].argmax() for one in arrays[name]])


def _functional(model: Path, arrays: dict[str, Any]) -> Any:
    """The class of each image, on the functional simulator."""
    mod, params = from_onnx(model)
    compiled = compile_model(mod, params=params)
    with tempfile.TemporaryDirectory() as folder:
        artifact = compiled.save(Path(folder) / "build")
        found = Executor(artifact, FunctionalDevice(compiled.config)).run(arrays).outputs
    (scores,) = found.values()
    return scores.reshape(len(scores), -1).argmax(axis=1)


def main() -> int:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", type=Path, default=MODELS, help="folder of the networks")
    models = parser.parse_args().models
    found = {name: measured(file, models) for name, file in FILES.items()}
    OUTPUT.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
