"""The nodes of TVM's JSON: which fields of a node refer to other nodes. Shared by its reader and its writer."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# For each kind of node the fields that name other nodes. Prefixes such as `relay.` are left out.
REFERENCES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "Var": ("vid", "type_annotation"),
        "Id": (),
        "GlobalVar": (),
        "Constant": (),
        "Tuple": ("fields",),
        "TupleGetItem": ("tuple_value",),
        "Call": ("op", "args", "attrs", "type_args"),
        "Let": ("var", "value", "body"),
        "If": ("cond", "true_branch", "false_branch"),
        "Function": ("params", "body", "ret_type", "type_params", "attrs"),
        "RefCreate": ("value",),
        "RefRead": ("ref",),
        "RefWrite": ("ref", "value"),
        "Constructor": ("inputs", "belong_to"),
        "Match": ("data", "clauses"),
        "Clause": ("lhs", "rhs"),
        "PatternWildcard": (),
        "PatternVar": ("var",),
        "PatternConstructor": ("constructor", "patterns"),
        "PatternTuple": ("patterns",),
        "TensorType": ("shape",),
        "TupleType": ("fields",),
        "FuncType": ("arg_types", "ret_type", "type_params"),
        "TypeVar": (),
        "GlobalTypeVar": (),
        "TypeCall": ("func", "args"),
        "RefType": ("value",),
        "IncompleteType": (),
        "TypeData": ("header", "type_vars", "constructors"),
        "IRModule": ("functions", "type_definitions"),
        "DictAttrs": ("__dict__",),
        "IntImm": (),
        "FloatImm": (),
        "Any": (),
        "SizeVar": (),
        "Op": (),
        "String": (),
        "Array": (),
        "Map": (),
    }
)

# Records of operators whose one integer is an object in TVM, although it looks like a plain number here.
OBJECT_INTEGERS: Final = frozenset(
    {
        ("StackAttrs", "axis"),
        ("ReverseAttrs", "axis"),
        ("RepeatAttrs", "repeats"),
        ("RepeatAttrs", "axis"),
        ("TakeAttrs", "axis"),
        ("TakeAttrs", "batch_dims"),
        ("GatherAttrs", "axis"),
        ("GatherNDAttrs", "batch_dims"),
        ("ScanopAttrs", "axis"),
        ("ScanopAttrs", "exclusive"),
        ("TopKAttrs", "k"),
        ("OneHotAttrs", "depth"),
    }
)


def kind_of(type_key: str) -> str:
    """The kind of a node without its prefix: `relay.Call` and `Call` are the same."""
    return type_key.rpartition(".")[2]
