"""Stores flat host functions as JSON, with their constants in one binary file.

In: `FlatFunction` and a `ConstantPool`. Out: plain JSON values and bytes, the same for the same function; and back.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.backend.nodes import (
    FlatAny,
    FlatApply,
    FlatArm,
    FlatCall,
    FlatClosure,
    FlatConstant,
    FlatConstruct,
    FlatFields,
    FlatFunction,
    FlatGet,
    FlatGlobal,
    FlatIf,
    FlatInput,
    FlatInvoke,
    FlatMatch,
    FlatNode,
    FlatPattern,
    FlatRefNew,
    FlatRefRead,
    FlatRefWrite,
    FlatTuple,
    binders,
    nested,
    uses,
)
from relay_hw.errors import ArtifactError, UnsupportedError
from relay_hw.ir.expr import Constructor, Op
from relay_hw.ir.types import (
    ANY,
    Dim,
    DimType,
    DtypeVar,
    FuncType,
    GlobalTypeVar,
    Kind,
    RefType,
    ShapeType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
    has_unknown_rank,
)
from relay_hw.limits import is_countable, is_shape
from relay_hw.op.attributes import AttributeFault, build_attributes

CONSTANT_ALIGN = 64
Json = Any


class ConstantPool:
    """Arrays in one binary block, little-endian, aligned to 64 bytes; equal arrays are stored once."""

    def __init__(self, data: bytes = b"") -> None:
        self._data = bytearray(data)
        self._known: dict[tuple[str, tuple[int, ...], bytes], int] = {}

    def __bytes__(self) -> bytes:
        return bytes(self._data)

    def add(self, array: NDArray[Any]) -> Json:
        """Store an array; returns what `get` needs."""
        raw = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        key = (str(array.dtype), array.shape, raw)
        if key not in self._known:
            self._data += bytes(-len(self._data) % CONSTANT_ALIGN)
            self._known[key] = len(self._data)
            self._data += raw
        return {"offset": self._known[key], "shape": list(array.shape), "dtype": str(array.dtype)}

    def get(self, row: Json) -> NDArray[Any]:
        """The stored array, read-only. Raises ArtifactError outside the pool."""
        shape, begin, dtype = row["shape"], row["offset"], np.dtype(row["dtype"])
        if not is_shape(shape) or not is_countable(shape, dtype.itemsize):
            raise ArtifactError(f"shape of a constant must be at most 32 integers of at least 0, not {shape!r:.60}")
        if type(begin) is not int:
            raise ArtifactError(f"offset of a constant must be an integer, not {begin!r:.60}")
        size = math.prod(shape) * dtype.itemsize
        if begin < 0 or begin + size > len(self._data):
            raise ArtifactError(f"constant must lie in the {len(self._data)} bytes stored, not at {begin}+{size}")
        raw = bytes(self._data[begin : begin + size])
        return np.frombuffer(raw, dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape)


def type_to_json(ty: Type) -> Json:
    """JSON form of a type; null represents dynamic dimensions and unknown element types."""
    match ty:
        case TensorType():
            shape = None if has_unknown_rank(ty) else [dim if isinstance(dim, int) else None for dim in ty.shape]
            return {"dtype": None if isinstance(ty.dtype, DtypeVar) else ty.dtype, "shape": shape}
        case TupleType():
            return {"tuple": [type_to_json(field) for field in ty.fields]}
        case FuncType():
            return {"function": [type_to_json(arg) for arg in ty.arg_types], "result": type_to_json(ty.ret_type)}
        case RefType():
            return {"ref": type_to_json(ty.value)}
        case GlobalTypeVar():
            return {"data": ty.name, "args": []}
        case TypeCall(func=GlobalTypeVar(name=name)):
            return {"data": name, "args": [type_to_json(arg) for arg in ty.args]}
        case TypeVar():
            return {"var": ty.name, "kind": ty.kind.value}
        case DimType():
            return {"dim": ty.dim if isinstance(ty.dim, int) else None}
        case ShapeType():
            return {"dims": [dim if isinstance(dim, int) else None for dim in ty.shape]}
        case _:
            raise UnsupportedError(f"a host value must have a type that inference found, not {ty}")


def type_from_json(row: Json) -> Type:
    """Inverse of `type_to_json`; unknown parts stay unknown, under new names."""
    match row:
        case {"shape": shape, "dtype": dtype}:
            dims = TypeVar("s", Kind.SHAPE).shape if shape is None else _dims(shape)
            return TensorType(dims, TypeVar("t", Kind.BASE_TYPE).dtype if dtype is None else dtype)
        case {"tuple": fields}:
            return TupleType([type_from_json(field) for field in fields])
        case {"function": args, "result": result}:
            return FuncType(tuple(type_from_json(arg) for arg in args), type_from_json(result))
        case {"ref": value}:
            return RefType(type_from_json(value))
        case {"data": name, "args": args}:
            head = GlobalTypeVar(name)
            return TypeCall(head, tuple(type_from_json(arg) for arg in args)) if args else head
        case {"var": name, "kind": kind}:
            return TypeVar(name, Kind(kind))
        case {"dim": dim}:
            return DimType(_dims([dim])[0])
        case {"dims": dims}:
            return ShapeType(_dims(dims))
        case _:
            raise ArtifactError(f"a stored type must be a tensor, a tuple or another type of Relay, not {row!r:.60}")


def _dims(row: Sequence[int | None]) -> tuple[Dim, ...]:
    """Raises ArtifactError."""
    if any(dim is not None and (type(dim) is not int or dim < 0) for dim in row):
        raise ArtifactError(f"a stored shape must be of integers of at least 0, or null, not {row!r:.60}")
    return tuple(ANY if dim is None else dim for dim in row)


def attrs_to_json(attrs: Any) -> Json:
    """Fields of an attribute record; tuples become lists. Raises UnsupportedError."""
    if attrs is None:
        return None
    return {f.name: _attr(getattr(attrs, f.name)) for f in dataclasses.fields(attrs)}


def _attr(value: Any) -> Json:
    match value:
        case None | bool() | str():
            return value
        case np.bool_() | np.integer() | np.floating():
            return _attr(value.item())
        case int():
            return value
        case float():
            return value if math.isfinite(value) else {"float": repr(value)}
        case tuple() | list():
            return [_attr(item) for item in value]
        case _:
            raise UnsupportedError(f"an attribute must be a number, text or a tuple of them, not {value!r}")


def attrs_from_json(op: Op, row: Json) -> Any:
    """Inverse of `attrs_to_json` for the attributes of an operator. Raises ArtifactError."""
    if row is None or op.attrs_type is None:
        return None
    try:
        return build_attributes(op, {key: _value(value) for key, value in row.items()})
    except AttributeFault as fault:
        raise ArtifactError(str(fault)) from None


def _value(row: Json) -> Any:
    match row:
        case list():
            return tuple(_value(item) for item in row)
        case {"float": text}:
            return float(text)
        case _:
            return row


def flat_to_json(function: FlatFunction, pool: ConstantPool) -> Json:
    """JSON form of a function; its constants go to `pool`. Branches, arms and bodies stand in a list of their own,
    `inner`, by number. Raises UnsupportedError."""
    functions = nested(function)
    numbers = {inner: number for number, inner in enumerate(functions[1:])}
    rows = [
        {
            "name": one.name,
            "nodes": [_node_to_json(node, pool, numbers) for node in one.nodes],
            "result": one.result,
        }
        for one in functions
    ]
    return rows[0] | {"inner": rows[1:]} if rows[1:] else rows[0]


def flat_from_json(row: Json, pool: ConstantPool) -> FlatFunction:
    """Inverse of `flat_to_json`. Raises ArtifactError for rows that describe no function."""
    try:
        inner: dict[int, FlatFunction] = {}
        rows = row.get("inner", [])
        # An inner function comes after the function that contains it.
        for number in reversed(range(len(rows))):
            inner[number] = _function_from_json(rows[number], pool, inner)
        return _function_from_json(row, pool, inner)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ArtifactError(f"a stored host function must have name, nodes and result ({error!r})") from None


def _function_from_json(row: Json, pool: ConstantPool, inner: Mapping[int, FlatFunction]) -> FlatFunction:
    if not isinstance(row["name"], str):
        raise TypeError("the name of a function must be text")
    nodes: list[FlatNode] = []
    for entry in row["nodes"]:
        node = _node_from_json(entry, pool, inner)
        if any(not 0 <= index < len(nodes) for index in uses(node)):
            raise ArtifactError(f"function {row['name']}: node {len(nodes)} must use earlier nodes only")
        _check_inner(node, row["name"])
        nodes.append(node)
    if not 0 <= row["result"] < len(nodes):
        raise ArtifactError(f"function {row['name']}: result must be a node, not {row['result']}")
    return FlatFunction(row["name"], tuple(nodes), row["result"])


def _check_inner(node: FlatNode, name: str) -> None:
    """The parameters of a branch, an arm or a body must be what its node gives it."""
    match node:
        case FlatIf():
            wanted = [(node.then, len(node.captured)), (node.otherwise, len(node.captured))]
        case FlatMatch():
            wanted = [(arm.body, len(node.captured) + binders(arm.pattern)) for arm in node.arms]
        case FlatClosure(type=FuncType(arg_types=args)):
            wanted = [(node.function, len(node.captured) + node.is_recursive + len(args))]
        case _:
            return
    for function, count in wanted:
        if len(function.params) != count:
            found = len(function.params)
            raise ArtifactError(f"function {name}: an inner function must have {count} parameters, not {found}")


def _node_to_json(node: FlatNode, pool: ConstantPool, numbers: Mapping[FlatFunction, int]) -> Json:
    match node:
        case FlatInput():
            return {"input": node.name, "type": type_to_json(node.type)}
        case FlatConstant():
            return {"constant": pool.add(node.data)}
        case FlatCall():
            return call_to_json(node)
        case FlatInvoke():
            return {"invoke": node.function, "args": list(node.args), "type": type_to_json(node.type)}
        case FlatTuple():
            return {"tuple": list(node.fields)}
        case FlatGet():
            return {"get": node.source, "index": node.index}
        case FlatIf():
            branches = {"then": numbers[node.then], "otherwise": numbers[node.otherwise]}
            return {"if": node.cond, "captured": list(node.captured), **branches, "type": type_to_json(node.type)}
        case FlatMatch():
            arms = [{"pattern": _pattern_to_json(arm.pattern), "body": numbers[arm.body]} for arm in node.arms]
            return {"match": node.data, "captured": list(node.captured), "arms": arms, "type": type_to_json(node.type)}
        case FlatClosure():
            return {
                "closure": numbers[node.function],
                "captured": list(node.captured),
                "recursive": node.is_recursive,
                "type": type_to_json(node.type),
            }
        case FlatGlobal():
            return {"global": node.function, "type": type_to_json(node.type)}
        case FlatApply():
            return {"apply": node.callee, "args": list(node.args), "type": type_to_json(node.type)}
        case FlatConstruct():
            return _construct_to_json(node)
        case FlatRefNew():
            return {"ref_new": node.value, "type": type_to_json(node.type)}
        case FlatRefRead():
            return {"ref_read": node.ref, "type": type_to_json(node.type)}
        case FlatRefWrite():
            return {"ref_write": node.ref, "value": node.value}


def _construct_to_json(node: FlatConstruct) -> Json:
    made = node.constructor
    return {
        "construct": made.name_hint,
        "of": made.belong_to.name,
        "tag": made.tag,
        "inputs": [type_to_json(ty) for ty in made.inputs],
        "fields": list(node.fields),
        "type": type_to_json(node.type),
    }


def _pattern_to_json(pattern: FlatPattern) -> Json:
    match pattern:
        case FlatAny():
            return {"binds": pattern.binds}
        case FlatFields():
            return {"constructor": pattern.constructor, "patterns": [_pattern_to_json(p) for p in pattern.patterns]}


def _pattern_from_json(row: Json) -> FlatPattern:
    if "binds" in row:
        return FlatAny(bool(row["binds"]))
    return FlatFields(row["constructor"], tuple(_pattern_from_json(part) for part in row["patterns"]))


def call_to_json(call: FlatCall) -> Json:
    """JSON form of one operator call."""
    row = {"call": call.op.name, "args": list(call.args), "type": type_to_json(call.type)}
    return row if call.attrs is None else row | {"attrs": attrs_to_json(call.attrs)}


def _node_from_json(row: Mapping[str, Json], pool: ConstantPool, inner: Mapping[int, FlatFunction]) -> FlatNode:
    match row:
        case {"input": str(name), "type": ty}:
            return FlatInput(name, type_from_json(ty))
        case {"constant": entry}:
            return FlatConstant(pool.get(entry))
        case {"call": _}:
            return call_from_json(row)
        case {"invoke": str(name), "args": args, "type": ty}:
            return FlatInvoke(name, tuple(args), type_from_json(ty))
        case {"tuple": fields}:
            return FlatTuple(tuple(fields))
        case {"get": source, "index": index}:
            return FlatGet(source, index)
        case {"if": cond, "captured": captured, "then": then, "otherwise": otherwise, "type": ty}:
            return FlatIf(cond, tuple(captured), inner[then], inner[otherwise], type_from_json(ty))
        case {"match": data, "captured": captured, "arms": arms, "type": ty}:
            parts = tuple(FlatArm(_pattern_from_json(arm["pattern"]), inner[arm["body"]]) for arm in arms)
            return FlatMatch(data, tuple(captured), parts, type_from_json(ty))
        case {"closure": body, "captured": captured, "recursive": is_recursive, "type": ty}:
            return FlatClosure(inner[body], tuple(captured), bool(is_recursive), type_from_json(ty))
        case {"global": str(name), "type": ty}:
            return FlatGlobal(name, type_from_json(ty))
        case {"apply": callee, "args": args, "type": ty}:
            return FlatApply(callee, tuple(args), type_from_json(ty))
        case {"construct": str(name), "of": str(data), "tag": int(tag), "inputs": inputs, "fields": fields, "type": ty}:
            made = Constructor(name, [type_from_json(part) for part in inputs], GlobalTypeVar(data), tag)
            return FlatConstruct(made, tuple(fields), type_from_json(ty))
        case {"ref_new": value, "type": ty}:
            return FlatRefNew(value, type_from_json(ty))
        case {"ref_read": ref, "type": ty}:
            return FlatRefRead(ref, type_from_json(ty))
        case {"ref_write": ref, "value": value}:
            return FlatRefWrite(ref, value)
        case _:
            raise ArtifactError(f"a stored node must be an input, a constant, a call or a tuple, not {sorted(row)}")


def call_from_json(row: Mapping[str, Json]) -> FlatCall:
    """Inverse of `call_to_json`. Raises UnsupportedError for an unknown operator."""
    from relay_hw import op as ops

    op = ops.get(row["call"])
    attrs = attrs_from_json(op, row.get("attrs"))
    return FlatCall(op, tuple(row["args"]), attrs, type_from_json(row["type"]))
