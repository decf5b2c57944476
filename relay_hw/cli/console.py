"""Console output of commands: results on standard output, progress and errors on standard error.

In: messages, JSON objects, text. Out: one JSON object or text; progress only once a command has taken two seconds.
Names come from untrusted files: terminal control characters are made visible here, and what the terminal's encoding
lacks is escaped.
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from relay_hw.cli.colours import has_colours, heads_styled, note_styled
from relay_hw.support.progress import IDLE, ProgressStep, Steps
from relay_hw.support.quote import line, screen

PATIENCE_SECONDS = 2.0
# Width of tables where standard output is no terminal and COLUMNS is not set.
NO_TERMINAL_COLUMNS = 120
# Between two lines of progress where standard error is no terminal.
QUIET_SECONDS = 5.0
_TICK_SECONDS = 0.25
# Clears the current line of a terminal.
_CLEAR = "\r\x1b[K"


class Console:
    """Output of one command. `as_json`: print one JSON object and nothing else; `wide`: show all columns of tables."""

    def __init__(self, as_json: bool, out: TextIO | None = None, err: TextIO | None = None, wide: bool = False) -> None:
        self.as_json = as_json
        self._wide = wide
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._progress: _Progress | None = None
        self._steps = Steps(self._show)

    def result(self, row: dict[str, Any], text: str) -> None:
        """Print the command's result, as JSON or text."""
        if self.as_json:
            _print(self._out, json.dumps(row))
        else:
            _print(self._out, text, style=heads_styled)

    @property
    def width(self) -> int | None:
        """The width of tables in characters; None: unlimited."""
        return None if self._wide else shutil.get_terminal_size((NO_TERMINAL_COLUMNS, 24)).columns

    def note(self, message: str) -> None:
        """Print a line on standard error at once."""
        if self._progress is not None:
            self._progress.clear()
        _print(self._err, f"relay-hw: {line(message)}", style=note_styled)

    def warning(self, message: str) -> None:
        """Print one line about something that looks like a mistake, but does not stop the command."""
        self.note("warning: " + " ".join(message.split()))

    def error(self, message: str) -> None:
        """Print the one line of a failure."""
        self.note("error: " + " ".join(message.split()))

    def source(self, detail: str) -> None:
        """Print the underlined source line of a failure, on terminals only: logs keep one line per failure."""
        if detail and self._err.isatty():
            _print(self._err, detail)

    def failure(self, message: str, trace: str = "") -> None:
        """Print how a command failed: one line, with `as_json` also an object, and the traceback if there is one."""
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

    def _show(self, step: ProgressStep) -> None:
        if self._progress is not None:
            self._progress.show(step)

    @contextmanager
    def progress(self) -> Iterator[None]:
        """Show progress while the block runs, from PATIENCE_SECONDS on."""
        self._progress = _Progress(self._err)
        self._progress.start()
        try:
            yield
        finally:
            self._progress.stop()
            self._progress = None


class _Progress:
    """A thread that keeps printing the latest step, so that a long step without updates still shows its time."""

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

    def show(self, step: ProgressStep) -> None:
        """Set the step to show."""
        if not step.done:
            self._begun[step.name] = time.monotonic()
        self._step = step

    def clear(self) -> None:
        """Remove the progress line from a terminal."""
        with self._lock:
            if self._terminal and self._shown:
                _print(self._stream, "", _CLEAR, "")
                self._shown = ""

    def _run(self) -> None:
        while not self._stop.wait(_TICK_SECONDS):
            elapsed = time.monotonic() - self._begin
            if elapsed >= PATIENCE_SECONDS and self._step is not IDLE:
                self._show(self._step, elapsed)

    def _show(self, step: ProgressStep, elapsed: float) -> None:
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

    def _left(self, step: ProgressStep, elapsed: float) -> str:
        """The remaining time of a step, if it can be estimated."""
        now = self._begin + elapsed
        left = step.seconds_left(now - self._begun.get(step.name, now))
        return f", {left:.0f} s left" if left else ""


def _with_share(step: ProgressStep) -> str:
    return step.text if step.share is None else f"{step.text} ({100 * step.share:.0f}%)"


def _print(
    stream: TextIO, text: str, before: str = "", end: str = "\n", style: Callable[[str], str] | None = None
) -> None:
    """Print text with control characters made visible, in characters of the stream's encoding; all output goes here.

    `style`: adds colours where the stream has them.
    """
    encoding = stream.encoding or "utf-8"
    shown = screen(text).encode(encoding, "backslashreplace").decode(encoding)
    if style is not None and has_colours(stream):
        shown = style(shown)
    print(f"{before}{shown}", end=end, file=stream, flush=True)
