"""TFLite to Relay, by TVM's importer.

In: a model's bytes or file. Out: a Relay module. The package `tflite` reads the format; it is no dependency.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from relay_hw.errors import InputError
from relay_hw.ir.module import IRModule
from relay_hw.support import durable


def from_tflite(
    model: bytes | str | Path,
    shape_dict: Mapping[str, tuple[int, ...]] | None = None,
    dtype_dict: Mapping[str, str] | None = None,
) -> tuple[IRModule, dict[str, NDArray[Any]]]:
    """The Relay module of a TFLite model, and no parameters: weights are constants.

    `shape_dict`, `dtype_dict`: of inputs that the model leaves open. Raises InputError, UnsupportedError.
    """
    from relay_hw.backend.tvm.importers import import_tflite
    from relay_hw.frontend.relax import from_relax

    if not isinstance(model, bytes):
        try:
            model = durable.read_given(Path(model))
        except OSError as error:
            raise InputError(f"{model} must be a readable TFLite model: {error.strerror}") from None
    return from_relax(import_tflite(model, shape_dict, dtype_dict)), {}
