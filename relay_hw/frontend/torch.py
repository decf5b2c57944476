"""PyTorch to Relay, by torch.export and TVM's importer, or by torch.onnx and the importer for ONNX.

In: a `torch.nn.Module` with example inputs, an exported program, or a `.pt2` file. Out: a Relay module. torch is
imported only when a model is, and is no dependency.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from relay_hw.errors import InputError, UnsupportedError
from relay_hw.ir.module import IRModule
from relay_hw.support.names import one_of

WAYS = ("relax", "onnx")
Params = Mapping[str, NDArray[Any]]


def from_pytorch(
    model: Any, example_inputs: Sequence[Any] | None = None, via: str = "relax"
) -> tuple[IRModule, dict[str, NDArray[Any]]]:
    """The Relay module of a PyTorch model in inference mode, and no parameters: weights are constants.

    `model`: a module, with `example_inputs` for its `forward`, or what `torch.export.export` gave. `via`: "relax" goes
    through TVM's importer, "onnx" through torch.onnx. Raises InputError, UnsupportedError.
    """
    if via not in WAYS:
        raise InputError(one_of("via", WAYS, via))
    torch = _torch()
    is_module = isinstance(model, torch.nn.Module)
    if is_module == (example_inputs is None):
        raise InputError("example_inputs must be given for a module, and only for one")
    if via == "onnx":
        return _by_onnx(torch, model, example_inputs), {}
    if is_module:
        assert example_inputs is not None
        model = torch.export.export(_frozen(model), tuple(example_inputs))
    from relay_hw.backend.tvm.importers import import_torch
    from relay_hw.frontend.relax import from_relax

    return from_relax(import_torch(model)), {}


def load_pt2(path: Path) -> IRModule:
    """The Relay module of a file that `torch.export.save` wrote. Raises InputError, UnsupportedError."""
    torch = _torch()
    try:
        program = torch.export.load(path)
    except Exception as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError(f"{path} must be a file that torch.export.save wrote: {reason}") from None
    return from_pytorch(program)[0]


def _torch() -> Any:
    if find_spec("torch") is None:
        raise UnsupportedError("torch must be installed to import a PyTorch model: pip install torch")
    return import_module("torch")


def _frozen(model: Any) -> Any:
    model = model.eval()
    for parameter in model.parameters():
        parameter.requires_grad = False
    return model


def _by_onnx(torch: Any, model: Any, example_inputs: Sequence[Any] | None) -> IRModule:
    from relay_hw.frontend.onnx.importer import from_onnx

    onnx = import_module("onnx")
    if example_inputs is None:
        example_inputs, keywords = model.example_inputs
        if keywords:
            raise UnsupportedError("an exported program must take its inputs by position to go through onnx")
        model = model.module()
    else:
        model = _frozen(model)
    proto = _to_onnx(torch, onnx, model, tuple(example_inputs or ()))
    mod, params = from_onnx(proto)
    from relay_hw.ir.expr import Constant, Function
    from relay_hw.ir.visit import substitute

    main = mod["main"]
    values = {var: Constant(params[var.name_hint]) for var in main.params if var.name_hint in params}
    rest = [var for var in main.params if var not in values]
    bound = Function(rest, substitute(main.body, dict(values)), attrs=main.attrs, span=main.span)
    return mod.with_functions({"main": bound})


def _to_onnx(torch: Any, onnx: Any, model: Any, example_inputs: tuple[Any, ...]) -> Any:
    """Export by torch.onnx: the newer exporter if its package is installed."""
    fast = torch.backends.mha.get_fastpath_enabled()
    # Fused kernels of attention have no form in ONNX.
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with io.BytesIO() as file, torch.no_grad():
            if find_spec("onnxscript") is not None:
                return torch.onnx.export(model, example_inputs, dynamo=True, verbose=False).model_proto
            torch.onnx.export(model, example_inputs, file, dynamo=False)
            return onnx.load_from_string(file.getvalue())
    except Exception as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise UnsupportedError(f"a PyTorch model must be one that torch.onnx can export: {reason}") from None
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
