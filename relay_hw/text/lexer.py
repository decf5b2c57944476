"""The lexer. In: the source. Out: a list of tokens, and the metadata section as text.

Names are taken more generously than by TVM, so that its own dumps load: `%onnx::Conv_1100`, `%model.0.weight`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from enum import Enum, auto
from typing import Any, Final, NamedTuple

from relay_hw.errors import ParseError
from relay_hw.span import Span


class TokenKind(Enum):
    LOCAL = auto()  # value: name
    GLOBAL = auto()  # value: name
    GRAPH = auto()  # value: number
    NAME = auto()  # value: identifier, dotted names whole
    KEYWORD = auto()
    INT = auto()  # value: (integer, bits or None)
    FLOAT = auto()  # value: (text, bits)
    STRING = auto()
    META = auto()  # value: (type key, index)
    VERSION = auto()
    SYMBOL = auto()
    END = auto()


class Token(NamedTuple):
    kind: TokenKind
    text: str
    start: int
    end: int
    value: Any = None


KEYWORDS: Final = frozenset(
    ("let", "fn", "def", "if", "else", "type", "match", "match?", "extern", "free_var", "ref", "ref_read", "ref_write")
)

# Of one name: each pass writes names into messages, spans and texts.
MOST_NAME: Final = 1 << 16
# A repeated group takes memory for each time that it fits, a repeated letter does not.
_TIMES = f"{{0,{MOST_NAME}}}"
_IDENT = rf"[A-Za-z_]\w*(?:/\w+){_TIMES}"
# A local name may go on with `::name`, `.name` and `.12.name`, but `.12` at its end is a projection.
LOCAL_NAME: Final = re.compile(
    rf"[A-Za-z_/]\w*(?:/\w+){_TIMES}(?:(?:::|\.){_IDENT}|\.\d+(?=[.:][A-Za-z_:])){_TIMES}", re.A
)

_TOKEN: Final = re.compile(
    rf"""
    (?P<line_comment>//[^\n]*)
  | (?P<block_comment>/\*)
  | (?P<metadata>\#\[metadata\])
  | (?P<version>\#\[[^\]\n]*\])
  | (?P<local>%(?:{LOCAL_NAME.pattern}))
  | (?P<graph>%\d+)
  | (?P<global>@{_IDENT}(?:\.{_IDENT}){_TIMES})
  | (?P<meta>meta\[\s*(?P<meta_key>[\w.]+)\s*\]\s*\[\s*(?P<meta_index>\d+)\s*\])
  | (?P<special>-*(?:inf|nan)f(?:16|32|64)?\b)
  | (?P<number>-*\d[\d.eE+-]*(?:[a-zA-Z_]\w*)?)
  | (?P<string>"[^"]*")
  | (?P<match>match\?)
  | (?P<name>{_IDENT}(?:\.{_IDENT}){_TIMES})
  | (?P<symbol>\.\.\.|->|=>|<=|>=|==|!=|:=|[-+*/<>=(){{}}\[\],;:.?!|])
    """,
    re.X | re.A,
)
_NAMES: Final = ("local", "global", "meta", "name")
_INDEX: Final = re.compile(r"(?P<number>\d+)", re.A)
_SIGNS: Final = re.compile("-*")
_SPACE: Final = re.compile(r"(?:[ \t\n]|\r\n)*")
_NUMBER: Final = re.compile(r"(-*)(\d+)(?:i(16|32|64)?)?$", re.A)
_FLOAT: Final = re.compile(r"(-*)(\d+\.?\d*(?:[eE][+-]?\d+)?)f(16|32|64)?$", re.A)
_VERSION: Final = re.compile(r"#\[\s*version\s*=\s*\"([^\"]*)\"\s*\]$")


class Source:
    """A source text with its name: turns offsets into spans and shows lines."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def span(self, start: int, end: int) -> Span:
        """The place from offset `start` up to `end`."""
        line, column = self._position(start)
        end_line, end_column = self._position(max(start, end))
        return Span(self.name, line, column, end_line, end_column)

    def _position(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def underline(self, span: Span) -> str:
        """The line of `span` with the place underlined; empty for a place in another source."""
        if span.source != self.name or not 1 <= span.line <= len(self._starts):
            return ""
        start = self._starts[span.line - 1]
        line = self.text[start:].split("\n", 1)[0].rstrip("\r").replace("\t", " ")
        end = span.end_column if span.end_line == span.line else len(line) + 1
        return f"{line}\n{' ' * (span.column - 1)}{'^' * max(1, end - span.column)}"

    def error(self, message: str, start: int, end: int) -> ParseError:
        """A ParseError at a place."""
        span = self.span(start, end)
        return ParseError(message, span, self.underline(span))


def tokenize(source: Source) -> tuple[list[Token], Token | None]:
    """The tokens of `source`, ending with END, and the metadata section. Raises ParseError."""
    text = source.text
    tokens: list[Token] = []
    place = 0
    while (place := _SPACE.match(text, place).end()) < len(text):  # type: ignore[union-attr]
        # After a dot only the digits belong to the number: a projection.
        is_index = bool(tokens) and tokens[-1].text == "." and tokens[-1].end == place
        found = (_INDEX.match(text, place) if is_index else None) or _TOKEN.match(text, place)
        if found is None:
            raise _unreadable(source, place)
        kind = found.lastgroup or ""
        end = found.end()
        match kind:
            case "symbol" if found[0] == "-":
                # No number begins in a row of signs, or it would have been found: only its last may be another token.
                end = max(_SIGNS.match(text, place).end() - 1, end)  # type: ignore[union-attr]
                tokens.extend(Token(TokenKind.SYMBOL, "-", sign, sign + 1) for sign in range(place, end))
            case "symbol":
                tokens.append(Token(TokenKind.SYMBOL, found[0], place, end))
            case "line_comment":
                pass
            case "block_comment":
                end = _comment_end(source, place)
            case "metadata":
                tokens.append(Token(TokenKind.END, "end of text", place, place))
                return tokens, Token(TokenKind.STRING, text[end:], place, len(text))
            case _:
                if kind in _NAMES and end - place > MOST_NAME:
                    what = f"a name must have at most {MOST_NAME:,} letters"
                    raise source.error(f"{what}, not {end - place:,}", place, place + 1)
                tokens.append(_token(source, found, kind, place, end))
        place = end
    tokens.append(Token(TokenKind.END, "end of text", len(text), len(text)))
    return tokens, None


def _token(source: Source, found: re.Match[str], kind: str, start: int, end: int) -> Token:
    text = source.text[start:end]
    match kind:
        case "local":
            return Token(TokenKind.LOCAL, text, start, end, text[1:])
        case "graph":
            return Token(TokenKind.GRAPH, text, start, end, _integer(source, text[1:], start, end))
        case "global":
            return Token(TokenKind.GLOBAL, text, start, end, text[1:])
        case "string":
            return Token(TokenKind.STRING, text, start, end, text[1:-1])
        case "meta" | "meta_key" | "meta_index":
            index = _integer(source, found["meta_index"], start, end)
            return Token(TokenKind.META, text, start, end, (found["meta_key"], index))
        case "special":
            return Token(TokenKind.FLOAT, text, start, end, _special(text))
        case "number":
            return _number(source, text, start, end)
        case "version":
            return _version(source, text, start, end)
        case "name" if text not in KEYWORDS:
            return Token(TokenKind.NAME, text, start, end, text)
        case "name" | "match":
            return Token(TokenKind.KEYWORD, text, start, end, text)
        case _:
            raise AssertionError(kind)


def _number(source: Source, text: str, start: int, end: int) -> Token:
    whole = _NUMBER.match(text)
    if whole is not None:
        value = _integer(source, whole[2], start, end) * (-1) ** len(whole[1])
        explicit = re.search(r"i(\d*)$", text)
        bits = None if explicit is None else int(explicit[1] or 32)
        return _checked_int(source, Token(TokenKind.INT, text, start, end, (value, bits)))
    real = _FLOAT.match(text)
    if real is not None:
        sign = "-" if len(real[1]) % 2 else ""
        return Token(TokenKind.FLOAT, text, start, end, (float(sign + real[2]), int(real[3] or 32)))
    hint = ": write spaces around + and -" if re.search(r"\d[+-]\d", text) and "e" not in text.lower() else ""
    hint = hint or (": a float ends in f" if re.fullmatch(r"-*[\d.]+(?:[eE][+-]?\d+)?", text) else "")
    raise source.error(f"number must be like 1, 1i64, 1f or 1f64, not {text[:40]}{hint}", start, end)


def _checked_int(source: Source, token: Token) -> Token:
    value, bits = token.value  # type: ignore[misc]
    if bits is None:
        bits = 32 if -(2**31) <= value < 2**31 else 64  # type: ignore[operator]
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):  # type: ignore[operator]
        raise source.error(f"integer must fit int{bits}, not {token.text[:40]}", token.start, token.end)
    return Token(TokenKind.INT, token.text, token.start, token.end, (value, bits))


def _special(text: str) -> tuple[float, int]:
    found = re.fullmatch(r"(-*)(inf|nan)f(\d*)", text)
    assert found is not None
    value = float(found[2])
    return (-value if len(found[1]) % 2 else value), int(found[3] or 32)


def _integer(source: Source, digits: str, start: int, end: int) -> int:
    if len(digits) > 100:
        raise source.error(f"number must have at most 100 digits, not {len(digits)}", start, end)
    return int(digits)


def _version(source: Source, text: str, start: int, end: int) -> Token:
    found = _VERSION.match(text)
    if found is None:
        raise source.error(f'line must be #[version = "0.0.5"] or #[metadata], not {text[:40]}', start, end)
    if found[1] != "0.0.5":
        raise source.error(f"version of the text format must be 0.0.5, not {found[1][:40]}", start, end)
    return Token(TokenKind.VERSION, text, start, end, found[1])


def _comment_end(source: Source, start: int) -> int:
    depth = 0
    for found in re.compile(r"/\*|\*/").finditer(source.text, start):
        depth += 1 if found[0] == "/*" else -1
        if depth == 0:
            return found.end()
    raise source.error("comment must end with */", start, start + 2)


def _unreadable(source: Source, place: int) -> ParseError:
    character = source.text[place]
    if character == '"':
        return source.error('string must end with "', place, place + 1)
    if character == "\r":
        return source.error("carriage return must be followed by a line feed", place, place + 1)
    return source.error(f"character must begin a token, not {character!r}", place, place + 1)
