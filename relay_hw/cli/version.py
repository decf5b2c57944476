"""The version of the installed distribution."""

from __future__ import annotations

import importlib.metadata


def version() -> str:
    """Version, or `(not installed)` for a checkout that only lies on the path."""
    try:
        return importlib.metadata.version("relay-hw")
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"
