"""Colours on terminals. In: text whose control characters are already visible. Out: text with styles."""

from __future__ import annotations

import os
import re
from enum import Enum
from typing import Final, TextIO


class Style(Enum):
    """A style, as terminals number them."""

    HEAD = "1"
    SOFT = "2"
    ERROR = "1;31"
    WARNING = "1;33"


# A line over a rule of dashes, where a paragraph begins: the head of a table.
_TABLE: Final = re.compile(r"(?:\A|(?<=\n\n))(.*\S.*)\n( *-{2,}[- ]*)$", re.M)
_HEADING: Final = re.compile(r"^(?:usage|options|positional arguments|examples[^\n:]*|exit status):", re.M)
_WORD: Final = re.compile(r"^relay-hw: (error|warning):")


def has_colours(stream: TextIO) -> bool:
    """Whether to write styles: to terminals that have them, unless NO_COLOR is set (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def styled(text: str, style: Style) -> str:
    """`text` in a style."""
    return f"\x1b[{style.value}m{text}\x1b[0m"


def heads_styled(text: str) -> str:
    """The heads of tables stand out from their rows."""
    return _TABLE.sub(lambda found: f"{styled(found[1], Style.HEAD)}\n{styled(found[2], Style.SOFT)}", text)


def help_styled(text: str) -> str:
    """The headings of a help text stand out."""
    return _HEADING.sub(lambda found: styled(found[0], Style.HEAD), text)


def note_styled(text: str) -> str:
    """The words `error` and `warning` stand out at the start of a line of ours."""
    styles = {"error": Style.ERROR, "warning": Style.WARNING}
    return _WORD.sub(lambda found: f"relay-hw: {styled(found[1], styles[found[1]])}:", text)
