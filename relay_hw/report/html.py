"""One self-contained HTML page: summary, bars of cycles by layer, table by layer. No script, no network.

In: `Report`. Out: text of the page; light and dark follow the reader's system.
"""

from __future__ import annotations

from collections.abc import Sequence

from relay_hw.accel.sim.causes import LOST, Cause
from relay_hw.report.model import (
    LayerRow,
    Report,
    SegmentRow,
    layer_utilisation_all,
    utilisation,
)
from relay_hw.report.speed import SPEED_HEADER, speed_cells
from relay_hw.report.style import page
from relay_hw.report.text import (
    SEGMENT_HEADER,
    TRAFFIC_HEADER,
    number,
    percent,
    placement,
    segment_cells,
    traffic_cells,
)
from relay_hw.report.timeline import timeline_svg
from relay_hw.support.quote import html

# Pictures keep letters that can be read, and scroll where a page is narrow.
_STYLE = "svg { min-width: 640px; }\n" + "".join(f"svg .c-{cause} {{ fill: var(--{cause}); }}\n" for cause in Cause)
_WIDTH, _LABEL, _VALUE, _ROW = 1000, 230, 120, 30


def render_html(report: Report) -> str:
    """The page. The same report gives the same text."""
    title = f"{html(report.model)} on {html(report.config)}"
    sections = [_head(report, title), _tiles(report), _speed(report), _facts(report)]
    sections += [_timelines(report), _bars(report), _table(report), _stalls(report), _segments(report)]
    body = "\n".join(filter(None, sections))
    return page(title, body, _STYLE)


def _head(report: Report, title: str) -> str:
    measured = f"measured on the {html(report.device)} device" if report.device else "not run yet"
    memory = f", {html(report.memory_model)} memory model" if report.device and report.memory_model else ""
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


def _speed(report: Report) -> str:
    """What an inference takes on the build's board."""
    speed = report.speed
    if speed is None:
        return ""
    first, *others = SPEED_HEADER
    head = f"<tr><th>{html(first)}</th>" + "".join(f'<th class="n">{html(name)}</th>' for name in others) + "</tr>"
    rows: list[str] = []
    for figure in speed.figures:
        name, *numbers = speed_cells(speed, figure)
        rows.append(f'<tr><td class="name">{html(name)}</td>{_numbers(numbers)}</tr>')
    table = f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"
    text = (
        "Each row has what the one above it leaves out: the accelerator's launches, what the driver and the board "
        "exchange for a sample, the host's operators on the machine that made this page."
    )
    return f'<h2>Speed {html(speed.title)}</h2><div class="card">{table}</div><p class="legend">{text}</p>'


def _timelines(report: Report) -> str:
    """A picture of each launch."""
    if not report.timelines:
        return ""
    several = len(report.timelines) > 1
    cards = "".join(
        (f"<p>@{html(timeline.function)}</p>" if several else "") + f'<div class="card">{timeline_svg(timeline)}</div>'
        for timeline in report.timelines
    )
    text = (
        "Layers from left to right, each while the array works or waits for it; below, what the array does in each "
        "part of the time, and how much of it each other unit has an instruction in progress."
    )
    return f'<h2>Timeline</h2>{cards}<p class="legend">{_legend(report)}</p><p class="legend">{text}</p>'


def _legend(report: Report) -> str:
    """The colours of products and of the causes that the report has."""
    shown = [Cause.PRODUCTS, *_lost_causes(report)]
    return " ".join(
        f'<span title="{html(cause.meaning)}"><i style="background:var(--{cause})"></i>{cause}</span>'
        for cause in shown
    )


def _lost_causes(report: Report) -> list[Cause]:
    stalls = report.stalls
    return [cause for cause in LOST if stalls.get(cause)]


