"""Temporary folders under TVM's names."""

from __future__ import annotations

import tempfile
from pathlib import Path


class TempDirectory:
    """A folder that disappears with this object."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.temp_dir = self._folder.name

    def relpath(self, name: str) -> str:
        """The path of `name` in the folder."""
        return str(Path(self.temp_dir) / name)

    def listdir(self) -> list[str]:
        """The names in the folder."""
        return sorted(path.name for path in Path(self.temp_dir).iterdir())

    def remove(self) -> None:
        """Delete the folder now."""
        self._folder.cleanup()

    def __enter__(self) -> TempDirectory:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def tempdir() -> TempDirectory:
    """A new temporary folder."""
    return TempDirectory()
