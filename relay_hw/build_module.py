"""Relay's build functions. In: a program and its parameters. Out: a compiled model, or a program without them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from relay_hw.errors import InputError
from relay_hw.ir.expr import Constant, Function
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import copy_with, substitute

if TYPE_CHECKING:
    from relay_hw.backend.tvm.target import HostTarget
    from relay_hw.interp import InterpreterExecutor
    from relay_hw.ir.module import IRModule
    from relay_hw.runtime.module import Module
    from relay_hw.runtime.options import CompileOptions, Machine
    from relay_hw.runtime.vm import VmExecutor


def bind_params_by_name(func: Function, params: Mapping[str, Any]) -> Function:
    """`func` with the parameters that `params` names replaced by constants; other names are ignored.

    Raises InputError for an array that does not fit its parameter's annotation.
    """
    bound = {
        param: _constant(params[param.name_hint], param.name_hint, param.type_annotation)
        for param in func.params
        if param.name_hint in params
    }
    if not bound:
        return func
    rest = tuple(param for param in func.params if param not in bound)
    return copy_with(func, params=rest, body=substitute(func.body, bound), checked_type=None)


def build(
    mod: IRModule,
    target: Machine | Mapping[str, Machine] = "llvm",
    params: Mapping[str, Any] | None = None,
    device: str | None = None,
    calibration: Mapping[str, Any] | None = None,
    options: CompileOptions | None = None,
) -> Module:
    """Compile `mod`: a model that is ready to `run`, and to `save`.

    `target`: `llvm`, or another target of the host (see `relay_hw.backend.tvm.target`), or `numpy`; all of it then
    runs on the host, in float as it is. `accel`, or `accel:NAME` for another configuration, quantizes `mod` and puts
    onto the accelerator what fits, and so does another machine (`relay_hw.target`), by its name or as an object.
    A mapping says what computes for each device that `on_device` names, by device (`cuda(0)`) or kind (`cuda`):
    `{"cpu": "llvm", "ext_dev": "accel"}`. Each operator then runs where `PlanDevices` puts it, and what nothing places
    on `cpu`; only what is on the accelerator is quantized, and an operator that its device cannot run is refused.
    `device`: one of the target's, its usual one by default, such as functional, cycle or rtl; `calibration`, inputs by
    name, samples first, is needed where the network is quantized; `options`: everything else that can be chosen.
    Without TVM installed numpy takes the place of `llvm`. Raises RelayHwError, AccelError.
    """
    from relay_hw.backend.tvm import usual_host
    from relay_hw.quantize.recipes import FLOAT
    from relay_hw.runtime.compile import compile_model
    from relay_hw.runtime.module import Module
    from relay_hw.runtime.options import USUAL, is_target, with_devices, with_target

    chosen = options or USUAL
    if isinstance(target, Mapping):
        chosen = with_devices(chosen, target)
    elif is_target(target):
        chosen = with_target(chosen, target)
    else:
        host = usual_host() if str(target) == "llvm" else target
        chosen = replace(chosen, host_target=host, strategy=FLOAT, accelerate=False)
    return Module(compile_model(mod, chosen, params=params, calibration=calibration), device)


def create_executor(
    kind: str = "debug", mod: IRModule | None = None, target: HostTarget | str = "numpy"
) -> InterpreterExecutor | VmExecutor:
    """An executor for `mod`: `debug`, the reference interpreter; `vm`, which runs every program faster; `graph`.

    `graph` takes only graphs of operators. `target`: what straight-line fragments run on, `numpy`, or `llvm`; `c`: all
    of `vm`'s programs become machine code.
    Raises InputError for another kind, UnsupportedError for a program that `graph` does not take.
    """
    if kind == "debug":
        from relay_hw.interp import create_executor as interpreter

        return interpreter(kind, mod)
    from relay_hw.runtime.vm import create_executor as create

    return create(kind, mod, target)


def _constant(value: Any, name: str, annotation: object) -> Constant:
    data = value.data if isinstance(value, Constant) else np.asarray(value)
    found = TensorType(data.shape, str(data.dtype))
    if isinstance(annotation, TensorType) and annotation != found:
        raise InputError(f"parameter {name} must be {annotation}, not {found}")
    return Constant(data)
