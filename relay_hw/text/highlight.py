"""Colours Relay text for notebooks. In: text that the printer wrote. Out: HTML for light and dark themes."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Final

from relay_hw.support.quote import html
from relay_hw.text.lexer import Source, Token, TokenKind, tokenize


class Colour(Enum):
    """The colours of JupyterLab's own editor; where it is not there, ones that can be read on white and on black."""

    KEYWORD = "var(--jp-mirror-editor-keyword-color, #3f7f3f)"
    NAME = "var(--jp-mirror-editor-def-color, #3b78d8)"
    NUMBER = "var(--jp-mirror-editor-number-color, #3f8f6f)"
    STRING = "var(--jp-mirror-editor-string-color, #c0504a)"
    COMMENT = "var(--jp-mirror-editor-comment-color, #70808a)"


_COLOURS: Final = {
    TokenKind.KEYWORD: Colour.KEYWORD,
    TokenKind.GLOBAL: Colour.NAME,
    TokenKind.LOCAL: Colour.NAME,
    TokenKind.GRAPH: Colour.NAME,
    TokenKind.INT: Colour.NUMBER,
    TokenKind.FLOAT: Colour.NUMBER,
    TokenKind.STRING: Colour.STRING,
    TokenKind.META: Colour.STRING,
    TokenKind.VERSION: Colour.COMMENT,
}
_STYLE: Final = "line-height:1.4;max-height:45em;overflow:auto;white-space:pre"


def highlighted(text: str) -> str:
    """`text` as an HTML element. Raises ParseError for text that is not Relay's."""
    return f'<pre tabindex="0" aria-label="Relay text" style="{_STYLE}">{"".join(_parts(text))}</pre>'


def _parts(text: str) -> Iterator[str]:
    """The tokens, each in its colour, and what lies between them: spaces and comments."""
    place = 0
    tokens, _ = tokenize(Source(text, "notebook"))
    for token in tokens:
        between = text[place : token.start]
        yield between if between.isspace() else _coloured(between, Colour.COMMENT)
        yield _token(text, token)
        place = token.end


def _token(text: str, token: Token) -> str:
    shown = text[token.start : token.end]
    return _coloured(shown, _COLOURS[token.kind]) if token.kind in _COLOURS else html(shown)


def _coloured(text: str, colour: Colour) -> str:
    return f'<span style="color:{colour.value}">{html(text)}</span>' if text else ""
