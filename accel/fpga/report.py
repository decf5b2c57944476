"""Reads nextpnr's report: frequency of each clock, the slowest path by module, what else is late, cells placed.

In: its JSON report. Out: `Timing`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from string import digits
from typing import Any, Final

# A signal is late that comes after this part of the time that the latest of its clock takes.
_LATE: Final = 0.8


@dataclass(frozen=True, slots=True)
class Timing:
    """The timing of a routed design.

    `clocks`: reached and asked MHz by clock; `path`: steps of the slowest path, `modules`: its nanoseconds by
    module; `late`: for each group of alike cells that signals of its clock come late to, the latest in nanoseconds and
    how many there are, latest first; `used`: cells by kind.
    """

    clocks: Mapping[str, tuple[float, float]]
    path: tuple[str, ...]
    modules: Mapping[str, float]
    late: Mapping[str, tuple[float, int]]
    used: Mapping[str, int]


def read_timing(
    report: Mapping[str, Any], asked: Callable[[float], float] = lambda told: told, derate: float = 1.0
) -> Timing:
    """Read nextpnr's report. Clocks are named as in the design; `asked`: their MHz by those that nextpnr was told;
    `derate`: what is believed of those that it says and was told."""
    clocks = {
        name: (round(derate * row["achieved"], 2), round(asked(derate * row["constraint"]), 2))
        for name, row in report["fmax"].items()
    }
    slowest = min(clocks, key=lambda name: clocks[name][0] / clocks[name][1], default="")
    steps = _slowest_path(report, slowest)
    modules: dict[str, float] = {}
    for cell, delay in steps:
        modules[module_of(cell)] = round(modules.get(module_of(cell), 0.0) + delay, 2)
    used = {kind: row["used"] for kind, row in report["utilization"].items() if row["used"]}
    return Timing(
        {name.removeprefix("$glbnet$").split("$")[0]: clock for name, clock in clocks.items()},
        tuple(f"{delay:.2f} ns {cell}" for cell, delay in steps),
        modules,
        _late(report, slowest),
        used,
    )


def worst(timing: Timing) -> float:
    """The smallest ratio of reached to asked frequency."""
    return round(min((mhz / asked for mhz, asked in timing.clocks.values()), default=0.0), 4)


def slowest_clock(clocks: Mapping[str, Mapping[str, float]]) -> Mapping[str, float] | None:
    """Of a bitstream's report the clock that is nearest to missing what was asked; None where there is none."""
    return min(clocks.values(), key=lambda clock: clock["mhz"] / clock["asked_mhz"], default=None)


def module_of(cell: str) -> str:
    """Instance that a cell of a flat netlist belongs to: the part of its name before the last dot."""
    name = cell.split("$", 1)[0].rstrip(".")
    parts = [part for part in name.split(".") if part]
    return ".".join(parts[:-1]) or "top"


def _late(report: Mapping[str, Any], clock: str) -> dict[str, tuple[float, int]]:
    """Late signals of `clock` by what they end at: cells alike but for numbers, and the pin."""
    ends: dict[tuple[str, str], float] = {}
    for net in report.get("detailed_net_timings", ()):
        for end in net["endpoints"]:
            if end["event"].endswith(clock):
                pin = (end["cell"], end["port"])
                ends[pin] = max(end["delay"][1], ends.get(pin, 0.0))
    limit = _LATE * max(ends.values(), default=0.0)
    groups: dict[str, tuple[float, int]] = {}
    for (cell, port), delay in ends.items():
        if delay > limit:
            group = f"{_alike(cell.split('$', 1)[0])} {port.rstrip(digits)}"
            latest, count = groups.get(group, (0.0, 0))
            groups[group] = (max(latest, round(delay, 2)), count + 1)
    return dict(sorted(groups.items(), key=lambda group: (-group[1][0], group[0])))


def _alike(name: str) -> str:
    """A name with a star for each number that stands by itself: an index, a part of a memory."""
    return re.sub(r"(?<=[\[.])\d+(?=[\].]|$)", "*", name)


def _slowest_path(report: Mapping[str, Any], clock: str) -> list[tuple[str, float]]:
    """Cells of the slowest path between registers of `clock`, each with its delay and that of the wire to it."""
    for path in report["critical_paths"]:
        if path["from"].endswith(clock) and path["to"].endswith(clock):
            break
    else:
        return []
    steps: list[tuple[str, float]] = []
    waited = 0.0
    for step in path["path"]:
        waited += step["delay"]
        if step["type"] != "routing":
            steps.append((step["to"]["cell"], waited))
            waited = 0.0
    return steps
