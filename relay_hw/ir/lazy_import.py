"""Lazy imports for conveniences of nodes that need packages above this one: `x + y`, `mod.astext()`."""

from __future__ import annotations

import importlib
from typing import Any


def lazy_import(module: str) -> Any:
    """Import a module at its first use; nothing in this package depends on it."""
    return importlib.import_module(module)
