"""ARCHITECTURE.md stays short and true, and every folder says what is in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_BYTES = 15_000
PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md")
TOPS = ("accel", "docs", "examples", "relay_hw", "scripts", "tensorize", "tests")
# tests/README.md says that it mirrors the packages.
MIRRORED = "tests"
SUFFIXES = (".cpp", ".h", ".json", ".md", ".py", ".toml", ".v", ".vh")


def test_architecture_is_short() -> None:
    size = len((ROOT / "ARCHITECTURE.md").read_bytes())
    assert size < MOST_BYTES, f"ARCHITECTURE.md must have less than {MOST_BYTES:,} bytes, not {size:,}: move details"


def paths_of(text: str) -> Iterator[Path]:
    """Paths that a page names between backquotes or as links. A bare file name lies where the one before it does."""
    folder = Path()
    for quoted, link in re.findall(r"`([\w./]+)`|\]\(([\w./-]+)\)", text):
        name = quoted or link
        if link or "/" in name:
            yield (path := Path(name))
            folder = path.parent if path.suffix else path
        elif name.endswith(SUFFIXES):
            yield folder / name


@pytest.mark.parametrize("page", PAGES)
def test_paths_of_a_page_exist(page: str) -> None:
    text = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(), flags=re.M | re.S)
    paths = list(paths_of(text))
    assert len(paths) > 10
    assert [str(path) for path in paths if not (ROOT / path).exists()] == []


def modules_of(text: str) -> set[str]:
    return set(re.findall(r"`?(relay_hw(?:\.[a-z_]+)+)", text))


def test_modules_of_the_page_exist() -> None:
    names = modules_of((ROOT / "ARCHITECTURE.md").read_text())
    assert len(names) > 10
    for name in names:
        path = ROOT / name.replace(".", "/")
        assert path.is_dir() or path.with_suffix(".py").is_file(), f"{name} must be a module"


def folders() -> list[Path]:
    found = {path.parent for top in TOPS for path in (ROOT / top).rglob("*") if path.is_file()}
    parts = {folder: folder.relative_to(ROOT).parts for folder in found}
    kept = (folder for folder, names in parts.items() if not any(n[0] == "." or n == "__pycache__" for n in names))
    return sorted(kept)


def says_what_it_is(folder: Path) -> bool:
    """A README, a package docstring, or, for a folder that is no package, its name in those of a folder above it."""
    if (folder / "__init__.py").is_file() or (folder / "README.md").is_file():
        return bool(about(folder))
    above = folder.relative_to(ROOT).parents
    return any(f"{folder.name}/" in about(ROOT / parent) for parent in above)


def about(folder: Path) -> str:
    """The text of its README and of its package docstring."""
    readme, init = folder / "README.md", folder / "__init__.py"
    text = readme.read_text() if readme.is_file() else ""
    return text + ((ast.get_docstring(ast.parse(init.read_text())) or "") if init.is_file() else "")


@pytest.mark.parametrize("folder", folders(), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_folder_says_what_it_is(folder: Path) -> None:
    parts = folder.relative_to(ROOT).parts
    mirrors = parts[0] == MIRRORED and (ROOT / Path(*parts[1:])).is_dir()
    inside = parts[0] == MIRRORED and len(parts) > 2
    assert mirrors or inside or says_what_it_is(folder), f"{'/'.join(parts)} needs a README or a package docstring"


def test_what_is_found() -> None:
    assert [*map(str, paths_of("`a/b.py`, `c.py` and `d`; [e](f/g.md), `h.py`"))] == [
        "a/b.py",
        "a/c.py",
        "f/g.md",
        "f/h.py",
    ]
    assert modules_of("`relay_hw.ir`, relay_hw.text.parser") == {"relay_hw.ir", "relay_hw.text.parser"}
