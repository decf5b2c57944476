"""The HTML page of a comparison: table, Pareto plots, noise by layer, histograms, sources of the numbers.

In: `Findings`. Out: one self-contained HTML page, without script or network, for screens and paper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from relay_hw.compare.energy import CAVEAT, FIGURES, SOURCE, SRAM, share_rows
from relay_hw.compare.findings import Findings
from relay_hw.compare.front import Amount, is_by_agreement, points_of, run_time
from relay_hw.compare.histogram import Histogram
from relay_hw.compare.plots import amount_text, histogram_svg, pareto_svg
from relay_hw.compare.rows import Row
from relay_hw.compare.table import clocks, decibels, interval, notes, pairs, rate, share, short
from relay_hw.errors import InputError
from relay_hw.report import number, page, percent, short_names
from relay_hw.support.names import one_of
from relay_hw.support.quote import html

_STYLE: Final = """
svg .front { fill: var(--products); } svg .behind { fill: var(--fill); } svg .step { stroke: var(--products);
  stroke-width: 1.5; fill: none; opacity: 0.7; } svg .lead { stroke: var(--soft); stroke-width: 0.7; }
svg .fill { fill: var(--lanes); } svg .axis, svg .interval { stroke: var(--soft); } svg .clip { stroke: var(--store);
  stroke-dasharray: 4 3; } svg .range { stroke: var(--soft); stroke-width: 2; } svg .best { stroke: var(--store); }
svg text.small { font-size: 10.5px; } svg .partial { fill: var(--card); stroke: var(--fill); stroke-width: 2; }
svg text { paint-order: stroke; stroke: var(--card); stroke-width: 3px; stroke-linejoin: round; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(470px, 1fr)); gap: 12px; }
.hists { display: grid; grid-template-columns: repeat(auto-fill, minmax(330px, 1fr)); gap: 12px; }
.hists .card { padding-top: 8px; } .hists h3 { font-size: 13px; margin: 0 14px; font-weight: 600;
  overflow-wrap: anywhere; } .hists p { margin: 0 14px; font-size: 12.5px; } svg.hist { padding: 4px 10px 10px; }
