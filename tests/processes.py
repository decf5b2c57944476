"""Processes of a session: what a killed program leaves running."""

from __future__ import annotations

import time
from pathlib import Path

# Of a busy machine; nobody waits longer than it takes.
_MOST_SECONDS = 60


def alive_with(word: str) -> list[int]:
    """Numbers of the processes, zombies aside, whose command line or environment has `word`."""
    found: list[int] = []
    for path in Path("/proc").iterdir():
        if not path.name.isdecimal():
            continue
        try:
            if (path / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
                continue
            texts = (path / "cmdline").read_bytes() + (path / "environ").read_bytes()
        except OSError:
            continue
        if word.encode() in texts:
            found.append(int(path.name))
    return found


def left_with(word: str) -> list[int]:
    """The processes with `word` that are there after a while in which they could have ended."""
    until = time.monotonic() + _MOST_SECONDS
    while alive_with(word) and time.monotonic() < until:
        time.sleep(0.02)
    return alive_with(word)
