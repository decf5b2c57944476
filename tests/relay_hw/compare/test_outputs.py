"""Every form of a comparison: table, CSV, JSON, page, files."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from relay_hw.compare import CompareOptions, Comparison, compare
from relay_hw.compare.findings import CSV_COLUMNS
from relay_hw.compare.store import Store
from relay_hw.errors import InputError
from relay_hw.ir.module import IRModule
from relay_hw.quantize import Strategy
from tests.relay_hw.compare.given import NAMES, calibration, data


def test_json_has_the_promised_shape(found: Comparison) -> None:
    row = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert row["float"]["top1"] == found.float_row.test.top1 and row["best"] == found.best
    promised = ("name", "config", "top1", "agreement", "logit_sqnr_db", "cycles", "dram_bytes", "weight_bytes")
    for strategy in row["strategies"]:
        assert all(strategy[key] is not None for key in (*promised, "energy_uj"))
        assert {
            "lut",
            "multipliers",
            "accel_mac_share",
            "compile_seconds",
            "host_seconds",
            "machine",
            "worst_layers",
        } <= strategy.keys()


def test_csv_reads_back(found: Comparison) -> None:
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert tuple(rows[0]) == CSV_COLUMNS and [row["name"] for row in rows] == list(NAMES)
    assert [int(row["cycles"]) for row in rows] == [row.cost.cycles for row in found.rows if row.cost]


class _Page(HTMLParser):
    """Open elements and what a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetches: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br"):
            self.open.append(tag)
        self.fetches += [f"{tag} {name}" for name, _ in attrs if name in ("src", "href", "srcset")]
        self.fetches += [tag] if tag == "link" else []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetches += [f"{tag} {name}" for name, _ in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_needs_nothing_else(found: Comparison) -> None:
    text = found.to_html()
    reader = _Page()
    reader.feed(text)
    assert not reader.open and not reader.fetches and "url(" not in text and "@import" not in text
    for name in (*NAMES, "conv_a", "conv_b", "Horowitz", "McNemar", "least output noise"):
        assert name in text
    assert text == found.to_html()
    one = found.to_html(["conv_b"])
    assert one.count('class="hist"') == 1 < text.count('class="hist"')
    with pytest.raises(InputError, match=r"layer must be one of .*, not nothing"):
        found.to_html(["nothing"])


def test_notebooks_show_the_page(found: Comparison) -> None:
    shown = found._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and "<script" not in shown
    assert str(found) == found.to_text()


def test_the_names_that_users_know() -> None:
    from relay_hw.compat.tvm import relay

    assert relay.quantize.Strategy is Strategy
    with pytest.raises(AttributeError, match=r"module relay_hw.quantize has no attribute contrast"):
        relay.quantize.contrast  # noqa: B018


def test_the_table_shows_every_strategy(found: Comparison) -> None:
    lines = found.to_text().splitlines()
    head = next(line for line in lines if line.startswith("strategy"))
    assert "top-1" in head and "cycles" in head and "MSE" not in head
    assert any(line.startswith(f"{found.best} *") for line in lines)
    assert any(line.startswith("int8-pow2: most noise in ") for line in lines)


def test_files_are_written(found: Comparison, tmp_path: Path) -> None:
    found.save(tmp_path / "report")
    assert {path.name for path in (tmp_path / "report").iterdir()} == {"report.html", "report.csv", "report.json"}
    assert Store(tmp_path / "report").folder.stat().st_mode & 0o200


def test_rows_link_the_reports_of_their_builds(plain: IRModule, tmp_path: Path) -> None:
    options = CompareOptions(strategies=["int8", "mxfp4"], configs=["tiny"], work=tmp_path / "a b" / "work", name="net")
    for _ in range(2):  # measured, then found again
        found = compare(plain, data(), options, calibration=calibration())
        found.save(tmp_path / "a b")
        text = (tmp_path / "a b" / "report.html").read_text()
        (address,) = re.findall(r'<a href="([^"]*)" aria-label="report of int8 on tiny">report</a>', text)
        page = (tmp_path / "a b" / unquote(address)).read_text()
        cost = found["int8"].cost
        assert cost is not None and "<title>net on tiny · relay-hw</title>" in page and "strategy int8" in page
        assert f"<b>{cost.cycles:,}</b><span>cycles an inference</span>" in page
    # Nothing is linked from elsewhere, nor what is there no more.
    found.save(tmp_path / "other")
    assert "<a href" not in (tmp_path / "other" / "report.html").read_text() and "<a href" not in found.to_html()
    (path,) = found.pages.values()
    path.unlink()
    assert not compare(plain, data(), options, calibration=calibration()).pages
