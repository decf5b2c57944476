"""Reports: the numbers derived, the table, and a page that needs nothing but itself."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from relay_hw.accel.sim.causes import LOADS, LOST, Cause
from relay_hw.accel.sim.cycle.traffic import Traffic
from relay_hw.report import (
    Bounds,
    Instructions,
    Kind,
    LayerRow,
    Line,
    Network,
    Node,
    Pad,
    Picture,
    Report,
    Section,
    Spent,
    Transfer,
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
from relay_hw.report.script import BUILD, script

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
NETWORK = Network(
    (
        Node("image", "input", "input", (), -1, "1x3x8x8", "float32"),
        Node("conv <1>", "accel.conv2d", "accel", (0,), 0, "1x8x8x8", "int8", ("conv <1>",), (Line(3, "%0 = <conv>"),),
             0.5, -3, 31.25),
        Node("pool", "accel.max_pool2d", "accel", (1,), 1, "1x8x4x4", "int8"),
        Node("scores", "nn.softmax", "host", (2, 1), 2, "1x8", "float32"),
        Node("output", "output", "output", (3,), -1, "1x8", "float32"),
    )
)  # fmt: skip
PICTURE = Picture(
    function="accel_0",
    cycles=1_824,
    launches=1,
    parts=4,
    instructions=Instructions(
        (0, 2, 4), (0, 40, 1_700), (10, 60, 1_720), (50, 1_690, 1_800), (0, 0, 1), (0, 1, 2), (1, 2, 0)
    ),
    spent=Spent((Kind(Cause.BUS, "inp", True), Kind(Cause.PRODUCTS, "", False)), (864, 864, 96), (0, 0, 1), (0, 1, 0)),
    useful=(1000, 1000, 1000),
    pads=(Pad("inp", 64, 16, (0, 500, 1000, 0), (0, 1), (1, 2), (2, 1), (0, -1)),),
    window_bytes=8_192,
    sections=(Section("weights", "weights", 0, 4_096), Section("scratch", "scratch", 4_096, 512)),
    transfers=(Transfer(0, 0, 0, 600, False, 10, 50), Transfer(1, 1, 4_096, 4_200, True, 1_720, 1_800)),
)  # fmt: skip
REPORT = Report(
    "net & more", "tiny", "int8", 16, 8, (CONV, POOL, HOST), "rtl", 1_824, 1.5e6, "standard",
    {"bit-exact": "100/100 <all>"}, 24, None, (PICTURE,), network=NETWORK,
)  # fmt: skip
BEFORE = replace(REPORT, device=None, cycles=None, simulated_cycles_per_second=None, facts={}, pictures=(),
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


@pytest.mark.parametrize("report", [REPORT, BEFORE, replace(REPORT, layers=(), pictures=(), network=None)])
def test_the_page_is_whole_and_needs_nothing(report: Report) -> None:
    text = render_html(report)
    page = Page(text)
    assert page.open == [] and page.links == []
    assert not {"link", "img", "iframe"} & set(page.tags)
    assert "url(" not in text and "@import" not in text
    assert "prefers-color-scheme: dark" in text


def test_the_page_lets_its_own_script_run_and_no_other() -> None:
    text = render_html(REPORT)
    body = text[text.rindex("<script>") + len("<script>") : text.rindex("</script>")]
    digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}';"
    assert f'<meta http-equiv="Content-Security-Policy" content="{policy}">' in text
    assert text.index(policy) < text.index("<style>") and body == script(BUILD)


def data_of(text: str) -> Any:
    """The data of a page's script."""
    begin = text.index('<script type="application/json" id="data">')
    return json.loads(text[text.index(">", begin) + 1 : text.index("</script>", begin)])


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
    assert "<1>" not in text and "<so>" not in text and "<all>" not in text and "<conv>" not in text


def test_the_data_of_the_views_have_the_figures_of_the_profile() -> None:
    data = data_of(render_html(REPORT))
    rows = json.loads(json.dumps(profile_json(REPORT)["layers"]))
    assert [{key: value for key, value in row.items() if key != "short"} for row in data["layers"]] == rows
    assert data["causes"] == {str(cause): cause.meaning for cause in Cause}
    node = data["graph"]["nodes"][1]
    assert (node["name"], node["layer"], node["scale"], node["zero_point"], node["noise_db"]) == (
        "conv <1>",
        0,
        0.5,
        -3,
        31.25,
    )
    assert node["relay"] == [{"number": 3, "text": "%0 = <conv>"}] and node["names"] == ["conv <1>"]
    assert {(wire["begin"], wire["end"]) for wire in data["graph"]["wires"]} == {(0, 1), (1, 2), (2, 3), (1, 3), (3, 4)}
    (launch,) = data["launches"]
    assert (launch["function"], launch["cycles"], launch["window_bytes"]) == ("accel_0", 1_824, 8_192)
    assert (
        data_of(render_html(BEFORE))["launches"] == []
        and data_of(render_html(replace(REPORT, network=None)))["graph"] is None
    )


def test_bars_are_to_scale() -> None:
    text = render_html(REPORT)
    conv, pool = re.findall(r'<div class="bar">(.*?)</div>', text)
    # 864 of 1,728 cycles make products, 800 wait for reads, 64 drain; the roofline is at 864.
    pieces = re.findall(r'<i class="c-(\w+)" style="width:([\d.]+)%"></i>', conv)
    assert pieces == [("products", "50.00"), ("bus", "46.30"), ("drain", "3.70")] and '<b style="left:50.00%">' in conv
    assert re.findall(r'<i class="c-(\w+)" style="width:([\d.]+)%"></i>', pool) == [("alu", "5.56")]


def test_every_reader_speaks_of_lost_cycles_with_the_words_of_one_list() -> None:
    assert [str(cause) for cause in LOST] == [c.value for c in Cause if c is not Cause.PRODUCTS] and set(LOADS) < {
        *LOST
    }
    assert all(cause.meaning and "\n" not in cause.meaning for cause in Cause)
    assert REPORT.stalls == {Cause.BUS: 800, Cause.DRAIN: 64, Cause.STORE: 0, Cause.ALU: 96}
    text = render_html(REPORT)
    for cause in Cause:
        # Each has a colour of its own in both looks; only those that occur are explained.
        assert text.count(f"--{cause}: #") == 2 and f".c-{cause} {{ background: var(--{cause}); }}" in text
        assert (f"<b>{cause}</b> {cause.meaning}" in text) == bool(REPORT.stalls.get(cause))


def test_before_a_run_only_the_roofline_is_drawn() -> None:
    text = render_html(BEFORE)
    assert "not run yet" in text and '<b style="left:99.00%">' in text and '<i class="c-' not in text


def test_utilisation() -> None:
    assert utilisation(1600, 100, 16) == 1.0
    assert utilisation(1600, None, 16) is None and utilisation(0, 0, 16) is None
    assert REPORT.macs == 13_824 and REPORT.utilisation == 13_824 / (1_824 * 16)
    # Of array 864, output stage 256, reads (1,500 + 416) / 8 and writes 80 the array bounds the launch.
    assert REPORT.bounds == (Bounds("accel_0", 864, 256, 0, 240, 80),) and REPORT.roofline_cycles == 864
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
    assert (
        titles[:5] == ["layer", "where", "what its cycles went to", "cycles", "roofline"]
        and titles[-1] == "operator, and why so"
    )
    body = head[head.index("<tbody>") : head.index("</tbody>")]
    for row in body.split("</tr>")[:-1]:
        spans = [int(span) for span in re.findall(r'colspan="(\d+)"', row)]
        assert row.count("<td") - len(spans) + sum(spans) == len(titles)
