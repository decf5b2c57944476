"""The interface of Relax converters: a Relax call with its arguments and types.

In: a call and its arguments in Relay. Out: numbers, shapes and types as Python values. TVM's objects are read by their
fields, so that nothing here imports TVM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relay_hw.errors import UnsupportedError
from relay_hw.ir.expr import Constant, Expr, Tuple
from relay_hw.ir.types import ANY, Dim, TensorType, TupleType, Type

FLOATS = ("float16", "float32", "float64", "bfloat16")


class Refusal(Exception):
    """The reason why a call cannot be converted; the reader collects them."""


@dataclass(frozen=True, slots=True)
class Site:
    """`raw`: the arguments as Relax has them; `args`: as Relay, None for shapes and numbers."""

    call: Any
    raw: Sequence[Any]
    args: Sequence[Expr | None]

    def __getitem__(self, index: int) -> Expr:
        """An argument that is a value."""
        value = self.args[index]
        if value is None:
            raise Refusal(f"argument {index} must be a value")
        return value

    def attr(self, name: str) -> Any:
        """An attribute as a Python value: a number, text, a list of them or None."""
        return plain(getattr(self.call.attrs, name))

    def ints(self, name: str) -> tuple[int, ...]:
        """An attribute that is a list of integers."""
        return tuple(int(value) for value in self.attr(name))

    def type(self, index: int) -> TensorType:
        """The type of an argument that is a tensor."""
        found = read_type(self.raw[index].ty)
        if not isinstance(found, TensorType):
            raise Refusal(f"argument {index} must be a tensor, not {found}")
        return found

    def shape(self, index: int) -> tuple[int, ...]:
        """The shape of an argument. Raises Refusal if it is dynamic."""
        try:
            return self.type(index).static_shape
        except ValueError:
            raise Refusal(f"the shape of argument {index} must be known") from None

    def rank(self, index: int) -> int:
        """Number of axes of an argument."""
        return len(self.type(index).shape)

    def is_float(self, index: int) -> bool:
        """Whether an argument holds floating-point numbers."""
        return self.type(index).dtype in FLOATS

    @property
    def result(self) -> TensorType:
        """The type of the call's value, which must be a tensor."""
        found = read_type(self.call.ty)
        if not isinstance(found, TensorType):
            raise Refusal(f"the result must be a tensor, not {found}")
        return found

    def sizes(self, index: int) -> tuple[int, ...]:
        """An argument that is a shape or a tuple of integers. Raises Refusal if one is unknown."""
        raw = self.raw[index]
        values = raw.fields if hasattr(raw, "fields") else raw.values if hasattr(raw, "values") else None
        if values is None:
            raise Refusal(f"argument {index} must be a shape that is written out")
        return tuple(self._known(value) for value in values)

    @staticmethod
    def _known(value: Any) -> int:
        found = plain(value)
        if not isinstance(found, int):
            raise Refusal(f"a size must be known, not {value}")
        return found

    def number(self, index: int) -> float:
        """An argument that is a number, literal or constant."""
        value = self.args[index]
        if isinstance(value, Constant) and value.data.size == 1:
            return value.data.item()
        found = plain(self.raw[index])
        if not isinstance(found, (int, float)):
            raise Refusal(f"argument {index} must be a number that is known")
        return found


Converter = Callable[[Site], Expr]
Table = Mapping[str, Converter]


def plain(value: Any) -> Any:
    """A TVM number, string or array as a Python value; anything else unchanged."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return str(value)
    kind = type(value).__name__
    if kind in ("IntImm", "FloatImm", "PrimValue", "StringImm", "DataTypeImm"):
        return plain(value.value)
    if kind in ("Array", "List", "tuple", "list", "ShapeTuple", "Shape"):
        return [plain(item) for item in value]
    return str(value) if kind in ("DataType", "dtype", "PrimType") else value


def read_type(ty: Any) -> Type:
    """Relay's form of a Relax type. Raises UnsupportedError for one that Relay lacks."""
    match type(ty).__name__:
        case "TensorType":
            return TensorType(_dims(ty), str(ty.dtype))
        case "TupleType":
            return TupleType([read_type(field) for field in ty.fields])
        case _:
            raise UnsupportedError(f"a Relax value must be a tensor or a tuple to become Relay, not {ty}")


def _dims(ty: Any) -> list[Dim]:
    shape = ty.shape
    if shape is not None and hasattr(shape, "values"):
        shape = shape.values
    if shape is None or not hasattr(shape, "__iter__"):
        if int(ty.ndim) < 0:
            raise UnsupportedError("a Relax tensor must have a known number of axes to become Relay")
        return [ANY] * int(ty.ndim)
    sizes = [plain(size) for size in shape]
    return [size if isinstance(size, int) else ANY for size in sizes]


def fields_of(value: Expr, count: int) -> list[Expr]:
    """The fields of a tuple value."""
    from relay_hw.ir.expr import TupleGetItem

    return list(value.fields) if isinstance(value, Tuple) else [TupleGetItem(value, i) for i in range(count)]
