"""Templates: a value is text in an element, an attribute and the data of a script; one that is missing is an error."""

from __future__ import annotations

import json

import pytest

from relay_hw.report.render import render
from relay_hw.support.quote import line, screen
from tests.hostile import NAMES
from tests.html_page import Page

FRAME = "report/templates/frame.html.j2"


def test_attributes_hold_whatever_they_are_given() -> None:
    for name in NAMES:
        page = Page(render(FRAME, title=name, page=name))
        ((tag, attributes),) = page.tags
        assert (tag, attributes["title"], attributes["srcdoc"]) == ("iframe", screen(name), screen(name))
        assert (page.text.strip(), page.other) == ("", [])


def test_elements_and_data_hold_whatever_they_are_given() -> None:
    for name in NAMES:
        text = render("report/templates/difference.html.j2", **difference_of(name))
        page = Page(text)
        assert page.other == [] and {tag for tag, _ in page.tags} == TAGS, name
        begin = text.index(DATA) + len(DATA)
        assert json.loads(text[begin : text.index("</script>", begin)]) == {line(name): [line(name)]}
        assert screen(name) in page.text


DATA = '<script type="application/json" id="data">'
TAGS = {"html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "div", "b", "span", "section", "dl", "dt",
        "dd", "table", "thead", "tbody", "tfoot", "tr", "th", "td", "p", "script"}  # fmt: skip


def difference_of(name: str) -> dict[str, object]:
    """Values of the page of two builds, `name` wherever there is text."""
    return {
        "title": name,
        "tiles": [(name, name)],
        "settings": [(name, name)],
        "header": (name, name, name),
        "rows": [],
        "totals": (name,),
        "data": {name: [name]},
        "columns": name,
    }


def test_a_missing_value_is_an_error() -> None:
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError, match="'title' is undefined"):
        render(FRAME, page="x")
