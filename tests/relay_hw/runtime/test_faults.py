"""A step that fails, or is the last of the process, loses no build, no outputs, no finished strategy and no library."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from relay_hw.accel.isa.config import load_config
from relay_hw.accel.sim import verilator
from relay_hw.accel.sim.verilator import Build as Library
from relay_hw.accel.sim.verilator import build_library
from relay_hw.cli.data import save_npz
from relay_hw.compare.store import Store
from relay_hw.errors import ArtifactError
from relay_hw.runtime.archive import Archive
from relay_hw.runtime.artifact import load_artifact
from relay_hw.runtime.deploy import export_c
from relay_hw.support import durable
from relay_hw.support.temporary import is_temporary
from tests.faults import Fault, every_fault
from tests.relay_hw.runtime.conftest import Build

FAULTS = pytest.mark.parametrize("fault", list(Fault), ids=lambda fault: fault.value)
# Whole builds are cut off at each step by an exit of the process; an exception on top of that takes longer.
BUILD_FAULTS = pytest.mark.parametrize(
    "fault",
    [pytest.param(fault, marks=() if fault is Fault.EXIT else pytest.mark.long) for fault in Fault],
    ids=lambda fault: fault.value,
)
# tests/accel/test_durable.py tries both ways at every step; with whole builds the second takes longer.
EXCHANGE = pytest.mark.parametrize(
    "can_exchange", [True, pytest.param(False, marks=pytest.mark.long)], ids=["exchange", "two steps"]
)


def fresh(folder: Path, fill: Callable[[], object]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    fill()


@BUILD_FAULTS
@EXCHANGE
def test_a_build_on_a_build(plain: Build, tmp_path: Path, fault: Fault, can_exchange: bool) -> None:
    """Reading is enough to put back what a writer renamed away."""
    compiled, old = plain
    root, path = tmp_path / "root", tmp_path / "root" / "build"
    new = compiled.__class__(**{name: getattr(compiled, name) for name in compiled.__slots__} | {"name": "newer"})

    def prepare() -> None:
        shutil.copytree(old.path, path)
        (path / "notes.txt").write_text("mine")

    steps = 0
    for steps in every_fault(lambda: fresh(root, prepare), lambda: new.save(path), fault, can_exchange):
        assert load_artifact(path).manifest.model in (old.manifest.model, "newer"), steps
        assert (path / "notes.txt").read_text() == "mine", steps
        new.save(path)
        assert load_artifact(path).manifest.model == "newer"
        assert (path / "notes.txt").read_text() == "mine" and os.listdir(root) == ["build"], steps
        assert not [name for name in os.listdir(path) if is_temporary(name)]
    assert steps > len(old.manifest.files)


@BUILD_FAULTS
def test_the_first_build(plain: Build, tmp_path: Path, fault: Fault) -> None:
    compiled, _ = plain
    root, path = tmp_path / "root", tmp_path / "root" / "build"
    for step in every_fault(lambda: fresh(root, lambda: None), lambda: compiled.save(path), fault):
        try:
            load_artifact(path)
        except ArtifactError as error:
            assert "not a missing folder" in str(error), step
        compiled.save(path)
        assert load_artifact(path).path == path and os.listdir(root) == ["build"], step


@FAULTS
def test_an_export_on_an_export(plain: Build, tmp_path: Path, fault: Fault) -> None:
    _, artifact = plain
    root, path = tmp_path / "root", tmp_path / "root" / "c"
    fresh(root, lambda: export_c(artifact, path))
    old = {file.name: file.read_bytes() for file in path.iterdir()}
    for step in every_fault(lambda: fresh(root, lambda: export_c(artifact, path)),
                            lambda: export_c(artifact, path), fault):  # fmt: skip
        durable.recover(path)
        assert {file.name: file.read_bytes() for file in path.iterdir()} == old, step
        export_c(artifact, path)
        assert os.listdir(root) == ["c"], step


@FAULTS
def test_outputs(tmp_path: Path, fault: Fault) -> None:
    root, path = tmp_path / "root", tmp_path / "root" / "out.npz"
    old, new = {"scores": np.zeros((50, 10))}, {"scores": np.ones((60, 10)), "file": np.arange(3)}
    for step in every_fault(lambda: fresh(root, lambda: save_npz(path, old)), lambda: save_npz(path, new), fault):
        found = Archive(path, "outputs")
        assert found["scores"].shape in ((50, 10), (60, 10)) and len(np.unique(found["scores"])) == 1, step
        save_npz(path, new)
        assert sorted(Archive(path, "outputs")) == ["file", "scores"] and os.listdir(root) == ["out.npz"], step


@FAULTS
def test_finished_strategies(tmp_path: Path, fault: Fault) -> None:
    """What a comparison has finished before stays finished; the next one begins by removing what is left."""
    root = tmp_path / "root"

    def compare() -> None:
        store = Store(root)
        store.write("second", "key 2", {"row": 2})
        store.keep_arrays("float", "key 3", {"test": np.ones(100)})
        store.put(root / "report.html", b"page" * 100)

    for step in every_fault(
        lambda: fresh(root, lambda: Store(root).write("first", "key 1", {"row": 1})), compare, fault
    ):
        store = Store(root)
        assert not [name for name in os.listdir(root) if is_temporary(name)], step
        assert store.read("first", "key 1") == {"row": 1}, step
        assert store.read("second", "key 2") in (None, {"row": 2}), step
        arrays = store.read_arrays("float", "key 3")
        assert arrays is None or arrays["test"].sum() == 100, step
        assert not (root / "report.html").exists() or (root / "report.html").read_bytes() == b"page" * 100, step


@FAULTS
@EXCHANGE
def test_libraries_of_the_verilog(
    tmp_path: Path, fault: Fault, can_exchange: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tools that take a minute are stubs here: what they leave is a library; an older one was cut."""
    root = tmp_path / "root"
    content = b"library" * 1000
    monkeypatch.setattr(verilator, "run_verilator", lambda _tools, _words, _folder: None)
    monkeypatch.setattr(verilator, "_build_into", lambda _build, _tools, work, _cache: _stub(work, content))
    build = Library.of(load_config("tiny"))

    def cut() -> None:
        library = build_library(build, cache=root)
        library.write_bytes(library.read_bytes()[:100])

    for step in every_fault(lambda: fresh(root, cut), lambda: build_library(build, cache=root), fault, can_exchange):
        library = build_library(build, cache=root)
        assert library.read_bytes() == content, step
        assert [p.name for p in (root / "rtl").iterdir() if is_temporary(p.name)] == [], step


def _stub(work: Path, content: bytes) -> None:
    (work / "obj").mkdir()
    (work / verilator.LIBRARY).write_bytes(content)
    shutil.rmtree(work / "obj")
    (work / "build.json").write_text("{}")
