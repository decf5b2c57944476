"""Symbolic arithmetic on dynamic sizes: what a graph computes from Shape, as dimensions instead of numbers.

In: a node and the dimensions of its inputs. Out: those of its result, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue

import numpy as np
from numpy.typing import NDArray

from relay_hw.frontend.onnx.node import Node
from relay_hw.ir.dims import DimExpr, DimVar, dim_add, dim_floordiv, dim_mul, dim_sub
from relay_hw.ir.types import Dim

# Dimensions in the shape of the tensor that holds them: a scalar or a short vector.
Sizes = NDArray[np.object_]
LONGEST = 64


def from_array(array: NDArray[AnyValue] | None) -> Sizes | None:
    """The integers of a short known vector as dimensions."""
    if array is None or array.dtype.kind not in "iu" or array.ndim > 1 or array.size > LONGEST:
        return None
    return as_sizes([int(item) for item in np.ravel(array)], array.ndim)


def as_sizes(dims: Sequence[Dim], rank: int = 1) -> Sizes:
    """Dimensions as a vector, or one of them as a scalar."""
    found = np.empty(len(dims), object)
    found[:] = list(dims)
    return found if rank else found.reshape(())


def numbers(sizes: Sizes) -> NDArray[np.int64] | None:
    """The sizes as numbers; None if one is dynamic."""
    if not all(isinstance(dim, int) for dim in sizes.ravel()):
        return None
    return np.array([int(dim) for dim in sizes.ravel()], np.int64).reshape(sizes.shape)


def computed(node: Node, inputs: Sequence[Sizes | None]) -> Sizes | None:
    """The result of a node that computes with sizes; None for other nodes or unknown inputs."""
    rule = _RULES.get(node.operator)
    given = [sizes for name, sizes in zip(node.inputs, inputs, strict=True) if name]
    if rule is None or not given or any(sizes is None for sizes in given):
        return None
    try:
        return rule(node, [sizes for sizes in inputs if sizes is not None])
    except (IndexError, ValueError, ZeroDivisionError):
        return None


def _elementwise(build: Callable[[Dim, Dim], Dim]) -> Callable[[Node, Sequence[Sizes]], Sizes]:
    def rule(node: Node, inputs: Sequence[Sizes]) -> Sizes:
        left, right = np.broadcast_arrays(*inputs)
        dims = [build(a, b) for a, b in zip(left.ravel(), right.ravel(), strict=True)]
        return as_sizes(dims).reshape(left.shape)

    return rule


def _gather(node: Node, inputs: Sequence[Sizes]) -> Sizes | None:
    places = numbers(inputs[1])
    if places is None or inputs[0].ndim != 1 or places.ndim > 1:
        return None
    return np.asarray(inputs[0][places], object)


def _concat(node: Node, inputs: Sequence[Sizes]) -> Sizes:
    return np.concatenate(inputs)


def _reshaped(rank: int) -> Callable[[Node, Sequence[Sizes]], Sizes | None]:
    """Unsqueeze of a scalar and Squeeze of one number."""

    def rule(node: Node, inputs: Sequence[Sizes]) -> Sizes | None:
        if inputs[0].size != 1 or inputs[0].ndim == rank:
            return None
        return inputs[0].reshape((1,) * rank)

    return rule


def _slice(node: Node, inputs: Sequence[Sizes]) -> Sizes | None:
    given: Sequence[AnyValue]
    if node.opset < 10:
        given = [node.attr("starts"), node.attr("ends"), [0]]
    else:
        given = [numbers(sizes) for sizes in inputs[1:]]
    if inputs[0].ndim != 1 or any(part is None or len(part) != 1 for part in given):
        return None
    step = int(given[3][0]) if len(given) > 3 else 1
    return inputs[0][int(given[0][0]) : int(given[1][0]) : step]


def _product(node: Node, inputs: Sequence[Sizes]) -> Sizes | None:
    if inputs[0].ndim != 1 or len(inputs) > 1 or node.attr("axes", [0]) not in ([0], [-1]):
        return None
    return as_sizes([dim_mul(*inputs[0])], node.attr("keepdims", 1))


def _same(node: Node, inputs: Sequence[Sizes]) -> Sizes | None:
    # Sizes are int64 or int32; a cast to real numbers leaves the arithmetic of dimensions.
    return inputs[0] if node.attr("to", 7) in (6, 7) else None


_RULES: dict[str, Callable[[Node, Sequence[Sizes]], Sizes | None]] = {
    "Add": _elementwise(dim_add),
    "Cast": _same,
    "Concat": _concat,
    "Div": _elementwise(dim_floordiv),
    "Gather": _gather,
    "Identity": _same,
    "Mul": _elementwise(dim_mul),
    "ReduceProd": _product,
    "Slice": _slice,
    "Squeeze": _reshaped(0),
    "Sub": _elementwise(dim_sub),
    "Unsqueeze": _reshaped(1),
}


def reshape_codes(data: Sequence[Dim], wanted: Sequence[Dim], keep_zero: bool) -> tuple[int, ...] | None:
    """Codes of Relay's reshape for partly dynamic sizes: 0 copies a size, -1 is inferred.

    None if more are open than codes can say.
    """
    codes: list[int] = []
    for axis, dim in enumerate(wanted):
        if isinstance(dim, int):
            codes.append(dim)
        elif not keep_zero and axis < len(data) and isinstance(dim, (DimVar, DimExpr)) and dim == data[axis]:
            codes.append(0)
        elif -1 not in codes and -1 not in wanted[axis:]:
            codes.append(-1)
        else:
            return None
    return tuple(codes)
