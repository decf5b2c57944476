"""Builds typed Relay for one function in A-normal form: each node gets its type and a name at once.

In: expressions made by the operators' builders. Out: values, bound in the current block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relay_hw.errors import TypeCheckError, UnsupportedError
from relay_hw.frontend.python.annotations import LIST, list_of
from relay_hw.frontend.python.values import EmptyList, LetBlock, Static, Symbol, Value, constant, fields_of
from relay_hw.ir.expr import Call, Constant, Constructor, Expr, GlobalVar, Op, Tuple, TupleGetItem, Var
from relay_hw.ir.types import FuncType, TensorType, TupleType, Type, TypeCall
from relay_hw.ir.visit import copy_with, post_order
from relay_hw.op import cast
from relay_hw.prelude import load_library
from relay_hw.span import Span
from relay_hw.transform.graph import typed_call


class Emitter:
    """Emits the values of one function. `block`: where the next let goes; `span`: the span of its node."""

    def __init__(self) -> None:
        self.block = LetBlock()
        self.span: Span | None = None
        self.site = "x"
        constructors = load_library("prelude").types["List"].constructors
        self._cons, self._nil = constructors

    def emit(self, expr: Expr, ty: Type, model: Any = None) -> Value:
        """A let for one node of type `ty`."""
        return Value(self.block.emit(_at(expr, self.span), ty, self.site), ty, model)

    def graph(self, expr: Expr) -> Value:
        """Lets for a graph of operator calls, tuples and projections on values. Raises TypeCheckError."""
        done: dict[Expr, Value] = {}
        for node in post_order(expr):
            done[node] = self._node(node, done)
        return done[expr]

    def _node(self, node: Expr, done: dict[Expr, Value]) -> Value:
        match node:
            case Op():
                return Value(node, TupleType(()))
            case Constant() if node.checked_type is None:
                return constant(node.data, str(node.data.dtype))
            case Var() | Constant():
                return Value(node, node.type)
            case Call(op=Op() as op, args=args):
                call = typed_call(op, [done[arg].expr for arg in args], node.attrs, self.span)
                return self.emit(call, call.type)
            case Tuple(fields=parts):
                return self.tuple([done[part] for part in parts])
            case TupleGetItem(tuple_value=value, index=index):
                return self.item(done[value], index)
            case _:
                raise UnsupportedError(f"an operator's builder must give calls and tuples, not {node!r}")

    def tuple(self, parts: Sequence[Value]) -> Value:
        """A tuple."""
        ty = TupleType([part.type for part in parts])
        return self.emit(Tuple([part.expr for part in parts], checked_type=ty), ty)

    def item(self, value: Value, index: int) -> Value:
        """A field of a tuple."""
        ty = fields_of(value.type)[index]
        return self.emit(TupleGetItem(value.expr, index, checked_type=ty), ty)

    def call(self, function: Expr, args: Sequence[Value], ret: Type, type_args: Sequence[Type] = ()) -> Value:
        """A call of a function whose result has type `ret`."""
        return self.emit(Call(function, [arg.expr for arg in args], type_args=type_args), ret)

    # Lists

    def nil(self, item: Type) -> Value:
        """The empty list of `item`s."""
        return self.emit(Call(self._nil, (), type_args=(item,)), list_of(item))

    def cons(self, head: Value, tail: Value) -> Value:
        """A list with one more element in front."""
        return self.emit(Call(self._cons, (head.expr, tail.expr), type_args=(head.type,)), tail.type)

    def list(self, items: Sequence[Value]) -> Value:
        """A list of at least one element. Raises TypeCheckError unless all have one type."""
        for item in items[1:]:
            if item.type != items[0].type:
                raise TypeCheckError(f"elements of a list must have one type, not {items[0].type} and {item.type}")
        result = self.nil(items[0].type)
        for item in reversed(items):
            result = self.cons(item, result)
        return result

    def append(self, items: Value, item: Value) -> Value:
        """The list with one more element at the end."""
        inner = item_type(items.type)
        if inner != item.type:
            raise TypeCheckError(f"elements of a list must have one type, not {inner} and {item.type}")
        last = self.cons(item, self.nil(item.type))
        return self.prelude("concat", (items, last), items.type, (item.type,))

    def prelude(self, name: str, args: Sequence[Value], ret: Type, type_args: Sequence[Type]) -> Value:
        """A call of a function of the standard library."""
        return self.call(GlobalVar(name), args, ret, type_args)

    @property
    def constructors(self) -> tuple[Constructor, Constructor]:
        """Cons and Nil."""
        return self._cons, self._nil

    # Python objects

    def value(self, symbol: Symbol, like: Type | None = None) -> Value:
        """A symbol as a Relay value; numbers take the element type of `like`. Raises UnsupportedError."""
        match symbol:
            case Value():
                return self.widened(symbol, like)
            case EmptyList():
                if isinstance(like, TypeCall) and like.func == LIST:
                    return self.nil(like.args[0])
                raise UnsupportedError("empty list must get an annotation such as xs: list[Float] = []")
            case Static(value=bool() | int() | float() as number):
                return self._number(number, like)
            case Static(value=tuple() as parts):
                return self.tuple([self.value(part if _is_symbol(part) else Static(part)) for part in parts])
            case Static(value=list() as parts) if parts:
                return self.list([self.value(part if _is_symbol(part) else Static(part)) for part in parts])
            case Static(value=array) if hasattr(array, "dtype") and hasattr(array, "shape"):
                return constant(array, str(array.dtype))
            case Static(value=None):
                return self.tuple([])
            case Static(value=other):
                raise UnsupportedError(f"value must be a tensor, number, tuple, list or function, not {_shown(other)}")

    def widened(self, value: Value, like: Type | None) -> Value:
        """Widen float32 to float64 if needed, as Python has only one float type."""
        if not isinstance(like, TensorType) or not isinstance(value.type, TensorType):
            return value
        if (value.type.dtype, like.dtype) != ("float32", "float64"):
            return value
        return self.graph(cast(value.expr, "float64"))

    def _number(self, number: float, like: Type | None) -> Value:
        if isinstance(like, TensorType) and like.dtype != "bool" and not isinstance(number, bool):
            is_float = like.dtype.startswith("float")
            if is_float or isinstance(number, int):
                return constant(number, like.dtype)
        return constant(number)

    def truth(self, value: Value) -> Value:
        """A condition; numbers other than 0 are true."""
        if not isinstance(value.type, TensorType) or value.type.rank:
            raise TypeCheckError(f"condition must be a number or a truth value, not {value.type}")
        return value if value.type.dtype == "bool" else self.graph(cast(value.expr, "bool"))


def item_type(ty: Type) -> Type:
    """The type of a list's elements."""
    assert isinstance(ty, TypeCall)
    return ty.args[0]


def is_list(ty: Type) -> bool:
    """Whether a type is that of lists."""
    return isinstance(ty, TypeCall) and ty.func == LIST


def is_function(ty: Type) -> bool:
    """Whether a type is that of functions."""
    return isinstance(ty, FuncType)


def _is_symbol(part: object) -> bool:
    return isinstance(part, (Value, Static, EmptyList))


def _shown(value: object) -> str:
    name = getattr(value, "__name__", None)
    return f"the {type(value).__name__} {name}" if name else repr(value)[:40]


def _at(expr: Expr, span: Span | None) -> Expr:
    return expr if span is None or expr.span is not None else copy_with(expr, span=span)
