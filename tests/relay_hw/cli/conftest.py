"""These commands are patient: on a busy machine two seconds pass soon, and progress would join the messages."""

from __future__ import annotations

import pytest

from relay_hw.cli import console


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No progress from commands in this process; tests of progress set their own time."""
    monkeypatch.setattr(console, "PATIENCE_SECONDS", float("inf"))


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables have all columns, however wide the terminal is that the tests run in; tests of widths set their own."""
    monkeypatch.setenv("COLUMNS", "300")
