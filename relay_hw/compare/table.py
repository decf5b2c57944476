"""A comparison as text for terminals. In: `Findings`. Out: lines."""

from __future__ import annotations

from collections.abc import Mapping

from relay_hw.compare.findings import Findings
from relay_hw.compare.front import labels_of
from relay_hw.compare.hardware_cost import Cost
from relay_hw.compare.measures import Interval, Quality
from relay_hw.compare.rows import Row, hardware_notes
from relay_hw.compare.targets import Elsewhere
from relay_hw.report import number, percent, short_names, table
from relay_hw.support.quote import line

_RIGHT = frozenset(
    {"top-1", "top-5", "MSE", "agrees", "95 % interval", "SQNR dB", "+/-", "cycles", "a second", "DRAM", "weights",
     "uJ", "on accel", "LUT", "mult", "compile s", "host ms", "instructions", "of MACs", "layers", "host layers"}
)  # fmt: skip
# Of the table of targets.
TARGETS = ("strategy", "on", "top-1", "agrees", "SQNR dB", "instructions", "of MACs", "layers", "host layers")
# Columns that are dropped first on narrow terminals.
_OPTIONAL = (
    "compile s",
    "mult",
    "LUT",
    "95 % interval",
    "+/-",
    "SQNR dB",
    "uJ",
    "host ms",
    "top-5",
    "weights",
    "DRAM",
    "config",
)


def comparison_text(found: Findings, width: int | None = None) -> str:
    """A table of `width` characters, the best strategy and how it was chosen, the noisiest layers, notes."""
    floats = found.float_row
    columns = _columns(found)
    first = {
        "strategy": "float",
        "top-1": share(floats.test.top1),
        "top-5": share(floats.test.top5),
        "MSE": short(floats.test.mse),
        "weights": number(floats.weight_bytes),
    }
    rows = [tuple(first.get(column, "") for column in columns)]
    rows += [tuple(_cells(found, point)[column] for column in columns) for point in found.points]
    # Where a strategy has several rows, they differ in their configuration.
    optional = tuple(name for name in _OPTIONAL if name != "config" or len(found.points) == len(found.rows))
    lines = [
        f"{line(found.model)}, output {line(found.output)}, {found.images:,} samples",
        "",
        table(columns, rows, _RIGHT, width, optional),
        "",
    ]
    if found.best is not None:
        lines.append(f"* best: {line(found.best)}, by {line(found.best_by)}")
    else:
        lines.append(f"no best strategy: {line(found.best_by)}")
    if any(row.elsewhere for row in found.rows):
        lines += ["", "the same integers on other targets:", "", table(TARGETS, target_rows(found), _RIGHT, width), ""]
    names = short_names(found.layer_names)
    lines += [f"{line(row.name)}: most noise in {_worst(row, names)}" for row in found.rows if row.worst_layers]
    lines += _all_notes(found)
    machines = dict.fromkeys(row.cost.machine for row in found.points if row.cost is not None)
    lines += [f"host ms: the host's part of a run by numpy, on {', '.join(map(line, machines))}"] if machines else []
    lines += [line(text)] if (text := clocks(found)) else []
    return "\n".join([*lines, *map(line, found.notes)])


def target_rows(found: Findings) -> list[tuple[str, ...]]:
    """Cells of `TARGETS`: each strategy on the configurations of our accelerator, then on other targets."""
    rows: list[tuple[str, ...]] = []
    for row in found.rows:
        quality = (share(row.test.top1), share(row.test.agreement), decibels(row.test.sqnr_db))
        for cost in row.costs:
            counts = (
                number(cost.instructions),
                percent(cost.accel_share),
                str(cost.accel_layers),
                str(cost.host_layers),
            )
            rows.append((row.name, cost.config, *quality, *counts))
        rows += [(row.name, other.target, *quality, *_counts(other)) for other in row.elsewhere]
    return rows


def _counts(other: Elsewhere) -> tuple[str, ...]:
    if other.reason:
        return ("-",) * 4
    return (number(other.instructions), percent(other.share), str(other.layers), str(other.host_layers))


def _all_notes(found: Findings) -> list[str]:
    """Caveats of all points under their labels; those of all configurations of a strategy come once."""
    points, labels = found.points, labels_of(found.points)
    told: dict[str, None] = {}
    for point in points:
        alike = [set(notes(other)) for other in points if other.name == point.name]
        shared = set.intersection(*alike)
        for note in notes(point):
            told[f"{line(point.name if note in shared else labels[point.key])}: {line(note)}"] = None
    return list(told)


