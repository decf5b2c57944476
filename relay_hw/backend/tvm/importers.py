"""TVM's own importers to Relax, for `relay_hw.frontend`.

In: a torch.export program, the bytes of a TFLite model. Out: a Relax module.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from relay_hw.backend.tvm import require
from relay_hw.errors import InputError, UnsupportedError


def import_torch(program: Any) -> Any:
    """A `torch.export.ExportedProgram` as a Relax module. Raises UnsupportedError with TVM's reason."""
    require("import a PyTorch program")
    translator = import_module("tvm.relax.frontend.torch")
    return _importing("PyTorch program", lambda: translator.from_exported_program(program))


def import_tflite(
    data: bytes, shapes: Mapping[str, tuple[int, ...]] | None = None, dtypes: Mapping[str, str] | None = None
) -> Any:
    """A TFLite model as a Relax module. Raises InputError for bytes that hold none, UnsupportedError."""
    if find_spec("tflite") is None:
        raise UnsupportedError("package tflite must be installed to import a TFLite model: pip install tflite")
    require("import a TFLite model")
    if data[4:8] != b"TFL3":
        raise InputError(f"a TFLite model must have the mark TFL3 behind its first four bytes, not {data[4:8]!r}")
    model = import_module("tflite.Model").Model.GetRootAsModel(data, 0)
    translator = import_module("tvm.relax.frontend.tflite")
    known = {"shape_dict": dict(shapes) if shapes else None, "dtype_dict": dict(dtypes) if dtypes else None}
    return _importing("TFLite model", lambda: translator.from_tflite(model, **known))


def _importing(what: str, work: Any) -> Any:
    """The result of `work`; any error of TVM becomes one sentence."""
    try:
        return work()
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        reason = lines[-1].strip() if lines else type(error).__name__
        raise UnsupportedError(f"a {what} must be one that TVM can import: {reason}") from None
