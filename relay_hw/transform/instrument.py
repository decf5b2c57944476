"""Pass instruments: called by a PassContext before and after every pass, to time, print, count or skip it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from relay_hw.ir.module import IRModule
from relay_hw.transform.context import PassInfo, PassInstrument


def pass_instrument(cls: type) -> type[PassInstrument]:
    """Class decorator: the methods of `PassInstrument` that a class lacks are added."""
    return cast("type[PassInstrument]", type(cls.__name__, (cls, PassInstrument), {"__doc__": cls.__doc__}))


@dataclass(slots=True)
class PassTiming:
    """Seconds of one run of a pass, type inference after it included, and of the passes that it ran itself."""

    name: str
    seconds: float = 0.0
    inner: list[PassTiming] = field(default_factory=list["PassTiming"])

    @property
    def own_seconds(self) -> float:
        """Without the passes inside."""
        return self.seconds - sum(part.seconds for part in self.inner)


class PassTimingInstrument(PassInstrument):
    """Measures every pass; `render()` shows the times as text, `timings` as data."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._open: list[tuple[PassTiming, float]] = []
        self.timings: list[PassTiming] = []

    def enter_pass_ctx(self) -> None:
        self._open.clear()
        self.timings = []

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        timing = PassTiming(info.name)
        (self._open[-1][0].inner if self._open else self.timings).append(timing)
        self._open.append((timing, self._clock()))

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        timing, start = self._open.pop()
        timing.seconds = self._clock() - start

    def render(self) -> str:
        """One line per pass: total milliseconds, milliseconds of its own, share of the pass around it, name."""
        total = sum(timing.seconds for timing in self.timings)
        lines: list[str] = []
        for timing in self.timings:
            _render(timing, total, 0, lines)
        return "".join(lines)


def _render(timing: PassTiming, total: float, depth: int, lines: list[str]) -> None:
    share = timing.seconds / total if total else 0.0
    own = 1e3 * timing.own_seconds
    lines.append(f"{1e3 * timing.seconds:10.3f} ms  {own:10.3f} ms own  {share:6.1%}  {'  ' * depth}{timing.name}\n")
    for part in timing.inner:
        _render(part, timing.seconds, depth + 1, lines)


class PassPrintingInstrument(PassInstrument):
    """Prints the module before and after the passes that are named; without names around every pass."""

    def __init__(
        self,
        print_before_pass_names: tuple[str, ...] | list[str] | None = None,
        print_after_pass_names: tuple[str, ...] | list[str] | None = None,
        write: Callable[[str], Any] = print,
    ) -> None:
        everything = print_before_pass_names is None and print_after_pass_names is None
        self._before = None if everything else frozenset(print_before_pass_names or ())
        self._after = None if everything else frozenset(print_after_pass_names or ())
        self._write = write

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        if self._before is None or info.name in self._before:
            self._write(f"Before running pass {info.name}:\n{mod.astext()}")

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        if self._after is None or info.name in self._after:
            self._write(f"After running pass {info.name}:\n{mod.astext()}")


class PrintBeforeAll(PassPrintingInstrument):
    """Prints the module before every pass."""

    def __init__(self, write: Callable[[str], Any] = print) -> None:
        super().__init__((), (), write)
        self._before = None


class PrintAfterAll(PassPrintingInstrument):
    """Prints the module after every pass."""

    def __init__(self, write: Callable[[str], Any] = print) -> None:
        super().__init__((), (), write)
        self._after = None