.note { padding: 14px 18px; } .note p { margin: 0 0 8px; }
td small, th small { display: block; color: var(--soft); font-size: 12px; font-weight: 400; }
td.name small { white-space: normal; min-width: 15em; }
.rows th, .rows td { padding: 7px 8px; } .rows tr.first td { border-bottom: 0; padding-bottom: 0; }
.rows tr.sub td { padding-top: 1px; } .rows tr.sub .why { white-space: normal; font-size: 12.5px; }
tr.best td.name::after { content: " ★ best"; color: var(--products); font-size: 12px; }
.heat td.n { print-color-adjust: exact; -webkit-print-color-adjust: exact; } .heat td.worst { font-weight: 700; }
.heat th.n { white-space: normal; } .heat th, .heat td { padding: 5px 6px; font-size: 13px; }
@media screen and (max-width: 560px) { .plots { grid-template-columns: 1fr; } }
@page { size: A4 landscape; margin: 11mm; }
@media print { :root { --ground: #fff; --card: #fff; --ink: #16191d; --soft: #4f5864; --line: #d3d8de; }
  body { font-size: 10.5px; } main { max-width: none; padding: 0; } h2 { break-after: avoid; margin-top: 18px; }
  table { font-size: 9.5px; } th, td { padding: 3px 5px; } td small, th small { font-size: 8.5px; }
  .card { overflow: visible; break-inside: avoid; } .card.long { break-inside: auto; } tr { break-inside: avoid; }
  .chip, tr.best td.name::after { font-size: 8.5px; } .legend, .note p, .rows tr.sub .why { font-size: 9px; }
  tr.first { break-after: avoid; } h2 + p.legend { break-after: avoid; }
  .plots { grid-template-columns: 1fr 1fr 1fr; gap: 8px; } .note { grid-column: 1 / -1; padding: 0 4px; }
  .hists { grid-template-columns: 1fr 1fr 1fr; }
  td.name small { min-width: 10em; } svg .front, svg .behind, svg .fill { print-color-adjust: exact; } }
"""
_ENERGY_PARTS: Final = (
    "Counts of the cycle simulator times these figures: multiply-accumulates of the array; each access to a scratchpad "
    "as memories of 64 bits side by side; the output stage's 32-bit multiplications; every byte on the bus; layers on "
    "the host as float32 (or int8) multiply-accumulates alone. Parts on the chip are weighed as netlists switch."
)


def render_page(found: Findings, layers: Sequence[str] | None = None) -> str:
    """The page. `layers`: whose histograms are shown, None for all. Raises InputError for an unknown layer."""
    shown = found.layer_names if layers is None else tuple(layers)
    for name in shown:
        if name not in found.layer_names:
            raise InputError(one_of("layer", found.layer_names, name))
    title = f"{html(found.model)}: quantization strategies"
    sections = [_head(found, title), _table(found), _plots(found), _noise(found), _histograms(found, shown), _sources()]
    return page(title, "\n".join(filter(None, sections)), _STYLE)


def _head(found: Findings, title: str) -> str:
    floats = found.float_row
    what = (
        f"Output {html(found.output)}{', before its softmax,' if found.is_logits else ''} on {found.images:,} samples"
    )
    numbers = [f"{floats.macs:,} multiply-accumulates", f"{floats.weight_bytes:,} bytes of weights"]
    if floats.test.top1 is not None:
        numbers.insert(0, f"top-1 {share(floats.test.top1)} ({interval(floats.test.top1_interval)} %)")
    if found.best is not None:
        held, given = found.held_out_images, found.calibration_images + found.held_out_images
        best = f"<b>{html(found.best)}</b> is the best strategy by {html(found.best_by)} ({held:,} of {given:,})."
    else:
        best = f"No strategy is called best: {html(found.best_by)}."
    more = "".join(f"<p>{html(note)}</p>" for note in (*found.warnings, *found.notes))
    return f"<h1>{title}</h1><p>{what}. Float: {', '.join(numbers)}.</p><p>{best}</p>{more}"


_Cell = Callable[[Row], str]
_WEIGHTS: Final = "bytes of weights"


def _columns(found: Findings) -> list[tuple[str, str, _Cell]]:
    """Title, subtitle and cell function of each column."""
    rows = found.points
    has_labels = any(row.test.top1 is not None for row in rows)
    columns: list[tuple[str, str, _Cell]] = []
    if has_labels:
        columns.append(("top-1", "change, 95 %", _top1))
        if any(row.test.top5 is not None for row in rows):
            columns.append(("top-5", "", lambda row: share(row.test.top5)))
    if any(row.test.mse is not None for row in rows):
        columns.append(("MSE", "", lambda row: short(row.test.mse)))
    if any(row.test.agreement is not None for row in rows):
        columns.append(("agrees", "with float, 95 %", lambda row: _two(share(row.test.agreement), _within(row.test))))
    if has_labels:
        columns.append(("pairs", "gained/lost, p", lambda row: _two(pairs(row.test), _p(row.test.p_value))))
    columns += [
        ("SQNR", "outputs, dB", lambda row: decibels(row.test.sqnr_db)),
        ("cycles", "", lambda row: number(row.cost.cycles if row.cost else None)),
        *([("a second", "inferences", lambda row: rate(row.cost))] if clocks(found) else []),
        ("DRAM", "bytes a run", lambda row: number(row.cost.dram_bytes if row.cost else None)),
        ("weights", "bytes", lambda row: number(row.weight_bytes)),
        ("energy", "µJ, estimated", lambda row: f"{row.cost.energy.total:,.1f}" if row.cost else "-"),
        ("on accel.", "of MACs", lambda row: percent(row.cost.accel_share if row.cost else None)),
    ]
    if any(row.area for row in rows):
        columns.append(("LUT4", "", lambda row: number(row.area.get("luts"))))
        columns.append(("multipliers", "", lambda row: number(row.area.get("multipliers"))))
    columns.append(("host", "ms, numpy", lambda row: f"{1000 * row.cost.host_seconds:,.2f}" if row.cost else "-"))
    columns.append(("compile", "seconds", lambda row: f"{row.cost.compile_seconds:.1f}" if row.cost else "-"))
    return columns


def _table(found: Findings) -> str:
    columns = _columns(found)
    head = "".join(f'<th class="n">{title}<small>{html(small)}</small></th>' for title, small, _ in columns)
    body = "".join(_table_row(found, row, columns) for row in found.points)
    return (
        '<h2>Strategies</h2><div class="card long"><table class="rows">'
        f"<thead><tr><th>strategy</th><th>on</th>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
        '<p class="legend">agrees: samples whose largest output is that of float, with Wilson interval. '
        "gained/lost: samples that are right here and wrong in float, and the reverse; p of McNemar's exact test. "
        "change: top-1 less that of float, paired, by Agresti and Min. Resident weights are not in "
        f"the DRAM bytes of a run. host: the host's part of a run on numpy{_machines(found)}. {html(clocks(found))}</p>"
    )


def _machines(found: Findings) -> str:
    names = dict.fromkeys(row.cost.machine for row in found.points if row.cost is not None)
    return f", on {html(', '.join(names))}" if names else ""


def _table_row(found: Findings, row: Row, columns: Sequence[tuple[str, str, _Cell]]) -> str:
    small = "; ".join(filter(None, [row.summary, *notes(row)]))
    config = f'<span class="chip">{html(row.cost.config)}</span>' if row.cost else '<span class="chip host">none</span>'
    cells = "".join(f'<td class="n">{cell(row)}</td>' for _, _, cell in columns)
    kinds = ["best"] * found.is_best(row) + ["first"] * bool(small)
    # The star follows the name, so the small text below needs its own cell.
    name = f'<td class="name">{html(row.name)}</td><td>{config}</td>{cells}'
    why = f'<tr class="sub"><td colspan="{2 + len(columns)}"><span class="why">{html(small)}</span></td></tr>'
    return f'<tr class="{" ".join(kinds)}">{name}</tr>' + (why if small else "")


def _two(text: str, small: str) -> str:
    return f"{text}<small>{small}</small>"


def _top1(row: Row) -> str:
    change, within = row.test.change, row.test.change_interval
    if change is None or within is None:
        return share(row.test.top1)
    return _two(share(row.test.top1), f"{100 * change:+.2f} ({100 * within[0]:+.1f}..{100 * within[1]:+.1f})")


def _within(test: object) -> str:
    return interval(getattr(test, "agreement_interval", None))


def _p(value: float | None) -> str:
    return "" if value is None else f"p {value:.2g}"


def _plots(found: Findings) -> str:
    by_agreement = is_by_agreement(found.rows)
    y_title = "agreement with float" if by_agreement else "SQNR of the outputs, dB"
    kinds: list[tuple[str, Amount]] = [
        ("ms a run" if clocks(found) else "cycles a run", run_time),
        ("energy of a run, µJ (estimated)", lambda row: row.cost.energy.total if row.cost else None),
        (_WEIGHTS, lambda row: row.weight_bytes),
    ]
    cards: list[str] = []
    for title, cost in kinds:
        leaves_out = title != _WEIGHTS
        points = points_of(found.points, cost, lambda row, leaves_out=leaves_out: leaves_out and row.host_share > 0)
        if points:
            y_text = (lambda v: f"{100 * v:.4g}%") if by_agreement else (lambda v: f"{v:.4g}")
            best = found[found.best].key if found.best is not None else None
            svg = pareto_svg(points, title, y_title, amount_text, y_text, best)
            cards.append(f'<div class="card">{svg}</div>')
    if not cards:
        return ""
    text = (
        "<p>Better is up and to the left. The line joins the best for each cost; coloured are those that none beats: "
        "none is cheaper and as good, or as cheap and better by more than the intervals of both. ★ is the one of "
        "these, by time, that was chosen on held-out calibration data.</p>"
        "<p>Strategies without hardware here have no cycles and no energy: they stand "
        "only among the weights. Several share a point's cycles where only numbers differ, not programs. "
        "Hollow: layers on the host are not in the cycles and hardly in the energy, so these join no front.</p>"
    )
    return f'<h2>Accuracy against cost</h2><div class="plots">{"".join(cards)}<div class="note">{text}</div></div>'


def _noise(found: Findings) -> str:
    """Rows of layers, columns of strategies; the worst layers of each in bold."""
    rows = [row for row in found.rows if row.layers]
    if not rows:
        return ""
    table = {row.name: {layer.name: layer for layer in row.layers} for row in rows}
    worst = {row.name: {layer.name for layer in row.worst_layers} for row in rows}
    operators = {layer.name: layer.operator for row in rows for layer in row.layers}
    names = short_names(found.layer_names)
    lines: list[str] = []
    for layer in found.layer_names:
        cells = "".join(
            _heat(table[row.name][layer].sqnr_db, layer in worst[row.name])
            if layer in table[row.name]
            else '<td class="n why">float</td>'
            for row in rows
        )
        tip = f"{html(operators[layer])}: {html(layer)}"
        lines.append(f'<tr><td class="name" title="{tip}">{html(names[layer])}</td>{cells}</tr>')
    head = "".join(f'<th class="n">{html(row.name)}</th>' for row in rows)
    return (
        '<h2>Noise by layer</h2><div class="card long"><table class="heat"><thead><tr><th>layer</th>'
        f"{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
        f'<p class="legend">Most noise: {_worst(rows, names)}.</p>'
        '<p class="legend">Signal-to-noise ratio of the tensor of each layer against float in dB, noise of the layers '
        "before it included, on held-out calibration data; the three worst of each strategy in bold.</p>"
    )


def _worst(rows: Sequence[Row], names: Mapping[str, str]) -> str:
    """The worst layers of each strategy by name."""
    return "; ".join(
        f"<b>{html(row.name)}</b> {', '.join(html(names[layer.name]) for layer in row.worst_layers)}" for row in rows
    )


def _heat(value: float | None, is_worst: bool) -> str:
    level = 0.0 if value is None else min(max((40.0 - value) / 40.0, 0.0), 1.0)
    kind = "n worst" if is_worst else "n"
    return f'<td class="{kind}" style="background:rgba(224,138,46,{0.75 * level:.2f})">{decibels(value)}</td>'


def _histograms(found: Findings, shown: Sequence[str]) -> str:
    cards: list[str] = []
    names = short_names(found.layer_names)
    for name in shown:
        for histogram, clips in _groups(found, name):
            svg = histogram_svg(histogram, clips, found.best, f"values of {html(name)}")
            which = "" if len(_groups(found, name)) == 1 else f"<p>{html(', '.join(clips))}</p>"
            cards.append(f'<div class="card"><h3 title="{html(name)}">{html(names[name])}</h3>{which}{svg}</div>')
    if not cards:
        return ""
    text = (
        "Values of each layer in the float network on held-out data, heights by the square root of counts; below, "
        "the range that the integers of each strategy hold. Dashed: where that of the best strategy ends. Strategies "
        "that rescale channels change the values themselves and have a picture of their own."
    )
    return f'<h2>Activations and their ranges</h2><p class="legend">{text}</p><div class="hists">{"".join(cards)}</div>'


def _groups(found: Findings, name: str) -> list[tuple[Histogram, dict[str, tuple[float, float] | None]]]:
    """Distributions of a layer, each with the strategies that have it and their ranges."""
    groups: list[tuple[Histogram, dict[str, tuple[float, float] | None]]] = []
    for strategy, layer in found.layer(name).items():
        for histogram, clips in groups:
            if histogram == layer.histogram:
                clips[strategy] = layer.clip
                break
        else:
            groups.append((layer.histogram, {strategy: layer.clip}))
    return groups


def _sources() -> str:
    rows = "".join(
        f'<tr><td>{html(f.text)}</td><td class="n">{f.picojoules:g}</td><td class="why">{html(f.note)}</td></tr>'
        for f in FIGURES
    )
    rows += "".join(
        f'<tr><td>64-bit access on chip, {size >> 10} KiB</td><td class="n">{pj:g}</td><td class="why">a cache\'s; '
        "straight lines through logarithms between sizes</td></tr>"
        for size, pj in SRAM
    )
    rows += "".join(
        f'<tr><td>{html(what)}</td><td class="n">{html(share)}</td><td class="why">fitted to netlists</td></tr>'
        for what, share in share_rows()
    )
    return (
        f'<h2>Energy</h2><p class="legend">{html(_ENERGY_PARTS)} Source: {html(SOURCE)}. {html(CAVEAT)}</p>'
        '<div class="card"><table><thead><tr><th>operation</th><th class="n">pJ</th><th>derived</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
