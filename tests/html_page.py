"""Reads a page for the tests: its elements, attributes and text, and whatever is none of these."""

from __future__ import annotations

from html.parser import HTMLParser


class Page(HTMLParser):
    """Elements, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.other: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.other.append(data)

    handle_pi = unknown_decl = handle_comment
