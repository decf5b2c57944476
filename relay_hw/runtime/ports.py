"""Inputs and outputs of a model: their records, and conversion of samples to and from arrays.

In: `main` of a module, or the records and what a user gives. Out: records; arrays or values, samples first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.backend.nodes import Value
from relay_hw.backend.store import type_from_json, type_to_json
from relay_hw.errors import InputError
from relay_hw.interp.values import to_value
from relay_hw.ir.expr import Call, Constant, Expr, Function, Op
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType, TupleType, Type
from relay_hw.ir.visit import post_order
from relay_hw.quantize.finite import check_samples, check_value
from relay_hw.quantize.inputs import Seen, complaint, look, shape_hint
from relay_hw.runtime.manifest import TensorInfo
from relay_hw.transform.prefix_masks import check_prefixes

Array = NDArray[Any]
# Samples of one input: an array, samples first, or values of a type that is no tensor of known shape.
Samples = Array | Sequence[Value]


def inputs_of(mod: IRModule, calibration: Mapping[str, Any] | None = None) -> tuple[TensorInfo, ...]:
    """Records of the parameters of `main`, with scales of quantized ones and statistics from `calibration`."""
    numbers = _border_numbers(mod)
    rows: list[TensorInfo] = []
    for var in mod["main"].params:
        row = _row(var.name_hint, var.type)
        scale, zero_point = numbers.get(var, (None, None))
        given = (calibration or {}).get(row.name)
        seen = None if given is None else look_at(row, given)
        rows.append(replace(row, scale=scale, zero_point=zero_point, seen=seen))
    return tuple(rows)


def single_output(row: TensorInfo, samples: Any) -> Any:
    """An output of the only sample: the value, or an array of the output's shape."""
    return samples[0] if row.type is not None else samples.reshape(row.shape)


def look_at(row: TensorInfo, given: Any, limit: int | None = None) -> Seen | None:
    """Statistics of the first `limit` samples of an input; None for one that is not a float tensor."""
    samples = _floats(row, given, limit)
    return None if samples is None or not np.isfinite(samples).all() else look(samples)


def input_complaints(rows: Sequence[TensorInfo], inputs: Mapping[str, Any], limit: int | None = None) -> list[str]:
    """A sentence for each input whose first `limit` samples were probably not prepared like the calibration data."""
    found: list[str] = []
    for row in rows:
        samples = _floats(row, inputs[row.name], limit)
        text = complaint(samples, row.seen) if samples is not None and row.seen is not None else ""
        found += [f"input {row.name}: {text}"] if text else []
    return found


def constant_inputs(rows: Sequence[TensorInfo]) -> list[str]:
    """A sentence if calibration data have a single value per input, and so no range; states may be zeros."""
    seen = [row for row in rows if row.seen is not None]
    constant = [f"{row.name} {row.seen.low:.4g}" for row in seen if row.seen is not None and row.seen.is_constant]
    if not constant or len(constant) < len(seen):
        return []
    return [f"calibration data must differ to show a range, not be one value for each input: {', '.join(constant)}"]


def _floats(row: TensorInfo, given: Any, limit: int | None) -> Array | None:
    """Samples of a float input as they were given, parts one after the other, [N, *shape without a batch axis of 1]."""
    if row.type is not None or np.dtype(row.dtype).kind != "f" or 0 in row.shape:
        return None
    array = np.asarray(given)
    shape = tuple(1 if at == row.batch_axis else size for at, size in enumerate(row.shape))
    inner = shape[1:] if shape[:1] == (1,) else shape
    if array.size == 0 or array.size % prod(inner) or array.dtype.kind not in "fiub":
        return None
    batch = 1 if row.batch_axis is None else row.shape[row.batch_axis]
    parts = np.asarray(single_samples((row,), {row.name: array})[row.name])
    return parts.reshape(-1, *inner)[: None if limit is None else limit * batch]


