"""The figures in the documents: each is read from a file of results, so that none can drift from what was measured.

In: docs/results/*.json, which the scripts of `WRITERS` measure. Out: pages in which the number behind `<!--=NAME-->` is
the figure of that name, in the form that stands there. `--write` renews the numbers; `--check` fails where one differs.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from relay_hw.accel.sim.dram_timing import MEMORY_MODELS, memory_model
from relay_hw.compare.energy import REGISTERS, SHARES
from relay_hw.tensorize.tiles.tile_space import MIN_CHUNK_CYCLES

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
# Pages whose cycle counts and percentages all have a name.
PAGES = (
    "README.md",
    "docs/boards.md",
    "docs/explore.md",
    "docs/memory.md",
    "docs/prequantized.md",
    "docs/quantization.md",
    "docs/schedules.md",
)
# What measures each file of results.
WRITERS = {
    "memory": "python scripts/measure_memory.py",
    "boards": "python scripts/boards.py",
    "soc": "python scripts/measure_soc.py",
    "residency": "python scripts/measure_residency.py",
    "strategies": "python scripts/quantization_tables.py",
    "mixed": "make measure-mixed",
    "methods": "make measure-methods",
    "trained": "make measure-trained",
    "energy": "make energy",
    "area_points": "python scripts/area_points.py",
    "prequantized": "python scripts/measure_prequantized.py",
    "performance": "make bench",
}

NUMBER = r"\d[\d,]*(?:\.\d+)?"
MARKED = re.compile(rf"<!--=([\w.:/-]+)-->(\s*)({NUMBER})")
# Cycle counts and percentages, and cells of tables that are a number of thousands.
CLAIM = re.compile(rf"(?<![\w.,-])({NUMBER})(?=\s*(?:cycles\b|%))|(?<=\| )(\d[\d,]*,\d{{3}})(?= \|)")
# What is no prose: generated tables, code blocks, code.
SKIPPED = re.compile(r"<!-- generated:.*?<!-- end -->|^```.*?^```$|^    [^\n]*$|`[^`\n]*`", re.M | re.S)


@dataclass(frozen=True, slots=True)
class Figure:
    """A number in a page: where it stands, and the name of what it shows."""

    name: str
    text: str
    begin: int
    end: int


def load_results(folder: Path = RESULTS) -> dict[str, Any]:
    """Every file of results under its name without suffix."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))} | {"code": constants()}


def constants() -> dict[str, Any]:
    """Numbers of the source that pages repeat."""
    return {
        "memory": {name: {"latency": memory_model(name).latency} for name in MEMORY_MODELS},
        "chunk_cycles": MIN_CHUNK_CYCLES,
        "energy": {**asdict(SHARES), "first_registers": REGISTERS[0], "bit_registers": REGISTERS[1]},
    }


def value(results: dict[str, Any], name: str) -> float:
    """The figure of a dotted name. Raises KeyError with a sentence where it is not there."""
    found: Any = results
    for part in name.split("."):
        if not isinstance(found, dict) or part not in found:
            raise KeyError(f"figure {name} must be in docs/results, not missing: measure it by {writer(name)}")
        found = found[part]
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise KeyError(f"figure {name} must be a number, not {found}")
    return found


def writer(name: str) -> str:
    """The command that measures a figure."""
    return WRITERS.get(name.split(".")[0], "a script of its own")


def shown(number: float, like: str) -> str:
    """A number in the form of `like`: as many decimals, commas between thousands."""
    return f"{number:,.{len(like.partition('.')[2])}f}"


def figures(text: str) -> Iterator[Figure]:
    """The named numbers of a page."""
    for match in MARKED.finditer(text):
        yield Figure(match[1], match[3], match.start(3), match.end(3))


def unnamed(text: str) -> list[str]:
    """Cycle counts and percentages of a page's prose and tables that have no name, each with its line."""
    named = {figure.begin for figure in figures(text)}
    blank = SKIPPED.sub(lambda match: re.sub(r"\S", " ", match[0]), text)
    blank = re.sub(r"<!--.*?-->", lambda match: " " * len(match[0]), blank)
    lines = text.splitlines()
    return [
        f"{match[0]}: {lines[text.count(chr(10), 0, match.start())]}"
        for match in CLAIM.finditer(blank)
        if match.start() not in named
    ]


def differences(text: str, results: dict[str, Any]) -> list[str]:
    """Named numbers that are not what was measured, or were not measured at all."""
    found: list[str] = []
    for figure in figures(text):
        try:
            wanted = shown(value(results, figure.name), figure.text)
        except KeyError as error:
            found.append(str(error.args[0]))
        else:
            found += [f"{figure.name} must be {wanted}, not {figure.text}"] if wanted != figure.text else []
    return found


def renewed(text: str, results: dict[str, Any]) -> str:
    """The page with every named number as it was measured."""
    return MARKED.sub(
        lambda match: f"<!--={match[1]}-->{match[2]}{shown(value(results, match[1]), match[3])}",
        text,
    )


def replaced(text: str, name: str, body: str) -> str:
    """The page with another body of its generated part `name`. Raises ValueError where the page has none or several."""
    begin, end = f"<!-- generated: {name} -->\n", "<!-- end -->"
    if text.count(begin) != 1:
        raise ValueError(f"the page must have {begin.strip()} once, not {text.count(begin)} times")
    before, rest = text.split(begin)
    return f"{before}{begin}{body}{rest[rest.index(end) :]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns 1 when `--check` finds a number that differs, or one without a name."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="renew the numbers instead of comparing them")
    write = parser.parse_args(arguments).write
    results, wrong = load_results(), 0
    for page in PAGES:
        path = ROOT / page
        text = path.read_text()
        if write:
            text = renewed(text, results)
            path.write_text(text)
        found = [*differences(text, results), *(f"must have a name: {line}" for line in unnamed(text))]
        wrong += len(found)
        for line in found:
            print(f"{page}: {line}", file=sys.stderr)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
