"""TVM's `tvm.relay`: everything of `relay_hw`, plus names that only TVM has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from typing import Any as _Anything

import relay_hw as _relay
from relay_hw.build_module import create_executor as _create_executor
from relay_hw.compat.tvm.device import Device
from relay_hw.compat.tvm.factory import ExecutorFactory, build
from relay_hw.compat.tvm.module import IRModule, as_module
from relay_hw.compat.tvm.nd import unwrap, wrap
from relay_hw.compat.tvm.params import load_param_dict, save_param_dict
from relay_hw.compat.tvm.parser import fromtext, parse, parse_expr
from relay_hw.compat.tvm.relay import (
    analysis,
    annotation,
    build_module,
    dataflow_pattern,
    expr_functor,
    op,
    qnn,
    testing,
    transform,
)
from relay_hw.ir.expr import Expr, Var
from relay_hw.ir.types import Any
from relay_hw.op import const as _const

if TYPE_CHECKING:
    from relay_hw import frontend, nn, quantize

Module = IRModule

_PLAIN = {
    "expr": "relay_hw.ir.expr",
    "ty": "relay_hw.ir.types",
    "adt": "relay_hw.ir.expr",
    "function": "relay_hw.ir.expr",
}


class Executor:
    """Evaluates expressions; arrays come back as TVM's."""

    def __init__(self, kind: str, mod: IRModule, params: Mapping[str, _Anything]) -> None:
        bound = mod
        if params and "main" in mod.functions:
            main = build_module.bind_params_by_name(mod["main"], {name: unwrap(v) for name, v in params.items()})
            bound = mod.with_functions({"main": main})
        self._inner = _create_executor(kind, bound)

    @property
    def mod(self) -> _Anything:
        """The module, typed."""
        return self._inner.mod

    def evaluate(self, expr: Expr | str | None = None, binds: Mapping[Var, _Anything] | None = None) -> _Anything:
        """The value of `expr`; of a function, and of `main` without `expr`, a Python callable."""
        given = {var: unwrap(value) for var, value in (binds or {}).items()}
        value = self._inner.evaluate(expr, given)
        if not callable(value):
            return wrap(value)

        def call(*args: _Anything, **named: _Anything) -> _Anything:
            return wrap(value(*map(unwrap, args), **{name: unwrap(arg) for name, arg in named.items()}))

        return call


def create_executor(
    kind: str = "debug",
    mod: IRModule | None = None,
    device: Device | None = None,
    target: _Anything = "llvm",
    params: Mapping[str, _Anything] | None = None,
) -> Executor:
    """An executor for `mod`: `debug` is the reference interpreter; `graph` and `aot` take only graphs of operators."""
    from relay_hw.errors import InputError

    if kind not in ("debug", "graph", "vm", "aot"):
        raise InputError(f"executor must be debug, graph, vm or aot, not {kind}")
    return Executor("graph" if kind == "aot" else kind, as_module(mod if mod is not None else IRModule()), params or {})


def const(value: _Anything, dtype: str | None = None) -> _Anything:
    """A constant from a number, an array of numpy's or of TVM's."""
    return _const(unwrap(value), dtype)


def __getattr__(name: str) -> _Anything:
    """The rest is `relay_hw` itself."""
    import importlib

    if name in _PLAIN:
        return importlib.import_module(_PLAIN[name])
    return getattr(_relay, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_relay)})


__all__ = [
    "Any",
    "Executor",
    "ExecutorFactory",
    "IRModule",
    "Module",
    "analysis",
    "annotation",
    "build",
    "build_module",
    "const",
    "create_executor",
    "dataflow_pattern",
    "expr_functor",
    "fromtext",
    "frontend",
    "load_param_dict",
    "nn",
    "op",
    "parse",
    "parse_expr",
    "qnn",
    "quantize",
    "save_param_dict",
    "testing",
    "transform",
]
