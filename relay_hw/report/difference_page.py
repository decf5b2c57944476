"""The HTML page that compares two builds: totals, both networks, a row for each pair of layers.

In: `Difference`. Out: text of the page; its script links networks, table and what changed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from relay_hw.report.difference import Difference, Pair, difference_json
from relay_hw.report.difference_text import DIFFERENCE_HEADER, change_text, numbers, totals, verdict, what_changed
from relay_hw.report.html import data_elements
from relay_hw.report.model import Report
from relay_hw.report.names import short_names
from relay_hw.report.packed import Packer
from relay_hw.report.script import DIFFERENCE, asset, script
from relay_hw.report.style import page
from relay_hw.report.text import number
from relay_hw.report.view import graph_json
from relay_hw.support.quote import html


def render_difference(found: Difference) -> str:
    """The page. The same difference gives the same text."""
    title = f"{_build(found.left)} beside {_build(found.right)}"
    body = "\n".join([f"<h1>{title}</h1>", _tiles(found), _settings(found), '<div id="views"></div>', _table(found)])
    return page(title, body, asset("report.css"), script(DIFFERENCE), data_elements(_data(found), Packer().text()))


def _build(report: Report) -> str:
    return f"{html(report.model)} on {html(report.config)}, {html(report.strategy)}"


def _tiles(found: Difference) -> str:
    before, after = found.cycles
    tiles = [
        (number(before), f"cycles of A, {_build(found.left)}"),
        (number(after), f"cycles of B, {_build(found.right)}"),
        (f"{after - before:+,}", html(verdict(found))),
        (f"{len(found.matched)} of {len(found.pairs)}", "layers are in both builds"),
    ]
    cells = "".join(f'<div class="tile"><b>{value}</b><span>{name}</span></div>' for value, name in tiles)
    return f'<div class="tiles">{cells}</div>'


def _settings(found: Difference) -> str:
    rows = "".join(f"<dt>{html(row.what)}</dt><dd>{html(change_text(row))}</dd>" for row in found.settings)
    return f'<section><h2>Settings</h2><div class="card"><dl>{rows}</dl></div></section>' if rows else ""


def _table(found: Difference) -> str:
    first, *middle, last = DIFFERENCE_HEADER
    heads = "".join(f'<th class="n">{html(name)}</th>' for name in middle)
    head = f"<tr><th>{html(first)}</th>{heads}<th>{html(last)}</th></tr>"
    short = short_names(list(dict.fromkeys(pair.name for pair in found.pairs)))
    body = "\n".join(_row(found, index, pair, short[pair.name]) for index, pair in enumerate(found.pairs))
    foot = f"<tfoot><tr><td>total</td>{_cells(totals(found))}<td></td></tr></tfoot>"
    return (
        '<section id="layers"><h2>Layers</h2><div class="card" tabindex="0" role="region" aria-label="all layers">'
        f'<table class="layers"><thead>{head}</thead><tbody>{body}</tbody>{foot}</table></div>'
        '<p class="legend">change: cycles of B less those of A; share: of all cycles of A. Totals are those of both '
        "profiles.</p></section>"
    )


def _row(found: Difference, index: int, pair: Pair, name: str) -> str:
    pick = f'<button type="button" class="pick" data-layer="{index:d}" title="{html(pair.name)}">{html(name)}</button>'
    cells = _cells(numbers(found, pair), "gained" if pair.gained > 0 else "lost")
    why = f'<td class="text"><span class="why">{html(what_changed(pair))}</span></td>'
    return f'<tr data-layer="{index:d}"><td class="name">{pick}</td>{cells}{why}</tr>'


def _cells(texts: tuple[str, ...], kind: str = "") -> str:
    """Table cells of numbers; the third, the change, is coloured."""
    return "".join(
        f'<td class="n{f" {html(kind)}" if kind and k == 2 else ""}">{html(text)}</td>' for k, text in enumerate(texts)
    )


def _data(found: Difference) -> Any:
    rows = difference_json(found)["pairs"]
    keep = ("name", "cycles", "gained", "more_by_cause", "changes")
    layers = [{key: row[key] for key in keep} | {"alone": row["a"] is None or row["b"] is None} for row in rows]
    graphs = {
        "a": _graph(found.left, {pair.left: k for k, pair in enumerate(found.pairs)}),
        "b": _graph(found.right, {pair.right: k for k, pair in enumerate(found.pairs)}),
    }
    return {"layers": layers, "graphs": graphs, "launches": []}


def _graph(report: Report, places: dict[int | None, int]) -> Any:
    """The network of one side, its layers numbered as the pairs are."""
    network = report.network
    if network is None:
        return None
    nodes = tuple(replace(node, layer=places.get(node.layer, -1) if node.layer >= 0 else -1) for node in network.nodes)
    return graph_json(replace(network, nodes=nodes))
