"""Shared helpers of operator lowerings: context, shapes and types of Relax expressions, TE calls.

In: a flat call and its arguments as Relax expressions. Out: an expression, a tuple of them, or None if Relax or TE
cannot give numpy's result exactly, so that the call stays on numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relay_hw.backend.flat import FlatCall
from relay_hw.backend.tvm.api import relax, te, tirx
from relay_hw.backend.tvm.machine import Machine
from relay_hw.backend.tvm.scalars import FLOATS, INTEGERS, convert
from relay_hw.ir.types import TensorType, Type

Arg = Any  # a Relax expression, or a tuple of them
DTYPES = (*FLOATS, *INTEGERS, "bool")


@dataclass(frozen=True, slots=True)
class Context:
    """The context of a lowering: block builder, processor, numpy values of constants, types by node."""

    builder: Any
    machine: Machine
    constants: Mapping[int, Any]
    types: Sequence[Type]

    def constant(self, node: int) -> Any:
        """The value of an argument if it is known now, else None."""
        return self.constants.get(node)

    def te(self, build: Callable[..., Any], *args: Any) -> Any:
        """A call of the TE function that `build` gives for the arguments."""
        return self.builder.call_te(build, *args)

    def emit(self, value: Any) -> Any:
        """The value under a name, for use in another expression."""
        return self.builder.emit(value)


Lowering = Callable[[Context, FlatCall, Sequence[Arg]], Arg | None]
Scalar = Callable[..., Any]  # TE scalars in, one out


def tensor(ty: Type) -> TensorType:
    """A type that must be a tensor's."""
    assert isinstance(ty, TensorType)
    return ty


def dtype_of(expr: Any) -> str:
    """Element type of a Relax expression."""
    return str(expr.ty.dtype)


def shape_of(expr: Any) -> tuple[int, ...]:
    """Shape of a Relax expression."""
    return tuple(int(d) for d in expr.ty.shape)


def is_float(*exprs: Any) -> bool:
    """Whether all elements are floats."""
    return all(dtype_of(expr) in FLOATS for expr in exprs)


def const(value: Any, like: Any) -> Any:
    """TE: a number in the element type of a scalar."""
    return tirx.const(value, str(like.ty.dtype))


def elementwise(ctx: Context, call: FlatCall, args: Sequence[Any], scalar: Scalar) -> Any:
    """TE: `scalar` of the arguments, which broadcast to the shape of the result; its value is cast to the result's."""
    out = tensor(call.type)

    def build(*tensors: Any) -> Any:
        def element(*index: Any) -> Any:
            value = scalar(*(t(*_own(index, t.shape)) for t in tensors))
            return convert(value, out.dtype)

        return te.compute(out.static_shape, element, name=call.op.name.replace(".", "_"))

    return ctx.te(build, *args)


def _own(index: Sequence[Any], shape: Sequence[Any]) -> list[Any]:
    """The place in an array of `shape` that broadcasting gives for `index`."""
    near = index[len(index) - len(shape) :]
    return [0 if int(size) == 1 else at for at, size in zip(near, shape, strict=True)]


def injective(ctx: Context, call: FlatCall, args: Sequence[Any], place: Callable[..., Any]) -> Any:
    """TE: element `index` of the result is `place(tensors, index)`."""
    out = tensor(call.type)

    def build(*tensors: Any) -> Any:
        return te.compute(out.static_shape, lambda *i: place(tensors, i), name=call.op.name.replace(".", "_"))

    return ctx.te(build, *args)


def reshape(ctx: Context, value: Any, shape: Sequence[int]) -> Any:
    """`value` under another shape, named."""
    return value if shape_of(value) == tuple(shape) else ctx.emit(relax.op.reshape(value, tuple(shape)))


def literal(value: Any, dtype: str) -> Any:
    """A Relax constant."""
    return constant(np.asarray(value, dtype))


def constant(array: Any) -> Any:
    """A Relax constant of the array's own element type: TVM makes single precision of double."""
    return relax.const(array, str(array.dtype))


def filled(value: int) -> Lowering:
    """A tensor of one value, as data: what TVM knows to be 0 it takes for 0 in products with infinity and NaN, too."""

    def lower(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
        out = tensor(call.type)
        return literal(np.full(out.static_shape, value), out.dtype)

    return lower
