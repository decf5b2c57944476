"""Flat host functions as JSON, with their constants in one binary file.

In: `FlatFunction` and a `ConstantPool`. Out: plain JSON values and bytes, the same for the same function; and back.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from relay_hw.errors import ArtifactError, UnsupportedError
from relay_hw.ir.types import TensorType, TupleType, Type

CONSTANT_ALIGN = 64
Json = Any


class ConstantPool:
    """Arrays in one run of bytes, little-endian, each on a multiple of 64; equal arrays are stored once."""

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
        shape, dtype = tuple(row["shape"]), np.dtype(row["dtype"])
        size = math.prod(shape) * dtype.itemsize
        begin = row["offset"]
        if begin < 0 or begin + size > len(self._data):
            raise ArtifactError(f"constant must lie in the {len(self._data)} bytes stored, not at {begin}+{size}")
        raw = bytes(self._data[begin : begin + size])
        return np.frombuffer(raw, dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape)


def type_to_json(ty: Type) -> Json:
    """Tensors and tuples of them. Raises UnsupportedError for a type that has no value at run time."""
    match ty:
        case TensorType():
            try:
                return {"dtype": ty.dtype, "shape": list(ty.static_shape)}
            except ValueError as error:
                raise UnsupportedError(f"a host value's {error}") from None
        case TupleType():
            return {"tuple": [type_to_json(field) for field in ty.fields]}
        case _:
            raise UnsupportedError(f"a host value must be a tensor or a tuple, not {ty}")


def type_from_json(row: Json) -> Type:
    """Inverse of `type_to_json`."""
    if "tuple" in row:
        return TupleType([type_from_json(field) for field in row["tuple"]])
    return TensorType(row["shape"], row["dtype"])


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


def attrs_from_json(attrs_type: type | None, row: Json) -> Any:
    """Inverse of `attrs_to_json` for the attribute class of an operator."""
    if row is None or attrs_type is None:
        return None
    return attrs_type(**{key: _value(value) for key, value in row.items()})


def _value(row: Json) -> Any:
    match row:
        case list():
            return tuple(_value(item) for item in row)
        case {"float": text}:
            return float(text)
        case _:
            return row


def flat_to_json(function: FlatFunction, pool: ConstantPool) -> Json:
    """JSON form of a function; its constants go to `pool`. Raises UnsupportedError."""
    return {
        "name": function.name,
        "nodes": [_node_to_json(node, pool) for node in function.nodes],
        "result": function.result,
    }


def flat_from_json(row: Json, pool: ConstantPool) -> FlatFunction:
    """Inverse of `flat_to_json`. Raises ArtifactError for rows that describe no function."""
    try:
        nodes: list[FlatNode] = []
        for entry in row["nodes"]:
            node = _node_from_json(entry, pool)
            if any(not 0 <= index < len(nodes) for index in uses(node)):
                raise ArtifactError(f"function {row['name']}: node {len(nodes)} must use earlier nodes only")
            nodes.append(node)
        if not 0 <= row["result"] < len(nodes):
            raise ArtifactError(f"function {row['name']}: result must be a node, not {row['result']}")
        return FlatFunction(row["name"], tuple(nodes), row["result"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ArtifactError(f"a stored host function must have name, nodes and result ({error!r})") from None


def uses(node: FlatNode) -> Sequence[int]:
    """Nodes whose values `node` needs."""
    match node:
        case FlatCall() | FlatInvoke():
            return node.args
        case FlatTuple():
            return node.fields
        case FlatGet():
            return (node.source,)
        case _:
            return ()


def _node_to_json(node: FlatNode, pool: ConstantPool) -> Json:
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


def call_to_json(call: FlatCall) -> Json:
    """JSON form of one operator call."""
    row = {"call": call.op.name, "args": list(call.args), "type": type_to_json(call.type)}
    return row if call.attrs is None else row | {"attrs": attrs_to_json(call.attrs)}


def _node_from_json(row: Mapping[str, Json], pool: ConstantPool) -> FlatNode:
    match row:
        case {"input": name, "type": ty}:
            return FlatInput(name, type_from_json(ty))
        case {"constant": entry}:
            return FlatConstant(pool.get(entry))
        case {"call": _}:
            return call_from_json(row)
        case {"invoke": name, "args": args, "type": ty}:
            return FlatInvoke(name, tuple(args), type_from_json(ty))
        case {"tuple": fields}:
            return FlatTuple(tuple(fields))
        case {"get": source, "index": index}:
            return FlatGet(source, index)
        case _:
            raise ArtifactError(f"a stored node must be an input, a constant, a call or a tuple, not {sorted(row)}")


def call_from_json(row: Mapping[str, Json]) -> FlatCall:
    """Inverse of `call_to_json`. Raises UnsupportedError for an unknown operator."""
    from relay_hw import op as ops

    op = ops.get(row["call"])
    attrs = attrs_from_json(op.attrs_type, row.get("attrs"))
    return FlatCall(op, tuple(row["args"]), attrs, type_from_json(row["type"]))
