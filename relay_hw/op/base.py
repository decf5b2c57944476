"""Shared helpers of operators: attribute records, shape rules, exact numpy arithmetic, calls.

In: types, attributes and arrays of one operator. Out: types, arrays, `Call` nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any as AnyValue

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import TypeCheckError
from relay_hw.ir.dims import dim_add, dim_floordiv, dim_mul
from relay_hw.ir.expr import Call, Constant, Expr, Op, Solver, Trait, TypeRelation
from relay_hw.ir.types import ANY, Any, Dim, IncompleteType, TensorType, TupleType, Type, TypeVar

Array = NDArray[AnyValue]
Ints = int | Sequence[int]

# Traits with the traits that they imply.
EFFECT = frozenset({Trait.EFFECT})
KEEPS_SCALE = frozenset({Trait.KEEPS_SCALE})
MOVES = KEEPS_SCALE | {Trait.MOVES}
PERMUTES = MOVES | {Trait.PERMUTES}
RESHAPES = PERMUTES | {Trait.RESHAPES}
KEEPS_AXES = frozenset({Trait.KEEPS_AXES})
MARK = KEEPS_AXES | {Trait.MARK}
ELEMENTWISE = KEEPS_AXES | {Trait.ELEMENTWISE}
ALONG_AXIS = KEEPS_AXES | {Trait.ALONG_AXIS}
ON_CHANNELS = KEEPS_AXES | {Trait.ON_CHANNELS}
REDUCES = frozenset({Trait.REDUCES})
POOLS = frozenset({Trait.POOLS})
ANCHOR = frozenset({Trait.ANCHOR})


def freeze(value: AnyValue) -> AnyValue:
    """Convert lists to tuples and numpy scalars to Python numbers, so that attributes compare and hash by value."""
    if isinstance(value, (list, tuple)):
        return tuple(freeze(item) for item in value)
    return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True, slots=True)
class Attrs:
    """Base of the attribute records. An empty `*dtype` means the same as None: the input's element type."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name.endswith("dtype"):
                value = None if value in ("", None) else str(value)
            object.__setattr__(self, field.name, freeze(value))

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


def ints(value: Ints | None) -> tuple[int, ...] | None:
    """One integer or several as a tuple; None stays."""
    if value is None:
        return None
    return tuple(int(item) for item in value) if isinstance(value, (list, tuple, np.ndarray)) else (int(value),)  # type: ignore[arg-type]


def spread(value: Ints, count: int) -> tuple[int, ...]:
    """`count` integers from one or from `count` of them."""
    given = ints(value) or ()
    return given * count if len(given) == 1 else given


def show(ty: Type) -> str:
    """A type as text for messages."""
    match ty:
        case TensorType():
            return f"Tensor[{show_shape(ty.shape)}, {ty.dtype}]"
        case TupleType():
            return f"({', '.join(show(item) for item in ty.fields)})"
        case _:
            return str(ty)


def show_shape(shape: Sequence[Dim]) -> str:
    """A shape as text for messages."""
    inner = ", ".join(str(getattr(dim, "name", dim)) for dim in shape)
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


def tensor(name: str, types: Sequence[Type], index: int) -> TensorType | None:
    """Argument `index` of operator `name`: None while unknown. Raises TypeCheckError if it is not a tensor."""
    if index >= len(types):
        raise TypeCheckError(f"{name} must get at least {index + 1} arguments, not {len(types)}")
    ty = types[index]
    if isinstance(ty, TensorType):
        return ty
    if isinstance(ty, (IncompleteType, TypeVar)):
        return None
    raise TypeCheckError(f"argument {index + 1} of {name} must be a tensor, not {show(ty)}")


def tensors(name: str, types: Sequence[Type], count: int) -> list[TensorType] | None:
    """The first `count` arguments, or None while one is unknown."""
    if len(types) != count:
        raise TypeCheckError(f"{name} must get {count} argument{'s' * (count != 1)}, not {len(types)}")
    found = [tensor(name, types, index) for index in range(count)]
    known = [ty for ty in found if ty is not None]
    return known if len(known) == count else None


def tensor_tuple(name: str, types: Sequence[Type], index: int = 0) -> list[TensorType] | None:
    """The tensors of a tuple argument, or None while one is unknown."""
    ty = types[index]
    if isinstance(ty, (IncompleteType, TypeVar)):
        return None
    if not isinstance(ty, TupleType):
        raise TypeCheckError(f"argument {index + 1} of {name} must be a tuple of tensors, not {show(ty)}")
    found = [tensor(name, ty.fields, position) for position in range(len(ty.fields))]
    known = [item for item in found if item is not None]
    return known if len(known) == len(found) else None


Rule = Callable[..., Type]


