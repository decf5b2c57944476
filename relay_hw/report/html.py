"""One self-contained HTML page: summary, bars of cycles by layer, table by layer. No script, no network.

In: `Report`. Out: text of the page; light and dark follow the reader's system.
"""

from __future__ import annotations

from html import escape

from relay_hw.report.model import LayerRow, Report, utilisation
from relay_hw.report.text import number, percent

_STYLE = """
:root { color-scheme: light dark; --ground: #fbfbfa; --card: #ffffff; --ink: #1d2126; --soft: #667080; --line: #e3e6ea;
  --bar: #3566c4; --roof: #8fb0ec; --host: #b0752b; --chip: #eaf0fb; --chip-host: #f8efe2; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171b; --card: #1b1f25; --ink: #e7eaee; --soft: #98a3b2;
  --line: #2c323b; --bar: #6f9bf0; --roof: #34507f; --host: #d9a25c; --chip: #22304a; --chip-host: #3a2e1d; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 36px 20px 60px; }
h1 { font-size: 25px; margin: 0; letter-spacing: -0.01em; }
h2 { font-size: 16px; margin: 34px 0 10px; }
p { margin: 4px 0; color: var(--soft); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(215px, 1fr)); gap: 10px; margin-top: 22px; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 12px 14px; }
.tile b { display: block; font-size: 21px; font-weight: 600; font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: 13px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { padding: 7px 12px; text-align: left; border-bottom: 1px solid var(--line); vertical-align: top; }
tbody tr:last-child td { border-bottom: 0; }
tfoot td { border-top: 1px solid var(--line); border-bottom: 0; font-weight: 600; }
th { color: var(--soft); font-weight: 500; white-space: nowrap; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.name { font-weight: 500; white-space: nowrap; }
.chip { border-radius: 99px; padding: 1px 9px; font-size: 12.5px; background: var(--chip); white-space: nowrap; }
.chip.host { background: var(--chip-host); }
.why { color: var(--soft); } td span.why { white-space: nowrap; font-size: 13px; }
svg { display: block; width: 100%; height: auto; padding: 14px 16px; }
svg text { fill: var(--ink); font: 13px system-ui, sans-serif; }
svg .soft { fill: var(--soft); }
svg .bar { fill: var(--bar); }
svg .roof { fill: var(--roof); }
.legend { font-size: 13px; } .legend i { display: inline-block; width: 11px; height: 11px; border-radius: 2px;
  margin: 0 5px 0 2px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 18px; margin: 0; padding: 12px 16px; }
dt { color: var(--soft); } dd { margin: 0; }
"""
_WIDTH, _LABEL, _VALUE, _ROW = 1000, 230, 120, 30


def render_html(report: Report) -> str:
    """The page. The same report gives the same text."""
    title = f"{report.model} on {report.config}"
    sections = [_head(report, title), _tiles(report), _facts(report), _bars(report), _table(report), _stalls(report)]
    body = "\n".join(filter(None, sections))
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)} · relay-hw</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{_STYLE}</style></head>\n<body><main>\n{body}\n</main></body></html>\n"
    )


def _head(report: Report, title: str) -> str:
    measured = f"measured on the {escape(report.device)} device" if report.device else "not run yet"
    memory = f", {escape(report.memory_model)} memory model" if report.device and report.memory_model else ""
    text = f"Configuration {escape(report.config)} ({report.macs_per_cycle} multiply-accumulates a cycle)"
    return f"<h1>{escape(title)}</h1><p>{text}, strategy {escape(report.strategy)}, {measured}{memory}.</p>"


def _tiles(report: Report) -> str:
    host = sum(1 for row in report.layers if not row.on_accelerator)
    speed = report.simulated_cycles_per_second
    tiles = [
        (number(report.cycles), "cycles a launch"),
        (percent(report.utilisation), "utilisation"),
        (number(report.roofline_cycles), "roofline cycles"),
        (number(report.macs), "multiply-accumulates"),
        (number(report.bytes_read), "bytes read"),
        (number(report.bytes_written), "bytes written"),
        (f"{len(report.layers) - host} / {host}", "layers on accelerator / host"),
    ]
    if speed:
        tiles.append((f"{speed:,.0f}", "simulated cycles/s"))
    cells = "".join(f'<div class="tile"><b>{value}</b><span>{name}</span></div>' for value, name in tiles)
    return f'<div class="tiles">{cells}</div>'


