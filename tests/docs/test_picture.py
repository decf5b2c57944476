"""The picture of README.md is that of a build made now."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np

from relay_hw.cli.main import main
from relay_hw.demo.digits import read_digits
from scripts import picture

MODEL = Path(__file__).parents[2] / "examples" / "mnist_cnn.onnx"


def test_the_picture_is_that_of_a_build(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", **read_digits()[0].arrays())
    build = tmp_path / "build"
    assert main(["compile", str(MODEL), "--calibration", str(tmp_path / "data.npz"), "-o", str(build)]) == 0
    drawn = picture.picture(json.loads((build / "report.json").read_text()))
    assert drawn == picture.PICTURE.read_text(), "run: make images"


def test_pieces_of_a_bar_are_the_cycles_of_the_layer() -> None:
    layer = {"cycles": 100, "stalls": {**dict.fromkeys(picture.CAUSES, 3), "bus": 5, "queue": 2}}
    pieces = list(picture._pieces(layer))
    assert sum(cycles for _, _, cycles in pieces) == 100
    assert pieces[-1][::2] == ("other waits", 7)


def test_names_of_a_model_are_text() -> None:
    stalls = dict.fromkeys(picture.CAUSES, 0)
    layer = {"where": "accel", "name": "<b>&", "shape": "1 -> 2", "cycles": 4, "stalls": stalls}
    report = {"model": "<script>", "config": "default", "cycles": 4, "utilisation": 1.0, "layers": [layer]}
    assert "<b>&  2" in "".join(ElementTree.fromstring(picture.picture(report)).itertext())
