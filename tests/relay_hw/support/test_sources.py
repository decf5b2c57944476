"""Hashes of sources: any file of any folder counts, whatever is left out does not."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from relay_hw.support.sources import sources_hash

FILES = ("top.py", "room/deep.py", "room/inner/deeper.py", "room/rows.json")


def package(folder: Path, changed: str | None = None) -> ModuleType:
    """A package with `FILES`, one of them another than usual."""
    for name in (*FILES, "shown/page.py", "room/plot.py", "room/notes.txt"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name + (" changed" if name == changed else ""))
    module = ModuleType("package")
    module.__path__ = [str(folder)]
    return module


def of(module: ModuleType) -> str:
    return sources_hash(module, without=("shown", "room/plot.py"))


@pytest.mark.parametrize("changed", FILES)
def test_each_file_counts(tmp_path: Path, changed: str) -> None:
    assert of(package(tmp_path / "a")) != of(package(tmp_path / "b", changed))


@pytest.mark.parametrize("changed", [None, "shown/page.py", "room/plot.py", "room/notes.txt"])
def test_other_files_do_not(tmp_path: Path, changed: str | None) -> None:
    assert of(package(tmp_path / "a")) == of(package(tmp_path / "b", changed))


def test_a_name_counts(tmp_path: Path) -> None:
    first, second = package(tmp_path / "a"), package(tmp_path / "b")
    (tmp_path / "b" / "top.py").rename(tmp_path / "b" / "other.py")
    assert of(first) != of(second)
