"""Isolates operator calls as packed functions with descriptive names.

In: a flat call and the types of its arguments. Out: a flat function of tensors.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from relay_hw.backend.flat import FlatCall, FlatFunction, FlatInput, FlatNode, FlatTuple
from relay_hw.backend.store import ConstantPool, flat_to_json
from relay_hw.errors import UnsupportedError
from relay_hw.ir.types import TensorType, TupleType, Type

PACKED_PREFIX = "relay_hw.packed."


def leaves(ty: Type) -> list[TensorType]:
    """Tensors of a type, left to right. Raises UnsupportedError for what is neither tensor nor tuple."""
    match ty:
        case TensorType():
            return [ty]
        case TupleType():
            return [leaf for item in ty.fields for leaf in leaves(item)]
        case _:
            raise UnsupportedError(f"a host value must be a tensor or a tuple, not {ty}")


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
