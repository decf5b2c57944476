"""Reports and tables as text for terminals.

In: `Report`, rows of cells. Out: lines without trailing spaces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from accel.sim.causes import Cause
from relay_hw.report.model import LayerRow, Report, SegmentRow, layer_utilisation_all, utilisation

# Columns whose cells are numbers stand at the right.
_HEADER = ("layer", "operator", "where", "cycles", "array", "all", "roofline", "MACs", "read", "written", "lost to")
SEGMENT_HEADER = ("segment", "where", "calls", "ms", "cycles")
_RIGHT = frozenset({"cycles", "array", "all", "roofline", "MACs", "read", "written"})
# Reasons of a layer that are named, largest first, and the least share of its cycles that is.
_REASONS, _LEAST = 3, 0.005


def table(header: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[str] = frozenset()) -> str:
    """Columns as wide as their widest cell; those named in `right` are aligned at the right."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        parts = (c.rjust(w) if h in right else c.ljust(w) for c, w, h in zip(cells, widths, header, strict=True))
        return "  ".join(parts).rstrip()

    return "\n".join([line(header), line(["-" * width for width in widths]), *(line(row) for row in rows)])


def number(value: int | None) -> str:
    """Thousands separated; a dash for what was not measured."""
    return "-" if value is None else f"{value:,}"


def percent(value: float | None) -> str:
    """One digit behind the point; a dash for what was not measured."""
    return "-" if value is None else f"{100 * value:.1f}%"


def layer_table(report: Report) -> str:
    """Layers with a last row of totals: utilisation of the array and of all multipliers, and where cycles were lost."""
    rows = [_cells(report, row) for row in report.layers]
    total = (
        "total", "", "", number(report.cycles), percent(report.utilisation), percent(report.utilisation_all),
        number(report.roofline_cycles), number(report.macs), number(report.bytes_read), number(report.bytes_written),
        losses(report.stalls, report.cycles),
    )  # fmt: skip
    return table(_HEADER, [*rows, total], _RIGHT)


def segment_table(segments: Sequence[SegmentRow]) -> str:
    """What ran where: calls, wall-clock time and cycles of each function of a run."""
    return table(SEGMENT_HEADER, [segment_cells(row) for row in segments], frozenset(SEGMENT_HEADER[2:]))


def segment_cells(row: SegmentRow) -> tuple[str, ...]:
    """The cells of a segment under SEGMENT_HEADER."""
    cycles = "" if row.cycles is None else number(row.cycles)
    return (row.name, row.where, number(row.calls), f"{1000 * row.seconds:,.1f}", cycles)


def losses(stalls: Mapping[Cause, int], cycles: int | None) -> str:
    """The largest causes of lost cycles with their shares: `fill 4.1%, lanes 1.0%`."""
    found = sorted(stalls.items(), key=lambda item: -item[1])
    shares = [(cause, lost / cycles) for cause, lost in found[:_REASONS] if cycles and lost >= _LEAST * cycles]
    return ", ".join(f"{cause} {percent(share)}" for cause, share in shares)


def _cells(report: Report, row: LayerRow) -> tuple[str, ...]:
    head = (row.name, row.operator, row.where)
    if not row.on_accelerator:
        return head + ("", "", "", "", "", "", "", row.reason)
    share = utilisation(row.macs, row.cycles, report.macs_per_cycle)
    numbers = (number(row.roofline_cycles), number(row.macs), number(row.bytes_read), number(row.bytes_written))
    shares = (percent(share), percent(layer_utilisation_all(report, row)))
    return head + (number(row.cycles), *shares, *numbers, losses(row.stalls, row.cycles))


def summary(report: Report) -> str:
    """Totals in one line."""
    speed = report.simulated_cycles_per_second
    parts = [
        f"{report.model} on {report.config}",
        f"{number(report.cycles)} cycles",
        f"utilisation {percent(report.utilisation)} of the array, {percent(report.utilisation_all)} of all multipliers",
        f"{number(report.bytes_read)} bytes read",
        f"{number(report.bytes_written)} written",
    ]
    if report.resident_cycles is not None:
        parts.append(f"{number(report.resident_cycles)} cycles once for resident weights")
    return ", ".join(parts + ([f"{speed:,.0f} simulated cycles/s"] if speed else []))
