"""The page in a browser: a click selects a layer everywhere, nothing lies beyond its box, keys reach all, no errors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from relay_hw.cli.data import save_npz
from relay_hw.cli.main import main
from relay_hw.runtime.artifact import load_artifact
from tests.relay_hw.report.browser import BEYOND, SMALL, WIDTHS, Open, Page, axe_problems, needs_axe, needs_browser
from tests.relay_hw.small_models import images, save_branches

pytestmark = needs_browser


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profiled network with a shortcut and a layer on the host."""
    folder = tmp_path_factory.mktemp("page")
    save_npz(folder / "data.npz", {"image": images(8, 5)})
    model = save_branches(folder / "net.onnx")
    data, out = str(folder / "data.npz"), folder / "build"
    assert main(["compile", str(model), "-o", str(out), "--calibration", data, "--config", "tiny"]) == 0
    assert main(["profile", str(out), "--input", data]) == 0
    return out


@pytest.fixture
def opened(open_file: Open, build: Path) -> Open:
    """Opens the page of the build, or another file."""

    def open_page(width: int = 1280, scheme: str = "light", file: Path | None = None, **options: Any) -> Page:
        return open_file(file or build / "report.html", width, scheme, **options)

    return open_page


def rows(build: Path) -> list[dict[str, Any]]:
    return json.loads((build / "report.json").read_text())["layers"]


def chosen(page: Page) -> dict[str, set[int]]:
    """By view, the layers that are marked as selected."""
    return page.evaluate(
        """() => {
          const layers = (query) => [...document.querySelectorAll(query)].map((node) => Number(node.dataset.layer));
          const nodes = JSON.parse(document.getElementById("data").textContent).graph.nodes;
          const graph = [...document.querySelectorAll('.node[aria-selected="true"]')];
          return {
            graph: graph.map((node) => nodes[Number(node.id.slice(5))].layer ?? -1),
            table: layers(".layers tr.chosen"), stalls: layers("#stalls tr.chosen"),
            schedule: layers(".schedule tr.chosen"),
            map: [...new Set(layers(".piece.chosen"))], roofline: layers(".dot.chosen"),
            state: [modules.state.selection.values.layer],
          };
        }"""
    )


def expect_everywhere(page: Page, build: Path, layer: int) -> None:
    """Every view shows the layer; the roofline has those with products alone."""
    page.wait_for_function("layer => modules.state.selection.values.layer === layer", arg=layer)
    found, row = chosen(page), rows(build)[layer]
    views = ["graph", "table", "stalls", "schedule", "map", "state"] + (["roofline"] if row["macs"] else [])
    assert {view: found[view] for view in views} == {view: [layer] for view in views}
    detail = page.locator("#detail .detail")
    assert detail.locator("h3").inner_text() == row["name"]
    assert f"{row['cycles']:,}, at least {row['roofline_cycles']:,}" in detail.inner_text()
    assert f"{row['bytes']['total']:,}: read {row['bytes']['read']:,}" in detail.inner_text()
    assert page.locator(".selected").inner_text().startswith(row["name"])


def on_accelerator(build: Path) -> list[int]:
    return [number for number, row in enumerate(rows(build)) if row["where"] == "accel"]


def test_one_click_selects_a_layer_everywhere(opened: Open, build: Path) -> None:
    page = opened()
    layers = on_accelerator(build)
    assert len(layers) >= 4
    page.locator(".node.device").first.click()
    expect_everywhere(page, build, layers[0])
    for number in layers[1:]:
        page.locator(f'.layers tr[data-layer="{number}"] .pick').click()
        expect_everywhere(page, build, number)
    page.locator(f'.schedule tr[data-layer="{layers[1]}"] .pick').click()
    expect_everywhere(page, build, layers[1])
    page.locator(f'.piece[data-layer="{layers[0]}"]').first.click(force=True)
    expect_everywhere(page, build, layers[0])
    page.locator(f'.dot[data-layer="{layers[-1]}"]').click(force=True)
    expect_everywhere(page, build, layers[-1])


def click_cycle(page: Page, frame: str, cycle: float, y: float) -> None:
    """Click on a picture over time at a cycle, `y` pixels below its axis."""
    node = page.locator(f"#{frame} .frame")
    node.scroll_into_view_if_needed()
    box = node.bounding_box()
    left, width = page.evaluate(
        "([w]) => { const left = w < 600 ? 70 : 78; return [left, w - left - 8]; }", [box["width"]]
    )
    begin, end = page.evaluate("() => [modules.state.range.values.from, modules.state.range.values.to]")
    page.mouse.click(box["x"] + left + width * (cycle - begin) / (end - begin), box["y"] + 22 + y)


