"""What a command says while it works: nothing at first, then lines on standard error."""

from __future__ import annotations

import io
import threading

import pytest

from relay_hw.cli import console as module
from relay_hw.cli.console import Console

TICKS = 5


class Clock:
    """Seconds that stand still, and an event once they were asked for often enough; in place of `time`."""

    def __init__(self, seconds: float) -> None:
        self.asked = 0
        self.is_enough = threading.Event()
        self._seconds = seconds

    def monotonic(self) -> float:
        """The command begins at 0, its step after one second."""
        self.asked += 1
        if self.asked > TICKS:
            self.is_enough.set()
        return float(self.asked - 1) if self.asked <= 2 else self._seconds


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def work(err: io.StringIO, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that has taken `seconds`, as long as progress takes to look TICKS times."""
    clock = Clock(seconds)
    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(module, "_TICK_SECONDS", 0.01)
    console = Console(False, io.StringIO(), err)
    with console.progress():
        console.started("counting", 4)
        console.advanced("counting", 1)
        assert clock.is_enough.wait(600)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 2.0)


@pytest.mark.usefixtures("impatient")
def test_short_commands_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    err = io.StringIO()
    work(err, 1.9, monkeypatch)
    assert err.getvalue() == ""


@pytest.mark.usefixtures("impatient")
def test_long_commands_say_each_step_once(monkeypatch: pytest.MonkeyPatch) -> None:
    err = io.StringIO()
    work(err, 2.0, monkeypatch)
    assert err.getvalue() == "relay-hw: counting: 1 of 4 (25%), 3 s left … 2 s\n"


@pytest.mark.usefixtures("impatient")
def test_a_terminal_gets_one_line_that_vanishes(monkeypatch: pytest.MonkeyPatch) -> None:
    err = Terminal()
    work(err, 3.0, monkeypatch)
    text = err.getvalue()
    assert text.count("counting: 1 of 4 (25%), 6 s left … 3 s") > 1 and "\n" not in text
    assert text.endswith("\r\x1b[K")


@pytest.mark.usefixtures("impatient")
def test_a_step_that_is_over_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    err, clock = io.StringIO(), Clock(9.0)
    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(module, "_TICK_SECONDS", 0.01)
    console = Console(False, io.StringIO(), err)
    with console.progress():
        console.started("building")
        console.done("building")
        assert clock.is_enough.wait(600)
    assert err.getvalue() == ""


def test_results_go_to_standard_output_only() -> None:
    out, err = io.StringIO(), io.StringIO()
    Console(True, out, err).result({"a": 1}, "text")
    Console(False, out, err).result({"a": 1}, "text")
    assert out.getvalue() == '{"a": 1}\ntext\n' and err.getvalue() == ""


def test_errors_are_one_line() -> None:
    err = io.StringIO()
    Console(False, io.StringIO(), err).error("first\n  second")
    assert err.getvalue() == "relay-hw: error: first second\n"


def test_the_source_of_a_failure_is_shown_at_a_terminal_only() -> None:
    screen, log = Terminal(), io.StringIO()
    for err in (screen, log):
        Console(as_json=False, err=err).source("%x + %y\n     ^^")
    assert screen.getvalue() == "%x + %y\n     ^^\n"
    assert log.getvalue() == ""
