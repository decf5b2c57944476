"""What a command says: results on standard output, progress and errors on standard error.

In: messages, JSON objects, text. Out: one JSON object or text; progress only once a command has taken two seconds.
Names come from strangers: whatever a terminal would obey is made visible here, and what it cannot show is escaped.
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from relay_hw.support.progress import IDLE, Step, Steps
from relay_hw.support.quote import line, screen

PATIENCE_SECONDS = 2.0
# Of tables where standard output is no terminal and COLUMNS is not set.
NO_TERMINAL_COLUMNS = 120
# Between two lines where standard error is no terminal.
QUIET_SECONDS = 5.0
_TICK_SECONDS = 0.25
# What removes the line that a terminal shows.
_CLEAR = "\r\x1b[K"


class Console:
    """One command's way to its user. `as_json`: one object on standard output, nothing else; `wide`: whole tables."""

    def __init__(self, as_json: bool, out: TextIO | None = None, err: TextIO | None = None, wide: bool = False) -> None:
        self.as_json = as_json
        self._wide = wide
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._progress: _Progress | None = None
        self._steps = Steps(self._show)

    def result(self, row: dict[str, Any], text: str) -> None:
        """The command's result in the form that was asked for."""
        _print(self._out, json.dumps(row) if self.as_json else text)

    @property
    def width(self) -> int | None:
        """Columns that tables may take; None where they may take as many as they need."""
        return None if self._wide else shutil.get_terminal_size((NO_TERMINAL_COLUMNS, 24)).columns

    def note(self, message: str) -> None:
        """A line for people, at once."""
        if self._progress is not None:
            self._progress.clear()
        _print(self._err, f"relay-hw: {line(message)}")

    def warning(self, message: str) -> None:
        """One line on what the command went on with, though it looks like a mistake."""
        self.note("warning: " + " ".join(message.split()))

    def error(self, message: str) -> None:
        """The one line of a failure."""
        self.note("error: " + " ".join(message.split()))

    def source(self, detail: str) -> None:
        """The source line of a failure, underlined; for people at a terminal, so that logs keep one line a failure."""
        if detail and self._err.isatty():
            _print(self._err, detail)

    def failure(self, message: str, trace: str = "") -> None:
        """The end of a command that failed: a line, for `as_json` an object as well, and where it happened if told."""
        if trace:
            _print(self._err, trace)
        if self.as_json:
            self.result({"error": " ".join(message.split())}, "")
        self.error(message)

    def started(self, step: str, total: int | None = None) -> None:
        """See `Progress.started`: steps are shown if the command takes long."""
        self._steps.started(step, total)

    def advanced(self, step: str, done: int, detail: str = "") -> None:
        """See `Progress.advanced`."""
        self._steps.advanced(step, done, detail)

    def done(self, step: str) -> None:
        """See `Progress.done`."""
        self._steps.done(step)

    def _show(self, step: Step) -> None:
        if self._progress is not None:
            self._progress.show(step)

    @contextmanager
    def progress(self) -> Iterator[None]:
        """While the block runs, steps are shown once it has taken PATIENCE_SECONDS."""
        self._progress = _Progress(self._err)
        self._progress.start()
        try:
            yield
        finally:
            self._progress.stop()
            self._progress = None


class _Progress:
    """A thread that repeats the latest step, so that a long step without news still shows."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._begin = time.monotonic()
        self._step = IDLE
        # When steps of known length began, by their names.
        self._begun: dict[str, float] = {}
        self._shown = ""
        self._shown_at = -QUIET_SECONDS
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self.clear()

    def show(self, step: Step) -> None:
        """Take what work does now."""
        if not step.done:
            self._begun[step.name] = time.monotonic()
        self._step = step

    def clear(self) -> None:
        """Remove a line that stands on a terminal."""
        with self._lock:
            if self._terminal and self._shown:
                _print(self._stream, "", _CLEAR, "")
                self._shown = ""

    def _run(self) -> None:
        while not self._stop.wait(_TICK_SECONDS):
            elapsed = time.monotonic() - self._begin
            if elapsed >= PATIENCE_SECONDS and self._step is not IDLE:
                self._show(self._step, elapsed)

    def _show(self, step: Step, elapsed: float) -> None:
        message = f"{line(_with_share(step))}{self._left(step, elapsed)} … {elapsed:.0f} s"
        with self._lock:
            if self._stop.is_set():
                return
            if self._terminal:
                self._shown = step.text
                _print(self._stream, message, _CLEAR, "")
            elif step.text != self._shown and elapsed - self._shown_at >= QUIET_SECONDS:
                self._shown, self._shown_at = step.text, elapsed
                _print(self._stream, f"relay-hw: {message}")

    def _left(self, step: Step, elapsed: float) -> str:
        """How long a step takes still, where that can be said."""
        now = self._begin + elapsed
        left = step.seconds_left(now - self._begun.get(step.name, now))
        return f", {left:.0f} s left" if left else ""


def _with_share(step: Step) -> str:
    return step.text if step.share is None else f"{step.text} ({100 * step.share:.0f}%)"


def _print(stream: TextIO, text: str, before: str = "", end: str = "\n") -> None:
    """The one way out: lines without anything that terminals obey, in characters that the stream can hold."""
    encoding = stream.encoding or "utf-8"
    shown = screen(text).encode(encoding, "backslashreplace").decode(encoding)
    print(f"{before}{shown}", end=end, file=stream, flush=True)