def rule(name: str, count: int) -> Callable[[Rule], TypeRelation]:
    """Turn `(attrs, *tensors) -> Type` into a relation that waits until all `count` arguments are known."""

    def wrap(function: Rule) -> TypeRelation:
        def relation(types: Sequence[Type], attrs: AnyValue, solver: Solver) -> Type | None:
            known = tensors(name, types, count)
            return None if known is None else function(attrs, *known)

        return relation

    return wrap


def static(dim: Dim) -> bool:
    """Whether the dimension is a number."""
    return isinstance(dim, int)


def same_dim(left: Dim, right: Dim) -> bool:
    """Whether both can be the same size."""
    return (
        left is right
        or left == right
        or isinstance(left, Any)
        or isinstance(right, Any)
        or not (static(left) and static(right))
    )


def broadcast_shapes(name: str, shapes: Sequence[Sequence[Dim]]) -> tuple[Dim, ...]:
    """The common shape, aligned at the right. Raises TypeCheckError if there is none."""
    rank = max(len(shape) for shape in shapes)
    result: list[Dim] = []
    for position in range(-rank, 0):
        dims = [shape[position] for shape in shapes if -position <= len(shape)]
        result.append(_broadcast_dim(name, dims, shapes))
    return tuple(result)


def _broadcast_dim(name: str, dims: Sequence[Dim], shapes: Sequence[Sequence[Dim]]) -> Dim:
    wide = [dim for dim in dims if dim != 1]
    numbers = {dim for dim in wide if isinstance(dim, int)}
    if len(numbers) > 1:
        listed = " and ".join(show_shape(shape) for shape in shapes)
        raise TypeCheckError(f"the shapes of {name}'s arguments must broadcast, not {listed}")
    if numbers:
        return numbers.pop()
    if not wide:
        return 1
    return wide[0] if all(dim == wide[0] for dim in wide) else ANY


def same_dtype(name: str, *types: TensorType) -> str:
    """The one element type of the arguments. Raises TypeCheckError if they differ."""
    dtypes = [ty.dtype for ty in types]
    if len(set(dtypes)) > 1:
        listed = " and ".join(map(str, dtypes))
        raise TypeCheckError(f"the element types of {name}'s arguments must be equal, not {listed}")
    return dtypes[0]


def check_axis(name: str, axis: int, rank: int) -> int:
    """`axis` counted from the front. Raises TypeCheckError if it is outside."""
    if not -rank <= axis < rank:
        raise TypeCheckError(f"the axis of {name} must be in [{-rank}, {rank}), not {axis}")
    return axis % rank


