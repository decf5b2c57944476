"""Python expressions as Relay. In: syntax trees of one function. Out: symbols, bound in the current block."""

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
from relay_hw.frontend.python.emit import Emitter, is_function, is_list, item_type
from relay_hw.frontend.python.library import Layer
from relay_hw.frontend.python.source import Source
from relay_hw.frontend.python.values import Block, EmptyList, Env, Static, Symbol, Value, fields_of
from relay_hw.ir.expr import Expr, If
from relay_hw.ir.types import FuncType, TensorType, TupleType, Type, scalar_type
from relay_hw.op import (
    abs as absolute,
)
from relay_hw.op import (
    add,
    cast,
    const,
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
    maximum,
    minimum,
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


class Expressions(Emitter, ABC):
    """Translates expressions; subclasses translate statements and the library's special functions."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source
        self._outside = inspect.getclosurevars(source.function)

    # Names

    def outside(self, name: str, node: ast.AST) -> Symbol:
        """What a name means around the function. Raises UnsupportedError for an unknown one."""
        function = self.source.function
        for space in (self._outside.nonlocals, getattr(function, "__globals__", {}), vars(builtins)):
            if name in space:
                return Static(space[name])
        self.source.refuse(node, f"name {name} must be defined before it is used")

    def expr(self, node: ast.expr, env: Env) -> Symbol:
        """The symbol of an expression. Errors of types get the place of the innermost expression."""
        outer, self.span = self.span, self.source.span(node)
        try:
            return self._expr(node, env)
        except RelayHwError as error:
            raise error if error.detail else self.source.place(error, node) from None
        finally:
            self.span = outer

    def relay(self, node: ast.expr, env: Env, like: Type | None = None) -> Value:
        """The value of an expression."""
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
        """Arithmetic of two symbols; of two Python numbers it happens now. Lists add up."""
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
        """`and`, `or`: what follows is evaluated only where it decides."""
        first = self.expr(nodes[0], env)
        if len(nodes) == 1:
            return first
        if isinstance(first, Static):
            return self._connected(is_and, nodes[1:], env) if bool(first.value) == is_and else first

        def rest() -> Symbol:
            symbol = self._connected(is_and, nodes[1:], env)
            return symbol if isinstance(symbol, Static) else self.truth(self.value(symbol))

        known = Static(not is_and)
        return self.choose(self.truth(self.value(first)), *((rest, lambda: known) if is_and else (lambda: known, rest)))

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

    def aside(self, make: Callable[[], Symbol]) -> tuple[Block, Symbol]:
        """What `make` gives, and a block of its own with the lets that it needs."""
        outer, self.block = self.block, Block()
        symbol = make()
        block, self.block = self.block, outer
        return block, symbol

    def merge(self, branches: Sequence[tuple[Block, Symbol]], what: str) -> list[tuple[Block, Value]]:
        """Values of one type from the ends of branches. Raises TypeCheckError."""
        like = next((symbol.type for _, symbol in branches if isinstance(symbol, Value)), None)
        found: list[tuple[Block, Value]] = []
        outer = self.block
        for block, symbol in branches:
            self.block = block
            found.append((block, self.value(symbol, like)))
            like = like or found[-1][1].type
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

    def call_of(self, node: ast.Call, env: Env) -> Symbol:
        """A call: of the library, of a decorated function, of a function value, of a builtin."""
        callee = self.expr(node.func, env)
        if any(isinstance(arg, ast.Starred) for arg in node.args) or any(kw.arg is None for kw in node.keywords):
            self.source.refuse(node, "arguments must be written one by one, not with *")
        if isinstance(callee, Value):
            return self._call_value(node, callee, env)
        if not isinstance(callee, Static):
            self.source.refuse(node, "an empty list must not be called")
        named = {kw.arg: kw.value for kw in node.keywords if kw.arg is not None}
        return self.call_static(node, callee.value, named, env)

    def call_static(self, node: ast.Call, callee: Any, named: Mapping[str, ast.expr], env: Env) -> Symbol:
        """A call of a Python object."""
        if isinstance(callee, Layer):
            return self._call_layer(node, callee, named, env)
        if getattr(callee, "__module__", None) == "builtins" and callee in _BUILTINS:
            return _BUILTINS[callee](self, node, [self.expr(arg, env) for arg in node.args])
        if callable(callee) and str(getattr(callee, "__module__", "")).startswith("relay_hw.op"):
            return self._build(node, callee, named, env)
        shown = ast.unparse(node.func)
        self.source.refuse(node, f"called function must be of relay, or decorated with it, not {shown}")

    def _call_value(self, node: ast.Call, callee: Value, env: Env) -> Symbol:
        if not is_function(callee.type) or node.keywords:
            self.source.refuse(node, f"{ast.unparse(node.func)} must be a function to be called, not {callee.type}")
        assert isinstance(callee.type, FuncType)
        return self.apply(node, callee.expr, callee.type, node.args, env)

    def apply(self, node: ast.Call, function: Expr, ty: FuncType, nodes: Sequence[ast.expr], env: Env) -> Value:
        """A call of a Relay function."""
        name = ast.unparse(node.func)
        if len(nodes) != len(ty.arg_types):
            count = len(ty.arg_types)
            self.source.refuse(node, f"{name} must get {count} argument{'s' * (count != 1)}, not {len(nodes)}")
        args = [self.relay(arg, env, wanted) for arg, wanted in zip(nodes, ty.arg_types, strict=True)]
        for index, (arg, wanted) in enumerate(zip(args, ty.arg_types, strict=True)):
            if arg.type != wanted:
                self.source.refuse(nodes[index], f"argument {index + 1} of {name} must be {wanted}, not {arg.type}")
        return self.call(function, args, ty.ret_type)

    def _call_layer(self, node: ast.Call, layer: Layer, named: Mapping[str, ast.expr], env: Env) -> Symbol:
        hidden = [self.hidden_of(node, layer.name)] if layer.has_hidden else []
        return self._build(node, layer.build, named, env, hidden)

    @abstractmethod
    def hidden_of(self, node: ast.Call, name: str) -> Callable[[str, TensorType], Expr]:
        """Makes the hidden parameters of one call."""

    def _build(
        self,
        node: ast.Call,
        build: Callable[..., Any],
        named: Mapping[str, ast.expr],
        env: Env,
        first: Sequence[Any] = (),
    ) -> Symbol:
        """A call of a builder: expressions where it wants them, Python objects elsewhere."""
        signature = inspect.signature(build)
        keywords = {key: self.expr(value, env) for key, value in named.items()}
        args = [self.expr(arg, env) for arg in node.args]
        try:
            bound = signature.bind(*first, *args, **keywords)
        except TypeError as error:
            self.source.refuse(node, f"arguments of {ast.unparse(node.func)} must fit: {error}")
        like = next((arg.type for arg in (*args, *keywords.values()) if isinstance(arg, Value)), None)
        given: dict[str, Any] = {}
        for name, symbol in bound.arguments.items():
            wants = str(signature.parameters[name].annotation)
            given[name] = self._argument(symbol, "Expr" in wants and "Callable" not in wants, like)
        return self.graph(build(**given))

    def _argument(self, symbol: Any, wants_expr: bool, like: Type | None) -> Any:
        if isinstance(symbol, Value):
            parts = fields_of(symbol.type)
            return symbol.expr if not parts or wants_expr else [self.item(symbol, at).expr for at in range(len(parts))]
        if not isinstance(symbol, (Static, EmptyList)):
            return symbol
        if isinstance(symbol, Static) and not wants_expr:
            return symbol.value
        return self.value(symbol, like).expr

    def annotation(self, node: ast.expr, env: Env) -> Any:
        """The object that an annotation means."""
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

    # Builtins

    def _len(self, node: ast.Call, args: Sequence[Symbol]) -> Symbol:
        match args:
            case [Static(value=value)]:
                return Static(len(value))
            case [EmptyList()]:
                return Static(0)
            case [Value(type=TupleType(fields=parts))]:
                return Static(len(parts))
            case [Value(type=TensorType(shape=(int() as size, *_)))]:
                return Static(size)
            case [Value(type=ty) as value] if is_list(ty):
                return self.prelude("length", (value,), INT, (item_type(ty),))
            case _:
                self.source.refuse(node, "len must get one tuple, list or tensor")

    def _abs(self, node: ast.Call, args: Sequence[Symbol]) -> Symbol:
        (value,) = args
        return Static(abs(value.value)) if isinstance(value, Static) else self.graph(absolute(self.value(value).expr))

    def _extreme(self, node: ast.Call, args: Sequence[Symbol], build: Binary, python: Any) -> Symbol:
        if len(args) < 2:
            self.source.refuse(node, f"{ast.unparse(node.func)} must get at least 2 numbers")
        result = args[0]
        for other in args[1:]:
            if isinstance(result, Static) and isinstance(other, Static):
                result = Static(python(result.value, other.value))
            else:
                a, b = self.pair(result, other)
                result = self.graph(build(a.expr, b.expr))
        return result

    def _min(self, node: ast.Call, args: Sequence[Symbol]) -> Symbol:
        return self._extreme(node, args, minimum, min)

    def _max(self, node: ast.Call, args: Sequence[Symbol]) -> Symbol:
        return self._extreme(node, args, maximum, max)

    def _convert(self, node: ast.Call, args: Sequence[Symbol], kind: type, dtype: str) -> Symbol:
        (value,) = args
        if isinstance(value, Static):
            return Static(kind(value.value))
        return self.graph(cast(self.value(value).expr, dtype))

    def _float(self, node: ast.Call, args: Sequence[Symbol]) -> Symbol:
        return self._convert(node, args, float, "float32")

    def _int(self, node: ast.Call, args: Sequence[Symbol]) -> Symbol:
        return self._convert(node, args, int, "int32")

    def _bool(self, node: ast.Call, args: Sequence[Symbol]) -> Symbol:
        return self._convert(node, args, bool, "bool")

    def number(self, value: int) -> Value:
        """An int32 constant."""
        return self.graph(const(value))


_BUILTINS: Final[Mapping[Any, Callable[[Expressions, ast.Call, Sequence[Symbol]], Symbol]]] = {
    len: Expressions._len,
    abs: Expressions._abs,
    min: Expressions._min,
    max: Expressions._max,
    float: Expressions._float,
    int: Expressions._int,
    bool: Expressions._bool,
}


def _kind(node: ast.AST) -> str:
    """What Python calls a node."""
    names = {
        "ListComp": "list comprehension", "DictComp": "dict comprehension", "SetComp": "set comprehension",
        "GeneratorExp": "generator", "Dict": "dict", "Set": "set", "JoinedStr": "f-string", "NamedExpr": ":=",
        "Await": "await", "Yield": "yield", "YieldFrom": "yield", "Starred": "*", "Slice": "slice",
    }  # fmt: skip
    return names.get(type(node).__name__, type(node).__name__.lower())
