"""The speed of an inference on a board. In: seconds by stage. Out: cycles, milliseconds, samples per second."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from relay_hw.report.table import table
from relay_hw.support.quote import line

SPEED_HEADER = ("an inference", "cycles", "ms", "samples a second")


@dataclass(frozen=True, slots=True)
class Figure:
    """Seconds of a steady-state inference, and what they include."""

    what: str
    seconds: float

    @property
    def per_second(self) -> float | None:
        """Inferences per second, one after another; None if they take no time."""
        return 1 / self.seconds if self.seconds else None


@dataclass(frozen=True, slots=True)
class Speed:
    """Figures of an inference on a board, each with what the one before it leaves out: the accelerator's launches, the
    link to the board, the host's operators. `is_routed`: whether a bitstream has met `clock_hz`."""

    board: str
    clock_hz: int
    is_routed: bool
    figures: tuple[Figure, ...]

    def cycles(self, figure: Figure) -> int:
        """Cycles of the board's clock."""
        return round(figure.seconds * self.clock_hz)

    @property
    def title(self) -> str:
        """The board and its clock."""
        asked = "" if self.is_routed else ", which no bitstream has met yet"
        return f"on {self.board} at {self.clock_hz / 1e6:g} MHz{asked}"


def speed_cells(speed: Speed, figure: Figure) -> tuple[str, ...]:
    """The cells of a figure under SPEED_HEADER."""
    rate = figure.per_second or 0.0
    return (figure.what, f"{speed.cycles(figure):,}", f"{1000 * figure.seconds:,.3f}", f"{rate:,.1f}")


def speed_table(speed: Speed, width: int | None = None) -> str:
    """The figures as a text table."""
    rows = [speed_cells(speed, figure) for figure in speed.figures]
    return f"{line(speed.title)}\n{table(SPEED_HEADER, rows, frozenset(SPEED_HEADER[1:]), width)}"


def speed_json(speed: Speed | None) -> dict[str, Any] | None:
    """The figures as a JSON object."""
    if speed is None:
        return None
    figures = [
        {
            "what": figure.what,
            "cycles": speed.cycles(figure),
            "milliseconds": 1000 * figure.seconds,
            "samples_per_second": figure.per_second,
        }
        for figure in speed.figures
    ]
    return {key: value for key, value in asdict(speed).items() if key != "figures"} | {"figures": figures}