def _bars(report: Report) -> str:
    """Cycles of each layer as stacked bars, with a mark at the roofline; before a run the roofline alone."""
    rows = [row for row in report.layers if row.on_accelerator]
    longest = max((_length(row) for row in rows), default=0)
    if not longest:
        return ""
    scale = (_WIDTH - _LABEL - _VALUE) / longest
    shapes = "".join(_bar(row, index, scale) for index, row in enumerate(rows))
    measured = report.cycles is not None
    label = "Cycles by layer" if measured else "Roofline cycles by layer"
    picture = f'<svg viewBox="0 0 {_WIDTH} {_ROW * len(rows)}" role="img" aria-label="{label}">{shapes}</svg>'
    text = (
        "The roofline, a black line over the bars, is the least that the array needs for the MACs; no layer is faster. "
        "Output stage and bus work while other layers compute: they bound the network only."
    )
    legend = f'<p class="legend">{_legend(report)}</p><p class="legend">{text}</p>' if measured else ""
    return f'<h2>{label}</h2><div class="card">{picture}</div>{legend}'


def _length(row: LayerRow) -> int:
    return max(row.cycles or 0, row.roofline_cycles or 0)


def _bar(row: LayerRow, index: int, scale: float) -> str:
    top = index * _ROW
    name = html(row.name if len(row.name) <= 30 else f"{row.name[:29]}…")
    parts = [f'<text x="{_LABEL - 12}" y="{top + 19}" text-anchor="end">{name}</text>']
    roof = _LABEL + (row.roofline_cycles or 0) * scale
    if row.cycles is None:
        parts.append(f'<rect class="roof" x="{_LABEL}" y="{top + 5}" width="{roof - _LABEL:.1f}" height="20"/>')
    else:
        parts += _pieces(row, top, scale)
        parts.append(f'<rect class="mark" x="{roof - 1:.1f}" y="{top + 3}" width="2" height="24"/>')
    value = number(row.cycles if row.cycles is not None else row.roofline_cycles)
    end = _LABEL + _length(row) * scale + 8
    parts.append(f'<text class="soft" x="{end:.1f}" y="{top + 19}">{value}</text>')
    tip = f"{html(row.name)}: {number(row.cycles)} cycles, roofline {number(row.roofline_cycles)}"
    return f"<g><title>{tip}</title>{''.join(parts)}</g>"


def _pieces(row: LayerRow, top: int, scale: float) -> list[str]:
    """A layer's cycles, one piece a cause, products first."""
    lengths = {Cause.PRODUCTS: (row.cycles or 0) - sum(row.stalls.values())}
    lengths |= {cause: row.stalls.get(cause, 0) for cause in LOST}
    pieces: list[str] = []
    begin = 0
    for cause, cycles in lengths.items():
        if cycles > 0:
            x, width = _LABEL + begin * scale, cycles * scale
            pieces.append(f'<rect class="c-{cause}" x="{x:.1f}" y="{top + 5}" width="{width:.1f}" height="20"/>')
            begin += cycles
    return pieces


def _stalls(report: Report) -> str:
    """Cycles in which the array made no product of the model, by layer, if a run told."""
    rows = [row for row in report.layers if row.stalls]
    total = report.stalls
    names = _lost_causes(report)
    if not names or not rows:
        return ""
    head = "".join(f'<th class="n">{name}</th>' for name in names)
    body = "".join(
        f'<tr><td class="name">{html(row.name)}</td>'
        + "".join(f'<td class="n">{number(row.stalls.get(name, 0))}</td>' for name in names)
        + "</tr>"
        for row in rows
    )
    shares = "".join(f'<td class="n">{percent(total[name] / (report.cycles or 1))}</td>' for name in names)
    foot = f"<tfoot><tr><td>share</td>{shares}</tr></tfoot>"
    table = f"<table><thead><tr><th>layer</th>{head}</tr></thead><tbody>{body}</tbody>{foot}</table>"
    meaning = "; ".join(f"<b>{name}</b> {html(name.meaning)}" for name in names)
    return f'<h2>Cycles without products, by cause</h2><div class="card">{table}</div><p class="legend">{meaning}.</p>'


