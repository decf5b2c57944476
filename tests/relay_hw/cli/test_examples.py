"""Examples in the help of each command: the parser reads each, `make test-docs` runs those that need no hardware."""

from __future__ import annotations

import shlex
import shutil
from argparse import ArgumentParser, _SubParsersAction
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from relay_hw.cli.commands import parser
from relay_hw.cli.examples import EXAMPLES
from relay_hw.cli.main import main

ROOT = Path(__file__).parents[3]
ALL = [(command, one) for command, shown in EXAMPLES.items() for one in shown]
# A synthesis of an hour; a board; an assistant that asks.
NOT_RUN = ("relay-hw bitstream", "relay-hw selftest --device fpga", "relay-hw mcp")
# Status 1: something that could be installed is missing.
MAY_FIND = ("relay-hw doctor",)


def commands() -> dict[str, ArgumentParser]:
    (action,) = [one for one in parser()._actions if isinstance(one, _SubParsersAction)]
    return dict(action.choices)


def test_every_command_has_one_or_two() -> None:
    assert list(EXAMPLES) == list(commands())
    assert {len(shown) for shown in EXAMPLES.values()} == {1, 2}


@pytest.mark.parametrize(("command", "example"), ALL)
def test_an_example_is_read(command: str, example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = shlex.split(example)
    assert words[:2] == ["relay-hw", command]
    found = parser().parse_args(words[1:])
    assert found.run == commands()[command].get_default("run")


@pytest.mark.parametrize("command", EXAMPLES)
def test_help_shows_each_on_a_line(command: str) -> None:
    lines = commands()[command].format_help().splitlines()
    for example in EXAMPLES[command]:
        assert f"  {example}" in lines
    heads = [line for line in lines if line.startswith("examples")]
    needs_demo = any("relay-hw-demo/" in example for example in EXAMPLES[command])
    assert heads == ["examples, where `relay-hw demo` has run:" if needs_demo else "examples:"]


@pytest.mark.long
def test_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    # Nobody is there to type commands of the debugger.
    monkeypatch.setattr("sys.stdin", StringIO())
    shutil.copytree(ROOT / "examples" / "relay", tmp_path / "examples" / "relay")
    for _, example in ALL:
        if not example.startswith(NOT_RUN):
            status = main(shlex.split(example)[1:])
            assert status == 0 or (status == 1 and example.startswith(MAY_FIND)), f"{example}\n{capsys.readouterr()}"
