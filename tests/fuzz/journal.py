"""What a run has done so far: a file of lines that is only ever added to, and a file for each failure.

In: a folder. Out: the jobs that are done, sums by entry point. A line that a killed run tore does not count.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.fuzz.judge import Finding, Outcome, made
from tests.fuzz.pool import Done, Job

JOURNAL: Final = "journal.jsonl"


@dataclass(frozen=True, slots=True)
class Batch:
    """A finished job."""

    entry: str
    seed: int
    first: int
    last: int
    counts: Counter[Outcome]
    slowest: float


class Journal:
    """The journal of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.batches = _read(folder / JOURNAL)

    def has(self, job: Job) -> bool:
        """Whether that job is done."""
        return any(
            (b.entry, b.seed, b.first, b.last) == (job.entry.name, job.seed, job.first, job.last) for b in self.batches
        )

    def add(self, done: Done) -> list[Path]:
        """Note a job, and keep its failures: their files."""
        kept = [self._keep(done.job, number, one) for number, one in done.findings.items() if not one.outcome.is_right]
        counts = Counter(finding.outcome for finding in done.findings.values())
        batch = Batch(done.job.entry.name, done.job.seed, done.job.first, done.job.last, counts, done.slowest)
        self.batches.append(batch)
        _append(self._folder / JOURNAL, _row(batch))
        return kept

    def _keep(self, job: Job, number: int, finding: Finding) -> Path:
        folder = self._folder / "failures"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{job.entry.name}-{job.seed}-{number}{job.entry.suffix}"
        path.write_bytes(made(job.entry, job.seed, number))
        command = f'make fuzz FLAGS="--entry {job.entry.name} --seed {job.seed} --only {number}"'
        note_of(path).write_text(f"{finding.outcome.value}: {finding.said}\n{command}\n")
        return path


def note_of(path: Path) -> Path:
    """The file that says what an input that was kept did, and how to see it again."""
    return path.with_name(f"{path.name}.why")


def _row(batch: Batch) -> dict[str, Any]:
    counts = {outcome.value: count for outcome, count in batch.counts.items()}
    return {
        "entry": batch.entry,
        "seed": batch.seed,
        "first": batch.first,
        "last": batch.last,
        "counts": counts,
        "slowest": batch.slowest,
    }


def _append(path: Path, row: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as stream:
        end = stream.seek(0, os.SEEK_END)
        if end:
            stream.seek(end - 1)
            # Behind a torn line, on a line of its own.
            torn = stream.read(1) != b"\n"
            stream.write(b"\n" if torn else b"")
        stream.write(json.dumps(row).encode() + b"\n")
        stream.flush()
        os.fsync(stream.fileno())


def _read(path: Path) -> list[Batch]:
    found: list[Batch] = []
    for line in path.read_bytes().split(b"\n") if path.exists() else []:
        try:
            row = json.loads(line)
            counts = Counter({Outcome(name): count for name, count in row["counts"].items()})
            found.append(Batch(row["entry"], row["seed"], row["first"], row["last"], counts, row["slowest"]))
        except (ValueError, TypeError, KeyError):
            continue
    return found
