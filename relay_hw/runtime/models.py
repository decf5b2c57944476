"""Reads model files: ONNX, Relay text, Relay as JSON, TFLite, PyTorch exported programs.

In: a path. Out: a module, its parameters by name, the model's name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from relay_hw.errors import InputError
from relay_hw.ir.module import IRModule
from relay_hw.limits import DEFAULT, USUAL, Limits, OnnxOptions
from relay_hw.runtime.given import TVM_SUFFIXES, check_model
from relay_hw.support import durable
from relay_hw.support.documents import reason


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """An imported module before any pass. `params` are values for parameters of `main`."""

    name: str
    mod: IRModule
    params: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def load_model(
    path: str | Path,
    libraries: Sequence[str] = (),
    shapes: Mapping[str, Sequence[int]] | None = None,
    samples: Mapping[str, NDArray[Any]] | None = None,
    untrusted: bool = False,
    options: OnnxOptions = USUAL,
) -> Model:
    """Read a model file; Relay text may use the functions and types of `libraries` (`prelude`, `nat`, ...).

    `shapes`: of inputs of an ONNX model by name. Open sizes of its other inputs are those of `samples`, arrays by name
    with samples on their first axis. `untrusted`: whether a process of its own reads it, with bounds on memory and
    time. Of `options` other models have only limits.

    Raises InputError, ParseError, TypeCheckError, WellFormedError, UnsupportedError.
    """
    file = Path(path)
    check_model(file)
    limits = options.limits
    if (shapes or options.values or untrusted) and file.suffix != ".onnx":
        what = "shapes" if shapes else "values" if options.values else "untrusted"
        raise InputError(f"{what} must be given for an .onnx model, not for {file}")
    if file.suffix == ".onnx":
        from relay_hw.frontend import from_onnx

        shown = {name: tuple(array.shape) for name, array in (samples or {}).items()}
        options = replace(options, sample_shapes=shown)
        if untrusted:
            from relay_hw.runtime.untrusted import read_apart

            return Model(model_name(file), *read_apart(file, shapes, options))
        mod, params = from_onnx(file, shape=shapes, options=options)
        return Model(model_name(file), mod, params)
    if file.suffix in TVM_SUFFIXES:
        return Model(model_name(file), _by_tvm(file))
    from relay_hw.analysis.sizes import check_sizes
    from relay_hw.text import load_json, parse

    if file.suffix == ".json":
        return Model(model_name(file), check_sizes(load_json(read_text(file, limits), str(file)), limits, str(file)))
    library = IRModule()
    for name in libraries:
        library = library.import_from_std(name)
    mod = parse(read_text(file, limits), str(file), init_module=library)
    return Model(model_name(file), check_sizes(mod, limits, str(file)))


def model_name(file: Path) -> str:
    """The name of a file without its suffix, as text in any locale."""
    return os.fsencode(file.stem).decode(errors="backslashreplace")


def _by_tvm(file: Path) -> IRModule:
    if file.suffix == ".tflite":
        from relay_hw.frontend.tflite import from_tflite

        return from_tflite(file)[0]
    from relay_hw.frontend.torch import load_pt2

    return load_pt2(file)


def read_text(file: Path, limits: Limits = DEFAULT) -> str:
    """Contents of a text file. Raises InputError."""
    try:
        limits.check("file_bytes", f"the bytes of {file}", file.stat().st_size)
        return durable.read_given_text(file)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} must be a readable text file: {reason(error)}") from None
