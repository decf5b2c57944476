"""Decorators that make passes of Python functions and classes: `@function_pass(opt_level=1)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from relay_hw.errors import InputError
from relay_hw.ir.expr import Function
from relay_hw.ir.module import IRModule
from relay_hw.transform.base import FunctionPass, Pass
from relay_hw.transform.context import PassContext, PassInfo


class _DecoratedFunctionPass(FunctionPass):
    name: ClassVar[str] = "function-pass"

    def __init__(self, apply: Callable[[Function, IRModule, PassContext], Function], info: PassInfo) -> None:
        self._apply = apply
        self._info = info

    @property
    def info(self) -> PassInfo:
        return self._info

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        new = self._apply(function, mod, PassContext.current())
        if not isinstance(new, Function):
            raise InputError(f"pass {self._info.name} must return a function, not {type(new).__name__}")
        return new


class _DecoratedModulePass(Pass):
    name: ClassVar[str] = "module-pass"

    def __init__(self, apply: Callable[[IRModule, PassContext], IRModule], info: PassInfo) -> None:
        self._apply = apply
        self._info = info

    @property
    def info(self) -> PassInfo:
        return self._info

    def transform(self, mod: IRModule) -> IRModule:
        new = self._apply(mod, PassContext.current())
        if not isinstance(new, IRModule):
            raise InputError(f"pass {self._info.name} must return a module, not {type(new).__name__}")
        return new


def function_pass(
    pass_func: Any = None, opt_level: int | None = None, name: str | None = None, required: Sequence[str] | None = None
) -> Any:
    """A pass from `f(function, module, context) -> function`, or from a class with a method `transform_function`.

    A decorated function becomes a pass; a decorated class becomes a class whose instances are passes. Raises
    InputError without `opt_level`.
    """
    return _decorate(pass_func, opt_level, name, required, _DecoratedFunctionPass, "transform_function")


def module_pass(
    pass_func: Any = None, opt_level: int | None = None, name: str | None = None, required: Sequence[str] | None = None
) -> Any:
    """A pass from `f(module, context) -> module`, or from a class with a method `transform_module`.

    Raises InputError without `opt_level`.
    """
    return _decorate(pass_func, opt_level, name, required, _DecoratedModulePass, "transform_module")


def _decorate(
    pass_func: Any, level: int | None, name: str | None, required: Sequence[str] | None, kind: Any, method: str
) -> Any:
    if level is None:
        raise InputError("opt_level of a pass must be given")

    def wrap(target: Any) -> Any:
        info = PassInfo(level, name or target.__name__, tuple(required or ()))
        if not isinstance(target, type):
            return kind(target, info)

        def __init__(self: Any, *args: Any, **named: Any) -> None:
            self.instance = target(*args, **named)
            kind.__init__(self, getattr(self.instance, method), info)

        def __getattr__(self: Any, attribute: str) -> Any:
            if attribute == "instance":
                raise AttributeError(attribute)
            return getattr(self.instance, attribute)

        return type(
            target.__name__, (kind,), {"__init__": __init__, "__getattr__": __getattr__, "__doc__": target.__doc__}
        )

    return wrap if pass_func is None else wrap(pass_func)
