"""Reports: the numbers derived, the table, and a page that needs nothing but itself."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from relay_hw.accel.sim.causes import LOADS, LOST, Cause
from relay_hw.accel.sim.cycle.traffic import Traffic
from relay_hw.report import (
    Band,
    Bounds,
    LayerRow,
    Report,
    Timeline,
    layer_table,
    number,
    percent,
    placement,
    profile_json,
    render_html,
    report_files,
    some,
    summary,
    table,
    utilisation,
)

CONV = LayerRow(
    "conv <1>", "accel.conv2d", "accel", function="accel_0", shape="3x8x8 -> 8x8x8", macs=13_824, cycles=1_728,
    traffic=Traffic(600, 128, 32, 240, 512, 320), output_slots=128, roofline_cycles=864,
    stalls={Cause.BUS: 800, Cause.DRAIN: 64, Cause.STORE: 0},
    other_products=512,
)  # fmt: skip
POOL = replace(
    CONV,
    name="pool",
    operator="accel.max_pool2d",
    macs=0,
    traffic=Traffic(activations_read=500, activations_written=128, instructions=96),
    roofline_cycles=0,
    cycles=96,
    stalls={Cause.ALU: 96},
    other_products=0,
)
HOST = LayerRow("scores", "nn.softmax", "host", "nn.softmax computes in float32 & <so> on", "host_1", cycles=0)
TIMELINE = Timeline(
    "accel_0", 1_824, (Band("conv <1>", 0, 1_728), Band("pool", 1_728, 1_824)),
    {"LOAD": (1.0, 0.5, 0.0, 0.0), "OUTPUT": (0.0, 0.25, 0.25, 1.0), "STORE": (0.0,) * 4},
    {Cause.PRODUCTS: (0.2, 0.5, 0.5, 0.9), Cause.LANES: (0.0,) * 4, Cause.BUS: (0.8, 0.5, 0.5, 0.0),
     Cause.DRAIN: (0, 0, 0, 0.1)},
)  # fmt: skip
REPORT = Report(
    "net & more", "tiny", "int8", 16, 8, (CONV, POOL, HOST), "rtl", 1_824, 1.5e6, "standard",
    {"bit-exact": "100/100 <all>"}, 24, None, (TIMELINE,),
)  # fmt: skip
BEFORE = replace(REPORT, device=None, cycles=None, simulated_cycles_per_second=None, facts={}, timelines=(),
                 layers=tuple(replace(r, cycles=None, stalls={}) for r in (CONV, POOL)) + (HOST,))  # fmt: skip


class Page(HTMLParser):
    """Collects what a browser would fetch, tags that stay open, and the text."""

    void = frozenset({"meta", "rect", "br", "path"})

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
        "2,556",
        "416",
        "bit-exact",
        "100/100 <all>",
        "net & more",
    ):
        assert shown in words
    assert "<1>" not in text and "<so>" not in text and "<all>" not in text


def rects(text: str, kind: str) -> list[tuple[float, float]]:
    """x and width of the rectangles of a class."""
    found = re.findall(rf'class="{kind}" x="([\d.]+)" y="\d+" width="([\d.]+)"', text)
    return [(float(x), float(width)) for x, width in found]


def test_bars_are_to_scale_and_inside_the_picture() -> None:
    text = render_html(REPORT)
    scale = (1000 - 230 - 120) / 1_728
    # 864 of 1,728 cycles make products, 800 wait for reads, 64 drain; the pool has none of them.
    (products,), (bus,), (drain,) = (rects(text, f"c-{name}") for name in ("products", "bus", "drain"))
    assert products == (230.0, pytest.approx(864 * scale, abs=0.1))
    assert bus == (pytest.approx(230 + 864 * scale, abs=0.1), pytest.approx(800 * scale, abs=0.1))
    assert sum(drain) == pytest.approx(230 + 1_728 * scale, abs=0.2)
    assert rects(text, "c-alu") == [(230.0, pytest.approx(96 * scale, abs=0.1))]
    marks = [x for x, _ in rects(text, "mark")]
    assert marks == [pytest.approx(229 + cycles * scale, abs=0.1) for cycles in (864, 0)]


def test_the_timeline_is_drawn_to_scale() -> None:
    text = render_html(REPORT)
    (first,), (second,) = rects(text, "band0"), rects(text, "band1")
    assert first[1] / second[1] == pytest.approx(1_728 / 96, rel=0.02)
    assert sum(second) == pytest.approx(1000 - 10, abs=0.2)
    # Of the array's row, 100 high from 22 on, the parts stack up to its top; nothing is drawn of causes without cycles.
    (products,) = re.findall(r'class="c-products" d="([^"]+)"', text)
    assert products == "M84 122H84.0V102H310.5V72H763.5V32H990V122Z"
    (drain,) = re.findall(r'class="c-drain" d="([^"]+)"', text)
    assert drain == "M84 122H84.0V22H990V122Z"
    assert text.index('class="c-drain" d') < text.index('class="c-bus" d') < text.index('class="c-products" d')
    assert 'class="c-lanes" d' not in text
    for words in ("LOAD", "OUTPUT", "STORE", "1,500", "bus"):
        assert f">{words}<" in text
    assert "Timeline" not in render_html(BEFORE)


def test_every_reader_speaks_of_lost_cycles_with_the_words_of_one_list() -> None:
    assert [str(cause) for cause in LOST] == [c.value for c in Cause if c is not Cause.PRODUCTS] and set(LOADS) < {
        *LOST
    }
    assert all(cause.meaning and "\n" not in cause.meaning for cause in Cause)
    assert REPORT.stalls == {Cause.BUS: 800, Cause.DRAIN: 64, Cause.STORE: 0, Cause.ALU: 96}
    text = render_html(REPORT)
    for cause in Cause:
        # Each has a colour of its own in both looks; only those that occur are explained.
        assert text.count(f"--{cause}: #") == 2 and f"svg .c-{cause} {{ fill: var(--{cause}); }}" in text
        assert (f"<b>{cause}</b> {cause.meaning}" in text) == bool(REPORT.stalls.get(cause))


def test_before_a_run_only_the_roofline_is_drawn() -> None:
    text = render_html(BEFORE)
    assert "Roofline cycles by layer" in text and "not run yet" in text
    assert 'class="mark"' not in text and 'class="roof"' in text and 'rect class="c-' not in text


def test_utilisation() -> None:
    assert utilisation(1600, 100, 16) == 1.0
    assert utilisation(1600, None, 16) is None and utilisation(0, 0, 16) is None
    assert REPORT.macs == 13_824 and REPORT.utilisation == 13_824 / (1_824 * 16)
    # Of array 864, output stage 256, reads (1,500 + 416) / 8 and writes 80 the array bounds the launch.
    assert REPORT.bounds == (Bounds("accel_0", 864, 256, 240, 80),) and REPORT.roofline_cycles == 864
    slow = replace(REPORT, layers=(replace(CONV, output_slots=1_000), POOL, replace(CONV, function="accel_1"), HOST))
    assert slow.roofline_cycles == 1_128 + 864
    assert REPORT.utilisation_all == (13_824 + 512) / (1_824 * 24) and BEFORE.utilisation_all is None
    assert replace(REPORT, multipliers=None).utilisation_all is None


def test_files_are_the_same_each_time_and_plain_json() -> None:
    files = report_files(REPORT)
    assert files == report_files(replace(REPORT)) and files.keys() == {"report.json", "report.html"}
    row = json.loads(files["report.json"])
    assert row["model"] == "net & more" and row["device"] == "rtl" and row["facts"] == dict(REPORT.facts)
    assert row["layers"] == json.loads(json.dumps(profile_json(REPORT)["layers"]))


def test_the_table_for_terminals() -> None:
    lines = layer_table(REPORT).splitlines()
    assert len(lines) == 2 + 3 + 1 + 1 + 3
    assert all(line == line.rstrip() for line in lines)
    assert lines[0].split()[:6] == ["layer", "operator", "where", "cycles", "roofline", "array"]
    numbers = ["1,728", "864", "50.0%", "34.6%", "13,824", "1,832", "600", "128", "32", "240", "512", "320"]
    assert lines[2].split()[2:] == ["accel.conv2d", "accel", *numbers, "bus", "46.3%,", "drain", "3.7%"]
    assert lines[4].split() == ["scores", "nn.softmax", "host"]
    assert lines[5].split()[:7] == ["total", "1,824", "864", "47.4%", "32.7%", "13,824", "2,556"]
    assert lines[5].endswith("bus 43.9%, alu 5.3%, drain 3.5%")
    assert lines[9].endswith(HOST.reason)
    assert "-" in layer_table(BEFORE).splitlines()[2]
    # Nobody has looked for causes yet: no heading above nothing.
    assert "lost to" not in layer_table(BEFORE) and "lost to" in layer_table(REPORT)


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_tables_fit_the_terminal(width: int) -> None:
    """Numbers stay whole, text wraps, and what has no room is named."""
    long = replace(CONV, name="/backbone/features/features.17/conv/conv.1/conv.1.0/Conv", macs=118_013_952)
    text = layer_table(replace(REPORT, layers=(long, POOL, HOST)), width)
    whole = layer_table(replace(REPORT, layers=(long, POOL, HOST)))
    assert max(map(len, text.splitlines())) <= width
    assert (text == whole) == (max(map(len, whole.splitlines())) <= width)
    header = text.splitlines()[0]
    assert all(word in header for word in ("layer", "cycles", "roofline", "MACs", "lost to")) and "118,013,952" in text
    missing = text.replace("\n", " ").partition("(no room for ")[2].partition(": --wide shows all)")[0].split(", ")
    assert [name in header for name in ("operator", "bytes", "records")] == [width > 60, width > 80, width >= 200]
    for name in ("records", "micro-ops", "operator", "bytes"):
        assert (name in header) != (name in missing)


def test_wrapped_text_is_whole() -> None:
    reason = "no rule quantizes nn.conv1d: write it as nn.conv2d with a kernel of height 1"
    text = table(("operator", "why"), [("nn.conv1d", reason)], width=40)
    assert max(map(len, text.splitlines())) <= 40 and len(text.splitlines()) > 3
    assert " ".join(line[11:] for line in text.splitlines()[2:]) == reason
    assert some(["a", "b"]) == "a, b" and some(list("abcde")) == "a, b, c and 2 more"


def test_columns_are_aligned() -> None:
    text = table(("a", "number"), [("x", "1"), ("long", "1,000")], frozenset({"number"}))
    assert text.splitlines() == ["a     number", "----  ------", "x          1", "long   1,000"]
    assert table(("a", "b"), []) == "a  b\n-  -"


def test_numbers_and_summary() -> None:
    assert (number(None), number(0), number(1234567)) == ("-", "0", "1,234,567")
    assert (percent(None), percent(0.12345)) == ("-", "12.3%")
    assert summary(REPORT) == (
        "net & more on tiny, 1,824 cycles an inference, 13,824 multiply-accumulates, "
        "100.0% of them on the accelerator, utilisation 47.4% of the array, 32.7% of all multipliers, "
        "2,556 bytes (416 of instructions), 1,500,000 simulated cycles/s"
    )
    assert "simulated" not in summary(BEFORE)
    assert "512 cycles once for resident weights" in summary(replace(REPORT, resident_cycles=512))
    assert "cycles once" in render_html(replace(REPORT, resident_cycles=512)) and "cycles once" not in render_html(
        REPORT
    )


def test_a_build_that_leaves_the_accelerator_idle_says_why() -> None:
    big = replace(HOST, name="conv1d", operator="nn.conv1d", macs=20_000, reason="no rule quantizes nn.conv1d")
    assert placement(REPORT) == "" and placement(replace(REPORT, layers=(CONV, replace(big, macs=13_824)))) == ""
    poor = replace(REPORT, layers=(CONV, HOST, big))
    line = "40.9% of the multiply-accumulates run on the accelerator: no rule quantizes nn.conv1d"
    assert placement(poor) == line and poor.all_macs == 33_824 and poor.accel_share == 13_824 / 33_824
    assert f'<p class="warn">{line}.</p>' in render_html(poor) and 'class="warn"' not in render_html(REPORT)
    nothing = replace(REPORT, layers=(HOST,))
    assert placement(nothing) == f"nothing runs on the accelerator: {HOST.reason}" and nothing.accel_share is None
    many = replace(REPORT, layers=tuple(replace(big, macs=k, reason=f"reason {k}") for k in range(1, 6)))
    assert placement(many) == "nothing runs on the accelerator: reason 5; reason 4; reason 3"


def test_the_page_has_every_number_of_a_layer_before_its_text() -> None:
    """A narrow page scrolls: what is read first must not stand behind long reasons."""
    text = render_html(REPORT)
    head = text[text.index('<table class="layers">') :]
    titles = [re.sub("<[^>]+>", "", cell) for cell in re.findall(r"<th[^>]*>.*?</th>", head[: head.index("</thead>")])]
    assert titles[:4] == ["layer", "where", "cycles", "roofline"] and titles[-1] == "operator, and why so"
    body = head[head.index("<tbody>") : head.index("</tbody>")]
    for row in body.split("</tr>")[:-1]:
        spans = [int(span) for span in re.findall(r'colspan="(\d+)"', row)]
        assert row.count("<td") - len(spans) + sum(spans) == len(titles)
