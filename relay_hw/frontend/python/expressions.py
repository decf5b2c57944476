"""Translates Python expressions to Relay. In: a function's syntax trees. Out: symbols, bound in the current block."""

from __future__ import annotations

import ast
import builtins
import inspect
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from relay_hw.errors import RelayHwError, TypeCheckError, UnsupportedError
from relay_hw.frontend.python.annotations import type_of_annotation
from relay_hw.frontend.python.emit import Emitter, is_list, item_type
from relay_hw.frontend.python.source import Source, assigned_names
from relay_hw.frontend.python.values import EmptyList, Env, LetBlock, Static, Symbol, Value, fields_of
from relay_hw.ir.expr import If
from relay_hw.ir.types import TensorType, TupleType, Type, scalar_type
from relay_hw.op import (
    add,
    cast,
    divide,
    equal,
    floor_divide,
    floor_mod,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    multiply,
    negative,
    not_equal,
    power,
    subtract,
    take,
)
from relay_hw.op.nn import matmul

Binary = Callable[[Any, Any], Any]

_ARITHMETIC: Final[Mapping[type[ast.operator], tuple[Binary, Binary]]] = {
    ast.Add: (add, operator.add),
    ast.Sub: (subtract, operator.sub),
    ast.Mult: (multiply, operator.mul),
    ast.Div: (divide, operator.truediv),
    ast.FloorDiv: (floor_divide, operator.floordiv),
    ast.Mod: (floor_mod, operator.mod),
    ast.Pow: (power, operator.pow),
    ast.MatMult: (matmul, operator.matmul),
}
_COMPARISONS: Final[Mapping[type[ast.cmpop], tuple[Binary, Binary]]] = {
    ast.Eq: (equal, operator.eq),
    ast.NotEq: (not_equal, operator.ne),
    ast.Lt: (less, operator.lt),
    ast.LtE: (less_equal, operator.le),
    ast.Gt: (greater, operator.gt),
    ast.GtE: (greater_equal, operator.ge),
}
BOOL = scalar_type("bool")
INT = scalar_type("int32")
REAL = scalar_type("float32")