def _bars(report: Report) -> str:
    """Cycles of each layer as bars, with the roofline inside; before a run the roofline alone."""
    rows = [row for row in report.layers if row.on_accelerator]
    longest = max((_length(row) for row in rows), default=0)
    if not longest:
        return ""
    scale = (_WIDTH - _LABEL - _VALUE) / longest
    shapes = "".join(_bar(row, index, scale) for index, row in enumerate(rows))
    label = "Cycles by layer" if report.cycles is not None else "Roofline cycles by layer"
    picture = f'<svg viewBox="0 0 {_WIDTH} {_ROW * len(rows)}" role="img" aria-label="{label}">{shapes}</svg>'
    legend = (
        '<p class="legend"><i style="background:var(--bar)"></i>cycles <i style="background:var(--roof)"></i>roofline: '
        "the least that MACs, bytes read or bytes written need. Layers overlap, so one whose data came while another "
        "computed may stay below its own roofline.</p>"
    )
    return f'<h2>{label}</h2><div class="card">{picture}</div>{legend}'


def _length(row: LayerRow) -> int:
    return max(row.cycles or 0, row.roofline_cycles or 0)


def _bar(row: LayerRow, index: int, scale: float) -> str:
    top = index * _ROW
    name = row.name if len(row.name) <= 30 else row.name[:29] + "…"
    parts = [f'<text x="{_LABEL - 12}" y="{top + 19}" text-anchor="end">{escape(name)}</text>']
    if row.cycles is not None:
        parts.append(
            f'<rect class="bar" x="{_LABEL}" y="{top + 5}" width="{row.cycles * scale:.1f}" height="20" rx="2"/>'
        )
    roof = (row.roofline_cycles or 0) * scale
    parts.append(f'<rect class="roof" x="{_LABEL}" y="{top + 11}" width="{roof:.1f}" height="8" rx="1"/>')
    value = number(row.cycles if row.cycles is not None else row.roofline_cycles)
    end = _LABEL + _length(row) * scale + 8
    parts.append(f'<text class="soft" x="{end:.1f}" y="{top + 19}">{value}</text>')
    tip = f"{row.name}: {number(row.cycles)} cycles, roofline {number(row.roofline_cycles)}"
    return f"<g><title>{escape(tip)}</title>{''.join(parts)}</g>"


def _stalls(report: Report) -> str:
    """Where units waited, by layer, if a run told."""
    names = sorted({name for row in report.layers for name, value in row.stalls.items() if value})
    rows = [row for row in report.layers if row.stalls]
    if not names or not rows:
        return ""
    head = "".join(f'<th class="n">{escape(name.lower().replace("_", " "))}</th>' for name in names)
    body = "".join(
        f'<tr><td class="name">{escape(row.name)}</td>'
        + "".join(f'<td class="n">{number(row.stalls.get(name, 0))}</td>' for name in names)
        + "</tr>"
        for row in rows
    )
    table = f"<table><thead><tr><th>layer</th>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<h2>Cycles in which units waited</h2><div class="card">{table}</div>'


def _table(report: Report) -> str:
    head = (
        "<tr><th>layer</th><th>operator</th><th>where</th><th class=n>cycles</th><th class=n>utilisation</th>"
        "<th class=n>roofline</th><th class=n>MACs</th><th class=n>bytes read</th><th class=n>bytes written</th></tr>"
    )
    body = "\n".join(_table_row(report, row) for row in report.layers)
    cells = (report.cycles, None, report.roofline_cycles, report.macs, report.bytes_read, report.bytes_written)
    texts = [percent(report.utilisation) if i == 1 else number(value) for i, value in enumerate(cells)]
    total = "".join(f'<td class="n">{text}</td>' for text in texts)
    foot = f"<tr><td>total</td><td></td><td></td>{total}</tr>"
    return (
        f'<h2>Layers</h2><div class="card"><table><thead>{head}</thead><tbody>{body}</tbody>'
        f"<tfoot>{foot}</tfoot></table></div>"
    )


def _table_row(report: Report, row: LayerRow) -> str:
    chip = f'<span class="chip{"" if row.on_accelerator else " host"}">{escape(row.where)}</span>'
    shape = f'<br><span class="why">{escape(row.shape)}</span>' if row.shape else ""
    head = f'<td class="name">{escape(row.name)}</td><td>{escape(row.operator)}{shape}</td><td>{chip}</td>'
    if not row.on_accelerator:
        return f'<tr>{head}<td class="why" colspan="6">{escape(row.reason)}</td></tr>'
    counts = (row.roofline_cycles, row.macs, row.bytes_read, row.bytes_written)
    share = percent(utilisation(row.macs, row.cycles, report.macs_per_cycle))
    texts = [number(row.cycles), share, *(number(value) for value in counts)]
    cells = "".join(f'<td class="n">{text}</td>' for text in texts)
    return f"<tr>{head}{cells}</tr>"


def _facts(report: Report) -> str:
    if not report.facts:
        return ""
    rows = "".join(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in report.facts.items())
    return f'<h2>This run</h2><div class="card"><dl>{rows}</dl></div>'
