"""TVM's `tvm.ir`: types, equality, JSON."""

from relay_hw.analysis import structural_equal, structural_hash
from relay_hw.compat.tvm import instrument, transform
from relay_hw.compat.tvm.byoc.registry import register_op_attr
from relay_hw.compat.tvm.graph_json import load_json, save_json
from relay_hw.compat.tvm.module import IRModule
from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Constructor, GlobalVar, Op
from relay_hw.ir.types import (
    FuncType,
    GlobalTypeVar,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
)
from relay_hw.ir.types import RefType as RelayRefType
from relay_hw.op import get as _get


def get_op(name: str) -> Op:
    """The operator of this name."""
    return _get(name)


def assert_structural_equal(lhs: object, rhs: object, map_free_vars: bool = False) -> None:
    """Raise ValueError unless both are the same program but for the names of variables."""
    if not structural_equal(lhs, rhs):  # type: ignore[arg-type]
        raise ValueError("StructuralEqual check failed: the programs must be equal")


__all__ = [
    "Constructor",
    "FuncType",
    "GlobalTypeVar",
    "GlobalVar",
    "IRModule",
    "Op",
    "RelayRefType",
    "TensorType",
    "TupleType",
    "Type",
    "TypeCall",
    "TypeCheckError",
    "TypeVar",
    "assert_structural_equal",
    "get_op",
    "instrument",
    "load_json",
    "register_op_attr",
    "save_json",
    "structural_equal",
    "structural_hash",
    "transform",
]
