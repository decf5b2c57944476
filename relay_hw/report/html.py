"""The HTML page of a build: one self-contained file with a summary, tables, and views drawn by a script.

In: `Report`. Out: text of the page; light and dark follow the reader's system. Without a script the tables are there.
"""

from __future__ import annotations

from typing import Any

from relay_hw.accel.sim.causes import Cause
from relay_hw.report.model import Report
from relay_hw.report.script import BUILD, asset, script
from relay_hw.report.style import page
from relay_hw.report.tables import facts_section, layers_section, segments_section, speed_section, stalls_section
from relay_hw.report.text import number, percent, placement
from relay_hw.report.view import view_json
from relay_hw.support.quote import html, json_in_html


def render_html(report: Report) -> str:
    """The page. The same report gives the same text."""
    title = f"{html(report.model)} on {html(report.config)}"
    sections = [_head(report, title), _tiles(report), facts_section(report), speed_section(report), _views(report)]
    sections += [layers_section(report), stalls_section(report), segments_section(report)]
    style = asset("report.css") + "".join(f".c-{cause} {{ background: var(--{cause}); }}\n" for cause in Cause)
    return page(title, "\n".join(filter(None, sections)), style, script(BUILD), data_elements(*view_json(report)))


def data_elements(data: Any, columns: str) -> str:
    """The data of a page's script, as elements that browsers neither show nor run."""
    return (
        f'<script type="application/json" id="data">{json_in_html(data)}</script>\n'
        f'<script type="application/octet-stream" id="columns">{html(columns)}</script>'
    )


def _head(report: Report, title: str) -> str:
    measured = f"measured on the {html(report.device)} device" if report.device else "not run yet"
    memory = f", {html(report.memory_model)} memory model" if report.memory_model else ""
    array = f" ({report.macs_per_cycle} multiply-accumulates a cycle)" if report.macs_per_cycle else ""
    text = f"Configuration {html(report.config)}{array}"
    return f"<h1>{title}</h1><p>{text}, strategy {html(report.strategy)}, {measured}{memory}.</p>" + (
        f'<p class="warn">{html(poor)}.</p>' if (poor := placement(report)) else ""
    )


def _tiles(report: Report) -> str:
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
        where = f"on the host, {html(report.host.machine)}, {html(report.host.data)}"
        tiles.append((f"{1000 * report.host.seconds:,.3f} ms", where))
    if speed:
        tiles.append((f"{speed:,.0f}", "simulated cycles/s"))
    cells = "".join(f'<div class="tile"><b>{value}</b><span>{name}</span></div>' for value, name in tiles)
    return f'<div class="tiles">{cells}</div>'


def _views(report: Report) -> str:
    """The elements that the script draws into: the network beside the launches."""
    if report.network is None and not report.pictures:
        return ""
    return (
        '<div id="views"><p class="legend">Network, timeline and maps are drawn by this page\'s own script, which has '
        "not run here; the tables below need none.</p></div>"
    )
