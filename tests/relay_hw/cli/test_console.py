"""What a command says while it works: nothing at first, then lines on standard error."""

from __future__ import annotations

import io
import time

import pytest

from relay_hw.cli import console as module
from relay_hw.cli.console import Console


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("PATIENCE_SECONDS", 0.05), ("QUIET_SECONDS", 0.0), ("_TICK_SECONDS", 0.01)):
        monkeypatch.setattr(module, name, value)


def work(console: Console, seconds: float) -> None:
    with console.progress():
        console.step("counting", 0.25)
        time.sleep(seconds)


def test_short_commands_say_nothing() -> None:
    err = io.StringIO()
    work(Console(False, io.StringIO(), err), 0.3)
    assert err.getvalue() == ""


def test_long_commands_say_each_step_once(quick: None) -> None:
    err = io.StringIO()
    work(Console(False, io.StringIO(), err), 0.4)
    assert err.getvalue() == "relay-hw: counting (25%) … 0 s\n"


def test_a_terminal_gets_one_line_that_vanishes(quick: None) -> None:
    err = Terminal()
    work(Console(False, io.StringIO(), err), 0.4)
    text = err.getvalue()
    assert text.count("counting (25%)") > 1 and "\n" not in text
    assert text.endswith("\r\x1b[K")


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
