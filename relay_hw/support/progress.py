"""The interface by which long work reports progress.

In: steps, and how many of their parts are done. Out: `ProgressStep`s to show. Work takes a `Progress`, by
default `SILENT`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol


class Progress(Protocol):
    """Receives progress of long work. Steps are identified by name and may be nested."""

    def started(self, step: str, total: int | None = None) -> None:
        """A step begins. `total`: its number of parts, if known."""
        ...

    def advanced(self, step: str, done: int, detail: str = "") -> None:
        """`done` parts of a step are finished. `detail`: the current part."""
        ...

    def done(self, step: str) -> None:
        """A step is finished; the next one announces itself."""
        ...


@dataclass(frozen=True, slots=True)
class ProgressStep:
    """The current step: `done` of `total` parts, if known; `detail`: the current part."""

    name: str
    total: int | None = None
    done: int = 0
    detail: str = ""

    @property
    def text(self) -> str:
        """The step as one line."""
        counted = f": {self.done} of {self.total}" if self.total is not None else f": {self.done}" if self.done else ""
        return f"{self.name}{counted}" + (f", {self.detail}" if self.detail else "")

    @property
    def share(self) -> float | None:
        """The share of finished parts; None if their number is unknown."""
        return self.done / self.total if self.total else None

    def seconds_left(self, seconds: float) -> float | None:
        """The estimated remaining time, if the parts so far took `seconds`."""
        if not self.total or not self.done:
            return None
        return seconds * (self.total - self.done) / self.done


# Between steps.
IDLE: Final = ProgressStep("")


class Steps:
    """A `Progress` that shows each `ProgressStep` as it changes, and `IDLE` when it is finished."""

    def __init__(self, show: Callable[[ProgressStep], object]) -> None:
        self._show = show
        self._counted: dict[str, ProgressStep] = {}

    def started(self, step: str, total: int | None = None) -> None:
        """See `Progress.started`."""
        begun = ProgressStep(step, total)
        if total is not None:
            self._counted[step] = begun
        self._show(begun)

    def advanced(self, step: str, done: int, detail: str = "") -> None:
        """See `Progress.advanced`."""
        self._show(replace(self._counted.get(step, ProgressStep(step)), done=done, detail=detail))

    def done(self, step: str) -> None:
        """See `Progress.done`."""
        self._counted.pop(step, None)
        self._show(IDLE)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A `Progress` that puts a label before the names of steps, for parallel or nested work."""

    progress: Progress
    label: str

    def started(self, step: str, total: int | None = None) -> None:
        """See `Progress.started`."""
        self.progress.started(f"{self.label}: {step}", total)

    def advanced(self, step: str, done: int, detail: str = "") -> None:
        """See `Progress.advanced`."""
        self.progress.advanced(f"{self.label}: {step}", done, detail)

    def done(self, step: str) -> None:
        """See `Progress.done`."""
        self.progress.done(f"{self.label}: {step}")


class Stopped(Exception):
    """Nobody waits for the work any longer."""


@dataclass(frozen=True, slots=True)
class Stoppable:
    """A `Progress` that raises `Stopped` in the work that reports it, once `is_stopped` says so."""

    progress: Progress
    is_stopped: Callable[[], bool]

    def started(self, step: str, total: int | None = None) -> None:
        """See `Progress.started`."""
        self._go_on().started(step, total)

    def advanced(self, step: str, done: int, detail: str = "") -> None:
        """See `Progress.advanced`."""
        self._go_on().advanced(step, done, detail)

    def done(self, step: str) -> None:
        """See `Progress.done`."""
        self._go_on().done(step)

    def _go_on(self) -> Progress:
        if self.is_stopped():
            raise Stopped
        return self.progress


SILENT: Final[Progress] = Steps(lambda _step: None)
