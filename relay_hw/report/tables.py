"""HTML tables of a page: layers with their cycles as bars, lost cycles by cause, segments, speed, facts of a run.

In: `Report`. Out: HTML that needs no script; rows of layers bear their numbers, so that a script can select them.
"""

from __future__ import annotations

from collections.abc import Sequence

from relay_hw.accel.sim.causes import LOST, Cause
from relay_hw.report.model import LayerRow, Report, SegmentRow, layer_utilisation_all, utilisation
from relay_hw.report.names import short_names
from relay_hw.report.speed import SPEED_HEADER, speed_cells
from relay_hw.report.text import (
    SEGMENT_HEADER,
    TRAFFIC_HEADER,
    number,
    percent,
    segment_cells,
    traffic_cells,
)
from relay_hw.support.quote import html

_NUMBERS = ("cycles", "roofline", "array", "all units", "MACs", "bytes", *TRAFFIC_HEADER)


def layers_section(report: Report) -> str:
    """A row for each layer, and the totals."""
    heads = "".join(f'<th class="n">{name}</th>' for name in _NUMBERS)
    head = f"<tr><th>layer</th><th>where</th><th>what its cycles went to</th>{heads}<th>operator, and why so</th></tr>"
    longest = max((max(row.cycles or 0, row.roofline_cycles or 0) for row in report.layers), default=0)
    names = _names(report)
    body = "\n".join(_row(report, index, row, names[index], longest) for index, row in enumerate(report.layers))
    totals = (
        number(report.cycles),
        number(report.roofline_cycles),
        percent(report.utilisation),
        percent(report.utilisation_all),
        number(report.all_macs),
        *traffic_cells(report.traffic),
    )
    foot = f"<tr><td>total</td><td></td><td></td>{_numbers(totals)}<td></td></tr>"
    return (
        f'<section id="layers"><h2>Layers</h2>{_card("all layers")}<table class="layers"><thead>{head}</thead>'
        f"<tbody>{body}</tbody><tfoot>{foot}</tfoot></table></div>{_legend(report)}"
        '<p class="legend">array: products of the model over those that the array could make; all units: the same with '
        "the multipliers of output stage and ALU. roofline, a mark over the bars: the least cycles that the array "
        f"needs for the MACs; of the network, what array, output stage or bus needs at least: {_bounds(report)}. "
        "bytes: all that cross the bus in a launch, by what they are (act.: activations, instr.: instructions).</p>"
        "</section>"
    )


def _legend(report: Report) -> str:
    """The colours of products and of the causes that the report has."""
    if not report.stalls:
        return ""
    shown = [Cause.PRODUCTS, *_lost(report)]
    names = " ".join(f'<span title="{html(cause.meaning)}"><i class="c-{cause}"></i>{cause}</span>' for cause in shown)
    return f'<p class="legend">{names}</p>'


def _card(what: str) -> str:
    """The opening tag of a box that scrolls on narrow pages, also by keyboard."""
    return f'<div class="card" tabindex="0" role="region" aria-label="{html(what)}">'


def _lost(report: Report) -> list[Cause]:
    stalls = report.stalls
    return [cause for cause in LOST if stalls.get(cause)]


def _names(report: Report) -> list[str]:
    """Short names of the layers, with full names as tooltips."""
    short = short_names(list(dict.fromkeys(row.name for row in report.layers)))
    return [f'<span title="{html(row.name)}">{html(short[row.name])}</span>' for row in report.layers]


