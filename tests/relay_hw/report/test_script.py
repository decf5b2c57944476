"""The page's script: modules that find what they import, and nothing that ends the element around them."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from relay_hw.report.script import BUILD, DIFFERENCE, ROWS_SCRIPT, asset, script

PAGES = (BUILD, DIFFERENCE, ROWS_SCRIPT)


def test_every_module_is_in_the_page_once() -> None:
    found = {path.name for path in files("relay_hw.report").joinpath("page").iterdir() if path.name.endswith(".js")}
    assert {*BUILD, *DIFFERENCE, *ROWS_SCRIPT} == found
    assert all(len(set(page)) == len(page) for page in PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_imports_are_exported_by_modules_before(page: tuple[str, ...]) -> None:
    known: dict[str, set[str]] = {}
    for name in page:
        text = asset(name)
        for wanted, source in re.findall(r'^import \{([^}]*)\} from "\./(\w+\.js)";$', text, re.MULTILINE):
            assert {one.strip() for one in wanted.split(",")} <= known[source], (name, source)
        assert len(re.findall(r"\bimport\b.*from", text)) == len(re.findall(r"^import \{", text, re.MULTILINE))
        known[name] = set(re.findall(r"^export (?:async )?(?:function|class|const) (\w+)", text, re.MULTILINE))


def test_what_is_exported_is_used() -> None:
    texts = {name: asset(name) for name in {*BUILD, *DIFFERENCE, *ROWS_SCRIPT}}
    for name, text in texts.items():
        for exported in re.findall(r"^export (?:async )?(?:function|class|const) (\w+)", text, re.MULTILINE):
            assert any(re.search(rf"\b{exported}\b", other) for key, other in texts.items() if key != name), exported


def test_the_script_shows_text_as_text() -> None:
    """Names are a stranger's: no way from text to elements is used, and nothing is fetched."""
    text = "".join(map(script, PAGES))
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "fetch(",
                 "XMLHttpRequest", "WebSocket", "localStorage", "import(", "</script", "<!--"):  # fmt: skip
        assert word not in text, word
    assert not re.search(r"^(import|export) ", text, re.MULTILINE)