def test_timeline_and_scratchpads_select(opened: Open, build: Path) -> None:
    page = opened()
    data = page.evaluate("modules.data.readData().then((data) => data.launches[0])")
    bands = data["bands"]
    longest = max(range(len(bands["layer"])), key=lambda k: bands["end"][k] - bands["begin"][k])
    middle = (bands["begin"][longest] + bands["end"][longest]) / 2
    # The bar at the lower edge would be in the way.
    page.add_style_tag(content=".selected { display: none !important; }")
    click_cycle(page, "timeline", middle, 12)
    page.wait_for_function("layer => modules.state.selection.values.layer === layer", arg=bands["layer"][longest])
    # An instruction of COMPUTE, the second row of units: its semaphores are told, with those who gave.
    run = data["instructions"]
    gemm = next(k for k in range(len(run["op"])) if run["op"][k] == 2 and run["takes"][k] and run["length"][k] > 60)
    click_cycle(page, "timeline", run["start"][gemm] + run["length"][gemm] / 2, 134 + 38 + 11)
    page.wait_for_function("k => modules.state.selection.values.instruction === k", arg=gemm)
    text = page.locator("#detail .detail").inner_text()
    assert f"gemm #{gemm} of" in text and "takes semaphore" in text and re.search(r" from (load|gather) #", text)
    pad = next(pad for pad in data["pads"] if pad["name"] == "acc")
    run_at = next(k for k in range(len(pad["layer"])) if pad["length"][k] > 20 and pad["layer"][k] >= 0)
    part = data["cycles"] / data["parts"]
    y = 58 - (pad["row"][run_at] + 0.5) * 58 / min(48, pad["entries"])
    top = 72 * [one["name"] for one in data["pads"]].index("acc")
    click_cycle(page, "pads", (pad["begin"][run_at] + pad["length"][run_at] / 2) * part, top + y)
    page.wait_for_function("layer => modules.state.selection.values.layer === layer", arg=pad["layer"][run_at])


def span(page: Page) -> tuple[float, float]:
    values = page.evaluate("() => [modules.state.range.values.from, modules.state.range.values.to]")
    return values[0], values[1]


def shown(canvas: Any) -> str:
    """What is drawn, as a picture's bytes."""
    return canvas.evaluate("(canvas) => canvas.toDataURL()")


@pytest.mark.parametrize("view", ["timeline", "pads"])
def test_what_is_over_time_zooms_and_moves(opened: Open, build: Path, view: str) -> None:
    page = opened()
    # The bar at the lower edge would be in the way.
    page.add_style_tag(content=".selected { display: none !important; }")
    cycles = json.loads((build / "report.json").read_text())["cycles"]
    assert span(page) == (0, cycles)
    frame = page.locator(f"#{view} .frame")
    pictures = [page.locator(f"#{name} canvas") for name in ("timeline", "pads")]
    whole = [shown(one) for one in pictures]
    frame.focus()
    page.keyboard.press("+")
    assert span(page) == (cycles / 4, 3 * cycles / 4)
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert all(shown(one) != before for one, before in zip(pictures, whole, strict=True)), "both show the same cycles"
    page.keyboard.press("ArrowRight")
    assert span(page)[0] == pytest.approx(cycles / 4 + cycles / 10)
    page.keyboard.press("Home")
    assert span(page) == (0, cycles)
    frame.scroll_into_view_if_needed()
    box = frame.bounding_box()
    page.mouse.move(box["x"] + 300, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 60, steps=4)
    page.mouse.up()
    begin, end = span(page)
    assert end - begin == pytest.approx(cycles * 100 / (box["width"] - 86), rel=0.05)
    frame.dblclick(position={"x": 300, "y": 60})
    assert span(page) == (0, cycles)
    page.locator(f"#{view}").get_by_role("button", name="Zoom into the cycles").click()
    assert span(page) == (cycles / 4, 3 * cycles / 4)
    page.locator(f"#{view}").get_by_role("button", name="All: the whole launch").click()
    assert span(page) == (0, cycles)


def test_keys_reach_every_view(opened: Open, build: Path) -> None:
    page = opened()
    layers = on_accelerator(build)
    reached: list[str] = []
    for _ in range(40):
        page.keyboard.press("Tab")
        label = page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent")
        reached.append(label)
    for view in (
        "Operators of the network",
        "Timeline of a launch",
        "Scratchpads over time",
        "Roofline",
        "DRAM map",
        "Schedule",
    ):
        assert any(label.startswith(view) for label in reached), view
    page.locator(".graph svg").focus()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    assert chosen(page)["graph"] == [layers[0]]
    for view in ("#timeline .frame", "#pads .frame", ".plot", ".map"):
        page.locator(view).focus()
        page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowDown")
        assert chosen(page)["state"][0] in layers, view
    page.locator(f'.layers tr[data-layer="{layers[2]}"] .pick').focus()
    page.keyboard.press("Enter")
    expect_everywhere(page, build, layers[2])