def _row(report: Report, index: int, row: LayerRow, name: str, longest: int) -> str:
    chip = f'<span class="chip{"" if row.on_accelerator else " host"}">{html(row.where)}</span>'
    shape = f'<br><span class="why shape">{html(row.shape)}</span>' if row.shape else ""
    why = f'<br><span class="why">{html(row.reason)}</span>' if row.reason else ""
    pick = f'<button type="button" class="pick" data-layer="{index}">{name}</button>'
    head = f'<tr data-layer="{index}"><td class="name">{pick}</td><td>{chip}</td>'
    foot = f'<td class="text">{html(row.operator)}{shape}{why}</td></tr>'
    if not row.on_accelerator:
        macs = _numbers([number(row.macs) if row.macs else ""])
        return f'{head}<td colspan="5"></td>{macs}<td colspan="{1 + len(TRAFFIC_HEADER)}"></td>{foot}'
    numbers = (
        number(row.cycles),
        number(row.roofline_cycles),
        percent(utilisation(row.macs, row.cycles, report.macs_per_cycle)),
        percent(layer_utilisation_all(report, row)),
        number(row.macs),
        *traffic_cells(row.traffic),
    )
    return f"{head}<td>{_bar(row, longest)}</td>{_numbers(numbers)}{foot}"


def _bar(row: LayerRow, longest: int) -> str:
    """A bar of a layer's cycles by cause, products first, with a mark at the roofline."""
    if not longest:
        return ""
    pieces = {Cause.PRODUCTS: (row.cycles or 0) - sum(row.stalls.values())}
    pieces |= {cause: row.stalls.get(cause, 0) for cause in LOST}
    parts = "".join(
        f'<i class="c-{cause}" style="width:{100 * cycles / longest:.2f}%"></i>'
        for cause, cycles in pieces.items()
        if cycles > 0
    )
    roof = 100 * (row.roofline_cycles or 0) / longest
    return f'<div class="bar">{parts}<b style="left:{min(roof, 99.0):.2f}%"></b></div>'


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


def stalls_section(report: Report) -> str:
    """Cycles in which the array made no product of the model, by layer, if measured."""
    rows = [(index, row) for index, row in enumerate(report.layers) if row.stalls]
    total, names, short = report.stalls, _lost(report), _names(report)
    if not names or not rows:
        return ""
    head = "".join(f'<th class="n">{name}</th>' for name in names)
    body = "".join(
        f'<tr data-layer="{index}"><td class="name">{short[index]}</td>'
        + "".join(f'<td class="n">{number(row.stalls.get(name, 0))}</td>' for name in names)
        + "</tr>"
        for index, row in rows
    )
    shares = "".join(f'<td class="n">{percent(total[name] / (report.cycles or 1))}</td>' for name in names)
    foot = f"<tfoot><tr><td>share</td>{shares}</tr></tfoot>"
    table = f"<table><thead><tr><th>layer</th>{head}</tr></thead><tbody>{body}</tbody>{foot}</table>"
    meaning = "; ".join(f"<b>{name}</b> {html(name.meaning)}" for name in names)
    return (
        f'<section id="stalls"><h2>Cycles without products, by cause</h2>{_card("lost cycles")}{table}</div>'
        f'<p class="legend">{meaning}.</p></section>'
    )


def facts_section(report: Report) -> str:
    """A list of facts about this run."""
    if not report.facts:
        return ""
    rows = "".join(f"<dt>{html(key)}</dt><dd>{html(value)}</dd>" for key, value in report.facts.items())
    return f'<section><h2>This run</h2><div class="card"><dl>{rows}</dl></div></section>'


def segments_section(report: Report) -> str:
    """Calls, time and cycles of each function of a run of samples."""
    if not report.segments:
        return ""
    head = "".join(f"<th>{cell}</th>" for cell in SEGMENT_HEADER)
    rows = "".join(f"<tr>{_segment(row)}</tr>" for row in report.segments)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f"<section><h2>Segments</h2>{_card('segments')}{table}</div></section>"


def _segment(row: SegmentRow) -> str:
    name = f'<td class="name">{html(row.name)}</td><td>{html(row.where)}</td>'
    return name + _numbers(segment_cells(row)[2:])


def speed_section(report: Report) -> str:
    """Time of an inference on the build's board."""
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
        "Each row adds to the one above it: the accelerator's launches, the transfers between driver and board for a "
        "sample, the host's operators on the machine that made this page."
    )
    title = f"<h2>Speed {html(speed.title)}</h2>"
    return f'<section>{title}{_card("speed")}{table}</div><p class="legend">{text}</p></section>'
