"""Bundles JavaScript modules into one script, so that a page needs no other file.

In: the modules in the folder `page`. Out: their text; imports and exports become values of one object.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files
from typing import Final

# In dependency order: modules without imports first, the one that draws the page last.
_COMMON: Final = ("dom.js", "data.js", "state.js", "colours.js", "colourings.js", "graph.js", "tables.js")
_TIME: Final = (
    "frame.js",
    "tokens.js",
    "timeline.js",
    "pads.js",
    "roofline.js",
    "memory.js",
    "schedule.js",
    "detail.js",
)
BUILD: Final = (*_COMMON, *_TIME, "main.js")
DIFFERENCE: Final = (*_COMMON, "diff.js")
ROWS_SCRIPT: Final = ("rows.js",)
_IMPORT: Final = re.compile(r"^import (\{[^}]*\}) from \"\./(\w+)\.js\";$", re.MULTILINE)
_EXPORT: Final = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


def asset(name: str) -> str:
    """The text of an asset file."""
    return files("relay_hw.report").joinpath("page", name).read_text(encoding="utf-8")


@lru_cache(maxsize=3)
def script(modules: tuple[str, ...]) -> str:
    """Modules one after the other, each wrapped in a function that returns its exports."""
    return '"use strict";\nconst modules = {};\n' + "\n".join(map(_module, modules))


def _module(name: str) -> str:
    text = asset(name)
    given = ", ".join(found[2] for found in _EXPORT.finditer(text))
    text = _EXPORT.sub(r"\1", _IMPORT.sub(r"const \1 = modules.\2;", text)).strip()
    return f"modules.{name.removesuffix('.js')} = (() => {{\n{text}\nreturn {{ {given} }};\n}})();\n"
