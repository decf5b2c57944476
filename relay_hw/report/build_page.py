"""The HTML page of a build: one self-contained file with a summary, tables, and views drawn by a script.

In: `Report`. Out: text of the page; light and dark follow the reader's system. Without a script the tables are there.
"""

from __future__ import annotations

from relay_hw.report.model import Report
from relay_hw.report.render import render
from relay_hw.report.script import BUILD
from relay_hw.report.speed import SPEED_HEADER, speed_cells
from relay_hw.report.tables import LAYER_NUMBERS, bounds_text, layer_rows, layer_totals, losses_of
from relay_hw.report.text import SEGMENT_HEADER, TRAFFIC_HEADER, number, percent, placement, segment_cells
from relay_hw.report.view import view_json


def render_html(report: Report) -> str:
    """The page. The same report gives the same text."""
    layers = layer_rows(report)
    data, columns = view_json(report)
    speed = report.speed
    return render(
        "report/templates/build.html.j2",
        BUILD,
        title=f"{report.model} on {report.config}",
        report=report,
        poor=placement(report),
        tiles=_tiles(report),
        layer_numbers=LAYER_NUMBERS,
        traffic_count=len(TRAFFIC_HEADER),
        layers=layers,
        totals=layer_totals(report),
        bounds=bounds_text(report),
        losses=losses_of(report, layers),
        segment_header=SEGMENT_HEADER,
        segments=[segment_cells(row) for row in report.segments],
        speed_header=SPEED_HEADER,
        speeds=[speed_cells(speed, figure) for figure in speed.figures] if speed is not None else [],
        data=data,
        columns=columns,
    )


def _tiles(report: Report) -> list[tuple[str, str]]:
    """Figures of the whole network, and what they are."""
    layers = [row for row in report.layers if row.is_layer]
    host = sum(1 for row in layers if not row.on_accelerator)
    speed = report.simulated_cycles_per_second
    tiles = [
        (number(report.cycles), "cycles an inference"),
        (percent(report.utilisation), "utilisation of the array"),
        (number(report.roofline_cycles), "cycles at least"),
        (number(report.all_macs), "multiply-accumulates"),
        (percent(report.accel_share), "of them on the accelerator"),
        (number(report.traffic.total), f"bytes, {number(report.traffic.instructions)} of instructions"),
        (f"{len(layers) - host} / {host}", "layers on accelerator / host"),
    ]
    if report.utilisation_all is not None:
        tiles.insert(2, (percent(report.utilisation_all), f"utilisation of all {report.multipliers} multipliers"))
    if report.launches is not None:
        tiles.append((number(report.launches), "launches an inference"))
    if report.resident_cycles is not None:
        tiles.append((number(report.resident_cycles), "cycles once, for resident weights"))
    if report.host is not None:
        where = f"on the host, {report.host.machine}, {report.host.data}"
        tiles.append((f"{1000 * report.host.seconds:,.3f} ms", where))
    if speed:
        tiles.append((f"{speed:,.0f}", "simulated cycles/s"))
    return tiles
