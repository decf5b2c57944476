"""Reports whose texts are a stranger's: pages hold no element or attribute more, tables no line and no cell more."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections import Counter
from dataclasses import fields, replace
from html.parser import HTMLParser
from typing import Any

import pytest

from relay_hw.compare.comparison import Comparison
from relay_hw.compare.energy import Energy
from relay_hw.compare.hardware_cost import Cost
from relay_hw.compare.histogram import Histogram
from relay_hw.compare.measures import Quality
from relay_hw.compare.probes import LayerRow as Probe
from relay_hw.compare.rows import FloatRow, Row
from relay_hw.report import (
    HostTime,
    Line,
    Network,
    Report,
    SegmentRow,
    layer_table,
    placement,
    render_html,
    segment_table,
    summary,
)
from relay_hw.support.quote import line
from tests.hostile import NAMES
from tests.relay_hw.report.test_report import REPORT, data_of

PLAIN = "a name"
VOID = {"meta", "img", "br", "rect", "circle", "line", "path"}
COUNT = 3


class Elements(HTMLParser):
    """Each element with the names of its attributes, in order; anything that is neither element nor text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, ...]] = []
        self.open: list[str] = []
        self.other: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, *(name for name, _ in attrs)))
        self.open += [] if tag in VOID else [tag]

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_comment(self, data: str) -> None:
        self.other.append(data)

    handle_pi = unknown_decl = handle_comment


def renamed(report: Report, name: str) -> Report:
    """The report with `name` for every text that may be a stranger's."""
    layers = tuple(
        replace(row, name=name, operator=name, reason=name if row.reason else "", shape=name if row.shape else "")
        for row in report.layers
    )
    pictures = tuple(
        replace(
            one,
            function=name,
            pads=tuple(replace(pad, name=name) for pad in one.pads),
            sections=tuple(replace(section, name=name) for section in one.sections),
        )
        for one in (*report.pictures, *report.pictures)
    )
    assert report.network is not None
    nodes = tuple(
        replace(node, name=name, operator=name, shape=name, names=(name,), relay=(Line(1, name),))
        for node in report.network.nodes
    )
    return replace(
        report,
        model=name,
        config=name,
        strategy=name,
        device=name,
        memory_model=name,
        facts={name: name},
        layers=layers,
        pictures=pictures,
        network=Network(nodes),
        segments=(SegmentRow(name, name, 1, 0.5, 9),),
        host=HostTime(0.5, name, name),
    )


def comparison(name: str) -> Comparison:
    """A comparison with `name` for every text that may be a stranger's."""
    quality = Quality(9, 20.0, top1=0.5, top1_interval=(0.4, 0.6), agreement=0.9, agreement_interval=(0.8, 1.0))
    cost = Cost(name, 9, 1, 9, 0, 9, 5, 1, 1, 0.5, Energy(1.0, 1.0, 1.0, 1.0, 1.0, 1.0), 0.5, name, 9)
    layers = tuple(
        Probe(f"{name}{k}", name, 3.0 + k, (-1.0, 1.0), Histogram(-2.0, 2.0, (1, 5, 1))) for k in range(COUNT)
    )
    rows = tuple(
        Row(
            f"{name}{k}",
            name,
            quality,
            quality,
            (cost,) if k else (),
            "" if k else name,
            9,
            layers,
            name,
            name,
            {},
        )
        for k in range(COUNT)
    )
    return Comparison(
        model=name,
        output=name,
        is_logits=False,
        images=9,
        calibration_images=3,
        held_out_images=1,
        float_row=FloatRow(quality, 9, 9),
        rows=rows,
        best=f"{name}1",
        notes=(name,),
        warnings=(name,),
    )


def elements(text: str) -> list[tuple[str, ...]]:
    page = Elements(text)
    assert (page.open, page.other) == ([], [])
    return page.found


def counted(found: list[tuple[str, ...]]) -> Counter[tuple[str, ...]]:
    """Elements but for labels of pictures and the lines to them: long names have no room, or lie elsewhere."""
    return Counter(item for item in found if item[0] not in ("text", "line"))


@pytest.fixture(scope="module")
def plain_pages() -> tuple[list[tuple[str, ...]], ...]:
    found = comparison(PLAIN)
    return elements(render_html(renamed(REPORT, PLAIN))), elements(found.to_html()), elements(found._repr_html_())


def test_pages_have_the_same_elements_whatever_the_names(plain_pages: tuple[list[Any], ...]) -> None:
    for name in NAMES:
        # Empty texts are left out.
        name = name or "x"
        found = comparison(name)
        pages = (
            elements(render_html(renamed(REPORT, name))),
            elements(found.to_html()),
            elements(found._repr_html_()),
        )
        for got, want in zip(pages, plain_pages, strict=True):
            assert {*got} <= {*want}, name
            assert counted(got) == counted(want), name


def test_pages_say_every_name() -> None:
    page = render_html(renamed(REPORT, "<b>&"))
    assert "&lt;b&gt;&amp;" in page and "<b>&" not in page
    assert "\\u003cb\\u003e\\u0026" in page


def test_data_hold_every_name_as_a_line() -> None:
    """What a script shows is what a terminal would show; nothing ends the element that holds it."""
    for name in NAMES:
        data = data_of(render_html(renamed(REPORT, name or "x")))
        assert {node["name"] for node in data["graph"]["nodes"]} == {line(name or "x")}, name
        assert not unseen(json.dumps(data, ensure_ascii=False)), name


def unseen(text: str) -> set[str]:
    return {letter for letter in text if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - {"\n"}


def test_tables_have_the_same_lines_whatever_the_names() -> None:
    """Where there is room, a row is a line; no line holds what a terminal obeys."""
    want = [text.count("\n") for text in texts(PLAIN)]
    for name in NAMES:
        got = texts(name or "x")
        assert [text.count("\n") for text in got] == want, name
        assert not unseen("".join(got)), name


def texts(name: str) -> list[str]:
    report = renamed(REPORT, name)
    found = [layer_table(report), segment_table(report.segments), summary(report), placement(report)]
    return [*found, comparison(name).to_text()]


def test_narrow_tables_hold_nothing_that_terminals_obey() -> None:
    for name in NAMES:
        report = renamed(REPORT, name)
        assert not unseen(layer_table(report, 80) + comparison(name).to_text(80)), name


def test_cells_of_the_csv_stay_cells() -> None:
    for name in NAMES:
        text = comparison(name).to_csv()
        rows = list(csv.reader(io.StringIO(text)))
        assert len(rows) == COUNT + 1 == text.count("\n") and {len(row) for row in rows} == {len(rows[0])}, name
        assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "@", "\t", "\r"))], name


def test_every_text_of_a_report_was_tried() -> None:
    """A new field of text must be renamed above too."""
    texts = {field.name for field in fields(Report) if "str" in str(field.type)}
    assert texts == {"model", "config", "strategy", "device", "memory_model", "facts"}
