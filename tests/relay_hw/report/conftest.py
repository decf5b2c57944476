"""A browser, and pages that are opened in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.relay_hw.report.browser import CHROMIUM, Open, Page


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def open_file(browser: Any) -> Iterator[Open]:
    """Opens pages; at the end they may have fetched nothing, and complained about nothing."""
    contexts: list[Any] = []
    said: list[str] = []
    asked: list[str] = []

    def open_page(file: Path, width: int = 1280, scheme: str = "light", **options: Any) -> Page:
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: None if request.is_navigation_request() else asked.append(request.url))
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-ready]", state="attached")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert (said, asked) == ([], [])
