"""The documents as a site: built without a warning, complete, and nothing in it is fetched from the network."""

from __future__ import annotations

import re
import subprocess
import sys
from argparse import ArgumentParser, _SubParsersAction
from html.parser import HTMLParser
from pathlib import Path

import pytest

import relay_hw
from relay_hw.accel.isa.config import SIZES
from relay_hw.cli.commands import parser
from scripts import reference

pytest.importorskip("sphinx", reason="sphinx is not installed: pip install 'relay-hw[docs]'")
ROOT = Path(__file__).parents[2]
FETCHED = {
    ("img", "src"),
    ("script", "src"),
    ("link", "href"),
    ("iframe", "src"),
    ("source", "src"),
    ("object", "data"),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet"]
    done = subprocess.run(
        [*command, "-c", "docs", "-d", str(folder / "trees"), ".", str(folder / "html")],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "html"


class Fetches(HTMLParser):
    """Addresses that a browser fetches as soon as it shows a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if (tag, name) in FETCHED and value]


def outside(name: str, text: str) -> list[str]:
    """What a file of the site fetches from the network."""
    found = Fetches(text).found if name.endswith(".html") else []
    if not name.endswith(".js"):
        found += re.findall(r"(?:url\(|@import)\s*['\"]?([^'\")]+)", text)
    return [address for address in found if re.match(r"(?:[a-z]+:)?//", address)]


def test_nothing_is_fetched_from_the_network(site: Path) -> None:
    files = [path for path in site.rglob("*") if path.suffix in {".html", ".css", ".js"}]
    assert len(files) > 40
    assert {path.name: found for path in files if (found := outside(path.name, path.read_text()))} == {}


def test_what_is_fetched_is_found() -> None:
    page = (
        "<link href='https://a/b.css'><img src='//c/d.png'><a href='https://e'>e</a><style>@import 'http://f';</style>"
    )
    assert outside("page.html", page) == ["https://a/b.css", "//c/d.png", "http://f"]
    assert outside("style.css", "a { background: url(https://g/h) url(i.png) url('data:image/png;base64,//') }") == [
        "https://g/h"
    ]


def test_links_lead_to_pages_and_places_that_exist(site: Path) -> None:
    pages = {path: path.read_text() for path in site.rglob("*.html")}
    missing: list[str] = []
    for path, text in pages.items():
        for address in re.findall(r'<a [^>]*href="([^"]+)"', text):
            target, _, place = address.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            lies = (path.parent / target).resolve() if target else path
            if not lies.exists() or (place and lies in pages and f'id="{place}"' not in pages[lies]):
                missing.append(f"{path.relative_to(site)}: {address}")
    assert missing == []


def test_the_first_file_leads_to_the_first_page(site: Path) -> None:
    assert "url=docs/README.html" in (site / "index.html").read_text()


def subcommands() -> dict[str, ArgumentParser]:
    (action,) = [action for action in parser()._actions if isinstance(action, _SubParsersAction)]
    return dict(action.choices)


def test_every_command_with_every_option_is_a_row(site: Path) -> None:
    text = (site / "docs" / "reference" / "commands.html").read_text()
    for name, one in subcommands().items():
        (section,) = re.findall(rf'<section id="{name}">(.*?)</section>', text, re.S)
        for action in one._actions:
            assert all(option in section for option in action.option_strings) != (action.dest in reference.COMMON), name


def test_every_public_name_has_a_section(site: Path) -> None:
    text = (site / "docs" / "reference" / "python.html").read_text()
    headings = re.findall(r"<h2>([\w.]+)<", text)
    assert headings == [name for name in relay_hw.__all__ if name != "__version__"]


def test_every_size_of_a_configuration_is_described() -> None:
    page = (ROOT / "docs" / "reference" / "configuration.md").read_text()
    assert tuple(re.findall(r"^\| `(\w+)` \|", page, re.M)) == SIZES


def test_search_needs_no_network(site: Path) -> None:
    index = (site / "searchindex.js").read_text()
    assert '"docs/quantization"' in index and "semaphor" in index