def _table(report: Report) -> str:
    head = (
        "<tr><th>layer</th><th>where</th><th class=n>cycles</th><th class=n>roofline</th>"
        "<th class=n>array</th><th class=n>all units</th><th class=n>MACs</th><th class=n>bytes</th>"
        + "".join(f"<th class=n>{name}</th>" for name in TRAFFIC_HEADER)
        + "<th>operator, and why so</th></tr>"
    )
    body = "\n".join(_table_row(report, row) for row in report.layers)
    totals = (
        number(report.cycles),
        number(report.roofline_cycles),
        percent(report.utilisation),
        percent(report.utilisation_all),
        number(report.all_macs),
        *traffic_cells(report.traffic),
    )
    foot = f"<tr><td>total</td><td></td>{_numbers(totals)}<td></td></tr>"
    return (
        f'<h2>Layers</h2><div class="card"><table class="layers"><thead>{head}</thead><tbody>{body}</tbody>'
        f"<tfoot>{foot}</tfoot></table></div>"
        f'<p class="legend">array: products of the model over those that the array could make; all units: the same '
        f"with the multipliers of output stage and ALU. roofline: the least cycles that the array needs for the MACs; "
        f"of the network, what array, output stage or bus needs at least: {_bounds(report)}. bytes: all that cross the "
        f"bus in a launch, by what they are (act.: activations, instr.: instructions).</p>"
    )


def _bounds(report: Report) -> str:
    bounds = report.bounds
    parts = {
        "array": sum(b.array for b in bounds),
        "output stage": sum(b.output for b in bounds),
        "reads": sum(b.reads for b in bounds),
        "writes": sum(b.writes for b in bounds),
    }
    return ", ".join(f"{name} {number(cycles)}" for name, cycles in parts.items())


def _numbers(texts: Sequence[str]) -> str:
    return "".join(f'<td class="n">{text}</td>' for text in texts)


def _table_row(report: Report, row: LayerRow) -> str:
    chip = f'<span class="chip{"" if row.on_accelerator else " host"}">{html(row.where)}</span>'
    shape = f'<br><span class="why shape">{html(row.shape)}</span>' if row.shape else ""
    why = f'<br><span class="why">{html(row.reason)}</span>' if row.reason else ""
    head = f'<td class="name">{html(row.name)}</td><td>{chip}</td>'
    foot = f'<td class="text">{html(row.operator)}{shape}{why}</td>'
    if not row.on_accelerator:
        macs = _numbers([number(row.macs) if row.macs else ""])
        return f'<tr>{head}<td colspan="4"></td>{macs}<td colspan="{1 + len(TRAFFIC_HEADER)}"></td>{foot}</tr>'
    numbers = (
        number(row.cycles),
        number(row.roofline_cycles),
        percent(utilisation(row.macs, row.cycles, report.macs_per_cycle)),
        percent(layer_utilisation_all(report, row)),
        number(row.macs),
        *traffic_cells(row.traffic),
    )
    return f"<tr>{head}{_numbers(numbers)}{foot}</tr>"


def _facts(report: Report) -> str:
    if not report.facts:
        return ""
    rows = "".join(f"<dt>{html(key)}</dt><dd>{html(value)}</dd>" for key, value in report.facts.items())
    return f'<h2>This run</h2><div class="card"><dl>{rows}</dl></div>'


def _segments(report: Report) -> str:
    """Calls, time and cycles of each function of a run of samples."""
    if not report.segments:
        return ""
    head = "".join(f"<th>{cell}</th>" for cell in SEGMENT_HEADER)
    rows = "".join(f"<tr>{_segment(row)}</tr>" for row in report.segments)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<h2>Segments</h2><div class="card">{table}</div>'


def _segment(row: SegmentRow) -> str:
    name = f'<td class="name">{html(row.name)}</td><td>{html(row.where)}</td>'
    return name + _numbers(segment_cells(row)[2:])
