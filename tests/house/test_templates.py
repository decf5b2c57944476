"""Templates of pages leave escaping to Jinja: values stand in text or in quoted attributes that hold no code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jinja2 import Environment, nodes

from tests.house.sources import ROOT

TEMPLATES = sorted((ROOT / "relay_hw").rglob("*.j2"))
# By template, expressions inside of <script> and <style>, and filters that make HTML, with the reason.
CODE = {
    "compare.html.j2": {"row.link": "an address below the page, quoted where it is made"},
    "base.html.j2": {"script | safe": "the page's own script, of the folder page"},
    "macros.html.j2": {"found | tojson": "JSON that neither ends the element nor turns into a comment",
                       "columns": "base64, which a browser does not run"},
}  # fmt: skip
# A number of fixed digits: all that a style may be given.
NUMBER = re.compile(r'"%\.\df" \| format\([a-z.]+\)')
HOLE = re.compile(r"{{-?\s*(.*?)\s*-?}}", re.DOTALL)
NOT_TEXT = re.compile(r"{#.*?#}|{%.*?%}", re.DOTALL)
TAG = re.compile(r"<[a-zA-Z][^<>]*>")
ATTRIBUTE = re.compile(r'([\w:-]+)="([^"]*)"')


def marked(text: str) -> tuple[str, list[str]]:
    """A template whose comments and statements are gone and whose expressions are numbered; the expressions."""
    holes: list[str] = []

    def mark(found: re.Match[str]) -> str:
        holes.append(found[1])
        return f"\x01{len(holes) - 1}\x02"

    return NOT_TEXT.sub("", HOLE.sub(mark, text)), holes


def holes_in(text: str) -> list[int]:
    return [int(number) for number in re.findall("\x01(\\d+)\x02", text)]


def problems(text: str) -> list[str]:
    """Expressions where escaping is not enough: bare in a tag, in code, in a style, in an address."""
    plain, holes = marked(text)
    found: list[str] = []
    for element in re.findall(r"<(?:script|style)\b.*?</(?:script|style)>", plain, re.DOTALL):
        found += [holes[k] for k in holes_in(element)]
    for tag in TAG.findall(plain):
        found += [holes[k] for k in holes_in(ATTRIBUTE.sub("", tag))]
        for name, value in ATTRIBUTE.findall(tag):
            is_code = name.startswith("on") or name in ("href", "src", "srcset", "action", "style")
            found += [holes[k] for k in holes_in(value) if is_code and not NUMBER.fullmatch(holes[k])]
    return found


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_values_stand_where_they_are_text(path: Path) -> None:
    assert [one for one in problems(path.read_text()) if one not in CODE.get(path.name, {})] == []


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_nothing_turns_escaping_off(path: Path) -> None:
    tree = Environment().parse(path.read_text())
    assert not [*tree.find_all(nodes.EvalContextModifier)], "autoescape is of the environment"
    filters = {one.name for one in tree.find_all(nodes.Filter)} & {"safe", "tojson", "forceescape", "escape", "e"}
    assert filters == {one.split(" | ")[1] for one in CODE.get(path.name, {}) if " | " in one}
    # Behind `~`, text beside HTML would not be made visible.
    assert not [*tree.find_all(nodes.Concat)]


def test_no_python_makes_html() -> None:
    for path in (ROOT / "relay_hw").rglob("*.py"):
        assert not re.search(r"\b(Markup|markupsafe|autoescape=False)\b", path.read_text()), path


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<p>{{ name }}</p>", []),
        ('<p title="{{ name }}">', []),
        ("<p title={{ name }}>", ["name"]),
        ("<p title='{{ name }}'>", ["name"]),
        ("<p {{ name }}>", ["name"]),
        ("<{{ name }}>", []),
        ("<script>f('{{ name }}')</script>", ["name"]),
        ("<style>{% if a %}{{ name }}{% endif %}</style>", ["name"]),
        ('<a href="{{ name }}">', ["name"]),
        ('<p onclick="{{ name }}">', ["name"]),
        ('<i style="width:{{ width }}%">', ["width"]),
        ('<i style="width:{{ "%.2f" | format(width) }}%">', []),
        ('<p{% if a %} class="{{ name }}"{% endif %}>', []),
    ],
)
def test_what_is_found(text: str, found: list[str]) -> None:
    assert problems(text) == found
