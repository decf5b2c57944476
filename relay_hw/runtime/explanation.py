"""What `explain` finds out about a build's cycles: losses, outcomes of changed hardware, lower bounds, and their text.

In: numbers from the cycle simulator. Out: frozen records; tables and sentences for terminals and notebooks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.program import Program
from relay_hw.accel.sim.causes import Cause
from relay_hw.accel.sim.dram_timing import MemoryModel
from relay_hw.report import Report, host_table, mac_text, number, percent, placement, table
from relay_hw.runtime.effects import Spent, cause_changes, cause_text, why_it_differs
from relay_hw.support.quote import line
from relay_hw.target.accel.changes import Change

# A change that costs more than this share of the cycles gets a sentence that explains it.
_COSTLY: Final = 0.01


@dataclass(frozen=True, slots=True)
class Loss:
    """Cycles of one cause. `layers`: those that lose most; `parts`: by scratchpad that was loaded, by full queue, or,
    of FILL, by causes of their own."""

    cause: Cause
    cycles: int
    layers: tuple[tuple[str, int], ...]
    parts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Cycles by cause and bytes of an inference after a change; None if it is impossible, `reason` says why.
    `programs` ran on `config` and `memory`."""

    change: Change
    spent: Spent | None
    reason: str
    config: AccelConfig
    memory: MemoryModel
    programs: Mapping[str, Program]

    @property
    def cycles(self) -> int | None:
        """Total cycles; None if the change is impossible."""
        return None if self.spent is None else self.spent.cycles


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound on the cycles of an inference with these programs, or of this model."""

    text: str
    cycles: int


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """`report` and `spent`: the build as it is, on `config`. `losses`: largest first."""

    report: Report
    config: AccelConfig
    spent: Spent
    losses: tuple[Loss, ...]
    outcomes: tuple[Outcome, ...]
    bounds: tuple[Bound, ...]

    @property
    def cycles(self) -> int:
        """Cycles of the build as it is."""
        return self.report.cycles or 0

    def effect(self, outcome: Outcome) -> dict[Cause, int]:
        """Change of cycles by cause, the largest first."""
        return cause_changes(self.spent, outcome.spent) if outcome.spent is not None else {}

    def sentence(self, outcome: Outcome) -> str:
        """A sentence: what a change did and why, or why it is impossible."""
        if outcome.spent is None:
            return f"{outcome.change.text} is not possible: {outcome.reason}"
        more = outcome.spent.cycles - self.cycles
        if not more:
            return f"{outcome.change.text} makes no difference"
        share = percent(abs(more) / self.cycles) if self.cycles else "-"
        does = "costs" if more > 0 else "saves"
        why = why_it_differs(self.spent, outcome.spent, self.config, outcome.config)
        return f"{outcome.change.text} {does} {abs(more):,} cycles ({share}): {why}"

    def to_text(self, width: int | None = None) -> str:
        """Losses, changes, bounds and the host's operators, for terminals of `width` characters; None: unlimited."""
        return "\n\n".join(filter(None, _parts(self, width)))

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<Explanation of {self.cycles:,} cycles of {self.report.model}>"


def loss_text(loss: Loss) -> str:
    """A cause in words, with the scratchpads or queues that it came from."""
    parts = ", ".join(f"{name} {cycles:,}" for name, cycles in loss.parts.items() if cycles)
    return loss.cause.meaning + (f" ({parts})" if parts else "")


def _parts(found: Explanation, width: int | None) -> list[str]:
    report, cycles = found.report, found.cycles
    what = f"{line(report.model)} on {line(report.config)}, {line(report.memory_model)} memory"
    speed = f"{cycles:,} cycles an inference in {report.launches} launches, {percent(report.utilisation)} of the array"
    head = "\n".join(filter(None, [f"{what}: {speed}; {mac_text(report)}", placement(report)]))
    if not cycles:
        return [head, _host_text(found, width)]
    changes = [_change_table(found, width), _change_sentences(found)]
    return [head, _loss_table(found, width), *changes, _bound_table(found, width), _host_text(found, width)]


def _loss_table(found: Explanation, width: int | None) -> str:
    rows: list[tuple[str, ...]] = []
    for loss in found.losses:
        layers = ", ".join(f"{line(name)} {cycles:,}" for name, cycles in loss.layers)
        rows.append((loss.cause, f"{loss.cycles:,}", percent(loss.cycles / found.cycles), loss_text(loss), layers))
    header = ("lost to", "cycles", "share", "what happened", "most of it in")
    return table(header, rows, frozenset({"cycles", "share"}), width)


def _change_table(found: Explanation, width: int | None) -> str:
    """Changes that make a difference, best first, with the cycles gained or lost by cause."""
    rows: list[tuple[str, ...]] = []
    for outcome in sorted(found.outcomes, key=lambda o: o.cycles if o.cycles is not None else 1 << 62):
        if outcome.spent is None or outcome.cycles == found.cycles:
            continue
        more = outcome.spent.cycles - found.cycles
        how = "recompiled" if outcome.change.recompiles else "same program"
        what = cause_text(found.spent, outcome.spent)
        rows.append(
            (outcome.change.text, number(outcome.cycles), f"{more:+,}", percent(more / found.cycles), what, how)
        )
    header = ("with", "cycles", "more", "share", "of which", "how")
    return table(header, rows, frozenset({"cycles", "more", "share"}), width, ("how",)) if rows else ""


def _change_sentences(found: Explanation) -> str:
    """Why changes make it worse, which make no difference, and which are impossible."""
    costly = [o for o in found.outcomes if o.cycles is not None and o.cycles > (1 + _COSTLY) * found.cycles]
    none = [o.change.text for o in found.outcomes if o.cycles == found.cycles]
    lines = [line(found.sentence(o)) for o in sorted(costly, key=lambda o: o.cycles or 0)]
    lines += [f"no difference: {', '.join(map(line, none))}"] if none else []
    return "\n".join([*lines, *(line(found.sentence(o)) for o in found.outcomes if o.cycles is None)])


def _bound_table(found: Explanation, width: int | None) -> str:
    rows = [(b.text, number(b.cycles), percent(b.cycles / found.cycles)) for b in found.bounds]
    header = ("lower bound if", "cycles", "share")
    return table(header, rows, frozenset({"cycles", "share"}), width)


def _host_text(found: Explanation, width: int | None) -> str:
    host = [row for row in found.report.layers if not row.on_accelerator]
    return host_table(host, width) if host else ""
