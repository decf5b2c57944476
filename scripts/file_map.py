"""The list of files in ARCHITECTURE.md: each with the first sentence of its docstring or head comment.

`--check` fails when the list is stale, `--write` renews it.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "ARCHITECTURE.md"
MARK = re.compile(r"^<!-- files: .* -->\n", re.MULTILINE)
TOPS = ("relay_hw", "tensorize", "accel", "scripts")


def summary(path: Path) -> str:
    """What the file says about itself: the first paragraph of its docstring or head comment, its first sentence."""
    if path.suffix == ".py":
        text = ast.get_docstring(ast.parse(path.read_text())) or ""
    else:
        lines = path.read_text().splitlines()
        head = [line[2:].strip() for line in lines[: next((i for i, x in enumerate(lines) if x[:2] != "//"), 0)]]
        text = " ".join(head)
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z`])", paragraph)[0].rstrip(".")


def rows() -> Iterator[str]:
    """Markdown: a heading a folder, a line a file."""
    files = (p for top in TOPS for p in (ROOT / top).rglob("*") if p.suffix in (".py", ".v", ".cpp", ".h"))
    folders: dict[Path, list[Path]] = {}
    for path in sorted(files):
        if "__pycache__" not in path.parts:
            folders.setdefault(path.parent, []).append(path)
    for folder in sorted(folders):
        init = folder / "__init__.py"
        about = f": {summary(init)}" if init in folders[folder] else ""
        yield f"\n### {folder.relative_to(ROOT)}{about}\n"
        yield from (f"- `{path.name}` {summary(path)}" for path in folders[folder] if path != init)


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns 1 when `--check` finds a stale list."""
    parser = argparse.ArgumentParser(description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true", help="fail when the list is stale")
    action.add_argument("--write", action="store_true", help="write the list")
    options = parser.parse_args(arguments)
    text = TARGET.read_text()
    mark = MARK.search(text)
    assert mark is not None, f"{TARGET.name} must have the mark that begins the list of files"
    fresh = text[: mark.end()] + "\n".join(rows()) + "\n"
    if options.write:
        TARGET.write_text(fresh)
    elif fresh != text:
        print(f"{TARGET.name} must list the files as they are: run python scripts/gen.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
