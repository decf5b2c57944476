"""The HTML page that compares two builds: totals, both networks, a row for each pair of layers.

In: `Matching`. Out: text of the page; its script links networks, table and what changed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from relay_hw.report.difference_text import DIFFERENCE_HEADER, change_text, numbers, totals, verdict, what_changed
from relay_hw.report.matching import Matching, matching_json
from relay_hw.report.model import Report
from relay_hw.report.names import short_names
from relay_hw.report.packed import Packer
from relay_hw.report.render import render
from relay_hw.report.script import DIFFERENCE
from relay_hw.report.text import number
from relay_hw.report.view import graph_json


@dataclass(frozen=True, slots=True)
class _Row:
    """A pair of layers in the table. `gained`: cycles of A less those of B."""

    name: str
    short: str
    numbers: tuple[str, ...]
    gained: int
    what: str


def render_difference(found: Matching) -> str:
    """The page. The same difference gives the same text."""
    return render(
        "report/templates/difference.html.j2",
        DIFFERENCE,
        title=difference_title(found),
        tiles=_tiles(found),
        settings=[(row.what, change_text(row)) for row in found.settings],
        header=DIFFERENCE_HEADER,
        rows=_rows(found),
        totals=totals(found),
        data=_data(found),
        columns=Packer().text(),
    )


def difference_title(found: Matching) -> str:
    """Both builds in a line."""
    return f"{_build(found.left)} beside {_build(found.right)}"


def _build(report: Report) -> str:
    return f"{report.model} on {report.config}, {report.strategy}"


def _tiles(found: Matching) -> list[tuple[str, str]]:
    before, after = found.cycles
    return [
        (number(before), f"cycles of A, {_build(found.left)}"),
        (number(after), f"cycles of B, {_build(found.right)}"),
        (f"{after - before:+,}", verdict(found)),
        (f"{len(found.matched)} of {len(found.pairs)}", "layers are in both builds"),
    ]


def _rows(found: Matching) -> list[_Row]:
    short = short_names(list(dict.fromkeys(pair.name for pair in found.pairs)))
    return [
        _Row(pair.name, short[pair.name], numbers(found, pair), pair.gained, what_changed(pair)) for pair in found.pairs
    ]


def _data(found: Matching) -> Any:
    rows = matching_json(found)["pairs"]
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