def outputs_of(mod: IRModule, main: Function) -> tuple[TensorInfo, ...]:
    """Records of the results of `main`, named as the importer recorded in `mod`, else `output` or `output_k`."""
    ty = main.func_type.ret_type
    types = ty.fields if isinstance(ty, TupleType) else (ty,)
    default = ["output"] if len(types) == 1 else [f"output_{k}" for k in range(len(types))]
    names = mod.attrs.get("output_names") or default
    assert isinstance(names, (tuple, list))
    return tuple(_row(str(name), ty) for name, ty in zip(names, types, strict=True))


def with_batch(rows: Sequence[TensorInfo], axes: Sequence[int | None], batch: int) -> tuple[TensorInfo, ...]:
    """`rows` of a model that computes one of `batch` parts, for samples that hold all of them along `axes`."""
    found: list[TensorInfo] = []
    for row, axis in zip(rows, axes, strict=True):
        shape = tuple(size * batch if at == axis else size for at, size in enumerate(row.shape))
        found.append(replace(row, shape=shape, batch_axis=axis))
    return tuple(found)


def _row(name: str, ty: Type) -> TensorInfo:
    if isinstance(ty, TensorType) and all(isinstance(dim, int) for dim in ty.shape):
        return TensorInfo(name, ty.static_shape, ty.dtype)
    return TensorInfo(name, (), ty.dtype if isinstance(ty, TensorType) else "", type=type_to_json(ty))


def _border_numbers(mod: IRModule) -> dict[Expr, tuple[float, int]]:
    """Scale and zero point by parameter of each quantization with constant numbers in `main`."""
    found: dict[Expr, tuple[float, int]] = {}
    for expr in post_order(mod["main"].body):
        if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == "qnn.quantize":
            scale, zero = expr.args[1:3]
            if isinstance(scale, Constant) and isinstance(zero, Constant) and scale.data.size == zero.data.size == 1:
                found[expr.args[0]] = (float(scale.data), int(zero.data))
    return found


def read_samples(
    rows: Sequence[TensorInfo], inputs: Mapping[str, Any], is_quantized: bool = False
) -> tuple[int, dict[str, Samples]]:
    """Number of samples, and for each input its samples: finite ones of a network that `is_quantized`.

    Raises InputError naming the input.
    """
    found: dict[str, Samples] = {}
    for row in rows:
        if row.name not in inputs:
            given = ", ".join(sorted(inputs)) or "nothing"
            raise InputError(f"input {row.name} must be given; the data holds {given}")
        given = inputs[row.name]
        if row.type is None:
            found[row.name] = _array(row, np.asarray(given), is_quantized)
            continue
        found[row.name] = values = _values(row, given)
        for number, value in enumerate(values if is_quantized else ()):
            check_value(f"input {row.name}", value, number)
    counts = {name: len(samples) for name, samples in found.items()}
    if len(set(counts.values())) > 1:
        text = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise InputError(f"all inputs must have the same number of samples, not {text}")
    count = next(iter(counts.values()), 1)
    if count == 0:
        raise InputError("the data must hold at least 1 sample, not 0")
    return count, found


def _values(row: TensorInfo, given: Any) -> list[Value]:
    """Samples of an input that is no tensor of known shape."""
    if not isinstance(given, (list, tuple, np.ndarray)) or (isinstance(given, np.ndarray) and given.ndim == 0):
        raise InputError(f"input {row.name} must be a sequence of samples, not {type(given).__name__}")
    ty = type_from_json(row.type)
    return [to_value(one, ty, f"input {row.name}") for one in given]


def _array(row: TensorInfo, array: Array, is_quantized: bool) -> Array:
    """[N, *row.shape] from an array of that shape, of one without a batch axis of 1, or of parts of batches."""
    inner = _inner(row)
    array = _batches(row, array)
    wanted = f"(N, {', '.join(map(str, inner))})" if inner else "(N,)"
    if array.ndim == 0 or array.shape[1:] not in (inner, row.shape):
        hint = shape_hint(array.shape[1:], inner)
        raise InputError(f"input {row.name} must have shape {wanted}, samples first, not {array.shape}{hint}")
    dtype = np.dtype(row.dtype)
    if array.dtype != dtype and not (array.dtype.kind in "fiu" and dtype.kind == "f"):
        raise InputError(f"input {row.name} must be {row.dtype}, not {array.dtype}")
    with np.errstate(over="ignore"):  # what does not fit becomes infinity, and is refused as such
        array = np.ascontiguousarray(array, dtype)
    if is_quantized:
        check_samples(f"input {row.name}", array)
    if row.is_prefix:
        check_prefixes(row.name, array)
    return array.reshape((len(array), *row.shape))


