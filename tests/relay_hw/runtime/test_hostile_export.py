"""Exported C of models whose names are a stranger's: it compiles without a warning, runs, and does nothing else."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from relay_hw import op
from relay_hw.ir.expr import Function, Tuple, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.deploy import export_c
from relay_hw.runtime.options import CompileOptions
from relay_hw.support.quote import line
from tests.hostile import MARK, NAMES, SAMPLE
from tests.relay_hw.runtime.conftest import Build
from tests.relay_hw.runtime.test_deploy import CC, build, device_command

pytestmark = pytest.mark.skipif(CC is None, reason="no C compiler on PATH")
SHAPE = (2, 3)
# Names of one model: inputs, outputs, and what the host reads are named one by one.
TOGETHER = 25


def transposes(folder: Path, count: int) -> Artifact:
    """A build without a program: as many tensors go in and come out turned, in integers and in floats."""
    inputs = [Var(f"x{k}", TensorType(SHAPE, "int8" if k % 2 else "float32")) for k in range(count)]
    body = Tuple([op.transpose(x) for x in inputs])
    compiled = compile_model(
        IRModule({"main": Function(inputs, body)}), CompileOptions(strategy="float", accelerate=False)
    )
    return compiled.save(folder)


def renamed(artifact: Artifact, names: Sequence[str]) -> Artifact:
    """Its inputs and outputs with these names, the model with the first."""
    rows = artifact.manifest
    inputs = tuple(replace(row, name=name) for row, name in zip(rows.inputs, names, strict=True))
    outputs = tuple(replace(row, name=name) for row, name in zip(rows.outputs, reversed(names), strict=True))
    return replace(artifact, manifest=replace(rows, model=names[0], inputs=inputs, outputs=outputs))


def check(artifact: Artifact, names: Sequence[str], folder: Path) -> None:
    """Export, compile and run it; its usage names every tensor, visibly."""
    export_c(renamed(artifact, names), folder)
    model = build(folder)
    rng = np.random.default_rng(1)
    arrays = [rng.integers(-99, 99, SHAPE).astype(row.dtype) for row in artifact.manifest.inputs]
    for k, array in enumerate(arrays):
        array.tofile(folder / f"in{k}.bin")
    files = [f"{kind}{k}.bin" for kind in ("in", "out") for k in range(len(names))]
    done = subprocess.run([model, *files], cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 sample(s), 0 cycles\n", "")
    for k, array in enumerate(arrays):
        assert (folder / f"out{k}.bin").read_bytes() == array.T.tobytes()
    said = subprocess.run([model], cwd=folder, capture_output=True)
    assert said.returncode == 2 and not set(said.stderr) - set(range(32, 127)) - {10}
    for name in names:
        # C ends a text at a zero byte.
        shown = "".join(chr(b) if 32 <= b < 127 else f"\\x{b:02x}" for b in name.split("\0")[0].encode())
        assert f" {shown}.bin" in said.stderr.decode(), line(name)
    assert not [path for path in folder.rglob("*") if MARK in path.name]


def test_a_name_of_every_kind(tmp_path: Path) -> None:
    check(transposes(tmp_path / "build", len(SAMPLE)), SAMPLE, tmp_path / "export")


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, len(NAMES), TOGETHER))
def test_all_names(first: int, tmp_path: Path) -> None:
    names = NAMES[first : first + TOGETHER]
    check(transposes(tmp_path / "build", len(names)), names, tmp_path / "export")


@pytest.mark.parametrize("name", [SAMPLE[0], SAMPLE[2]], ids=ascii)
def test_names_of_layers_regions_and_programs(name: str, plain: Build, tmp_path: Path) -> None:
    """The sentence on an input that is not finite has the name in it; the device's own part is there too."""
    _, artifact = plain
    rows = artifact.manifest
    artifact = replace(
        artifact,
        manifest=replace(
            rows,
            model=name,
            inputs=tuple(replace(row, name=name) for row in rows.inputs),
            layers=tuple(replace(row, name=name) for row in rows.layers),
        ),
    )
    folder = tmp_path / "export"
    export_c(artifact, folder)
    model = build(folder)
    np.full(rows.inputs[0].shape, np.nan, np.float32).tofile(folder / "in.bin")
    arguments = [model, "--device", device_command(folder), "--folder", folder, folder / "in.bin", folder / "out.bin"]
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    shown = name.replace("\n", "\\x0a")
    assert f"error: sample 0: input {shown}"[:80] in done.stderr
    assert not [path for path in tmp_path.rglob("*") if MARK in path.name]


def test_the_names_of_programs_are_quoted(plain: Build, tmp_path: Path) -> None:
    """A manifest may name its programs as it likes: as files of that name, and not as C."""
    _, artifact = plain
    rows = artifact.manifest
    name = 'a"; int b; "$0'
    files = {rows.regions[0].program: name}
    folder = tmp_path / "build"
    folder.mkdir()
    (folder / name).write_bytes((artifact.path / rows.regions[0].program).read_bytes())
    accel = tuple(replace(row, program=files.get(row.program, row.program)) for row in rows.regions)
    export_c(replace(artifact, path=folder, manifest=replace(rows, regions=accel)), tmp_path / "export")
    build(tmp_path / "export")
    assert (tmp_path / "export" / name).is_file()
