"""Counts multiply-accumulates of calls, for all tables, shares and bounds.

In: a typed call. Out: their number; 0 for operators that make no products, and where a shape is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, Final

from relay_hw.ir.expr import MACS, Call, Expr, Function, Op, Trait
from relay_hw.ir.types import TensorType, TupleType, Type
from relay_hw.ir.visit import post_order

_DENSE: Final = ("nn.dense", "qnn.dense")
_MATMUL: Final = ("nn.matmul", "nn.batch_matmul", "qnn.batch_matmul")
_CONV: Final = ("nn.conv1d", "nn.conv2d", "nn.conv3d", "qnn.conv2d")
_TRANSPOSED: Final = (
    "nn.conv1d_transpose",
    "nn.conv2d_transpose",
    "nn.conv3d_transpose",
    "fixed.conv2d_transpose",
    "qnn.conv2d_transpose",
)
_EINSUM: Final = "einsum"


def call_macs(call: Call) -> int:
    """Multiply-accumulates without padding of channels; taps on padding count, those on inserted zeros do not."""
    if not isinstance(call.op, Op) or not call.op.has(Trait.ANCHOR):
        return 0
    return operator_macs(call.op, call.attrs, [arg.type for arg in call.args], call.type)


def operator_macs(op: Op, attrs: Any, types: Sequence[Type], result: Type) -> int:
    """`call_macs` of a call of `op`, which makes sums of products, on arguments of these types."""
    name = op.name
    if name == _EINSUM:
        return _einsum(attrs.equation, types[0])
    out, data, kernel = _static(result), _static(types[0]), _static(types[1])
    if out is None or data is None or kernel is None:
        return 0
    if name in _DENSE:
        return prod(out) * data[-1]
    if name in _MATMUL:
        return prod(out) * data[-2 if attrs.transpose_a else -1]
    if name in _TRANSPOSED:
        return _transposed(attrs, out, data, kernel)
    # Every output element has one product per weight of its output channel.
    return prod(out) * prod(kernel) // max(kernel[str(attrs.kernel_layout).index("O")], 1)


def weight_shape(call: Call) -> tuple[int, ...]:
    """Shape of the weights that a call multiplies with; empty if it multiplies two activations, or nothing."""
    name = call.op.name if isinstance(call.op, Op) else ""
    if name not in (*_DENSE, "nn.matmul", *_CONV, *_TRANSPOSED):
        return ()
    return _shape(call.args[1]) or ()


def total_macs(exprs: Iterable[Expr]) -> int:
    """Multiply-accumulates of all calls among expressions."""
    return sum(call_macs(expr) for expr in exprs if isinstance(expr, Call))


def function_macs(function: Function) -> int:
    """Multiply-accumulates of a function; a composite says them where zeros were added to its channels."""
    return int(function.attrs.get(MACS, total_macs(post_order(function.body))))


def count_products(body: Expr) -> int:
    """The number of calls that make multiply-accumulates."""
    calls = (expr for expr in post_order(body) if isinstance(expr, Call))
    return sum(isinstance(call.op, Op) and call.op.has(Trait.ANCHOR) for call in calls)


def _transposed(attrs: Any, out: Sequence[int], data: Sequence[int], kernel: Sequence[int]) -> int:
    """Transposed convolution: an output element has one product per tap on an input element, none between them."""
    layout, kernel_layout = str(attrs.data_layout), str(attrs.kernel_layout)
    channels = data[layout.index("N")] * kernel[kernel_layout.index("I")] * kernel[kernel_layout.index("O")]
    spatial = [letter for letter in layout if letter not in "NC"]
    padding = tuple(attrs.padding)
    before = padding * len(spatial) if len(padding) == 1 else padding
    taps = [
        _taps(
            out[layout.index(letter)],
            kernel[kernel_layout.index(letter)],
            attrs.strides[axis],
            attrs.dilation[axis],
            before[axis],
        )
        for axis, letter in enumerate(spatial)
    ]
    return channels * prod(taps)


def _taps(size: int, kernel: int, stride: int, dilation: int, before: int) -> int:
    """Number of pairs of an output row and a tap on an input row."""
    first = [(tap * dilation - before) % stride for tap in range(kernel)]
    return sum((size - line + stride - 1) // stride for line in first if line < size)


def _einsum(equation: str, given: Type) -> int:
    """Einsum: one product per index of all axes and tensor after the first; 0 with ellipses."""
    terms = equation.replace(" ", "").partition("->")[0].split(",")
    fields = given.fields if isinstance(given, TupleType) else (given,)
    shapes = [_static(field) for field in fields]
    if "." in equation or len(terms) != len(shapes):
        return 0
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        if shape is None:
            return 0
        for letter, size in zip(term, shape, strict=True):
            sizes[letter] = max(size, sizes.get(letter, 1))
    return prod(sizes.values()) * (len(terms) - 1)


def _shape(expr: Expr) -> tuple[int, ...] | None:
    return _static(expr.type)


def _static(ty: Type) -> tuple[int, ...] | None:
    if not isinstance(ty, TensorType) or not all(isinstance(size, int) for size in ty.shape):
        return None
    return ty.static_shape
