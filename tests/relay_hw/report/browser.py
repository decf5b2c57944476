"""What tests of pages in a browser have in common: the browser, what is measured of a page, rules of accessibility."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_browser = [
    pytest.mark.skipif(find_spec("playwright") is None, reason="playwright is not installed (extra test)"),
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH (Debian: apt-get install chromium)"),
]
needs_axe = pytest.mark.skipif(
    find_spec("axe_playwright_python") is None, reason="axe-playwright-python is not installed (extra test)"
)
WIDTHS = (400, 1280, 1920)
Page = Any
Open = Callable[..., Page]

# Elements that are wider than the window, or whose text is wider than they are, but for those that scroll.
BEYOND = """() => {
  const scrolls = (node) => ["auto", "scroll"].includes(getComputedStyle(node).overflowX);
  const inside = (node) => node && (scrolls(node) || inside(node.parentElement));
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    const box = node.getBoundingClientRect();
    if (!box.width || inside(node)) continue;
    const isBlock = node instanceof HTMLElement && getComputedStyle(node).display !== "inline";
    const wide = isBlock && node.scrollWidth > node.clientWidth + 1;
    if (box.right > innerWidth + 0.5 || box.left < -0.5 || wide) found.push(node.outerHTML.slice(0, 120));
  }
  for (const text of document.querySelectorAll(".node text")) {
    if (!text.textContent || getComputedStyle(text).display === "none") continue;
    const [own, box] = [text.getBoundingClientRect(), text.parentElement.querySelector("rect").getBoundingClientRect()];
    if (own.left < box.left || own.right > box.right + 0.5 || own.bottom > box.bottom) found.push(text.textContent);
  }
  for (const text of document.querySelectorAll(".plot text")) {
    const [own, box] = [text.getBoundingClientRect(), text.closest("svg").getBoundingClientRect()];
    if (own.left < box.left - 0.5 || own.right > box.right + 0.5) found.push(text.textContent);
  }
  return found;
}"""
SMALL = """() => {
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    if (!own || !node.getClientRects().length || ["SCRIPT", "TITLE", "title"].includes(node.tagName)) continue;
    const scale = node.getScreenCTM ? node.getScreenCTM().a || 1 : 1;
    const size = parseFloat(getComputedStyle(node).fontSize) * Math.abs(scale);
    if (size < 11) found.push(`${size} ${node.outerHTML.slice(0, 100)}`);
  }
  return found;
}"""


def axe_problems(page: Page) -> list[tuple[str, list[str]]]:
    """Rules of accessibility that a page breaks, each with the elements. The page must let scripts in."""
    page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text())
    found = page.evaluate("axe.run(document).then((result) => result.violations)")
    return [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in found]
