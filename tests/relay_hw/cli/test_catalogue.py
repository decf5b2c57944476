"""`relay-hw list`: every name that it prints is one that the option takes."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from relay_hw.cli import arguments as arg
from relay_hw.cli.catalogue import KINDS
from relay_hw.cli.main import main
from relay_hw.target.accel.devices import DEVICES

READERS: dict[str, Callable[[str], object]] = {
    "configs": arg.config,
    "strategies": arg.strategy,
    "boards": arg.board,
    "memories": arg.memory,
    "targets": arg.target,
    "devices": {kind.name: kind for kind in DEVICES}.__getitem__,
}


@pytest.mark.parametrize("kind", KINDS)
def test_names_are_taken(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", kind, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)[kind]
    assert rows and all(READERS[kind](row["name"]) is not None for row in rows)
    assert main(["list", kind]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [text.split()[0] for text in shown[2:] if not text.startswith(" ")] == [row["name"] for row in rows]


def test_every_kind_is_tested() -> None:
    assert tuple(READERS) == KINDS