def test_boxes_are_coloured_by_what_is_asked_for(opened: Open, build: Path) -> None:
    page = opened()
    select = page.get_by_role("combobox", name="Colour of the boxes")
    texts: dict[str, list[str]] = {}
    for choice in ("cycles", "lost", "noise", "where"):
        select.select_option(choice)
        texts[choice] = page.locator(".node.device .figure").all_text_contents()
    measured = [row for row in rows(build) if row["where"] == "accel"]
    assert texts["cycles"] == [f"{row['cycles']:,}" for row in measured]
    assert texts["lost"] == [f"{sum(row['stalls'].values()):,}" for row in measured]
    assert any(text.endswith(" dB") for text in texts["noise"]) and set(texts["where"]) == {"accel"}


def test_the_detail_shows_sources_and_numbers(opened: Open, build: Path) -> None:
    page = opened()
    network = json.loads((build / "network.json").read_text())["nodes"]
    lines = (build / "0_imported.relay").read_text().split("\n")
    for number, node in enumerate(network):
        if node["layer"] < 0 or node["where"] != "accel":
            continue
        page.locator(f"#node-{number}").click()
        text = page.locator("#detail .detail").inner_text()
        assert node["relay"] and all(name in text for name in node["names"])
        for line in node["relay"]:
            assert lines[line["number"] - 1].strip() == line["text"] and f"{line['number']}: {line['text']}" in text
        if node["scale"] is not None:
            assert f"zero point {node['zero_point']}" in text and f"{node['noise_db']:.1f} dB" in text
    assert sum(node["scale"] is not None for node in network) == 4


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_lies_beyond_its_box_and_letters_can_be_read(opened: Open, build: Path, width: int) -> None:
    page = opened(width)
    page.locator(".node.device").first.click()
    assert page.evaluate(BEYOND) == []
    assert page.evaluate(SMALL) == []
    for name in ("Zoom out", "Zoom out", "Fit: fill the width", "Zoom in"):
        page.get_by_role("button", name=name, exact=True).click()
        assert page.evaluate(SMALL) == [], name
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@needs_axe
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_nothing(opened: Open, build: Path, scheme: str, width: int) -> None:
    page = opened(width, scheme, bypass_csp=True)
    page.locator(".node.device").nth(1).click()
    assert axe_problems(page) == []


def test_it_prints(opened: Open, build: Path) -> None:
    page = opened(scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('.selected')).display") == "none"
    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")


def test_a_page_that_was_only_compiled_has_the_views_too(opened: Open, tmp_path: Path) -> None:
    save_npz(tmp_path / "data.npz", {"image": images(8, 5)})
    model = save_branches(tmp_path / "net.onnx")
    data = str(tmp_path / "data.npz")
    assert main(["compile", str(model), "-o", str(tmp_path / "b"), "--calibration", data, "--config", "tiny"]) == 0
    page = opened(file=tmp_path / "b" / "report.html")
    page.locator(".node.device").first.click()
    expect_everywhere(page, tmp_path / "b", on_accelerator(tmp_path / "b")[0])
    host = ["compile", str(model), "-o", str(tmp_path / "h"), "--no-accel"]
    assert main(host) == 0
    page = opened(file=tmp_path / "h" / "report.html")
    page.locator(".node.host").first.click()
    assert page.locator("#timeline").count() == 0 and page.locator("#detail h3").inner_text()


def test_two_builds_side_by_side(opened: Open, build: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    assert main(["diff", str(build), str(build), "-o", str(file)]) == 0
    for width in WIDTHS:
        page = opened(width, file=file)
        page.locator("#network-a .node.device").nth(1).click()
        layer = on_accelerator(build)[1]
        marked = page.locator('.node[aria-selected="true"]')
        assert marked.count() == 2 and page.locator(f'.layers tr.chosen[data-layer="{layer}"]').count() == 1
        assert page.locator("#detail h3").inner_text() == rows(build)[layer]["name"]
        assert page.evaluate(BEYOND) == [] and page.evaluate(SMALL) == []


@needs_axe
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_two_builds(opened: Open, build: Path, tmp_path: Path, scheme: str) -> None:
    file = tmp_path / "report.html"
    assert main(["diff", str(build), str(build), "-o", str(file)]) == 0
    page = opened(1280, scheme, file=file, bypass_csp=True)
    page.locator("#network-b .node.device").nth(1).click()
    assert axe_problems(page) == []


def test_a_frame_in_a_notebook_grows_to_its_page(browser: Any, build: Path, tmp_path: Path) -> None:
    shown = load_artifact(build)._repr_html_()
    assert "height:600px" in shown
    (tmp_path / "notebook.html").write_text(f'<!doctype html><meta charset="utf-8">{shown}')
    context = browser.new_context(viewport={"width": 1000, "height": 900})
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto((tmp_path / "notebook.html").as_uri())
    page.wait_for_function("document.querySelector('iframe').clientHeight != 600")
    inner, outer = page.evaluate(
        "[(frame) => frame.contentDocument.documentElement.scrollHeight, (frame) => frame.clientHeight]"
        ".map((read) => read(document.querySelector('iframe')))"
    )
    context.close()
    assert inner == outer and said == []
