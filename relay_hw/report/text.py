"""Reports and tables as text for terminals.

In: `Report`, rows of cells. Out: lines without trailing spaces.
"""

from __future__ import annotations

from collections.abc import Sequence

from relay_hw.report.model import LayerRow, Report, utilisation

# Columns whose cells are numbers stand at the right.
_HEADER = ("layer", "operator", "where", "cycles", "util", "roofline", "MACs", "read", "written", "why")
_RIGHT = frozenset({"cycles", "util", "roofline", "MACs", "read", "written"})


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
    """Layers with a last row of totals."""
    rows = [_cells(report, row) for row in report.layers]
    total = (
        "total", "", "", number(report.cycles), percent(report.utilisation), number(report.roofline_cycles),
        number(report.macs), number(report.bytes_read), number(report.bytes_written), "",
    )  # fmt: skip
    return table(_HEADER, [*rows, total], _RIGHT)


def _cells(report: Report, row: LayerRow) -> tuple[str, ...]:
    head = (row.name, row.operator, row.where)
    if not row.on_accelerator:
        return head + ("", "", "", "", "", "", row.reason)
    share = utilisation(row.macs, row.cycles, report.macs_per_cycle)
    numbers = (number(row.roofline_cycles), number(row.macs), number(row.bytes_read), number(row.bytes_written))
    return head + (number(row.cycles), percent(share)) + numbers + (row.reason,)


def summary(report: Report) -> str:
    """Totals in one line."""
    speed = report.simulated_cycles_per_second
    parts = [
        f"{report.model} on {report.config}",
        f"{number(report.cycles)} cycles",
        f"utilisation {percent(report.utilisation)}",
        f"{number(report.bytes_read)} bytes read",
        f"{number(report.bytes_written)} written",
    ]
    return ", ".join(parts + ([f"{speed:,.0f} simulated cycles/s"] if speed else []))
