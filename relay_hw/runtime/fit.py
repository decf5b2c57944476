"""Checks that the parts of a build match: inputs and outputs those of `main`, regions and forms their functions.

In: records of a manifest and functions, each valid on its own. Out: nothing, or ArtifactError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from relay_hw.backend.nodes import FlatFunction
from relay_hw.backend.store import type_from_json
from relay_hw.errors import ArtifactError
from relay_hw.ir.types import TensorType, TupleType, Type
from relay_hw.op.base import static
from relay_hw.runtime.manifest import TensorInfo
from relay_hw.target.records import PortInfo, RegionInfo
from relay_hw.transform.batch_fragments import BatchedForm


def check_inputs(rows: Sequence[TensorInfo], main: FlatFunction) -> None:
    """Raise ArtifactError if the manifest's inputs are not those of `main`."""
    told, wanted = [row.name for row in rows], [param.name for param in main.params]
    if told != wanted:
        raise ArtifactError(f"the inputs must be those of main, {', '.join(wanted)}, not {', '.join(told)}")
    for row, param in zip(rows, main.params, strict=True):
        _check_tensor("input", row, param.type)


def check_outputs(rows: Sequence[TensorInfo], result: Type) -> None:
    """Raise ArtifactError if the manifest's outputs are not what `main` returns."""
    types = result.fields if isinstance(result, TupleType) else (result,)
    if len(types) != len(rows):
        raise ArtifactError(f"the outputs must be the {len(types)} of main, not {len(rows)}")
    for row, ty in zip(rows, types, strict=True):
        _check_tensor("output", row, ty)


def _check_tensor(what: str, row: TensorInfo, ty: Type) -> None:
    """Compare a record with a type; open sizes match any number."""
    if row.type is not None:
        type_from_json(row.type)
        return
    try:
        np.dtype(row.dtype)
    except (TypeError, ValueError):
        raise ArtifactError(f"{what} {row.name} must have an element type, not {row.dtype!r:.60}") from None
    if not isinstance(ty, TensorType) or not all(map(static, ty.shape)):
        return
    shape = tuple(1 if axis == row.batch_axis else size for axis, size in enumerate(row.shape))
    if (shape, row.dtype) != (ty.shape, ty.dtype):
        raise ArtifactError(f"{what} {row.name} must be {ty}, as main has it, not {TensorType(shape, row.dtype)}")


def check_region(row: RegionInfo, functions: Mapping[str, FlatFunction], results: Mapping[str, Type]) -> None:
    """Raise ArtifactError if a region's ports are not those of its function."""
    if row.name not in functions:
        raise ArtifactError(f"region {row.name} must have a function, not only a program")
    result = results[row.name]
    outputs = result.fields if isinstance(result, TupleType) else (result,)
    _check_ports(row, "inputs", row.inputs, [param.type for param in functions[row.name].params])
    _check_ports(row, "outputs", row.outputs, outputs)


def check_form(row: BatchedForm, functions: Mapping[str, FlatFunction], results: Mapping[str, Type]) -> None:
    """Raise ArtifactError if a batched form does not take and give the rows of so many calls of its function."""
    for name in (row.function, row.form):
        if name not in functions:
            raise ArtifactError(f"batched form {row.form} must have a function {name}")
    types = [[*(param.type for param in functions[n].params), results[n]] for n in (row.function, row.form)]
    wanted = [_rows(ty, row.rows) for ty in types[0]]
    if row.rows < 2 or None in wanted or wanted != types[1]:
        raise ArtifactError(
            f"batched form {row.form} must take and give {row.rows} rows, at least 2, where {row.function} has one"
        )


def _rows(ty: Type, rows: int) -> Type | None:
    """The type of so many values of a type of single rows; None for another type."""
    if isinstance(ty, TupleType):
        parts = [_rows(part, rows) for part in ty.fields]
        found = [part for part in parts if part is not None]
        return TupleType(found) if len(found) == len(parts) else None
    if not isinstance(ty, TensorType) or ty.shape[:1] != (1,):
        return None
    return TensorType((rows, *ty.shape[1:]), ty.dtype)


def _check_ports(row: RegionInfo, what: str, ports: Sequence[PortInfo], types: Sequence[Type]) -> None:
    shapes = [ty.shape if isinstance(ty, TensorType) else None for ty in types]
    if [port.shape for port in ports] != shapes:
        told = [port.shape for port in ports]
        raise ArtifactError(f"the {what} of region {row.name} must have the shapes {shapes}, not {told}")
