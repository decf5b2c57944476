"""Estimates the cost of folding a call on constants before doing it: elements, bytes and steps.

In: an operator, its attributes and values, the type of its result. Out: numbers that are never too small.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np

from relay_hw.analysis.products import operator_macs
from relay_hw.ir.expr import FusionPattern, Op, Trait
from relay_hw.ir.types import TensorType, TupleType, Type
from relay_hw.limits import DEFAULT, product

# More than users would wait for.
_ENDLESS: Final = 1 << 64
# Linear time in the elements that it reads and writes, although it does not fuse.
_LINEAR: Final = frozenset(
    ("scatter_elements", "scatter_nd", "one_hot", "dyn.one_hot", "dyn.full", "arange", "argwhere", "shape_of")
    + ("sort", "argsort", "topk", "dyn.topk", "searchsorted", "onnx.unique", "cumsum", "cumprod", "onnx.cumulative")
    + ("onnx.reduce", "nn.layer_norm", "nn.instance_norm", "nn.group_norm", "nn.batch_norm", "nn.l2_normalize")
    + ("nn.softmax", "nn.fast_softmax", "nn.log_softmax", "nn.dropout", "dft", "onnx.dft", "image.grid_sample")
    + ("nn.global_max_pool2d", "nn.global_avg_pool2d", "nn.global_max_pool2d_argmax")
)
# Whose results have sizes that only values tell, but never more elements than all they read.
_PICKING: Final = frozenset(
    ("onnx.unique", "dyn.topk", "dyn.reshape", "dyn.squeeze", "dyn.expand_dims", "dyn.strided_slice", "onnx.reduce")
    + ("onnx.cumulative", "take", "gather_nd", "strided_slice", "squeeze", "copy", "cast")
)


@dataclass(frozen=True, slots=True)
class Work:
    """Cost of a call: `elements` of the largest tensor, `size` of all results in bytes, `steps` of a few operations."""

    elements: int
    size: int
    steps: int

    @property
    def is_small(self) -> bool:
        """Whether constants are folded even without explicit limits."""
        return (
            self.elements <= DEFAULT.tensor_elements
            and self.size <= DEFAULT.folded_bytes
            and self.steps <= DEFAULT.folded_steps
        )


def work_of(op: Op, attrs: Any, values: Sequence[Any], ty: Type) -> Work:
    """The cost of `op` on `values`, with a result of type `ty`."""
    results = tensors_of(ty)
    given = sum(map(_elements, values))
    counts = [_count(op.name, values, given, result) for result in results]
    made = sum(counts)
    size = sum(count * width_of(result.dtype) for count, result in zip(counts, results, strict=True))
    steps = _steps(op, attrs, values, ty, (given, made)) * _padded(attrs)
    return Work(max(counts, default=0), size, steps + given + made)


def width_of(dtype: str) -> int:
    """Bytes of an element; at least one in numpy."""
    bits = re.search(r"\d+", dtype)
    return max(int(bits.group()) // 8, 1) if bits else 1


def tensors_of(ty: Type) -> list[TensorType]:
    """The tensors of a tensor or nested tuple, without recursion."""
    found: list[TensorType] = []
    waiting = [ty]
    while waiting:
        match waiting.pop():
            case TensorType() as one:
                found.append(one)
            case TupleType(fields=fields):
                waiting += fields
            case _:
                pass
    return found


def _elements(value: Any) -> int:
    return sum(map(_elements, value)) if isinstance(value, (tuple, list)) else int(np.size(value))


def _count(name: str, values: Sequence[Any], given: int, result: TensorType) -> int:
    if all(isinstance(dim, int) for dim in result.shape):
        return product(result.static_shape)
    rule = _OPEN.get(name)
    if rule is not None:
        return rule(values)
    return given if name in _PICKING else _ENDLESS


def _arange(values: Sequence[Any]) -> int:
    start, stop, step = (np.asarray(value).item() for value in values)
    return range_length(start, stop, step)


def range_length(start: float, stop: float, step: float) -> int:
    """Number of elements from `start` to before `stop`; 0 for a step of 0, at most 2^64."""
    if not step:
        return 0
    if all(isinstance(number, int) for number in (start, stop, step)):
        return min(max(-int((start - stop) // step), 0), _ENDLESS)
    with np.errstate(all="ignore"):
        length = (np.float64(stop) - np.float64(start)) / np.float64(step)
    return _ENDLESS if not length < _ENDLESS else max(int(np.ceil(length)), 0)


def _integers(value: Any) -> list[int]:
    return [int(item) for item in np.ravel(value)]


def _tiled(values: Sequence[Any]) -> int:
    return product([np.size(values[0]), *(max(count, 0) for count in _integers(values[1]))])


def _grown(values: Sequence[Any]) -> int:
    widths = np.reshape(values[1], (-1, 2)).tolist()
    return product(
        size + max(int(before), 0) + max(int(after), 0)
        for size, (before, after) in zip(np.shape(values[0]), widths, strict=True)
    )


def _sizes(index: int) -> Callable[[Sequence[Any]], int]:
    return lambda values: product(max(size, 0) for size in _integers(values[index]))


_OPEN: Final[dict[str, Callable[[Sequence[Any]], int]]] = {
    "arange": _arange,
    "argwhere": lambda values: int(np.size(values[0])) * max(np.ndim(values[0]), 1),
    "dyn.broadcast_to": lambda values: product([np.size(values[0]), _sizes(1)(values)]),
    "dyn.full": _sizes(1),
    "dyn.nn.pad": _grown,
    "dyn.one_hot": lambda values: product([np.size(values[0]), max(int(np.asarray(values[3]).item()), 0)]),
    "dyn.tile": _tiled,
}


def _padded(attrs: Any) -> int:
    """The largest ratio of padded to original data of an operator."""
    padding = getattr(attrs, "padding", ())
    return product(1 + 2 * abs(pad) for pad in padding) if isinstance(padding, tuple) else 1


def _steps(op: Op, attrs: Any, values: Sequence[Any], ty: Type, elements: tuple[int, int]) -> int:
    given, made = elements
    if op.has(Trait.ANCHOR):
        return operator_macs(op, attrs, [_type(value) for value in values], ty)
    if op.pattern <= FusionPattern.COMM_REDUCE or op.name in _LINEAR:
        return given + made
    if op.name == "onnx.det":
        return given * max(np.shape(values[0])[-1:], default=1)
    window = getattr(attrs, "pool_size", None)
    if window is not None:
        return made * prod(window)
    return given * made


def _type(value: Any) -> Type:
    if isinstance(value, (tuple, list)):
        return TupleType([_type(item) for item in value])
    return TensorType(np.shape(value), str(np.asarray(value).dtype))
