"""Compile examples with today's sources and with those of a commit, and say which files of the builds differ.

In: a commit, maybe operators that have another name since. Out: a line for each case with the files that differ; 1
where there are any. A change of structure changes none: modules behind each stage, programs, constants and manifests.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples.models import NETWORKS, find
from examples.models.builder import INPUT, images
from relay_hw.cli.data import save_npz
from relay_hw.ir.types import TensorType
from relay_hw.text import parse
from scripts.bench_compile import ROOT, sources

CALIBRATION = 8
# Sizes that take seconds; networks that are not named have their own.
SMALL = {
    "resnet18": 64,
    "resnet34": 64,
    "resnet50": 64,
    "mobilenet_v1": 96,
    "mobilenet_v2": 96,
    "mobilenet_grouped": 96,
    "densenet121": 64,
}
# Options that lead through every part of the compiler: each shape of array, board memories, layers on the host.
OPTIONS: Mapping[str, Sequence[str]] = {
    "default": (),
    "w4": ("--config", "w4", "--quantize", "w4a8-gptq"),
    "board": ("--board", "ulx3s-85f"),
    "float": ("--no-accel", "--quantize", "float"),
}
# Whatever runs them gives other networks these options alone.
ALL_OPTIONS = ("resnet8", "ds_cnn")
TEXT = {".json", ".relay"}


@dataclass(frozen=True, slots=True)
class Case:
    """One command: `name`, the model's file, and the options behind it."""

    name: str
    model: Path
    options: Sequence[str]


def cases(folder: Path) -> Iterator[Case]:
    """All cases; models and data are written to `folder`."""
    for network in (example.name for example in NETWORKS):
        path, data = folder / f"{network}.onnx", folder / f"{network}.npz"
        model = find(network).model(SMALL.get(network))
        path.write_bytes(model.SerializeToString())
        shape = [axis.dim_value for axis in model.graph.input[0].type.tensor_type.shape.dim][1:]
        save_npz(data, {INPUT: images(shape, CALIBRATION, seed=1)})
        for kind in OPTIONS if network in ALL_OPTIONS else ("default",):
            given = () if kind == "float" else ("--calibration", str(data))
            yield Case(f"{network} {kind}", path, (*OPTIONS[kind], *given))
    for path in sorted((ROOT / "examples" / "relay").glob("*.relay")):
        text = path.read_text()
        if "def @main" not in text:
            continue
        yield Case(f"{path.stem} float", path, OPTIONS["float"])
        data = folder / f"{path.stem}.npz"
        if _write_inputs(text, data):
            yield Case(f"{path.stem} default", path, ("--calibration", str(data)))


def _write_inputs(text: str, data: Path) -> bool:
    """Random inputs of a program; False where one is no tensor of known shape."""
    rng = np.random.default_rng(2)
    arrays: dict[str, np.ndarray] = {}
    for var in parse(text)["main"].params:
        ty = var.type_annotation
        if not isinstance(ty, TensorType) or not all(isinstance(dim, int) for dim in ty.shape):
            return False
        values = rng.normal(size=(CALIBRATION, *ty.static_shape))
        arrays[var.name_hint] = (values * 0.1).astype(ty.dtype)
    save_npz(data, arrays)
    return True


def build(tree: Path, case: Case, out: Path) -> dict[str, bytes]:
    """Files of the build that these sources make of a case; what the command said where it makes none."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "relay_hw.cli", "compile", str(case.model), *case.options, "-o", str(out)]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
    if done.returncode:
        return {"(error)": done.stderr.encode()}
    return {str(p.relative_to(out)): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()}


def renamed(name: str, content: bytes, names: Mapping[str, str]) -> bytes:
    """A text of the earlier commit with today's names."""
    if Path(name).suffix in TEXT:
        for old, new in names.items():
            content = content.replace(old.encode(), new.encode())
    return content


def differing(before: Mapping[str, bytes], now: Mapping[str, bytes], names: Mapping[str, str]) -> list[str]:
    """Files that only one has, or that differ."""
    return [
        name
        for name in sorted(before.keys() | now.keys())
        if name not in now or name not in before or renamed(name, before[name], names) != now[name]
    ]


def replay(commit: str, only: str, names: Mapping[str, str], keep: Path | None) -> int:
    """Print a line a case; 1 where a file differs. `keep`: where builds that differ are left."""
    wrong = count = 0
    with sources(commit) as tree, tempfile.TemporaryDirectory() as temporary:
        folder = keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for case in cases(folder):
            if only not in case.name:
                continue
            count += 1
            out = folder / case.name.replace(" ", "-")
            found = differing(build(tree, case, out / "before"), build(ROOT, case, out / "now"), names)
            wrong += bool(found)
            print(f"{case.name}: {', '.join(found) or 'equal'}", flush=True)
    print(f"{count - wrong} of {count} builds are equal to those of {commit}")
    return 1 if wrong or not count else 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", help="the commit to compare with")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name holds this text")
    parser.add_argument("--rename", action="append", default=[], metavar="OLD=NEW", help="a name that changed since")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave models, data and builds there")
    options = parser.parse_args(arguments)
    names = dict(pair.split("=", 1) for pair in options.rename)
    return replay(options.commit, options.only, names, options.keep)


if __name__ == "__main__":
    sys.exit(main())
