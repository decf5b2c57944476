"""Calibration: runs the float network on example data while observers record ranges of its tensors.

In: a typed module, the tensors to watch, arrays by input name. Out: the range of each tensor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import QuantizeError
from relay_hw.interp import Interpreter
from relay_hw.ir.expr import Constant, Expr, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.quantize.choices import Calibration
from relay_hw.quantize.finite import check_samples
from relay_hw.quantize.inputs import shape_hint
from relay_hw.quantize.layer_rule import ActivationRule
from relay_hw.quantize.observe import make_observer
from relay_hw.quantize.strategy import Strategy
from relay_hw.support.progress import SILENT, Progress
from relay_hw.transform.graph import op_name

Array = NDArray[Any]
Ranges = dict[Expr, tuple[float, float]]
CALIBRATING: Final = "calibrating"


def calibrate(
    mod: IRModule,
    tensors: Mapping[Expr, ActivationRule],
    data: Mapping[str, Array],
    progress: Progress = SILENT,
) -> Ranges:
    """The range of each of `tensors` (nodes of `mod`) over `data`: one array for each input, samples on the first axis.

    No data are looked at where every range is global. Keys that are no input are ignored. Raises QuantizeError for data
    that does not fit.
    """
    observers = {tensor: make_observer(rule) for tensor, rule in tensors.items()}
    if all(rule.calibration is Calibration.GLOBAL for rule in tensors.values()):
        return {tensor: observer.limits() for tensor, observer in observers.items()}
    batches = check_data(mod["main"].params, data)
    watched: dict[Expr, list[Expr]] = {}
    for tensor in tensors:
        watched.setdefault(_source(tensor), []).append(tensor)
        if isinstance(tensor, Constant):
            observers[tensor].update(tensor.data)

    def observe(node: Expr, value: Any) -> None:
        for tensor in watched.get(node, ()):
            found = _part(tensor, value)
            if not np.isfinite(found).all():
                raise QuantizeError(f"activations of {_name(tensor)} must be finite on the calibration data")
            observers[tensor].update(found)

    interpreter = Interpreter(mod, observe)
    progress.started(CALIBRATING, len(batches))
    for number, batch in enumerate(batches, 1):
        interpreter.call_global("main", batch)
        progress.advanced(CALIBRATING, number)
    return {tensor: observer.limits() for tensor, observer in observers.items()}


def given_data(strategy: Strategy, data: Mapping[str, Array] | None) -> Mapping[str, Array]:
    """`data`, or nothing if the strategy reads none. Raises QuantizeError for data that it needs and lacks."""
    if data is None and strategy.needs_data:
        raise QuantizeError(f"strategy {strategy.name} needs calibration data: give an array for each input")
    return data or {}


def check_data(params: Sequence[Var], data: Mapping[str, Array]) -> Sequence[dict[str, Array]]:
    """Split the data into batches of the network's size. Raises QuantizeError."""
    arrays = {param.name_hint: _check_input(param, data) for param in params}
    counts = {name: len(array) for name, array in arrays.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise QuantizeError(f"calibration data must hold as many samples for each input, not {listed}")
    return list(_batches(arrays))


def flat_data(params: Sequence[Var], data: Mapping[str, Array]) -> Mapping[str, Array]:
    """`data` with samples of whole inputs [N, *shape] as [N * shape[0], *rest]: what has that form stays."""
    new = dict(data)
    for param in params:
        ty, name = param.checked_type, param.name_hint
        if not isinstance(ty, TensorType) or name not in data:
            continue
        given = np.asarray(data[name])
        if given.ndim > 1 and given.shape[1:] == ty.shape:
            new[name] = given.reshape(-1, *given.shape[2:])
    return new


def _check_input(param: Var, data: Mapping[str, Array]) -> Array:
    """The samples of one input as [batches, *shape of the input]."""
    name, ty = param.name_hint, param.tensor_type
    if not all(isinstance(size, int) for size in ty.shape):
        raise QuantizeError(f"input {name} must have a known shape to be calibrated, not {ty.shape}")
    if name not in data:
        given = ", ".join(sorted(data)) or "nothing"
        raise QuantizeError(f"calibration data must hold input {name}, not only {given}")
    array = np.asarray(data[name])
    shape = ty.static_shape
    batch, rest = (shape[0], shape[1:]) if shape else (1, ())
    if array.dtype.kind not in "fiub":
        raise QuantizeError(f"calibration data of input {name} must be numbers, not {array.dtype}")
    if array.ndim != len(rest) + 1 or array.shape[1:] != rest:
        wanted = ", ".join(str(size) for size in ("N", *rest))
        hint = shape_hint(array.shape[1:], rest)
        raise QuantizeError(f"calibration data of input {name} must have the shape ({wanted}), not {array.shape}{hint}")
    if not len(array) or len(array) % batch:
        raise QuantizeError(
            f"calibration data of input {name} must hold a multiple of {batch} samples, at least one, not {len(array)}"
        )
    with np.errstate(over="ignore"):  # what does not fit becomes infinity, and is refused as such
        array = array.astype(ty.dtype, copy=False)
    check_samples(f"calibration data of input {name}", array, QuantizeError)
    return array.reshape(-1, *shape)


def _batches(arrays: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    for index in range(max(map(len, arrays.values()), default=0)):
        yield {name: array[index] for name, array in arrays.items()}


def _source(tensor: Expr) -> Expr:
    """The node whose value the interpreter shows: the call behind a projection."""
    while isinstance(tensor, TupleGetItem):
        tensor = tensor.tuple_value
    return tensor


def _name(tensor: Expr) -> str:
    source = _source(tensor)
    if source.span is not None:
        return str(source.span)
    return source.name_hint if isinstance(source, Var) else op_name(source) or "a tensor"


def _part(tensor: Expr, value: Any) -> Array:
    if isinstance(tensor, TupleGetItem):
        return _part(tensor.tuple_value, value)[tensor.index]
    return value
