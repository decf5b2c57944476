"""How far long work has come: one way to say so, for every room.

In: steps, and how many of their parts are done. Out: `Step`s for whoever shows them. Work takes a `Progress`, which is
`SILENT` where nobody listens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol


class Progress(Protocol):
    """Whom work tells how far it has come. Steps are told apart by their names: one may be part of another."""

    def started(self, step: str, total: int | None = None) -> None:
        """A step begins. `total`: of how many parts, where that is known."""
        ...

    def advanced(self, step: str, done: int, detail: str = "") -> None:
        """So many parts of a step are done. `detail`: what is at hand."""
        ...

    def done(self, step: str) -> None:
        """A step is over, and nothing else is told to have begun: what comes next begins its own."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """What work does now: `done` of `total` parts, if their number is known; `detail`: what is at hand."""

    name: str
    total: int | None = None
    done: int = 0
    detail: str = ""

    @property
    def text(self) -> str:
        """One line."""
        counted = f": {self.done} of {self.total}" if self.total is not None else f": {self.done}" if self.done else ""
        return f"{self.name}{counted}" + (f", {self.detail}" if self.detail else "")

    @property
    def share(self) -> float | None:
        """Of the parts, those that are done; None where nobody knows how many there are."""
        return self.done / self.total if self.total else None

    def seconds_left(self, seconds: float) -> float | None:
        """Of the step, if what is left takes as long a part as what is done, which took `seconds`."""
        if not self.total or not self.done:
            return None
        return seconds * (self.total - self.done) / self.done


# Between steps.
IDLE: Final = Step("")


class Steps:
    """A `Progress` that shows each `Step` as it changes, and `IDLE` where one is over."""

    def __init__(self, show: Callable[[Step], object]) -> None:
        self._show = show
        self._counted: dict[str, Step] = {}

    def started(self, step: str, total: int | None = None) -> None:
        """See `Progress.started`."""
        begun = Step(step, total)
        if total is not None:
            self._counted[step] = begun
        self._show(begun)

    def advanced(self, step: str, done: int, detail: str = "") -> None:
        """See `Progress.advanced`."""
        self._show(replace(self._counted.get(step, Step(step)), done=done, detail=detail))

    def done(self, step: str) -> None:
        """See `Progress.done`."""
        self._counted.pop(step, None)
        self._show(IDLE)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A `Progress` whose steps begin with a label: of work that runs beside other work, or for it."""

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


SILENT: Final[Progress] = Steps(lambda _step: None)
