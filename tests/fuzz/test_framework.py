"""The framework: every class is told from the others, a killed run goes on, an input is always the same."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from relay_hw.errors import InputError
from scripts import fuzz
from tests.fuzz.entries import ENTRIES
from tests.fuzz.journal import JOURNAL, Journal, note_of
from tests.fuzz.judge import Entry, Finding, Outcome, Wrong, made
from tests.fuzz.pool import Done, Job, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of memory and time are Linux's")


def refuse(text: str) -> Callable[[], None]:
    def raise_it() -> None:
        raise InputError(text)

    return raise_it


def wrong() -> None:
    raise Wrong("2, not 3")


def fail() -> None:
    {}["x"]


def spin() -> None:
    end = time.process_time() + 60
    while time.process_time() < end:
        pass


def hide() -> None:
    """A refusal that hides that memory was not enough."""
    try:
        bytearray(3 << 30)
    except MemoryError:
        raise InputError("place: must fit") from None


KINDS: dict[str, tuple[Callable[[], object], Outcome]] = {
    "accepted": (lambda: None, Outcome.ACCEPTED),
    "alone": (lambda: Outcome.ALONE, Outcome.ALONE),
    "refused": (refuse("place: a must be b, not c"), Outcome.REFUSED),
    "no place": (refuse("a must be b, not c"), Outcome.UNCLEAR),
    "internal": (fail, Outcome.INTERNAL),
    "deep": (lambda: deep(), Outcome.INTERNAL),
    "wrong": (wrong, Outcome.WRONG),
    "crash": (lambda: os.kill(os.getpid(), signal.SIGSEGV), Outcome.CRASH),
    "exit": (lambda: os._exit(0), Outcome.CRASH),
    "big": (lambda: bytearray(3 << 30), Outcome.BIG),
    "hidden": (hide, Outcome.BIG),
    "last": (lambda: None, Outcome.ACCEPTED),
}


def deep() -> None:
    deep()


def take(data: bytes, folder: Path) -> Outcome | None:
    assert folder.is_dir()
    found = KINDS[data.decode()][0]()
    return found if isinstance(found, Outcome) else None


def numbered(names: list[str]) -> Entry:
    """An entry point whose inputs are `names`, one after the other."""
    waiting = iter(names * 2)
    return Entry("kinds", len(names), ".txt", lambda rng: next(waiting).encode(), take, r"^place: ")


def test_every_class_is_told_from_the_others(tmp_path: Path) -> None:
    names = list(KINDS)
    jobs = [Job(numbered([name]), 0, 0, 1) for name in names]
    for name, job in zip(names, jobs, strict=True):
        (done,) = run([job], 1, tmp_path / name)
        assert done.findings[0].outcome is KINDS[name][1], (name, done.findings)


def test_an_input_that_ends_the_child_ends_no_other(tmp_path: Path) -> None:
    def make(rng: Random) -> bytes:
        return rng.choice((b"accepted", b"crash"))

    job = Job(Entry("kinds", 20, ".txt", make, take, "x"), 0, 0, 20)
    (done,) = run([job], 2, tmp_path)
    expected = [KINDS[made(job.entry, 0, number).decode()][1] for number in range(20)]
    assert [done.findings[number].outcome for number in range(20)] == expected
    assert len(set(expected)) == 2


def test_a_slow_input_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.pool.MOST_SECONDS", 0.2)
    entry = Entry("slow", 1, ".txt", lambda rng: b"", lambda data, folder: spin(), "x")
    (done,) = run([Job(entry, 0, 0, 1)], 1, tmp_path)
    assert done.findings[0] == Finding(Outcome.SLOW, "took more than 0.2 s")


def test_messages_hold_nothing_that_terminals_obey(tmp_path: Path) -> None:
    entry = Entry(
        "text", 1, ".txt", lambda rng: b"", lambda data, folder: refuse("place: \x1b]0;x\x07\n" * 5000)(), "place"
    )
    (done,) = run([Job(entry, 0, 0, 1)], 1, tmp_path)
    assert done.findings[0].outcome is Outcome.REFUSED
    assert "\\x1b]0;x\\x07" in done.findings[0].said


def test_inputs_are_always_the_same() -> None:
    for entry in ENTRIES.values():
        assert made(entry, 3, 5) == made(entry, 3, 5)
        assert len({made(entry, 3, number) for number in range(8)}) > 4
    assert len(ENTRIES) == 12


def finished(first: int, outcome: Outcome) -> Done:
    entry = Entry("kinds", 20, ".txt", lambda rng: b"input", take, "x")
    return Done(
        Job(entry, 7, first, first + 2), {first: Finding(Outcome.ACCEPTED), first + 1: Finding(outcome, "why")}, 0.5
    )


def test_a_torn_line_does_not_count(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    (kept,) = journal.add(finished(0, Outcome.CRASH))
    assert kept.read_bytes() == b"input"
    assert '--entry kinds --seed 7 --only 1"' in note_of(kept).read_text()
    assert journal.add(finished(2, Outcome.REFUSED)) == []
    whole = (tmp_path / JOURNAL).read_bytes()
    for size in range(len(whole) + 1):
        (tmp_path / JOURNAL).write_bytes(whole[:size])
        again = Journal(tmp_path)
        lines = whole[:size].count(b"\n") + (size == len(whole) - 1 or whole[size : size + 1] == b"\n")
        assert len(again.batches) == lines
        again.add(finished(4, Outcome.REFUSED))
        assert len(Journal(tmp_path).batches) == lines + 1


def test_a_run_goes_on_where_it_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fuzz, "FOLDER", tmp_path)
    monkeypatch.setattr(fuzz, "BATCH", 5)
    arguments = ["--entry", "params", "--inputs", "10", "--processes", "1"]
    assert fuzz.main(arguments) == 0
    lines = (tmp_path / JOURNAL).read_text().splitlines()
    assert len(lines) == 2
    (tmp_path / JOURNAL).write_text(f"{lines[0]}\n{lines[1][:20]}")
    assert fuzz.main(arguments) == 0
    assert "1 of 2 batches are done already" in capsys.readouterr().out
    assert [batch.first for batch in Journal(tmp_path).batches] == [0, 5]
    assert fuzz.main([*arguments, "--fresh"]) == 0
    assert "done already" not in capsys.readouterr().out
    assert fuzz.main(["--entry", "params", "--only", "3"]) == 0
    assert capsys.readouterr().out.startswith(("accepted: ", "refused: InputError: "))
