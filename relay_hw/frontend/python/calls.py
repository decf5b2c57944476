"""Translates Python calls to Relay: operator builders, layers, function values, builtins.

In: call trees of one function. Out: symbols, bound in the current block.
"""

from __future__ import annotations

import ast
import inspect
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from relay_hw.frontend.python.emit import is_function, is_list, item_type
from relay_hw.frontend.python.expressions import INT, Binary, Expressions
from relay_hw.frontend.python.library import Layer
from relay_hw.frontend.python.values import EmptyList, Env, Static, Symbol, Value, fields_of
from relay_hw.ir.expr import Expr
from relay_hw.ir.types import FuncType, TensorType, TupleType, Type
from relay_hw.op import abs as absolute
from relay_hw.op import cast, maximum, minimum


class Calls(Expressions):
    """Translates calls; subclasses know the library's special functions."""

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
        """The hidden parameters of one call."""

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


_BUILTINS: Final[Mapping[Any, Callable[[Calls, ast.Call, Sequence[Symbol]], Symbol]]] = {
    len: Calls._len,
    abs: Calls._abs,
    min: Calls._min,
    max: Calls._max,
    float: Calls._float,
    int: Calls._int,
    bool: Calls._bool,
}
