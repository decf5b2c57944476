"""Settings of Sphinx for the site of the documents (`make docs`).

In: every Markdown page of the repository, where it lies, so that links hold on the site and beside the sources alike.
The lists of links in docs/README.md are the navigation; pages that it does not name are listed below ARCHITECTURE.md.
What stands between `<!-- site: NAME -->` and `<!-- end -->` becomes what scripts/reference.py writes for that name.
Out: HTML that fetches nothing from the network.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, Text
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts import reference  # noqa: E402

project = "relay-hw"
root_doc = "docs/README"
extensions = ["myst_parser"]
# The two links repeat the folders beside relay_hw.
exclude_patterns = [".*", "build", "dist", "shared", "relay_hw/accel", "relay_hw/tensorize", "**/__pycache__", "**/.*"]
include_patterns = ["**.md"]
myst_heading_anchors = 3
# A block of output is text, and so is one in a language without a lexer.
highlight_language = "text"
html_theme = "furo"
html_title = "relay-hw"
html_static_path = ["site/style.css"]
html_css_files = ["style.css"]
templates_path = ["site"]
# The pages lie in docs/, the first file of the site does not.
html_additional_pages = {"index": "redirect.html"}
html_copy_source = False
# The lines around a word are fetched from the pages, which a browser refuses for files.
html_show_search_summary = False
html_theme_options = {"navigation_with_keys": True}

HOME = "docs/README"
REST = "ARCHITECTURE"
LINK = re.compile(r"\[([^\]]+)\]\(([\w./-]+)\.md\)")
# ```python train.py: the block is a file, whose name the site shows.
FILE = re.compile(r"^```(\w+) ([\w/-]+\.\w+)$", re.M)
GENERATED = re.compile(r"^<!-- site: (\w+) -->\n.*?^<!-- end -->$", re.M | re.S)


def navigation(text: str, folder: str) -> dict[str, list[tuple[str, str]]]:
    """By section of a page: titles and pages that its lists link to."""
    sections = re.split(r"^## (.*)$", text, flags=re.M)[1:]
    return {
        title: [(name, os.path.normpath(f"{folder}/{path}")) for name, path in LINK.findall(body)]
        for title, body in zip(sections[::2], sections[1::2], strict=True)
    }


def toctree(caption: str, lines: list[str]) -> str:
    return "\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *lines, "```", ""])


def fill(app: Sphinx, page: str, source: list[str]) -> None:
    """Add what a page has on the site only: navigation and generated text."""
    sections = navigation((ROOT / f"{HOME}.md").read_text(), "docs")
    if page == HOME:
        source[0] += "".join(
            toctree(title, [f"{name} </{path}>" for name, path in links]) for title, links in sections.items() if links
        )
    if page == REST:
        named = {HOME, *(path for links in sections.values() for _, path in links)}
        source[0] += toctree("Rooms", [f"/{path}" for path in sorted(app.env.found_docs - named)])
    source[0] = FILE.sub(r"```{code-block} \1\n:caption: \2\n", source[0])
    source[0] = GENERATED.sub(lambda match: reference.WRITERS[match[1]](), source[0])


class RelayLexer(RegexLexer):
    """Colours for Relay's text format."""

    name = "Relay"
    tokens = {  # noqa: RUF012
        "root": [
            (r"//.*$|/\*[\s\S]*?\*/|#\[.*?\]", Comment),
            (r'"[^"]*"', String),
            (r"[%][\w.]+", Name.Variable),
            (r"[@][\w.]+", Name.Function),
            (r"\b(def|fn|let|if|else|match|type|extern|ref|free_var|meta)\b\??", Keyword),
            (r"\b(Tensor|int\d+|uint\d+|float\d+|bfloat16|bool|True|False)\b", Keyword.Type),
            (r"-?\d[\w.]*", Number),
            (r"[\w.]+", Text),
            (r"[-=>+*/,;:(){}\[\]!&|<?]", Operator),
            (r"\s+|.", Text),
        ]
    }


def setup(app: Sphinx) -> None:
    app.add_lexer("relay", RelayLexer)
    app.connect("source-read", fill)
