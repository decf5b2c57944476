"""Checks symbolic dimensions at run time. In: a function's parameters, argument values. Out: nothing, or InputError."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from relay_hw.analysis.dim_solver import DimSolver
from relay_hw.errors import InputError, TypeCheckError
from relay_hw.interp.values import Value, show
from relay_hw.ir.dims import DimVar, dim_vars
from relay_hw.ir.expr import Function
from relay_hw.ir.types import TensorType, TupleType, Type, has_unknown_rank, map_condition, map_dims


def check_sizes(function: Function, values: Sequence[Value], where: str) -> None:
    """Check that symbolic dimensions are consistent, and that the function's conditions hold. Raises InputError."""
    pairs = [
        (f"input {param.name_hint} of {where}", ty, value)
        for param, given in zip(function.params, values, strict=True)
        for ty, value in _tensors(param.type, given)
        if any(isinstance(var, DimVar) for dim in ty.shape for var in dim_vars(dim))
    ]
    if not pairs and not function.where:
        return
    solver = DimSolver()
    for var in {var for _, ty, _ in pairs for dim in ty.shape for var in dim_vars(dim)}:
        solver.flexible(var)
    for what, ty, value in pairs:
        if has_unknown_rank(ty):
            continue
        try:
            for dim, size in zip(ty.shape, value.shape, strict=True):
                solver.unify(dim, size)
        except TypeCheckError:
            raise InputError(f"{what} must be {map_dims(ty, solver.value)}, not {show(value)}") from None
    try:
        for condition in function.where:
            solver.require(map_condition(condition, lambda part: map_dims(part, solver.value)), f"inputs of {where}")
        solver.finish()
    except TypeCheckError as error:
        raise InputError(error.message) from None


def _tensors(ty: Type, value: Value) -> Iterator[tuple[TensorType, np.ndarray]]:
    match ty:
        case TensorType():
            yield ty, value
        case TupleType(fields=fields):
            for part, item in zip(fields, value, strict=True):
                yield from _tensors(part, item)
        case _:
            return
