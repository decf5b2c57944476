"""Quotes untrusted text for each output language: terminal, HTML, C, Tcl, Markdown, shell, CSV.

In: untrusted text, such as a tensor's name or a file's. Out: text that its language reads as a name and nothing
else. Pages are escaped by their templates (relay_hw/report/render.py). Makefiles are written here with fixed text
alone, JSON by `json.dumps` alone but for that inside of pages.
"""

from __future__ import annotations

import html as _html
import json
import re
import shlex
from collections.abc import Mapping
from typing import Final

# Control characters and invisible ones: direction marks, zero-width characters, tags, surrogates.
_UNSEEN: Final = re.compile(
    "[\x00-\x1f\x7f-\xa0\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff"
    "\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Sequences that end a comment of C or Verilog, begin another one in it, or are one character in C.
_COMMENT: Final = re.compile(r"\*(?=/)|/(?=\*)|\?(?=\?)")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_LONGEST_NAME: Final = 60
# Longest message: one may list all allowed values or refused operators; a path has at most 4,096 bytes.
_LONGEST_SENTENCE: Final = 10_000
_SHOWN_OF_WORD: Final = 500
_LONG_WORD: Final = re.compile(rf"\S{{{_SHOWN_OF_WORD + 1},}}")


def line(text: object) -> str:
    """Text as one line for a terminal or log; control characters are escaped as in Python."""
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], str(text))


def sentence(text: object) -> str:
    """Text as by `line`, shortened to a readable length."""
    shown = line(" ".join(str(text)[:_LONGEST_SENTENCE].splitlines()))
    shown = _LONG_WORD.sub(lambda found: f"{found[0][:_SHOWN_OF_WORD]}…", shown)
    return f"{shown[: _LONGEST_SENTENCE - 1]}…" if len(shown) >= _LONGEST_SENTENCE else shown


def screen(text: object) -> str:
    """Text for a terminal or log like `line`, but line ends stay."""
    return "\n".join(map(line, str(text).split("\n")))


def html(text: object) -> str:
    """Text or a quoted attribute of HTML, in fragments that are no page."""
    return _html.escape(screen(text))


def plain_json(value: object) -> str:
    """JSON of plain values for the script of a page, which shows them: texts, keys too, are lines as by `line`."""
    return json.dumps(_lines(value), separators=(",", ":"))


def _lines(value: object) -> object:
    """Plain values with their strings quoted by `line`."""
    if isinstance(value, str):
        return line(value)
    if isinstance(value, Mapping):
        return {line(key): _lines(part) for key, part in value.items()}
    return list(map(_lines, value)) if isinstance(value, list | tuple) else value


def c_string(text: str) -> str:
    """A C string literal of these bytes; three octal digits cannot run into what follows."""
    # `$` begins the holes of statements, which are filled later.
    plain = {ord(letter) for letter in map(chr, range(32, 127)) if letter not in '"\\?$'}
    data = text.encode(errors="backslashreplace")
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in data) + '"'


def comment(text: object) -> str:
    """Text inside a comment of C, Verilog or Tcl, on one line."""
    broken = _COMMENT.sub(lambda found: f"{found[0]} ", line(text))
    return f"{broken} " if broken.endswith(("\\", "*", "/", "?")) else broken


def tcl_word(text: object) -> str:
    """A word of Tcl, in double quotes."""
    return '"' + re.sub(r'[\\"$\[\]{}]', lambda found: f"\\{found[0]}", line(text)) + '"'


def markdown(text: object) -> str:
    """Literal text inside a Markdown paragraph."""
    return re.sub(r"[\\`*{}\[\]<>#|!&~$]", lambda found: f"\\{found[0]}", line(text))


def shell_word(text: object) -> str:
    """A word of a shell command that users may copy."""
    return shlex.quote(line(text))


def csv_cell(value: object) -> object:
    """A cell for `csv.writer` that spreadsheets do not take for a formula; numbers stay numbers."""
    if not isinstance(value, str):
        return value
    shown = line(value)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


def identifier(text: str) -> str:
    """A recognisable part of an identifier in C, OpenCL or Python; callers make it unique."""
    return re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")[:_LONGEST_NAME]


def file_name(text: str) -> str:
    """A recognisable part of a file name on any system; callers make it unique."""
    return re.sub(r"[^\w.-]", "_", text, flags=re.ASCII)[:_LONGEST_NAME]