def single_samples(rows: Sequence[TensorInfo], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of all samples, one after the other, of [N, *shape of the input]; arrays of another form as they are.

    Parts that are given as such, [N, *shape without the batch axis], are of another form, too.
    """
    found = dict(inputs)
    whole = [row for row in rows if row.name in inputs and np.shape(inputs[row.name])[1:] == row.shape]
    batch = next((row.shape[row.batch_axis] for row in whole if row.batch_axis is not None), 1)
    if batch == 1:
        return found
    for row in whole:
        array = np.asarray(inputs[row.name])
        if row.batch_axis is None:
            found[row.name] = np.repeat(array, batch, axis=0)
        else:
            parts = np.moveaxis(array, row.batch_axis + 1, 1).reshape(-1, *_without(row.shape, row.batch_axis))
            found[row.name] = np.expand_dims(parts, row.batch_axis + 1)
    return found


def _batches(row: TensorInfo, array: Array) -> Array:
    """Parts [N * batch, *shape without the batch axis] as [N, *shape]; an array of another form as it is."""
    axis = row.batch_axis
    if axis is None or array.ndim == 0 or array.shape[1:] != _without(row.shape, axis) or len(array) % row.shape[axis]:
        return array
    return np.moveaxis(array.reshape(-1, row.shape[axis], *array.shape[1:]), 1, axis + 1)


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def _inner(row: TensorInfo) -> tuple[int, ...]:
    """The shape of one sample without a batch axis of 1."""
    return row.shape[1:] if row.shape[:1] == (1,) else row.shape


def joined(rows: Sequence[TensorInfo], results: Sequence[Value], batch: int = 1) -> dict[str, Any]:
    """Outputs by name from the values of each sample, one for each of its `batch` parts: [N, *shape], others in a list.

    A batch axis of 1 is left out, as inputs may leave it out; every other first axis stays, so that what a model gives
    for one sample is what it takes for the next.
    """
    found: dict[str, Any] = {}
    is_tuple = bool(results) and isinstance(results[0], tuple)
    for number, row in enumerate(rows):
        parts = [result[number] if is_tuple else result for result in results]
        if row.type is not None:
            found[row.name] = parts
        else:
            array = np.stack([_sample(row, parts[k : k + batch]) for k in range(0, len(parts), batch)])
            found[row.name] = array.reshape(len(array), *_inner(row))
    return found


def _sample(row: TensorInfo, parts: Sequence[Value]) -> Array:
    """One sample of an output from its parts; an output without a batch axis is the same in all."""
    value = np.asarray(parts[0]) if row.batch_axis is None else np.concatenate(parts, axis=row.batch_axis)
    return value.reshape(row.shape)


def random_samples(
    rows: Sequence[TensorInfo], samples: int, seed: int = 0, has_control_flow: bool = False
) -> dict[str, Array]:
    """Samples that reach the whole range of a quantized input.

    `has_control_flow`: integers are small, since one may say how often a loop runs. Raises InputError.
    """
    rng = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for row in rows:
        if row.type is not None:
            raise InputError(f"input {row.name} must be a tensor of known shape to be drawn at random: use run")
        shape = (samples, *row.shape)
        if np.dtype(row.dtype).kind == "f":
            scale, zero = (row.scale, row.zero_point) if row.scale is not None else (1 / 32, 0)
            found[row.name] = (rng.uniform(-140, 140, shape) - (zero or 0)) * scale
            found[row.name] = found[row.name].astype(row.dtype)
        elif row.dtype == "bool":
            found[row.name] = rng.integers(0, 2, shape).astype(bool)
        else:
            info = np.iinfo(row.dtype)
            low, high = (max(info.min, -16), 16) if has_control_flow else (info.min, info.max)
            found[row.name] = rng.integers(low, high, shape, endpoint=True, dtype=row.dtype)
    return found
