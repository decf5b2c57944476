"""Reports: the numbers derived, the table, and a page that needs nothing but itself."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from relay_hw.report import (
    LayerRow,
    Report,
    layer_table,
    number,
    percent,
    profile_json,
    render_html,
    report_files,
    summary,
    table,
    utilisation,
)

CONV = LayerRow(
    "conv <1>", "accel.conv2d", "accel", function="accel_0", shape="3x8x8 -> 8x8x8", macs=13_824, bytes_read=1_000,
    bytes_written=512, roofline_cycles=864, cycles=1_728, stalls={"load_memory": 7, "store_token": 0},
)  # fmt: skip
POOL = replace(CONV, name="pool", operator="accel.max_pool2d", macs=0, roofline_cycles=48, cycles=96, stalls={})
HOST = LayerRow("scores", "nn.softmax", "host", "nn.softmax computes in float32 & <so> on", "host_1", cycles=0)
REPORT = Report(
    "net & more", "tiny", "int8", 16, (CONV, POOL, HOST), "rtl", 1_824, 2_000, 1_024, 1.5e6, "standard",
    {"bit-exact": "100/100 <all>"},
)  # fmt: skip
BEFORE = replace(REPORT, device=None, cycles=None, simulated_cycles_per_second=None, facts={},
                 layers=tuple(replace(r, cycles=None, stalls={}) for r in (CONV, POOL)) + (HOST,))  # fmt: skip


class Page(HTMLParser):
    """Collects what a browser would fetch, tags that stay open, and the text."""

    void = frozenset({"meta", "rect", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [f"{key}={value}" for key, value in attrs if key in ("src", "href", "srcset", "data", "action")]
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.mark.parametrize("report", [REPORT, BEFORE, replace(REPORT, layers=()), replace(REPORT, layers=(HOST,))])
def test_the_page_is_whole_and_needs_nothing(report: Report) -> None:
    text = render_html(report)
    page = Page(text)
    assert page.open == [] and page.links == []
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert "http" not in text and "url(" not in text and "@import" not in text
    assert "prefers-color-scheme: dark" in text


def test_the_page_shows_every_layer_and_escapes_names() -> None:
    text = render_html(REPORT)
    words = " ".join(Page(text).words)
    for row in REPORT.layers:
        assert row.name in words and row.operator in words and row.reason in words
    for shown in (
        "1,824",
        "13,824",
        "47.4%",
        "50.0%",
        "1,500,000",
        "2,000",
        "bit-exact",
        "100/100 <all>",
        "net & more",
    ):
        assert shown in words
    assert "<1>" not in text and "<so>" not in text and "<all>" not in text


def test_bars_are_to_scale_and_inside_the_picture() -> None:
    import re

    text = render_html(REPORT)
    bars = [float(w) for w in re.findall(r'class="bar" x="230" y="\d+" width="([\d.]+)"', text)]
    roofs = [float(w) for w in re.findall(r'class="roof" x="230" y="\d+" width="([\d.]+)"', text)]
    assert len(bars) == len(roofs) == 2
    assert bars[0] / bars[1] == pytest.approx(1_728 / 96, rel=0.01)
    assert roofs[0] / bars[0] == pytest.approx(0.5, rel=0.01)
    assert max(bars) <= 1000 - 230


def test_before_a_run_only_the_roofline_is_drawn() -> None:
    text = render_html(BEFORE)
    assert "Roofline cycles by layer" in text and "not run yet" in text
    assert 'class="bar"' not in text and 'class="roof"' in text


def test_utilisation() -> None:
    assert utilisation(1600, 100, 16) == 1.0
    assert utilisation(1600, None, 16) is None and utilisation(0, 0, 16) is None
    assert REPORT.macs == 13_824 and REPORT.utilisation == 13_824 / (1_824 * 16)
    assert REPORT.roofline_cycles == 912


def test_files_are_the_same_each_time_and_plain_json() -> None:
    files = report_files(REPORT)
    assert files == report_files(replace(REPORT)) and files.keys() == {"report.json", "report.html"}
    row = json.loads(files["report.json"])
    assert row["model"] == "net & more" and row["device"] == "rtl" and row["facts"] == dict(REPORT.facts)
    assert row["layers"] == json.loads(json.dumps(profile_json(REPORT)["layers"]))


def test_the_table_for_terminals() -> None:
    lines = layer_table(REPORT).splitlines()
    assert len(lines) == 2 + 3 + 1
    assert all(line == line.rstrip() for line in lines)
    assert lines[0].split()[:5] == ["layer", "operator", "where", "cycles", "util"]
    assert lines[2].split()[2:] == ["accel.conv2d", "accel", "1,728", "50.0%", "864", "13,824", "1,000", "512"]
    assert lines[4].endswith(HOST.reason)
    assert lines[5].split() == ["total", "1,824", "47.4%", "912", "13,824", "2,000", "1,024"]
    assert "-" in layer_table(BEFORE).splitlines()[2]


def test_columns_are_aligned() -> None:
    text = table(("a", "number"), [("x", "1"), ("long", "1,000")], frozenset({"number"}))
    assert text.splitlines() == ["a     number", "----  ------", "x          1", "long   1,000"]
    assert table(("a", "b"), []) == "a  b\n-  -"


def test_numbers_and_summary() -> None:
    assert (number(None), number(0), number(1234567)) == ("-", "0", "1,234,567")
    assert (percent(None), percent(0.12345)) == ("-", "12.3%")
    assert summary(REPORT) == (
        "net & more on tiny, 1,824 cycles, utilisation 47.4%, 2,000 bytes read, 1,024 written, "
        "1,500,000 simulated cycles/s"
    )
    assert "simulated" not in summary(BEFORE)
