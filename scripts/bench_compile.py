"""Cycles of every network of examples/models against those of an earlier commit, and the processor time of compiling.

In: networks, memory models, maybe a commit. Out: a table; 1 where a network is slower than in scripts/cycles.json, or
where compiling takes more than LIMITS of that commit's time in this run. `--write` records a commit's cycles there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples.models import NETWORKS
from relay_hw.report import number, table

ROOT = Path(__file__).resolve().parents[1]
# Cycles by memory model and network, with the commit that they are of.
RECORD = ROOT / "scripts" / "cycles.json"
ROW = ROOT / "scripts" / "compile_row.py"
MEMORIES = ("standard", "ulx3s")
# Processor time of compiling over that of the commit, by what may stay on the device: the search for it takes its time.
LIMITS = {"off": 1.3, "auto": 2.0}
NAMES = tuple(example.name for example in NETWORKS)
HEAD = (
    "network",
    "memory",
    "cycles",
    "recorded",
    "change",
    "seconds",
    "no search",
    "commit",
    "ratio",
    "no search/commit",
)


@contextmanager
def sources(commit: str) -> Iterator[Path]:
    """The sources of a commit in a folder of their own."""
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", folder], check=True, input=archive.stdout)
        yield Path(folder)


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of the processor: with the search for what stays on the device, without it, and of the commit."""

    auto: float
    off: float
    then: float

    def __add__(self, other: Times) -> Times:
        return Times(self.auto + other.auto, self.off + other.off, self.then + other.then)

    def ratios(self) -> dict[str, float]:
        """Of today's times over the commit's, by the keys of LIMITS."""
        return {"auto": self.auto / self.then, "off": self.off / self.then}


def compiled(tree: Path, name: str, memory: str, resident: str = "auto") -> dict[str, float]:
    """What compile_row says of a network in these sources, on one thread."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    environment = {**os.environ, **threads, "PYTHONPATH": str(tree)}
    command = [sys.executable, str(ROW), name, memory, resident]
    done = subprocess.run(command, cwd=tree, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def recorded() -> dict[str, Any]:
    """The record: `commit`, and `cycles` by memory and network."""
    return json.loads(RECORD.read_text())


def line(name: str, memory: str, now: Mapping[str, float], before: int, times: Times | None) -> tuple[str, ...]:
    """One row of the table. `before`: cycles of the record."""
    shown = ("", "", "", "")
    if times is not None:
        ratios = times.ratios()
        shown = (f"{times.off:.1f}", f"{times.then:.1f}", f"{ratios['auto']:.2f}", f"{ratios['off']:.2f}")
    change = f"{now['cycles'] / before - 1:+.2%}"
    return (name, memory, number(int(now["cycles"])), number(before), change, f"{now['seconds']:.1f}", *shown)


def compare(names: Sequence[str], memories: Sequence[str], timed: bool) -> int:
    """Print the table; 1 where something is slower than it may be."""
    record, rows = recorded(), list[tuple[str, ...]]()
    slower: list[str] = []
    spent: list[Times] = []
    with sources(record["commit"]) as tree:
        for memory in memories:
            for name in names:
                before = record["cycles"][memory].get(name)
                if before is None:
                    print(f"{name} on {memory} has no record", file=sys.stderr)
                    continue
                now = compiled(ROOT, name, memory)
                times = timings(tree, name, memory, now["seconds"]) if timed else None
                spent += [] if times is None else [times]
                rows.append(line(name, memory, now, before, times))
                print("  ".join(rows[-1]), file=sys.stderr, flush=True)
                slower += [f"{name} on {memory}"] if now["cycles"] > before else []
    print(f"against {record['commit']}:\n{table(HEAD, rows)}")
    if slower:
        print(f"more cycles than in {RECORD.name}: {', '.join(slower)}")
    return 1 if slower or (spent and late(reduce(add, spent))) else 0


def timings(tree: Path, name: str, memory: str, auto: float) -> Times | None:
    """Seconds of a network in this run; `auto`: those of the default. None where the commit has no such network."""
    if f'"{name}"' not in (tree / "examples" / "models" / "__init__.py").read_text():
        return None
    off = compiled(ROOT, name, memory, "off")["seconds"]
    return Times(auto, off, compiled(tree, name, memory)["seconds"])


def late(total: Times) -> bool:
    """Print all seconds together; whether they are more than LIMITS."""
    ratios = total.ratios()
    said = ", ".join(f"{ratios[key]:.2f} with --resident {key} (limit {most})" for key, most in LIMITS.items())
    print(f"processor time of compiling over that of the commit: {said}")
    return any(ratios[key] > most for key, most in LIMITS.items())


def write(commit: str, names: Sequence[str], memories: Sequence[str]) -> int:
    """Record the cycles of a commit."""
    with sources(commit) as tree:
        cycles = {memory: {name: int(compiled(tree, name, memory)["cycles"]) for name in names} for memory in memories}
    RECORD.write_text(json.dumps({"commit": commit, "cycles": cycles}, indent=1) + "\n")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", default=",".join(NAMES), help="names of examples/models (default: all)")
    parser.add_argument("--memory", default=",".join(MEMORIES), help=f"memory models (default: {','.join(MEMORIES)})")
    parser.add_argument("--time", action="store_true", help="compile with the record's commit too, compare the seconds")
    parser.add_argument("--write", metavar="COMMIT", help="record the cycles of a commit instead")
    args = parser.parse_args(arguments)
    names, memories = args.networks.split(","), args.memory.split(",")
    return write(args.write, names, memories) if args.write else compare(names, memories, args.time)


if __name__ == "__main__":
    sys.exit(main())
