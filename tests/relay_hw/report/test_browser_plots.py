"""Pages of compare and explore in a browser: a point selects its row, nothing lies beyond its box, keys, no errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relay_hw.cli.main import main
from tests.relay_hw.report.browser import BEYOND, SMALL, WIDTHS, Open, Page, axe_problems, needs_axe, needs_browser
from tests.relay_hw.small_models import CLASSES, images, save_plain

pytestmark = needs_browser
PAGES = ("compare", "explore")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A comparison of four strategies, one of them without hardware, and an exploration of ten points."""
    folder = tmp_path_factory.mktemp("plots")
    save_plain(folder / "net.onnx")
    np.savez(folder / "calibration.npz", image=images(8, 99))
    np.savez(folder / "test.npz", image=images(20, 3), labels=np.arange(20) % CLASSES)
    given = [str(folder / "net.onnx"), "--calibration", str(folder / "calibration.npz"), "--processes", "1"]
    strategies = ["--strategies", "int8,int8-pow2,w4a8,mxfp4", "--config", "tiny", "--data", str(folder / "test.npz")]
    assert main(["compare", *given, *strategies, "-o", str(folder / "c")]) == 0
    axes = ["--config", "tiny", "--axis", "block_in=4,8,12", "--axis", "out_lanes=1,2", "--axis", "latency=50,100"]
    assert main(["explore", *given, *axes, "-o", str(folder / "e")]) == 0
    return {"compare": folder / "c" / "report.html", "explore": folder / "e" / "explore.html"}


def chosen(page: Page, query: str) -> set[str]:
    """Rows of the selected elements among those of a query."""
    return set(page.evaluate("(q) => [...document.querySelectorAll(q)].map((node) => node.dataset.row)", query))


@pytest.mark.parametrize("name", PAGES)
def test_a_point_selects_its_row_and_a_row_its_points(open_file: Open, files: dict[str, Path], name: str) -> None:
    page = open_file(files[name])
    assert chosen(page, ".chosen") == set()
    plots = page.locator(".plot").count()
    assert plots >= 2
    for row in sorted(chosen(page, "circle.mark")):
        page.locator(f'.plot circle[data-row="{row}"]').first.click(force=True)
        at = chosen(page, "circle.chosen")
        # Points may lie over one another: the one that is seen is selected.
        assert len(at) == 1 and chosen(page, "tr.chosen") == at
        (number,) = at
        assert page.locator("circle.chosen").count() <= plots
        assert page.locator(f'tr[data-row="{number}"]').first.is_visible()
        tips = page.locator("circle.chosen title").all_text_contents()
        assert page.locator("#chosen").inner_text() == "; ".join(tips) != ""
    page.locator("table tr[data-row] .pick").first.click()
    assert chosen(page, "circle.chosen") == chosen(page, "tr.chosen") and len(chosen(page, "tr.chosen")) == 1


def test_a_row_that_is_folded_away_is_shown(open_file: Open, files: dict[str, Path]) -> None:
    page = open_file(files["explore"])
    beaten = page.locator("details tr[data-row]").first
    row = beaten.get_attribute("data-row")
    assert not beaten.is_visible()
    page.locator(f'circle[data-row="{row}"]').first.dispatch_event("click")
    assert beaten.is_visible() and chosen(page, "tr.chosen") == {row}


def test_a_row_links_the_report_of_its_build(open_file: Open, files: dict[str, Path]) -> None:
    page = open_file(files["compare"])
    links = page.get_by_role("link", name="report of")
    assert links.count() == 3, "mxfp4 has no hardware"
    links.first.click()
    page.wait_for_selector("html[data-ready] #timeline", state="attached")
    assert page.locator("h1").inner_text() == "net on tiny"


@pytest.mark.parametrize("name", PAGES)
def test_keys_reach_every_point(open_file: Open, files: dict[str, Path], name: str) -> None:
    page = open_file(files[name])
    reached: list[str] = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.getAttribute('aria-label') ?? ''"))
    assert sum("select a point" in label for label in reached) >= 2
    plot = page.locator(".plot").last
    marks = plot.locator("circle").count()
    plot.focus()
    seen: list[str] = []
    for _ in range(marks):
        page.keyboard.press("ArrowRight")
        seen += chosen(page, "tr.chosen")
    assert len(set(seen)) == marks == len(seen)
    page.keyboard.press("ArrowRight")
    assert chosen(page, "tr.chosen") == {seen[-1]}
    page.keyboard.press("ArrowLeft")
    assert chosen(page, "tr.chosen") == {seen[-2]}
    page.keyboard.press("Enter")
    assert page.locator("tr.chosen").first.is_visible()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_nothing_lies_beyond_its_box_and_letters_can_be_read(
    open_file: Open, files: dict[str, Path], name: str, width: int
) -> None:
    page = open_file(files[name], width)
    page.locator(".pick").first.click()
    page.evaluate("document.querySelectorAll('details').forEach((node) => { node.open = true; })")
    assert page.evaluate(BEYOND) == []
    assert page.evaluate(SMALL) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@needs_axe
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(open_file: Open, files: dict[str, Path], name: str, width: int, scheme: str) -> None:
    page = open_file(files[name], width, scheme, bypass_csp=True)
    page.locator(".pick").first.click()
    page.evaluate("document.querySelectorAll('details').forEach((node) => { node.open = true; })")
    assert axe_problems(page) == []


@pytest.mark.parametrize("name", PAGES)
def test_they_print(open_file: Open, files: dict[str, Path], name: str) -> None:
    page = open_file(files[name], scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    light = open_file(files[name], scheme="light")
    for what in ("chip", "products", "lanes"):
        read = f"getComputedStyle(document.documentElement).getPropertyValue('--{what}')"
        assert page.evaluate(read) == light.evaluate(read), "paper is light"
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")
