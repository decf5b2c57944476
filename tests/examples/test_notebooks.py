"""The notebooks: stored in one form and without outputs, of public names alone; `make test-notebooks` executes them."""

from __future__ import annotations

import ast
import json
import re
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.relay_hw.ir.test_public_names import STABLE

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"
BOOKS = sorted(path.name for path in FOLDER.glob("*.ipynb"))
MOST_SECONDS = 180
# Packages of the notebooks that are not ours.
OTHERS = {"collections", "numpy", "pathlib", "re", "tempfile", "time"}


def cells(name: str, kind: str) -> list[str]:
    book = json.loads((FOLDER / name).read_text())
    return ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == kind]


def trees(name: str) -> Iterator[ast.Module]:
    yield from (ast.parse(cell) for cell in cells(name, "code"))


def test_the_readme_lists_each() -> None:
    assert re.findall(r"^\| `(.*\.ipynb)`", (FOLDER / "README.md").read_text(), re.M) == BOOKS and len(BOOKS) == 7


@pytest.mark.parametrize("name", BOOKS)
def test_a_notebook_is_stored_so_that_differences_can_be_read(name: str) -> None:
    """One line of JSON a line of source, in one order, no outputs, cells by names that stay."""
    text = (FOLDER / name).read_text()
    book = json.loads(text)
    assert text == json.dumps(book, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    for cell in book["cells"]:
        assert cell["metadata"] == {} and re.fullmatch(r"[a-z]+(-text)?", cell["id"])
        assert [line.count("\n") for line in cell["source"]] == [1] * (len(cell["source"]) - 1) + [0]
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)


@pytest.mark.parametrize("name", BOOKS)
def test_a_notebook_is_valid(name: str) -> None:
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (extra notebooks)")
    nbformat.validate(nbformat.read(FOLDER / name, as_version=4))


@pytest.mark.parametrize("name", BOOKS)
def test_a_notebook_explains_and_ends_with_something_to_try(name: str) -> None:
    texts = cells(name, "markdown")
    assert texts[0].startswith("# ") and texts[-1].startswith("## Something to try\n\n- ")
    assert len(texts) >= len(cells(name, "code"))


@pytest.mark.parametrize("name", BOOKS)
def test_a_notebook_imports_public_names_alone(name: str) -> None:
    for tree in trees(name):
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                assert {one.name for one in node.names} <= {*OTHERS, "relay_hw"}
            elif isinstance(node, ast.ImportFrom):
                assert node.module is not None
                if node.module not in OTHERS:
                    assert node.module in STABLE, node.module
                    assert {one.name for one in node.names} <= {*import_module(node.module).__all__}


def attributes(tree: ast.AST, name: str) -> Iterator[str]:
    """Dotted names that begin with `name`."""
    for node in ast.walk(tree):
        dotted = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
        if re.fullmatch(rf"{name}(\.\w+)+", dotted):
            yield dotted


@pytest.mark.parametrize("name", BOOKS)
def test_names_of_the_package_exist(name: str) -> None:
    found: dict[str, Any] = {}
    for tree in trees(name):
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                exec(ast.unparse(node), found)
        for known in ("relay", "relay_hw"):
            for dotted in attributes(tree, known):
                eval(dotted, found)


@pytest.mark.long
@pytest.mark.parametrize("name", BOOKS)
def test_a_notebook_runs(name: str, tmp_path: Path) -> None:
    nbformat, nbclient = (pytest.importorskip(one, reason="extra notebooks") for one in ("nbformat", "nbclient"))
    book = nbformat.read(FOLDER / name, as_version=4)
    begin = time.monotonic()
    nbclient.NotebookClient(
        book, timeout=MOST_SECONDS, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    print(f"{name}: {time.monotonic() - begin:.0f} s")
    for cell in book.cells:
        streams = [out.text for out in cell.get("outputs", ()) if out.output_type == "stream" and out.name == "stderr"]
        assert streams == [], cell.source
