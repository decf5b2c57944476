"""JSON of others is read by one function, which bounds it; what our own tools wrote a moment ago need not be."""

from __future__ import annotations

import ast

import pytest

from tests.house.sources import ROOT, tree_of

# Files that open-source tools just wrote into a folder of their own, and our own processes' answers.
OWN = {
    "relay_hw/support/documents.py",
    "accel/fpga/flow.py",
    "accel/fpga/synth.py",
    "accel/fpga/route.py",
    "accel/fpga/sim/activity.py",
    "accel/fpga/board_top.py",
    "accel/fpga/litex_soc.py",
    # Copied to the board, where nothing else of the package is.
    "accel/fpga/vendor/serve.py",
}


def readers(tree: ast.AST) -> list[int]:
    """Lines that call json.load or json.loads."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id, node.attr) in {("json", "load"), ("json", "loads")}
    ]


@pytest.mark.parametrize("folder", ["relay_hw", "tensorize", "accel"])
def test_json_is_read_by_one_function(folder: str) -> None:
    files = {str(path.relative_to(ROOT)): path for path in sorted((ROOT / folder).rglob("*.py"))}
    found = {name: lines for name, path in files.items() if (lines := readers(tree_of(path)))}
    assert found.keys() <= OWN, "call relay_hw.support.documents.parse_json"


def test_what_is_found() -> None:
    assert readers(ast.parse("import json\na = json.loads(b)\nc = json.dumps(b)\njson.load(d)")) == [2, 4]