def check_axes(name: str, axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """All axes counted from the front, each once."""
    found = tuple(check_axis(name, axis, rank) for axis in axes)
    if len(set(found)) != len(found):
        raise TypeCheckError(f"the axes of {name} must differ, not {tuple(axes)}")
    return found


def product(dims: Sequence[Dim]) -> Dim:
    """The product; ANY if a factor is unknown."""
    total = 1
    for dim in dims:
        if not isinstance(dim, int):
            return dim_mul(*dims)
        total *= dim
    return total


@dataclass(frozen=True, slots=True)
class KnownTypes:
    """The solver of relations whose arguments are all known. `agree` raises TypeCheckError for a type that is found
    where another one is wanted, in this order."""

    agree: Callable[[Type, Type], None]

    def unify(self, left: Type, right: Type) -> Type:
        """See `Solver`."""
        self.agree(left, right)
        return right

    def resolve(self, ty: Type) -> Type:
        """See `Solver`."""
        return ty


def expect(name: str, solver: Solver, what: str, given: Type, wanted: TensorType) -> None:
    """Unify a parameter's type with the one that the other arguments need. Raises TypeCheckError if they clash."""
    if isinstance(given, TensorType):
        fits = (
            given.rank == wanted.rank and all(map(same_dim, given.shape, wanted.shape)) and given.dtype == wanted.dtype
        )
        if not fits:
            raise TypeCheckError(f"the {what} of {name} must be {show(wanted)}, not {show(given)}")
    solver.unify(given, wanted)


def out_type(result: Type) -> TensorType:
    """A result type that is known to be a tensor's."""
    assert isinstance(result, TensorType)
    return result


def call(op: Op, args: Sequence[Expr], attrs: AnyValue = None) -> Call:
    """A call of `op`."""
    return Call(op, tuple(args), attrs)


def const(value: AnyValue, dtype: str | None = None) -> Constant:
    """A constant; Python numbers become int32, float32 or bool as in Relay, float64 arrays keep their type."""
    if dtype is None and not isinstance(value, (np.ndarray, np.generic)):
        guess = np.asarray(value)
        dtype = {"int64": "int32", "float64": "float32"}.get(str(guess.dtype), str(guess.dtype))
    return Constant(np.array(value, dtype=dtype))


def as_expr(value: AnyValue, dtype: str | None = None) -> Expr:
    """Convert numbers and arrays to constants; expressions stay."""
    return value if isinstance(value, Expr) else const(value, dtype)


def round_half_away(value: Array) -> Array:
    """Round to the nearest integer, ties away from zero, exactly, in the array's float type."""
    whole = np.trunc(value)
    return np.where(np.abs(value - whole) >= 0.5, whole + np.sign(value), whole).astype(value.dtype)


def divide_trunc(a: Array, b: Array) -> Array:
    """Integer division toward zero; b has no zeros."""
    quotient = np.floor_divide(a, b)
    inexact = (a - quotient * b != 0) & ((a < 0) != (b < 0))
    return quotient + inexact.astype(quotient.dtype)


def magnitude(value: Array) -> int:
    """The largest absolute value of an integer array."""
    return max(int(value.max()), -int(value.min())) if value.size else 0


def sum_dtype(a: Array, b: Array, depth: int, out_dtype: str) -> str:
    """The element type in which sums of `depth` products a*b are exact (integers), or as precise as asked (floats).

    Float sums of integers are exact as long as no partial sum can pass the significand; int64 wraps modulo 2**64,
    which later wraps to any shorter type without a difference.
    """
    if a.dtype.kind == "f" or b.dtype.kind == "f":
        return "float64" if "float64" in (out_dtype, str(a.dtype)) else "float32"
    bound = depth * magnitude(a) * magnitude(b)
    return "float32" if bound < 2**24 else "float64" if bound < 2**53 else "int64"


def narrow(value: Array, dtype: str) -> Array:
    """Exact sums in the wanted element type, integers with wrap-around."""
    if value.dtype.kind == "f" and np.dtype(dtype).kind in "iu":
        value = value.astype(np.int64)
    return value.astype(dtype, copy=False)


def matmul(a: Array, b: Array, out_dtype: str) -> Array:
    """a @ b; integers exactly, with wrap-around to `out_dtype`."""
    work = sum_dtype(a, b, a.shape[-1], out_dtype)
    return narrow(np.matmul(a.astype(work, copy=False), b.astype(work, copy=False)), out_dtype)


def window_size(size: Dim, kernel: int, stride: int, before: int, after: int, dilation: int = 1) -> Dim:
    """The number of windows: (size + pads - extent) // stride + 1."""
    extent = before + after - (kernel - 1) * dilation - 1
    if not isinstance(size, int):
        return dim_add(dim_floordiv(dim_add(size, extent), stride), 1)
    return (size + extent) // stride + 1


def taps(
    x: Array, kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int], out: Sequence[int]
) -> Iterator[tuple[int, Array]]:
    """For every kernel position (row-major), the view of the last axes of padded `x` that it multiplies."""
    lead = (slice(None),) * (x.ndim - len(kernel))
    for number, position in enumerate(np.ndindex(*kernel)):
        spans = zip(position, strides, dilation, out, strict=True)
        yield number, x[lead + tuple(slice(k * d, k * d + (o - 1) * s + 1, s) for k, s, d, o in spans)]


def pad_spatial(x: Array, before: Sequence[int], after: Sequence[int], value: AnyValue = 0) -> Array:
    """Pad the last axes of `x` with `value`."""
    if not any(before) and not any(after):
        return x
    lead = x.ndim - len(before)
    shape = x.shape[:lead] + tuple(b + d + a for b, d, a in zip(before, x.shape[lead:], after, strict=True))
    padded = np.full(shape, value, x.dtype)
    padded[(slice(None),) * lead + tuple(slice(b, b + d) for b, d in zip(before, x.shape[lead:], strict=True))] = x
    return padded


def permutation(name: str, source: str, target: str) -> tuple[int, ...]:
    """The axes that bring layout `source` to `target`. Raises TypeCheckError unless both have the same letters."""
    if sorted(source) != sorted(target):
        raise TypeCheckError(f"a layout of {name} must be a permutation of {target}, not {source}")
    return tuple(source.index(letter) for letter in target)


def split_padding(name: str, padding: Sequence[int], count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(before, after) of `count` axes from 1, `count` or 2*count numbers."""
    if len(padding) == 1:
        return tuple(padding) * count, tuple(padding) * count
    if len(padding) == count:
        return tuple(padding), tuple(padding)
    if len(padding) == 2 * count:
        return tuple(padding[:count]), tuple(padding[count:])
    raise TypeCheckError(f"the padding of {name} must have 1, {count} or {2 * count} numbers, not {len(padding)}")


def full_padding(padding: Ints, count: int) -> tuple[int, ...]:
    """A builder's padding in 2*count form; wrong lengths are left for the type relation to refuse."""
    given = ints(padding) or ()
    if len(given) == 1:
        return given * (2 * count)
    return given * 2 if len(given) == count else given
