"""Models from files: ONNX and Relay text.

In: a path. Out: a module, its parameters by name, the model's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from relay_hw.errors import InputError
from relay_hw.ir.module import IRModule

RELAY_SUFFIXES = (".relay", ".txt")


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A module before any pass. `params` are values for parameters of `main`."""

    name: str
    mod: IRModule
    params: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def load_model(path: str | Path) -> Model:
    """Read a model file. Raises InputError, ParseError, TypeCheckError, UnsupportedError."""
    file = Path(path)
    if file.suffix not in (".onnx", *RELAY_SUFFIXES):
        found = file.suffix or "a file without suffix"
        raise InputError(f"model {file} must be an .onnx or a .relay file, not {found}")
    if not file.is_file():
        raise InputError(f"model {file} must be an existing file")
    if file.suffix == ".onnx":
        from relay_hw.frontend import from_onnx

        mod, params = from_onnx(file)
        return Model(file.stem, mod, params)
    from relay_hw.text import parse

    return Model(file.stem, parse(read_text(file), str(file)))


def read_text(file: Path) -> str:
    """Contents of a text file. Raises InputError."""
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} must be a readable text file: {error}") from None
