"""Relay's executor interface for the interpreter. In: a module. Out: Python callables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from relay_hw.errors import UnsupportedError
from relay_hw.interp.evaluate import Interpreter, arguments
from relay_hw.interp.values import Closure, Value
from relay_hw.ir.expr import Expr, Function, GlobalVar, Var
from relay_hw.ir.module import IRModule


class InterpreterExecutor:
    """Evaluates expressions and functions of one module."""

    def __init__(self, mod: IRModule) -> None:
        self._interpreter = Interpreter(mod)

    @property
    def mod(self) -> IRModule:
        """The module, typed."""
        return self._interpreter.mod

    def evaluate(self, expr: Expr | str | None = None, binds: Mapping[Var, Any] | None = None) -> Any:
        """The value of `expr`; a function becomes a Python callable. Without `expr` it is `@main`."""
        if expr is None or isinstance(expr, (str, GlobalVar)):
            return self._global(expr.name_hint if isinstance(expr, GlobalVar) else expr or "main")
        value = self._interpreter.evaluate(expr, binds)
        return self._callable(value) if isinstance(value, Closure) else value

    def _global(self, name: str) -> Callable[..., Value]:
        def call(*args: Any, **named: Any) -> Value:
            return self._interpreter.call_global(name, self._by_name(name, args, named) if named else args)

        return call

    def _by_name(self, name: str, args: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        function = self.mod.functions.get(name, _NO_FUNCTION)
        return {**dict(zip((param.name_hint for param in function.params), args, strict=False)), **named}

    def _callable(self, closure: Closure) -> Callable[..., Value]:
        def call(*args: Any) -> Value:
            values = arguments(closure.function, args, "the function")
            return self._interpreter.apply(closure, values)

        return call


_NO_FUNCTION = Function((), GlobalVar(""))


def create_executor(kind: str = "debug", mod: IRModule | None = None) -> InterpreterExecutor:
    """An executor for `mod`. `kind` must be "debug", the interpreter. Raises UnsupportedError for another one."""
    if kind != "debug":
        raise UnsupportedError(f"executor must be debug, not {kind}")
    return InterpreterExecutor(mod if mod is not None else IRModule())
