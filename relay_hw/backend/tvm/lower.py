"""Flat host functions to one Relax module.

In: `FlatFunction`s. Out: a Relax module with a function for each, and the calls that keep their numpy meaning, each
behind a packed function whose name is the hash of what it computes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from relay_hw.backend.flat import (
    FlatCall,
    FlatConstant,
    FlatFunction,
    FlatGet,
    FlatInput,
    FlatInvoke,
    FlatNode,
    FlatTuple,
)
from relay_hw.backend.store import ConstantPool, flat_to_json
from relay_hw.backend.tvm.api import relax
from relay_hw.backend.tvm.ops import LOWERINGS, Arg, Context, tensor
from relay_hw.errors import UnsupportedError
from relay_hw.ir.types import TensorType, TupleType, Type

PACKED_PREFIX = "relay_hw.packed."


@dataclass(slots=True)
class Lowered:
    """`module`: Relax; `packed`: flat functions by packed name; `operators`: per function, those left to numpy."""

    module: Any
    packed: dict[str, FlatFunction] = field(default_factory=dict)
    operators: dict[str, tuple[str, ...]] = field(default_factory=dict)


def lower(functions: Sequence[FlatFunction], lanes: int) -> Lowered:
    """One Relax module of all functions. Raises UnsupportedError for a type or node that no host function has."""
    builder = relax.BlockBuilder()
    result = Lowered(None)
    for function in functions:
        _Function(builder, function, lanes, result).build()
    result.module = builder.get()
    return result


def leaves(ty: Type) -> list[TensorType]:
    """Tensors of a type, left to right. Raises UnsupportedError for what is neither tensor nor tuple."""
    match ty:
        case TensorType():
            return [ty]
        case TupleType():
            return [leaf for item in ty.fields for leaf in leaves(item)]
        case _:
            raise UnsupportedError(f"a host value must be a tensor or a tuple, not {ty}")


def relax_type(ty: Type) -> Any:
    """Relax's form of a type."""
    match ty:
        case TensorType():
            return relax.TensorType(ty.static_shape, ty.dtype)
        case TupleType():
            return relax.TupleType([relax_type(item) for item in ty.fields])
        case _:
            raise UnsupportedError(f"a host value must be a tensor or a tuple, not {ty}")


class _Function:
    """Lowers one function; tuples exist only at its border."""

    def __init__(self, builder: Any, function: FlatFunction, lanes: int, result: Lowered) -> None:
        self.builder = builder
        self.function = function
        self.lanes = lanes
        self.result = result
        self.values: list[Arg] = []
        self.types: list[Type] = []
        self.left: list[str] = []

    def build(self) -> None:
        params = [relax.Var(f"p{i}", relax_type(p.type)) for i, p in enumerate(self.function.params)]
        with self.builder.function(self.function.name, params):
            with self.builder.dataflow():
                for node in self.function.nodes:
                    self.values.append(self._node(node, params))
                    self.types.append(_node_type(node, self.types))
                output = self.builder.emit_output(self._pack(self.values[self.function.result]))
            self.builder.emit_func_output(output)
        self.result.operators[self.function.name] = tuple(dict.fromkeys(self.left))

    def _pack(self, value: Arg) -> Any:
        return relax.Tuple([self._pack(item) for item in value]) if isinstance(value, tuple) else value

    def _node(self, node: FlatNode, params: Sequence[Any]) -> Arg:
        match node:
            case FlatInput():
                return self._unpack(params[len(self.values)], node.type)
            case FlatConstant():
                return relax.const(node.data)
            case FlatTuple():
                return tuple(self.values[i] for i in node.fields)
            case FlatGet():
                return self.values[node.source][node.index]
            case FlatCall():
                return self._call(node)
            case FlatInvoke():
                raise UnsupportedError(f"host function @{self.function.name} must not call @{node.function}")
            case _:
                what = type(node).__name__.removeprefix("Flat")
                raise UnsupportedError(f"host function @{self.function.name} must be a graph of operators, not {what}")

    def _unpack(self, value: Any, ty: Type) -> Arg:
        if not isinstance(ty, TupleType):
            return value
        return tuple(
            self._unpack(self.builder.emit(relax.TupleGetItem(value, i)), item) for i, item in enumerate(ty.fields)
        )

    def _call(self, call: FlatCall) -> Arg:
        args = [self.values[i] for i in call.args]
        lowering = LOWERINGS.get(call.op.name)
        constants = {i: node.data for i, node in enumerate(self.function.nodes) if isinstance(node, FlatConstant)}
        context = Context(self.builder, self.lanes, constants, self.types)
        value = lowering(context, call, args) if lowering is not None else None
        if value is None:
            return self._numpy_call(call, args)
        if isinstance(value, tuple):
            return tuple(self.builder.emit(item) for item in value)
        found = self.builder.emit(value)
        want = tensor(call.type)
        if (tuple(int(d) for d in found.ty.shape), str(found.ty.dtype)) != (want.static_shape, want.dtype):
            raise UnsupportedError(f"{call.op.name} must give {want} in Relax, not {found.ty}")
        return found

    def _numpy_call(self, call: FlatCall, args: Sequence[Arg]) -> Arg:
        """A packed function of the call's tensors; its name says what it computes, so equal ones are one."""
        function = isolate(call, [self.types[i] for i in call.args])
        name = packed_name(function)
        self.result.packed[name] = function
        self.left.append(call.op.name)
        out = [relax_type(leaf) for leaf in leaves(call.type)]
        value = self.builder.emit(
            relax.call_dps_packed(name, _leaf_values(args), out_ty=out if isinstance(call.type, TupleType) else out[0])
        )
        return self._unpack(value, call.type)


def _leaf_values(args: Sequence[Arg]) -> list[Any]:
    found: list[Any] = []
    for arg in args:
        found.extend(_leaf_values(arg) if isinstance(arg, tuple) else [arg])
    return found


def _node_type(node: FlatNode, types: Sequence[Type]) -> Type:
    match node:
        case FlatInput() | FlatCall() | FlatInvoke():
            return node.type
        case FlatConstant():
            return TensorType(node.data.shape, str(node.data.dtype))
        case FlatTuple():
            return TupleType([types[i] for i in node.fields])
        case FlatGet():
            source = types[node.source]
            assert isinstance(source, TupleType)
            return source.fields[node.index]


def isolate(call: FlatCall, arg_types: Sequence[Type]) -> FlatFunction:
    """The call as a function of its own, whose parameters are the tensors of the arguments, left to right."""
    nodes: list[FlatNode] = [
        FlatInput(f"p{i}", leaf) for i, leaf in enumerate(leaf for ty in arg_types for leaf in leaves(ty))
    ]
    position = 0

    def gather(ty: Type) -> int:
        nonlocal position
        if isinstance(ty, TensorType):
            position += 1
            return position - 1
        assert isinstance(ty, TupleType)
        fields = tuple(gather(item) for item in ty.fields)
        nodes.append(FlatTuple(fields))
        return len(nodes) - 1

    args = tuple(gather(ty) for ty in arg_types)
    nodes.append(FlatCall(call.op, args, call.attrs, call.type))
    return FlatFunction(call.op.name, tuple(nodes), len(nodes) - 1)


def packed_name(function: FlatFunction) -> str:
    """A name that says what the function computes."""
    text = json.dumps(flat_to_json(function, ConstantPool()), sort_keys=True)
    return PACKED_PREFIX + hashlib.sha256(text.encode()).hexdigest()[:24]
