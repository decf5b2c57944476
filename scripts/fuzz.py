"""Fuzz the twelve entry points: mutated and made-up inputs, each read in a child of limited memory and time.

In: how many inputs, of which entry points. Out: build/fuzz with a journal, from which a killed run goes on, and a file
for each failure; a table. Status 1 if there was a failure.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from relay_hw.report import table
from tests.fuzz.entries import ENTRIES
from tests.fuzz.journal import Batch, Journal, note_of
from tests.fuzz.judge import Entry, Finding, Outcome, judge, made
from tests.fuzz.pool import Job, run

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "fuzz"
BATCH = 100


def jobs(entries: Sequence[Entry], seed: int, inputs: int | None) -> Iterator[Job]:
    """All inputs, in batches of every entry point in turn."""
    counts = {entry.name: entry.inputs if inputs is None else inputs for entry in entries}
    for first in range(0, max(counts.values(), default=0), BATCH):
        for entry in entries:
            if first < counts[entry.name]:
                yield Job(entry, seed, first, min(first + BATCH, counts[entry.name]))


def summary(batches: Sequence[Batch]) -> str:
    """A row for each entry point."""
    names = [name for name in ENTRIES if any(batch.entry == name for batch in batches)]
    rows: list[tuple[str, ...]] = []
    for name in names:
        mine = [batch for batch in batches if batch.entry == name]
        counts = sum((batch.counts for batch in mine), Counter[Outcome]())
        slowest = max(batch.slowest for batch in mine)
        rows.append((name, str(counts.total()), *(str(counts[outcome]) for outcome in Outcome), f"{slowest:.2f}"))
    heads = ("entry point", "inputs", *(outcome.value for outcome in Outcome), "slowest s")
    return table(heads, rows, frozenset(heads[1:]))


def only(entry: Entry, seed: int, number: int) -> Finding:
    """What becomes of one input, in this process: a debugger may look on."""
    with tempfile.TemporaryDirectory() as folder:
        return judge(entry, made(entry, seed, number), Path(folder))


def fuzz(entries: Sequence[Entry], args: argparse.Namespace) -> int:
    """Do what the journal does not have yet."""
    journal = Journal(FOLDER)
    wanted = list(jobs(entries, args.seed, args.inputs))
    left = [job for job in wanted if not journal.has(job)]
    if len(left) < len(wanted):
        print(f"{len(wanted) - len(left)} of {len(wanted)} batches are done already (--fresh begins anew)")
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for done in run(left, args.processes, Path(folder)):
            for path in journal.add(done):
                print(f"{path}: {note_of(path).read_text().splitlines()[0][:200]}", flush=True)
    mine = [batch for batch in journal.batches if batch.entry in {entry.name for entry in entries}]
    print(summary(mine))
    return int(any(not outcome.is_right for batch in mine for outcome in batch.counts))


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument(
        "--entry", action="append", choices=list(ENTRIES), help="of this entry point alone; may be repeated"
    )
    parser.add_argument("--inputs", type=int, help="of each (default: 2,000, and 10,000 where one takes under 5 ms)")
    parser.add_argument("--seed", type=int, default=0, help="of all inputs (default 0)")
    parser.add_argument("--processes", type=int, default=2, help="children at a time (default 2)")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="this input alone, in this process")
    parser.add_argument("--fresh", action="store_true", help="forget what earlier runs did and found")
    args = parser.parse_args(arguments)
    entries = [ENTRIES[name] for name in args.entry or ENTRIES]
    if args.only is not None:
        findings = [only(entry, args.seed, args.only) for entry in entries]
        for finding in findings:
            print(f"{finding.outcome.value}: {finding.said}")
        return int(any(not finding.outcome.is_right for finding in findings))
    if args.fresh:
        shutil.rmtree(FOLDER, ignore_errors=True)
    return fuzz(entries, args)


if __name__ == "__main__":
    sys.exit(main())
