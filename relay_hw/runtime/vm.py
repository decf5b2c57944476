"""Executors of modules without a build folder: `vm` runs all of Relay, `graph` graphs of operators only.

With target `c` the functions of `vm` are machine code, by the system's C compiler; a function that takes or gives
functions or references, and an expression, run on numpy.

In: a module, perhaps a target. Out: Python callables, as the interpreter's executor gives them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from relay_hw.analysis.variables import free_vars
from relay_hw.backend.flat import Machine, Value, flatten
from relay_hw.backend.native import NativeModule, compile_native
from relay_hw.backend.reference import FlatFunctionValue
from relay_hw.backend.tvm import build_library, is_installed, load_library
from relay_hw.backend.tvm.target import NUMPY, HostTarget, read_host
from relay_hw.errors import EvalError, InputError, UnsupportedError
from relay_hw.interp.evaluate import arguments
from relay_hw.interp.executor import InterpreterExecutor
from relay_hw.interp.values import to_value
from relay_hw.ir.expr import Expr, Function, GlobalVar, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import FuncType, RefType, TupleType, Type
from relay_hw.runtime.compile import HOST_ONLY
from relay_hw.runtime.hosts import compiled_by_tvm, flat_functions, reached
from relay_hw.support.names import one_of
from relay_hw.target.host_only import HostOnly
from relay_hw.target.pipeline import partition_pipeline
from relay_hw.transform.fragments import is_graph
from relay_hw.transform.infer_type import InferType
from relay_hw.transform.pipelines import simplify_pipeline

KINDS = ("debug", "vm", "graph")
NATIVE = "c"


class VmExecutor:
    """Runs the functions of a module in flat form: on numpy or, with a TVM target, its straight-line parts by TVM.

    With target `c`, each function that is called is compiled to machine code.
    """

    def __init__(self, mod: IRModule, target: HostTarget | str = NUMPY) -> None:
        """Raises UnsupportedError if TVM cannot compile for the target."""
        self._mod = InferType()(mod)
        self._flat = {name: flatten(function, name) for name, function in self._mod.functions.items()}
        self._machine = Machine(self._flat)
        self._compiled: Callable[[list[Value]], Value] | None = None
        self._is_native, self._native = target == NATIVE, dict[str, NativeModule]()
        wanted = HostTarget(NUMPY) if target == NATIVE else read_host(target)
        if wanted.kind != NUMPY and "main" in self._mod.functions and is_installed():
            self._compiled = self._compile(wanted)

    @property
    def mod(self) -> IRModule:
        """The module, typed."""
        return self._mod

    def evaluate(self, expr: Expr | str | None = None, binds: Mapping[Var, Any] | None = None) -> Any:
        """The value of `expr`; a function becomes a Python callable. Without `expr` it is `@main`."""
        if expr is None or isinstance(expr, (str, GlobalVar)):
            return self._global(expr.name_hint if isinstance(expr, GlobalVar) else expr or "main")
        names = {var.name_hint: value for var, value in (binds or {}).items()}
        free = [var for var in free_vars(expr) if var.name_hint in names]
        whole = InferType()(self._mod.with_functions({"": Function(free, expr)}))[""]
        given = [to_value(names[var.name_hint], var.type, f"%{var.name_hint}") for var in whole.params]
        value = self._machine.call(flatten(whole, ""), given)
        return self._callable(value, whole.body) if isinstance(value, FlatFunctionValue) else value

    def _global(self, name: str) -> Callable[..., Value]:
        def call(*args: Any, **named: Any) -> Value:
            if name not in self._mod.functions:
                raise InputError(one_of("entry", self._mod.functions, name))
            function = self._mod[name]
            names = [param.name_hint for param in function.params]
            values = arguments(function, {**dict(zip(names, args, strict=False)), **named} if named else args, name)
            if name == "main" and self._compiled is not None:
                return self._compiled(values)
            if self._is_native and not _holds_functions(function.func_type):
                return self.native(name).call(name, values)
            return self._machine.call(self._flat[name], values)

        return call

    def native(self, name: str) -> NativeModule:
        """Function `name` and all that it may call, as machine code. Raises UnsupportedError without a C compiler."""
        if name not in self._native:
            self._native[name] = compile_native(reached(self._flat, name), self._mod.types)
        return self._native[name]

    def _callable(self, value: FlatFunctionValue, expr: Expr) -> Callable[..., Value]:
        def call(*args: Any) -> Value:
            values = arguments(expr, args, "the function") if isinstance(expr, Function) else list(args)
            return self._machine.apply(value, values)

        return call

    def _compile(self, target: HostTarget) -> Callable[[list[Value]], Value] | None:
        """`main` with its straight-line parts compiled by TVM; None if none is worth it."""
        mod = partition_pipeline(HostOnly(HOST_ONLY))(simplify_pipeline()(self._mod))
        flat = flat_functions(mod)
        hosts = compiled_by_tvm(mod, flat)
        if not hosts:
            return None
        # The library stays loaded; its file is not needed any more.
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "host.so"
            library = load_library(path, build_library(hosts, path, target))
        names = {function.name for function in hosts}
        machine = Machine({name: function for name, function in flat.items() if name not in names})

        def invoke(name: str, args: list[Value]) -> Value:
            if name not in names:
                raise EvalError(f"@{name} must be a function of the module")
            return library.call(name, args)

        return lambda values: machine.call(flat["main"], values, invoke)


def _holds_functions(ty: FuncType) -> bool:
    """Whether a parameter or the result is a function or a reference, or a tuple with one."""
    waiting: list[Type] = [*ty.arg_types, ty.ret_type]
    while waiting:
        match waiting.pop():
            case FuncType() | RefType():
                return True
            case TupleType(fields=fields):
                waiting += fields
            case _:
                pass
    return False


def create_executor(
    kind: str = "debug", mod: IRModule | None = None, target: HostTarget | str = "numpy"
) -> InterpreterExecutor | VmExecutor:
    """An executor for `mod`: `debug` is the reference interpreter, `vm` runs the same programs in flat form.

    `graph` is `vm` for a graph of operators. `target`: `numpy`, what TVM compiles for, such as `llvm`, or `c`: native
    code, control flow included. Raises InputError for another kind, UnsupportedError for `graph` and a program with
    control flow.
    """
    whole = mod if mod is not None else IRModule()
    match kind:
        case "debug":
            return InterpreterExecutor(whole)
        case "vm":
            return VmExecutor(whole, target)
        case "graph":
            if "main" in whole.functions and not is_graph(simplify_pipeline()(InferType()(whole))):
                raise UnsupportedError(
                    "executor graph must have a graph of operators, not a program with control flow, data types,"
                    " references or other functions: executor vm runs it"
                )
            return VmExecutor(whole, target)
        case _:
            raise InputError(one_of("executor", KINDS, kind))
