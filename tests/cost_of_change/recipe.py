"""Changes of CONTRIBUTING.md as data: texts inserted into, or files added to, a copy of the sources.

In: a `Recipe`. Out: the copy with the change, the files that a person would have edited, what a program run there says.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHECKS = Path(__file__).parent / "checks"
SOURCES = ("relay_hw", "accel", "tensorize", "scripts", "pyproject.toml")
_ITEM = re.compile(r"^\d+\. (.*(?:\n   .*)*)", re.MULTILINE)
# Seconds that a check may take: it is ended only where something hangs.
_PATIENCE = 3600


@dataclass(frozen=True)
class Insert:
    """`text` behind the only place of a file that reads `after`."""

    path: str
    after: str
    text: str

    def apply(self, tree: Path) -> None:
        _swap(tree / self.path, self.after, self.after + self.text)


@dataclass(frozen=True)
class Replace:
    """`new` for the only place of a file that reads `old`."""

    path: str
    old: str
    new: str

    def apply(self, tree: Path) -> None:
        _swap(tree / self.path, self.old, self.new)


@dataclass(frozen=True)
class Create:
    """A file that was not there."""

    path: str
    text: str

    def apply(self, tree: Path) -> None:
        target = tree / self.path
        assert not target.exists(), f"{self.path} is there already"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self.text)


Edit = Insert | Replace | Create


def _swap(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1, f"{path.name} must have one place that reads {old!r}, not {text.count(old)}"
    path.write_text(text.replace(old, new))


@dataclass(frozen=True)
class Recipe:
    """A change: the heading of its recipe, how many files may be edited for it, and the edits.

    `generates`: whether `scripts/gen.py --write` is part of it. `check`: a file of `checks` that is run in the copy.
    `tests`: tests of ours that are run there as well.
    """

    heading: str
    bar: int
    edits: tuple[Edit, ...]
    check: str
    generates: bool = False
    tests: tuple[str, ...] = ()

    @property
    def files(self) -> set[str]:
        """What a person edits."""
        return {edit.path for edit in self.edits}


def copied(tree: Path) -> Path:
    """A copy of what the product is made of, links kept, and what Python has compiled of it: modules that a recipe does
    not change need not be compiled again."""
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, symlinks=True)
        else:
            tree.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, tree / name)
    return tree


def changed(tree: Path, recipe: Recipe) -> Path:
    """The copy with the change of the recipe."""
    for edit in recipe.edits:
        edit.apply(tree)
    if recipe.generates:
        run(tree, "scripts/gen.py", "--write")
    return tree


def run(tree: Path, *arguments: str) -> str:
    """What Python prints with these arguments in the copy. Nothing is kept outside of it."""
    keep = {key: str(tree / "kept") for key in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
    environment = {**os.environ, **keep, "PYTHONPATH": str(tree)}
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=tree, env=environment, capture_output=True, text=True, timeout=_PATIENCE, check=False
    )
    assert done.returncode == 0, f"{' '.join(arguments)}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def run_tests(tree: Path, paths: tuple[str, ...]) -> None:
    """Run tests of ours in the copy."""
    for path in paths:
        target = tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, target)
        for shared in (ROOT / path).parent.glob("conftest.py"):
            shutil.copy(shared, target.parent / shared.name)
    if paths:
        run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", *paths)


def named_files(heading: str) -> tuple[set[str], set[str]]:
    """Files that a recipe of CONTRIBUTING.md names: those of every such change, and those that it needs at times."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    section = text.split(f"\n### {heading}\n", 1)[1].split("\n### ", 1)[0]
    always: set[str] = set()
    at_times: set[str] = set()
    for item in _ITEM.findall(section):
        path = re.match(r"`([\w./]+)`", item)
        if path is not None:
            (at_times if "only if" in item else always).add(path[1])
    return always, at_times