class Expressions(Emitter, ABC):
    """Translates expressions; subclasses translate statements and the library's special functions."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source
        self._outside = inspect.getclosurevars(source.function)
        # Names that the function assigns somewhere: Python looks for them nowhere else.
        self.own_names: frozenset[str] = frozenset(assigned_names(source.tree.body))

    # Names

    def outside(self, name: str, node: ast.AST) -> Symbol:
        """The value of a global or captured name. Raises UnsupportedError for an unknown one."""
        if name in self.own_names:
            self.source.refuse(node, f"variable {name} must be assigned before it is used, on every path to here")
        function = self.source.function
        for space in (self._outside.nonlocals, getattr(function, "__globals__", {}), vars(builtins)):
            if name in space:
                return Static(space[name])
        self.source.refuse(node, f"name {name} must be defined before it is used")

    def expr(self, node: ast.expr, env: Env) -> Symbol:
        """The symbol of an expression. Type errors get the span of the innermost expression."""
        outer, self.span = self.span, self.source.span(node)
        try:
            return self._expr(node, env)
        except RelayHwError as error:
            raise error if error.detail else self.source.place(error, node) from None
        finally:
            self.span = outer

    def relay(self, node: ast.expr, env: Env, like: Type | None = None) -> Value:
        """The value of an expression, with the element types of `like` where Python leaves them open."""
        if isinstance(node, ast.Tuple) and len(fields_of(like)) == len(node.elts) > 0:
            return self.tuple([self.relay(part, env, ty) for part, ty in zip(node.elts, fields_of(like), strict=True)])
        symbol = self.expr(node, env)
        return self._placed(node, lambda: self.value(symbol, like))

    def _placed(self, node: ast.AST, make: Callable[[], Any]) -> Any:
        try:
            return make()
        except RelayHwError as error:
            raise error if error.detail else self.source.place(error, node) from None

    def _expr(self, node: ast.expr, env: Env) -> Symbol:
        match node:
            case ast.Constant(value=value):
                return Static(value)
            case ast.Name(id=name):
                return env[name] if name in env else self.outside(name, node)
            case ast.Attribute(value=inner, attr=attr):
                return self._attribute(node, self.expr(inner, env), attr)
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(type(op), self.expr(left, env), self.expr(right, env))
            case ast.UnaryOp(op=op, operand=operand):
                return self._unary(op, self.expr(operand, env))
            case ast.BoolOp(op=op, values=values):
                return self._connected(isinstance(op, ast.And), values, env)
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self._compared(left, ops, others, env)
            case ast.IfExp(test=test, body=then, orelse=other):
                return self.choose(self.expr(test, env), lambda: self.expr(then, env), lambda: self.expr(other, env))
            case ast.Tuple(elts=parts):
                return self._display([self.expr(part, env) for part in parts], tuple)
            case ast.List(elts=parts):
                return self._display([self.expr(part, env) for part in parts], list)
            case ast.Subscript(value=inner, slice=index):
                return self._item(node, self.expr(inner, env), index, env)
            case ast.Lambda():
                return self._lambda(node, env)
            case ast.Call():
                return self.call_of(node, env)
            case _:
                self.source.refuse(node, f"{_kind(node)} must not be used in a relay function")

    def _attribute(self, node: ast.Attribute, value: Symbol, attr: str) -> Symbol:
        if isinstance(value, Value) and isinstance(value.type, TensorType) and attr in ("shape", "dtype", "ndim"):
            ty = value.type
            return Static({"shape": ty.shape, "dtype": ty.dtype, "ndim": ty.rank}[attr])
        if not isinstance(value, Static):
            self.source.refuse(node, f"attribute of a relay value must be shape, dtype or ndim, not {attr}")
        if not hasattr(value.value, attr):
            self.source.refuse(node, f"{ast.unparse(node.value)} must have the attribute {attr}")
        return Static(getattr(value.value, attr))

    # Operators

    def binary(self, op: type[ast.operator], left: Symbol, right: Symbol) -> Symbol:
        """Arithmetic of two symbols; two Python numbers are computed now; lists are concatenated."""
        relay_op, python_op = _ARITHMETIC.get(op, (None, None))
        if relay_op is None or python_op is None:
            raise UnsupportedError(f"operator {op.__name__} must not be used in a relay function")
        if isinstance(left, Static) and isinstance(right, Static):
            return Static(python_op(left.value, right.value))
        if op is ast.Add and any(isinstance(one, Value) and is_list(one.type) for one in (left, right)):
            return self._joined(left, right)
        a, b = self.pair(left, right)
        if op is ast.Div and isinstance(a.type, TensorType) and not a.type.dtype.startswith("float"):
            a, b = (self.graph(cast(one.expr, "float32")) for one in (a, b))
        return self.graph(relay_op(a.expr, b.expr))

    def pair(self, left: Symbol, right: Symbol) -> tuple[Value, Value]:
        """Two operands; a Python number takes the element type of the other side."""
        a = self.value(left, right.type if isinstance(right, Value) else None)
        b = self.value(right, a.type)
        a = self.widened(a, b.type)
        # An integer number beside real ones counts as real.
        return self._raised(a, b), self._raised(b, a)

    def _raised(self, one: Value, other: Value) -> Value:
        if one.type != INT or not isinstance(other.type, TensorType) or not other.type.dtype.startswith("float"):
            return one
        return self.graph(cast(one.expr, other.type.dtype))

    def _joined(self, left: Symbol, right: Symbol) -> Value:
        a = self.value(left, right.type if isinstance(right, Value) else None)
        b = self.value(right, a.type)
        if a.type != b.type:
            raise TypeCheckError(f"lists must have one type to be joined, not {a.type} and {b.type}")
        return self.prelude("concat", (a, b), a.type, (item_type(a.type),))

    def _unary(self, op: ast.unaryop, operand: Symbol) -> Symbol:
        if isinstance(operand, Static):
            python = {ast.USub: operator.neg, ast.Not: operator.not_, ast.UAdd: operator.pos, ast.Invert: operator.inv}
            return Static(python[type(op)](operand.value))
        value = self.value(operand)
        match op:
            case ast.USub():
                return self.graph(negative(value.expr))
            case ast.Not():
                return self.graph(logical_not(self.truth(value).expr))
            case ast.UAdd():
                return value
            case _:
                raise UnsupportedError("operator ~ must not be used in a relay function")

    def _connected(self, is_and: bool, nodes: Sequence[ast.expr], env: Env) -> Symbol:
        """`and`, `or`, with short-circuit evaluation."""
        first = self.expr(nodes[0], env)
        if len(nodes) == 1:
            return first
        if isinstance(first, Static):
            return self._connected(is_and, nodes[1:], env) if bool(first.value) == is_and else first

        def rest() -> Symbol:
            symbol = self._connected(is_and, nodes[1:], env)
            return symbol if isinstance(symbol, Static) else self._decided(symbol)

        known = Static(not is_and)
        return self.choose(self._decided(first), *((rest, lambda: known) if is_and else (lambda: known, rest)))

    def _decided(self, symbol: Symbol) -> Value:
        """Check for a truth value: for others, Python's `and` and `or` give the value itself."""
        value = self.value(symbol)
        if value.type != BOOL:
            raise TypeCheckError(f"operands of and, or must be truth values such as x > 0, not {value.type}")
        return value

    def _compared(self, left: ast.expr, ops: Sequence[ast.cmpop], others: Sequence[ast.expr], env: Env) -> Symbol:
        result: Symbol | None = None
        a = self.expr(left, env)
        for op, other in zip(ops, others, strict=True):
            b = self.expr(other, env)
            found = self._comparison(op, a, b)
            result = found if result is None else self._both(result, found)
            a = b
        assert result is not None
        return result

    def _comparison(self, op: ast.cmpop, left: Symbol, right: Symbol) -> Symbol:
        if type(op) not in _COMPARISONS:
            raise UnsupportedError(f"comparison {type(op).__name__} must not be used in a relay function")
        relay_op, python_op = _COMPARISONS[type(op)]
        if isinstance(left, Static) and isinstance(right, Static):
            return Static(python_op(left.value, right.value))
        a, b = self.pair(left, right)
        return self.graph(relay_op(a.expr, b.expr))

    def _both(self, left: Symbol, right: Symbol) -> Symbol:
        return self.graph(logical_and(self.value(left).expr, self.value(right).expr))

    def choose(self, test: Symbol, then: Callable[[], Symbol], other: Callable[[], Symbol]) -> Symbol:
        """`then` or `other`; the other one is not evaluated."""
        if isinstance(test, Static):
            return then() if test.value else other()
        cond = self.truth(self.value(test))
        (block, a), (other_block, b) = self.aside(then), self.aside(other)
        merged = self.merge([(block, a), (other_block, b)], "branches of a choice")
        bodies = [one.close(value.expr) for one, value in merged]
        return self.emit(If(cond.expr, *bodies), merged[0][1].type, merged[0][1].model)

    def aside(self, make: Callable[[], Symbol]) -> tuple[LetBlock, Symbol]:
        """The result of `make`, and a separate block with its lets."""
        outer, self.block = self.block, LetBlock()
        symbol = make()
        block, self.block = self.block, outer
        return block, symbol

    def merge(
        self, branches: Sequence[tuple[LetBlock, Symbol]], what: str, before: Symbol | None = None
    ) -> list[tuple[LetBlock, Value]]:
        """Merge values of branches to one type; `before`: the value that they replace. Raises TypeCheckError."""
        symbols = [symbol for _, symbol in branches]
        known = [symbol.type for symbol in (*symbols, before) if isinstance(symbol, Value)]
        is_real = any(isinstance(symbol, Static) and isinstance(symbol.value, float) for symbol in symbols)
        # float64 where one of several floats is; a float beside Python's integers.
        floats = [ty for ty in known if isinstance(ty, TensorType) and ty.dtype.startswith("float")]
        like = next((ty for ty in floats if ty.dtype == "float64"), None) or next(iter([*floats, *known]), None)
        like = like or (REAL if is_real else None)
        found: list[tuple[LetBlock, Value]] = []
        outer = self.block
        for block, symbol in branches:
            self.block = block
            value = self.value(symbol, like)
            like = like or value.type
            found.append((block, self._raised(value, Value(value.expr, like))))
        self.block = outer
        first = found[0][1]
        for _, value in found[1:]:
            if value.type != first.type:
                raise TypeCheckError(f"{what} must have one type, not {first.type} and {value.type}")
        return found

    # Structures

    def _display(self, parts: Sequence[Symbol], kind: type) -> Symbol:
        if all(isinstance(part, Static) for part in parts):
            known = [part.value for part in parts if isinstance(part, Static)]
            return EmptyList() if kind is list and not known else Static(kind(known))
        like = next((part.type for part in parts if isinstance(part, Value)), None)
        values = [self.value(part, like if kind is list else None) for part in parts]
        return self.list(values) if kind is list else self.tuple(values)

    def _item(self, node: ast.Subscript, value: Symbol, index: ast.expr, env: Env) -> Symbol:
        if isinstance(index, ast.Slice):
            self.source.refuse(index, "slice must not be used in a relay function: use relay.strided_slice")
        place = self.expr(index, env)
        if isinstance(value, Static) and isinstance(place, Static):
            return Static(value.value[place.value])
        whole = self.value(value)
        if isinstance(whole.type, TupleType):
            count = len(whole.type.fields)
            if not isinstance(place, Static) or not isinstance(place.value, int) or not -count <= place.value < count:
                self.source.refuse(index, f"index of a tuple of {count} must be a number in [{-count}, {count})")
            return self.item(whole, place.value % count)
        if is_list(whole.type):
            inner = item_type(whole.type)
            return self.prelude("nth", (whole, self.value(place)), inner, (inner,))
        if not isinstance(whole.type, TensorType):
            self.source.refuse(node, f"value before [ ] must be a tuple, list or tensor, not {whole.type}")
        if isinstance(place, Static) and isinstance(place.value, int) and place.value < 0:
            place = Static(place.value + whole.type.static_shape[0])
        return self.graph(take(whole.expr, self.value(place).expr, axis=0))

    def _lambda(self, node: ast.Lambda, env: Env) -> Symbol:
        self.source.refuse(node, "lambda must be a function with annotations: write it with def")

    # Calls

    @abstractmethod
    def call_of(self, node: ast.Call, env: Env) -> Symbol:
        """A call: of the library, of a decorated function, of a function value, of a builtin."""

    def annotation(self, node: ast.expr, env: Env) -> Any:
        """The Python object of an annotation."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node = ast.parse(node.value, mode="eval").body
        space = {**getattr(self.source.function, "__globals__", {}), **self._outside.nonlocals}
        try:
            return eval(compile(ast.Expression(node), "<annotation>", "eval"), space)
        except (NameError, AttributeError, TypeError) as error:
            self.source.refuse(node, f"annotation {ast.unparse(node)} must be a type: {error}")

    def annotated(self, node: ast.expr, env: Env) -> Type:
        """The Relay type of an annotation. Raises UnsupportedError."""
        ty = type_of_annotation(self.annotation(node, env))
        if ty is None:
            self.source.refuse(
                node,
                f"annotation must be Float, Int, Bool, Tensor[...], tuple[...] or list[...], not {ast.unparse(node)}",
            )
        return ty


def _kind(node: ast.AST) -> str:
    """Python's name of a syntax node."""
    names = {
        "ListComp": "list comprehension", "DictComp": "dict comprehension", "SetComp": "set comprehension",
        "GeneratorExp": "generator", "Dict": "dict", "Set": "set", "JoinedStr": "f-string", "NamedExpr": ":=",
        "Await": "await", "Yield": "yield", "YieldFrom": "yield", "Starred": "*", "Slice": "slice",
    }  # fmt: skip
    return names.get(type(node).__name__, type(node).__name__.lower())
