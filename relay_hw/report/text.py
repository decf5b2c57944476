"""Reports as text for terminals.

In: `Report`, the width of the terminal. Out: lines without trailing spaces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple

from relay_hw.accel.sim.causes import Cause
from relay_hw.accel.sim.cycle.traffic import Traffic
from relay_hw.report.model import LayerRow, Report, SegmentRow, layer_utilisation_all, utilisation
from relay_hw.report.table import some, table
from relay_hw.support.quote import line

# Columns of the layer table; bytes by kind, in the order of `Traffic`.
TRAFFIC_HEADER = ("weights", "records", "micro-ops", "act. read", "act. written", "instr.")
_HEADER = (
    "layer",
    "operator",
    "where",
    "cycles",
    "roofline",
    "array",
    "all",
    "MACs",
    "bytes",
    *TRAFFIC_HEADER,
    "lost to",
)
# Columns that are dropped first on narrow terminals.
_OPTIONAL = (
    "micro-ops",
    "records",
    "instr.",
    "all",
    "weights",
    "act. read",
    "act. written",
    "bytes",
    "where",
    "array",
    "operator",
)
SEGMENT_HEADER = ("segment", "where", "calls", "ms", "cycles")
_RIGHT = frozenset({*_HEADER} - {"layer", "operator", "where", "lost to"})
# Reasons that are named where the accelerator has under half of the multiply-accumulates.
_FIRST, _HALF = 3, 0.5
# Causes of a layer's lost cycles that are named, largest first, and the least share of its cycles that is.
_CAUSES, _LEAST = 3, 0.005


def number(value: int | None) -> str:
    """A number with thousands separators; a dash if it was not measured."""
    return "-" if value is None else f"{value:,}"


def percent(value: float | None) -> str:
    """A share in percent with one decimal; a dash if it was not measured."""
    return "-" if value is None else f"{100 * value:.1f}%"


def layer_table(report: Report, width: int | None = None) -> str:
    """Layers with a last row of totals, and the reasons of those on the host.

    Utilisation of the array and of all multipliers, the least cycles, bytes, and what cycles were lost to.
    """
    rows = [_cells(report, row) for row in report.layers]
    total = (
        "total", "", "", number(report.cycles), number(report.roofline_cycles), percent(report.utilisation),
        percent(report.utilisation_all), number(report.all_macs), *traffic_cells(report.traffic),
        losses(report.stalls, report.cycles),
    )  # fmt: skip
    cells = [*rows, total]
    # Columns without measurements, such as causes before a profile, are left out.
    filled = [i for i, name in enumerate(_HEADER) if name == "cycles" or any(row[i] not in ("", "-") for row in cells)]
    header, *cells = [tuple(row[place] for place in filled) for row in (_HEADER, *cells)]
    text = table(header, cells, _RIGHT, width, _OPTIONAL)
    host = [row for row in report.layers if not row.on_accelerator]
    return f"{text}\n\n{host_table(host, width)}" if host else text


def host_table(rows: Sequence[LayerRow], width: int | None = None) -> str:
    """Operators on the host by reason."""
    by_reason: dict[str, list[LayerRow]] = {}
    for row in rows:
        by_reason.setdefault(row.reason, []).append(row)
    cells = [
        (some(list(dict.fromkeys(row.operator for row in same))), some([row.name for row in same]), reason)
        for reason, same in by_reason.items()
    ]
    return table(("on the host", "layers", "why"), cells, width=width)


def placement(report: Report) -> str:
    """A warning if under half of the multiply-accumulates run on the accelerator, with the first reasons."""
    share, has_layers = report.accel_share, any(row.on_accelerator for row in report.layers)
    if has_layers and (share is None or share >= _HALF):
        return ""
    host = [row for row in report.layers if not row.on_accelerator]
    host = [row for row in host if row.macs] or host
    reasons = dict.fromkeys(row.reason for row in sorted(host, key=lambda row: -row.macs))
    first = "; ".join(map(line, [*reasons][:_FIRST]))
    what = f"{percent(share)} of the multiply-accumulates run" if has_layers else "nothing runs"
    return f"{what} on the accelerator: {first}" if first else f"{what} on the accelerator"


def mac_text(report: Report) -> str:
    """Multiply-accumulates of all layers and the accelerator's share of them."""
    share = f", {percent(report.accel_share)} of them on the accelerator" if report.accel_share is not None else ""
    return f"{number(report.all_macs)} multiply-accumulates{share}"


def traffic_cells(traffic: Traffic) -> tuple[str, ...]:
    """Cells of bytes: the total, then those under TRAFFIC_HEADER."""
    return (number(traffic.total), *map(number, astuple(traffic)))


def segment_table(segments: Sequence[SegmentRow], width: int | None = None) -> str:
    """Where each function of a run ran, with calls, wall-clock time and cycles."""
    return table(SEGMENT_HEADER, [segment_cells(row) for row in segments], frozenset(SEGMENT_HEADER[2:]), width)


def segment_cells(row: SegmentRow) -> tuple[str, ...]:
    """The cells of a segment under SEGMENT_HEADER."""
    cycles = "" if row.cycles is None else number(row.cycles)
    return (row.name, row.where, number(row.calls), f"{1000 * row.seconds:,.1f}", cycles)


def losses(stalls: Mapping[Cause, int], cycles: int | None) -> str:
    """The largest causes of lost cycles with their shares: `fill 4.1%, lanes 1.0%`."""
    found = sorted(stalls.items(), key=lambda item: -item[1])
    shares = [(cause, lost / cycles) for cause, lost in found[:_CAUSES] if cycles and lost >= _LEAST * cycles]
    return ", ".join(f"{cause} {percent(share)}" for cause, share in shares)


def _cells(report: Report, row: LayerRow) -> tuple[str, ...]:
    head = (row.name, row.operator, row.where)
    if not row.on_accelerator:
        cells = dict.fromkeys(_HEADER[len(head) :], "") | {"MACs": number(row.macs) if row.macs else ""}
        return (*head, *cells.values())
    share = utilisation(row.macs, row.cycles, report.macs_per_cycle)
    shares = (percent(share), percent(layer_utilisation_all(report, row)))
    numbers = (number(row.cycles), number(row.roofline_cycles), *shares, number(row.macs))
    return (*head, *numbers, *traffic_cells(row.traffic), losses(row.stalls, row.cycles))


def summary(report: Report) -> str:
    """Totals in one line."""
    speed = report.simulated_cycles_per_second
    parts = [
        f"{line(report.model)} on {line(report.config)}",
        f"{number(report.cycles)} cycles an inference"
        + (f" in {report.launches:,} launches" if report.launches else ""),
        mac_text(report),
        f"utilisation {percent(report.utilisation)} of the array, {percent(report.utilisation_all)} of all multipliers",
        f"{number(report.traffic.total)} bytes ({number(report.traffic.instructions)} of instructions)",
    ]
    if report.resident_cycles is not None:
        parts.append(f"{number(report.resident_cycles)} cycles once for resident weights")
    if report.host is not None:
        parts.append(line(report.host))
    return ", ".join(parts + ([f"{speed:,.0f} simulated cycles/s"] if speed else []))
