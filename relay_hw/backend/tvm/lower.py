"""Lowers flat functions to one Relax module: graphs of operators, branches, local functions, calls.

In: `FlatFunction`s. Out: a Relax module with a function for each, and the calls that stay on numpy, each
behind a packed function whose name is the hash of what it computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from relay_hw.backend.flat import (
    FlatApply,
    FlatCall,
    FlatClosure,
    FlatConstant,
    FlatFunction,
    FlatGet,
    FlatGlobal,
    FlatIf,
    FlatInput,
    FlatInvoke,
    FlatNode,
    FlatTuple,
    nested,
)
from relay_hw.backend.tvm.api import relax, relax_op
from relay_hw.backend.tvm.isolated import PACKED_PREFIX, isolate, leaves, packed_name
from relay_hw.backend.tvm.machine import Machine
from relay_hw.backend.tvm.ops import LOWERINGS, Arg, Context, tensor
from relay_hw.backend.tvm.ops.base import DTYPES, constant
from relay_hw.errors import UnsupportedError
from relay_hw.ir.types import FuncType, TensorType, TupleType, Type

__all__ = ["PACKED_PREFIX", "Lowered", "isolate", "lower", "packed_name", "refusal", "relax_type"]
HELD = (
    FlatInput, FlatConstant, FlatCall, FlatTuple, FlatGet, FlatIf, FlatClosure, FlatApply, FlatInvoke, FlatGlobal
)  # fmt: skip


@dataclass(slots=True)
class Lowered:
    """`module`: Relax; `packed`: flat functions by packed name; `operators`: per function, those left to numpy."""

    module: Any
    packed: dict[str, FlatFunction] = field(default_factory=dict)
    operators: dict[str, tuple[str, ...]] = field(default_factory=dict)


def lower(functions: Sequence[FlatFunction], target: Machine | int) -> Lowered:
    """One Relax module of all functions. `target`: a processor, or the lanes of a GPU.

    Raises UnsupportedError for a function that `refusal` gives a reason for.
    """
    machine = Machine("gpu", target, is_cpu=False) if isinstance(target, int) else target
    names = {function.name for function in functions}
    for function in functions:
        reason = refusal(function, names)
        if reason is not None:
            raise UnsupportedError(reason)
    builder = relax.BlockBuilder()
    result = Lowered(None)
    targets = {function.name: _declare(builder, function) for function in functions if not function.is_straight}
    for function in functions:
        lowering = _Function(builder, function.name, machine, result, targets)
        if function.name in targets:
            builder.update_func(targets[function.name], lowering.structured(function))
        else:
            targets[function.name] = lowering.straight(function)
        result.operators[function.name] = tuple(dict.fromkeys(lowering.left))
    result.module = _tidy(builder.get()) if any(not f.is_straight for f in functions) else builder.get()
    return result


def _tidy(module: Any) -> Any:
    """Runs of operators between branches and calls become fusable."""
    return relax.transform.ConvertToDataflow(1)(relax.transform.Normalize()(module))


def divide(functions: Sequence[FlatFunction], recursion: bool = False) -> tuple[list[FlatFunction], list[FlatFunction]]:
    """Split functions into those that TVM can compile, and the others with all their callers.

    `recursion`: take functions that call themselves, too; TVM's machine needs native stack for each level, and ends the
    process if there is none left.
    """
    taken = [function for function in functions if recursion or not calls_itself(function, functions)]
    while True:
        names = {function.name for function in taken}
        kept = [function for function in taken if refusal(function, names) is None]
        if len(kept) == len(taken):
            return taken, [function for function in functions if function.name not in names]
        taken = kept


def calls_itself(function: FlatFunction, functions: Sequence[FlatFunction]) -> bool:
    """Whether a call of a function may come to call it again, or a closure in it may call itself."""
    named = {other.name: other for other in functions}
    seen: set[str] = set()
    waiting = [function]
    while waiting:
        for inner in nested(waiting.pop()):
            for node in inner.nodes:
                if isinstance(node, FlatClosure) and node.is_recursive:
                    return True
                if isinstance(node, (FlatInvoke, FlatGlobal)) and node.function not in seen:
                    seen.add(node.function)
                    waiting += [named[node.function]] if node.function in named else []
    return function.name in seen


def refusal(function: FlatFunction, names: set[str]) -> str | None:
    """Why TVM cannot compile a whole function; None if it can. `names`: the functions compiled together with it."""
    for inner in nested(function):
        for node in inner.nodes:
            if not isinstance(node, HELD):
                return f"host function @{function.name} must have no {type(node).__name__.removeprefix('Flat')}"
            if isinstance(node, (FlatInvoke, FlatGlobal)) and node.function not in names:
                return f"host function @{function.name} must not call @{node.function}, which is not compiled"
            ty = getattr(node, "type", None)
            if ty is not None and not _is_known(ty):
                return f"host function @{function.name} must have values of known shape, not {ty}"
    return None


def _is_known(ty: Type) -> bool:
    match ty:
        case TensorType():
            return all(isinstance(dim, int) for dim in ty.shape)
        case TupleType():
            return all(map(_is_known, ty.fields))
        case FuncType():
            return not ty.type_params and all(map(_is_known, (*ty.arg_types, ty.ret_type)))
        case _:
            return False


def relax_type(ty: Type) -> Any:
    """The Relax form of a type. Raises UnsupportedError if there is none."""
    match ty:
        case TensorType():
            return relax.TensorType(ty.static_shape, ty.dtype)
        case TupleType():
            return relax.TupleType([relax_type(item) for item in ty.fields])
        case FuncType():
            # A closure; which one is known only when it is called.
            return relax.ObjectType()
        case _:
            raise UnsupportedError(f"a host value must be a tensor, a tuple or a function, not {ty}")


def _variables(params: Sequence[FlatInput]) -> list[Any]:
    return [relax.Var(f"p{i}", relax_type(p.type)) for i, p in enumerate(params)]


def _declare(builder: Any, function: FlatFunction) -> Any:
    """Declare a global function, so that others may call it before it has a body."""
    return builder.add_func(
        _shell(_variables(function.params), node_types(function.nodes)[function.result], function.name), function.name
    )


def _shell(params: Sequence[Any], result: Type, name: str) -> Any:
    """A function that has its body yet to come; TVM makes one of two equal functions."""
    ret = relax_type(result)
    body = relax.SeqExpr([], relax.Call(relax.ExternFunc(name), [], ty_args=[ret]))
    return relax.Function(list(params), body, ret_ty=ret, is_pure=False)


class _Function:
    """Lowers one function and those inside of it; tuples are taken apart."""

    def __init__(self, builder: Any, name: str, machine: Machine, result: Lowered, targets: Mapping[str, Any]) -> None:
        self.builder = builder
        self.name = name
        self.machine = machine
        self.result = result
        self.targets = targets
        self.left: list[str] = []
        self.locals: list[str] = []

    def straight(self, function: FlatFunction) -> Any:
        """A graph of operators, under its name."""
        params = _variables(function.params)
        with self.builder.function(function.name, params):
            with self.builder.dataflow():
                values = self._arguments(params, function.params)
                output = self.builder.emit_output(_joined(self._walk(function, values)))
            return self.builder.emit_func_output(output)

    def structured(self, function: FlatFunction) -> Any:
        """A function with branches and calls, as a Relax function."""
        params, ret = _variables(function.params), relax_type(node_types(function.nodes)[function.result])
        body = self._scope(function, lambda: self._arguments(params, function.params))
        return relax.Function(params, body, ret_ty=ret, is_pure=False).with_attr("global_symbol", function.name)

    def _scope(self, function: FlatFunction, values: Any) -> Any:
        """The body of a branch or a function: bindings of its own, and a result."""
        self.builder._begin_binding_block()
        result = self._value(_joined(self._walk(function, values())))
        return relax.SeqExpr([self.builder._end_block()], result)

    def _value(self, expr: Any) -> Any:
        return expr if isinstance(expr, relax.Var) else self.builder.emit(expr)

    def _walk(self, function: FlatFunction, values: list[Arg]) -> Arg:
        """The result of a function whose parameters have `values`, in the current block."""
        types = node_types(function.nodes)
        constants = {i: node.data for i, node in enumerate(function.nodes) if isinstance(node, FlatConstant)}
        context = Context(self.builder, self.machine, constants, types)
        for index in range(len(values), len(function.nodes)):
            values.append(self._node(function.nodes[index], values, context))
        return values[function.result]

    def _node(self, node: FlatNode, values: Sequence[Arg], context: Context) -> Arg:
        match node:
            case FlatConstant():
                return constant(node.data)
            case FlatTuple():
                return tuple(values[i] for i in node.fields)
            case FlatGet():
                return values[node.source][node.index]
            case FlatCall():
                return self._call(node, [values[i] for i in node.args], context)
            case FlatInvoke():
                args = self._packed([values[i] for i in node.args])
                return self._unpack(self.builder.emit(relax.Call(self.targets[node.function], args)), node.type)
            case FlatApply():
                args = relax.Tuple(self._packed([values[i] for i in node.args]))
                call = relax_op.invoke_closure(values[node.callee], args, [relax_type(node.type)])
                return self._unpack(self.builder.emit(call), node.type)
            case FlatIf():
                captured = [values[i] for i in node.captured]
                branches = [self._scope(branch, lambda: list(captured)) for branch in (node.then, node.otherwise)]
                return self._unpack(self.builder.emit(relax.If(values[node.cond], *branches)), node.type)
            case FlatClosure():
                return self._closure(node, [values[i] for i in node.captured])
            case FlatGlobal():
                return self.builder.emit(relax_op.make_closure(self.targets[node.function], relax.Tuple([])))
            case _:
                raise UnsupportedError(f"host function @{self.name} must have no {type(node).__name__}")

    def _packed(self, args: Sequence[Arg]) -> list[Any]:
        return [self._value(_joined(arg)) if isinstance(arg, tuple) else arg for arg in args]

    def _closure(self, node: FlatClosure, held: Sequence[Arg]) -> Any:
        """A local function: a global one of its arguments and, after them, of what it holds."""
        function = node.function
        count = len(held) + node.is_recursive
        name = f"{self.name}.local{len(self.locals)}"
        params, rest = _variables(function.params), node_types(function.nodes)[function.result]
        taken, own = params[: len(held)], params[count:]
        lifted = self.builder.add_func(_shell([*own, *taken], rest, name), name)
        self.locals.append(name)

        def values() -> list[Arg]:
            given = [self._unpack(p, n.type) for p, n in zip(taken, function.params, strict=False)]
            itself = [self.builder.emit(relax_op.make_closure(lifted, relax.Tuple(taken)))] * node.is_recursive
            return [*given, *itself, *self._arguments(own, function.params[count:])]

        body = relax.Function([*own, *taken], self._scope(function, values), ret_ty=relax_type(rest), is_pure=False)
        self.builder.update_func(lifted, body.with_attr("global_symbol", name))
        return self.builder.emit(relax_op.make_closure(lifted, relax.Tuple(self._packed(held))))

    def _arguments(self, params: Sequence[Any], nodes: Sequence[FlatInput]) -> list[Arg]:
        return [self._unpack(p, node.type) for p, node in zip(params, nodes, strict=True)]

    def _unpack(self, value: Any, ty: Type) -> Arg:
        if not isinstance(ty, TupleType):
            return value
        return tuple(
            self._unpack(self.builder.emit(relax.TupleGetItem(value, i)), item) for i, item in enumerate(ty.fields)
        )

    def _call(self, call: FlatCall, args: Sequence[Arg], context: Context) -> Arg:
        lowering = LOWERINGS.get(call.op.name) if self._is_plain(call, context) else None
        value = lowering(context, call, args) if lowering is not None else None
        if value is None:
            return self._numpy_call(call, args, context)
        if isinstance(value, tuple):
            return tuple(self._checked(call, item, part) for item, part in zip(value, leaves(call.type), strict=True))
        return self._checked(call, value, tensor(call.type))

    def _checked(self, call: FlatCall, value: Any, want: TensorType) -> Any:
        found = self.builder.emit(value)
        if (tuple(int(d) for d in found.ty.shape), str(found.ty.dtype)) != (want.static_shape, want.dtype):
            raise UnsupportedError(f"{call.op.name} must give {want} in Relax, not {found.ty}")
        return found

    @staticmethod
    def _is_plain(call: FlatCall, context: Context) -> bool:
        """Whether all tensors have elements, of types that TVM computes with as numpy does."""
        types = [context.types[i] for i in call.args] + [call.type]
        found = [leaf for ty in types for leaf in leaves(ty)]
        return all(leaf.dtype in DTYPES and prod(leaf.static_shape) > 0 for leaf in found)

    def _numpy_call(self, call: FlatCall, args: Sequence[Arg], context: Context) -> Arg:
        """A packed function of the call's tensors; its name says what it computes, so equal ones are one."""
        function = isolate(call, [context.types[i] for i in call.args])
        name = packed_name(function)
        self.result.packed[name] = function
        self.left.append(call.op.name)
        out = [relax_type(leaf) for leaf in leaves(call.type)]
        value = self.builder.emit(
            relax.call_dps_packed(name, _leaf_values(args), out_ty=out if isinstance(call.type, TupleType) else out[0])
        )
        return self._unpack(value, call.type)


def _joined(value: Arg) -> Any:
    """A value as one expression."""
    return relax.Tuple([_joined(item) for item in value]) if isinstance(value, tuple) else value


def _leaf_values(args: Sequence[Arg]) -> list[Any]:
    found: list[Any] = []
    for arg in args:
        found.extend(_leaf_values(arg) if isinstance(arg, tuple) else [arg])
    return found


def node_types(nodes: Sequence[FlatNode]) -> list[Type]:
    """The type of each node."""
    types: list[Type] = []
    for node in nodes:
        match node:
            case FlatConstant():
                types.append(TensorType(node.data.shape, str(node.data.dtype)))
            case FlatTuple():
                types.append(TupleType([types[i] for i in node.fields]))
            case FlatGet():
                source = types[node.source]
                assert isinstance(source, TupleType)
                types.append(source.fields[node.index])
            case _:
                types.append(node.type)  # type: ignore[union-attr]
    return types
