"""Colours: on terminals that have them, unless NO_COLOR is set; what is piped has none, and a name brings none."""

from __future__ import annotations

import io

import pytest

from relay_hw.cli.colours import has_colours
from relay_hw.cli.commands import parser
from relay_hw.cli.console import Console
from relay_hw.report import table

TABLE = table(("name", "cycles"), [("conv", "12"), ("-----", "--")], frozenset({"cycles"}))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return Terminal()


def shown(stream: io.StringIO) -> str:
    console = Console(False, stream, stream)
    console.result({}, TABLE)
    console.warning("odd")
    console.error("bad")
    return stream.getvalue()


def test_a_terminal_shows_heads_and_problems_in_styles(terminal: Terminal) -> None:
    head, rule, *rows = TABLE.splitlines()
    lines = [f"\x1b[1m{head}\x1b[0m", f"\x1b[2m{rule}\x1b[0m", *rows]
    lines += ["relay-hw: \x1b[1;33mwarning\x1b[0m: odd", "relay-hw: \x1b[1;31merror\x1b[0m: bad"]
    assert shown(terminal) == "\n".join([*lines, ""])


def test_what_is_piped_has_none(terminal: Terminal) -> None:
    assert "\x1b" not in shown(io.StringIO()) and not has_colours(io.StringIO())


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_user_who_wants_none_gets_none(
    name: str, value: str, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert "\x1b" not in shown(terminal)


def test_an_empty_no_color_says_nothing(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "")
    assert has_colours(terminal)


def test_json_has_none(terminal: Terminal) -> None:
    Console(True, terminal, terminal).result({"name": "a\nb\n--"}, "")
    assert terminal.getvalue() == '{"name": "a\\nb\\n--"}\n'


def test_a_name_brings_no_colours(terminal: Terminal) -> None:
    Console(False, terminal, terminal).error("\x1b[31mred")
    assert terminal.getvalue() == "relay-hw: \x1b[1;31merror\x1b[0m: \\x1b[31mred\n"


def test_help_has_headings_in_styles(terminal: Terminal) -> None:
    parser().print_help(terminal)
    piped = io.StringIO()
    parser().print_help(piped)
    text = terminal.getvalue()
    assert text.startswith("\x1b[1musage:\x1b[0m relay-hw ") and "\n\x1b[1moptions:\x1b[0m\n" in text
    assert text.replace("\x1b[1m", "").replace("\x1b[0m", "") == piped.getvalue()
