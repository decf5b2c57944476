"""Foreign text in the languages that are written here: a function for each, no other place knows their rules.

In: text from a stranger, such as a tensor's name or a file's. Out: text that its language reads as a name and nothing
else. Makefiles are written here with fixed text alone, JSON by `json.dumps` alone but for that inside of HTML.
"""

from __future__ import annotations

import html as _html
import json
import re
import shlex
from collections.abc import Mapping
from typing import Final

# What terminals obey or readers do not see: control characters, marks of direction and of no width, tags, surrogates.
_UNSEEN: Final = re.compile(
    "[\x00-\x1f\x7f-\xa0\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff"
    "\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# What ends a comment of C or Verilog, begins another one in it, or is one character to C.
_COMMENT: Final = re.compile(r"\*(?=/)|/(?=\*)|\?(?=\?)")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_LONGEST_NAME: Final = 60
# A refusal may list what is allowed, or every operator that is not; a path is at most 4,096 bytes long.
_LONGEST_SENTENCE: Final = 10_000
_SHOWN_OF_WORD: Final = 500
_LONG_WORD: Final = re.compile(rf"\S{{{_SHOWN_OF_WORD + 1},}}")


def line(text: object) -> str:
    """One line for a terminal or a log: what cannot be seen is written as Python writes it."""
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], str(text))


def sentence(text: object) -> str:
    """One line as `line` writes it, which a person can read: what is long in it is cut, since it is a stranger's."""
    shown = line(" ".join(str(text)[:_LONGEST_SENTENCE].splitlines()))
    shown = _LONG_WORD.sub(lambda found: f"{found[0][:_SHOWN_OF_WORD]}…", shown)
    return f"{shown[: _LONGEST_SENTENCE - 1]}…" if len(shown) >= _LONGEST_SENTENCE else shown


def screen(text: object) -> str:
    """Lines for a terminal or a log, like `line` but for the ends of lines, which stay."""
    return "\n".join(map(line, str(text).split("\n")))


def html(text: object) -> str:
    """Text or a quoted attribute of HTML and SVG."""
    return _html.escape(screen(text))


def json_in_html(value: object) -> str:
    """JSON of plain values as the content of a script element: nothing in it can end that, or begin a comment.

    Texts in it are lines as `line` writes them, keys too, since a script shows them.
    """
    text = json.dumps(_lines(value), separators=(",", ":"))
    return re.sub("[<>&]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _lines(value: object) -> object:
    """Plain values whose texts are lines."""
    if isinstance(value, str):
        return line(value)
    if isinstance(value, Mapping):
        return {line(key): _lines(part) for key, part in value.items()}
    return list(map(_lines, value)) if isinstance(value, list | tuple) else value


def c_string(text: str) -> str:
    """A literal of C with these bytes, whatever they are; three octal digits cannot run into what follows."""
    # `$` begins the holes of statements, which are filled later.
    plain = {ord(letter) for letter in map(chr, range(32, 127)) if letter not in '"\\?$'}
    data = text.encode(errors="backslashreplace")
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in data) + '"'


def comment(text: object) -> str:
    """A part of a comment of C, Verilog or Tcl, on one line."""
    broken = _COMMENT.sub(lambda found: f"{found[0]} ", line(text))
    return f"{broken} " if broken.endswith(("\\", "*", "/", "?")) else broken


def tcl_word(text: object) -> str:
    """A word of Tcl, in double quotes."""
    return '"' + re.sub(r'[\\"$\[\]{}]', lambda found: f"\\{found[0]}", line(text)) + '"'


def markdown(text: object) -> str:
    """A part of a paragraph of Markdown, as it stands."""
    return re.sub(r"[\\`*{}\[\]<>#|!&~$]", lambda found: f"\\{found[0]}", line(text))


def shell_word(text: object) -> str:
    """A word of a command that people may copy to a shell."""
    return shlex.quote(line(text))


def csv_cell(value: object) -> object:
    """A cell for `csv.writer`: spreadsheets take text for text, not for a formula. Numbers stay numbers."""
    if not isinstance(value, str):
        return value
    shown = line(value)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


def identifier(text: str) -> str:
    """A part of a name in C, OpenCL or Python, for people to recognise; others make it unique."""
    return re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")[:_LONGEST_NAME]


def file_name(text: str) -> str:
    """A part of a file's name on any system, for people to recognise; others make it unique."""
    return re.sub(r"[^\w.-]", "_", text, flags=re.ASCII)[:_LONGEST_NAME]
