"""Pages of the site that are written from the code: every command with its options, and the public names of Python.

In: the parser of `relay-hw`, and `relay_hw.__all__`. Out: Markdown, for docs/conf.py; nothing is committed.
"""

from __future__ import annotations

import inspect
import sys
from argparse import SUPPRESS, Action, ArgumentParser, _SubParsersAction
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import relay_hw
from relay_hw.cli.commands import parser

# What every command takes; the page says it once.
COMMON: Final = ("help", "json", "wide", "debug")


def commands() -> str:
    """Each command: its usage, its arguments and options with their help."""
    (action,) = [one for one in parser()._actions if isinstance(one, _SubParsersAction)]
    return "\n\n".join(_command(name, one) for name, one in action.choices.items())


def _command(name: str, one: ArgumentParser) -> str:
    rows = [_row(one, action) for action in one._actions if action.help is not SUPPRESS and action.dest not in COMMON]
    lines = [f"## {name}", "", _escaped(one.description or ""), "", "| Argument | Does |", "|---|---|", *rows]
    return "\n".join(lines)


def _row(one: ArgumentParser, action: Action) -> str:
    value = action.metavar or ("{" + ",".join(map(str, action.choices)) + "}" if action.choices else "")
    shown = value if isinstance(value, str) else " ".join(value)
    if action.nargs == 0:
        shown = ""
    names = ", ".join(action.option_strings)
    head = f"{names} {shown}".strip() or action.dest
    required = " (required)" if action.required and names else ""
    text = (action.help or "") % {**vars(action), "prog": one.prog} if action.help else ""
    return f"| `{head.replace('|', chr(92) + '|')}` | {_escaped(text)}{required} |"


def names() -> str:
    """Each name of `relay_hw`: its signature and its documentation."""
    return "\n\n".join(_name(name, getattr(relay_hw, name)) for name in relay_hw.__all__ if name[0] != "_")


def _name(name: str, value: object) -> str:
    about = inspect.getdoc(value) or ""
    if isinstance(value, ModuleType):
        return f"## {name}\n\nModule `{value.__name__}`. {_escaped(about)}{_exported(value)}"
    signature = _signature(value)
    if about.startswith(f"{name}("):
        about = ""
    call = f"```python\n{name}{signature}\n```\n\n" if signature else ""
    return f"## {name}\n\n{call}{_escaped(about)}"


def _signature(value: object) -> str:
    """Parameters one on a line where they are many."""
    if not callable(value) or (isinstance(value, type) and issubclass(value, Enum)):
        return ""
    try:
        found = inspect.signature(value)
    except ValueError:
        return ""
    shown = [one for one in found.parameters.values() if one.name not in ("span", "checked_type")]
    parts = [str(one).replace("'", "") for one in shown]
    named = [index for index, one in enumerate(shown) if one.kind is one.KEYWORD_ONLY]
    if named:
        parts.insert(named[0], "*")
    whole = f"({', '.join(parts)})"
    return whole if len(whole) < 80 else "(\n    " + ",\n    ".join(parts) + ",\n)"


def _exported(module: ModuleType) -> str:
    """Names that a module exports."""
    found = getattr(module, "__all__", ())
    return f"\n\nExports {', '.join(f'`{name}`' for name in found)}." if found else ""


def _escaped(text: str) -> str:
    """Text of the code as Markdown, in which only backquotes have a meaning."""
    parts = text.split("`")
    for index in range(0, len(parts), 2):
        for mark in "\\*_<[|{":
            parts[index] = parts[index].replace(mark, f"\\{mark}")
    return "`".join(parts)


WRITERS: Final[Mapping[str, Callable[[], str]]] = {"commands": commands, "names": names}