def notes(row: Row) -> list[str]:
    """Caveats of a row on its fastest configuration."""
    found = hardware_notes(row)
    if row.host_share:
        found.append(f"{percent(row.host_share)} of the multiply-accumulates run on the host, outside of the cycles")
    found += [f"{line(other.target)}: {line(other.reason)}" for other in row.elsewhere if other.reason]
    return [*found, *([f"evaluated by {row.engine}: {row.note}"] if row.note else [])]


def _columns(found: Findings) -> tuple[str, ...]:
    tests = [row.test for row in found.rows]
    wanted = {
        "strategy": True,
        "config": True,
        "top-1": any(test.top1 is not None for test in tests),
        "top-5": any(test.top5 is not None for test in tests),
        "MSE": any(test.mse is not None for test in tests),
        "agrees": any(test.agreement is not None for test in tests),
        "95 % interval": any(test.agreement is not None for test in tests),
        "+/-": any(test.gained is not None for test in tests),
        "SQNR dB": True,
        "cycles": True,
        "a second": bool(clocks(found)),
        "DRAM": True,
        "weights": True,
        "uJ": True,
        "on accel": True,
        "LUT": any(row.area for row in found.points),
        "mult": any(row.area for row in found.points),
        "host ms": True,
        "compile s": True,
    }
    return tuple(column for column, is_wanted in wanted.items() if is_wanted)


def _cells(found: Findings, row: Row) -> dict[str, str]:
    cost, test = row.cost, row.test
    return {
        "strategy": row.name + (" *" if found.is_best(row) else ""),
        "config": cost.config if cost else "-",
        "top-1": share(test.top1),
        "top-5": share(test.top5),
        "MSE": short(test.mse),
        "agrees": share(test.agreement),
        "95 % interval": interval(test.agreement_interval),
        "+/-": pairs(test),
        "SQNR dB": decibels(test.sqnr_db),
        "cycles": number(cost.cycles if cost else None),
        "a second": rate(cost),
        "DRAM": number(cost.dram_bytes if cost else None),
        "weights": number(row.weight_bytes),
        "uJ": f"{cost.energy.total:.1f}" if cost else "-",
        "on accel": percent(cost.accel_share if cost else None),
        "LUT": number(row.area.get("luts")),
        "mult": number(row.area.get("multipliers")),
        "host ms": f"{1000 * cost.host_seconds:,.2f}" if cost else "-",
        "compile s": f"{cost.compile_seconds:.1f}" if cost else "-",
    }


def rate(cost: Cost | None) -> str:
    """Inferences per second."""
    found = cost.samples_per_second if cost is not None else None
    return "-" if found is None else f"{found:,.1f}"


def clocks(found: Findings) -> str:
    """The board and the clock of each configuration in the rows; nothing without one."""
    costs = [row.cost for row in found.points if row.cost is not None and row.cost.clock_hz]
    known = dict.fromkeys((c.config, c.clock_hz, c.memory) for c in costs)
    texts = [f"{line(name)} at {(hertz or 0) / 1e6:g} MHz, {line(memory)} memory" for name, hertz, memory in known]
    return (
        f"on {line(costs[0].board)}: {'; '.join(map(line, texts))}; a second: inferences of the accelerator"
        if costs
        else ""
    )


def share(value: float | None) -> str:
    """A share in percent with two decimals."""
    return "-" if value is None else f"{100 * value:.2f}%"


def interval(value: Interval | None) -> str:
    """An interval in percent."""
    return "-" if value is None else f"{100 * value[0]:.1f}..{100 * value[1]:.1f}"


def decibels(value: float | None) -> str:
    """Decibels; a dash without noise."""
    return "exact" if value is None else f"{value:.1f}"


def pairs(test: Quality) -> str:
    """Numbers of samples that became right and that became wrong."""
    return "-" if test.gained is None else f"+{test.gained}/-{test.lost}"


def short(value: float | None) -> str:
    """Four significant digits."""
    return "-" if value is None else f"{value:.4g}"


def _worst(row: Row, names: Mapping[str, str]) -> str:
    return ", ".join(f"{line(names[layer.name])} ({decibels(layer.sqnr_db)} dB)" for layer in row.worst_layers)
