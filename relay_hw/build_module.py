"""Relay's build functions. In: a program and its parameters. Out: a compiled model, or a program without them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from relay_hw.errors import InputError
from relay_hw.ir.expr import Constant, Function
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import copy_with, substitute

if TYPE_CHECKING:
    from relay_hw.ir.module import IRModule
    from relay_hw.runtime.compile import CompiledModel


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


def build(mod: IRModule, params: Mapping[str, Any] | None = None, **options: Any) -> CompiledModel:
    """`relay_hw.runtime.compile_model`, which names the options."""
    from relay_hw.runtime.compile import compile_model

    return compile_model(mod, params, **options)


def _constant(value: Any, name: str, annotation: object) -> Constant:
    data = value.data if isinstance(value, Constant) else np.asarray(value)
    found = TensorType(data.shape, str(data.dtype))
    if isinstance(annotation, TensorType) and annotation != found:
        raise InputError(f"parameter {name} must be {annotation}, not {found}")
    return Constant(data)
