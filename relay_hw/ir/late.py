"""Late binding of the conveniences that nodes offer by means of rooms above this one: `x + y`, `mod.astext()`."""

from __future__ import annotations

import importlib
from typing import Any


def late(module: str) -> Any:
    """The module of that name, loaded when a user asks for its service; nothing in this package depends on it."""
    return importlib.import_module(module)
