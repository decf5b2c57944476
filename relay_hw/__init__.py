"""The public package: `import relay_hw as relay`. Everything is imported lazily, so that commands start at once."""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from relay_hw import (
        analysis,
        compare,
        dataflow_pattern,
        explore,
        frontend,
        interp,
        op,
        prelude,
        qnn,
        quantize,
        report,
        runtime,
        text,
        transform,
    )
    from relay_hw.backend.python_code import to_python
    from relay_hw.build_module import build, create_executor
    from relay_hw.ir.build import var
    from relay_hw.ir.expr import (
        Call,
        Clause,
        Constant,
        Constructor,
        Expr,
        Function,
        GlobalVar,
        If,
        Let,
        Match,
        Op,
        Pattern,
        PatternConstructor,
        PatternTuple,
        PatternVar,
        PatternWildcard,
        RefCreate,
        RefRead,
        RefWrite,
        Tuple,
        TupleGetItem,
        Var,
    )
    from relay_hw.ir.module import IRModule, TypeData
    from relay_hw.ir.types import (
        ANY,
        FuncType,
        GlobalTypeVar,
        IncompleteType,
        Kind,
        RefType,
        TensorType,
        TupleType,
        Type,
        TypeCall,
        TypeVar,
        scalar_type,
    )
    from relay_hw.op import const, nn
    from relay_hw.span import Span
    from relay_hw.text import load_json, load_param_dict, save_json, save_param_dict
    from relay_hw.text import parse as fromtext
    from relay_hw.text import print_expr as astext

_SUBMODULES = frozenset(
    ("analysis", "backend", "build_module", "compare", "compat", "dataflow_pattern", "explore", "frontend", "interp")
    + ("op", "prelude", "qnn", "quantize", "report", "runtime", "text", "transform")
)

_NODES = (
    *(
        "Call",
        "Clause",
        "Constant",
        "Constructor",
        "Expr",
        "Function",
        "GlobalVar",
        "If",
        "Let",
        "Match",
        "Op",
        "Pattern",
    ),
    *("PatternConstructor", "PatternTuple", "PatternVar", "PatternWildcard", "RefCreate", "RefRead", "RefWrite"),
    *("Tuple", "TupleGetItem", "Var"),
)
_TYPES = (
    *("ANY", "FuncType", "GlobalTypeVar", "IncompleteType", "Kind", "RefType", "TensorType", "TupleType", "Type"),
    *("TypeCall", "TypeVar", "scalar_type"),
)
# name -> (module, attribute)
_ELSEWHERE = {
    **{name: ("relay_hw.ir.expr", name) for name in _NODES},
    **{name: ("relay_hw.ir.types", name) for name in _TYPES},
    "IRModule": ("relay_hw.ir.module", "IRModule"),
    "Span": ("relay_hw.span", "Span"),
    "TypeData": ("relay_hw.ir.module", "TypeData"),
    "astext": ("relay_hw.text", "print_expr"),
    "build": ("relay_hw.build_module", "build"),
    "const": ("relay_hw.op", "const"),
    "create_executor": ("relay_hw.build_module", "create_executor"),
    "fromtext": ("relay_hw.text", "parse"),
    "load_json": ("relay_hw.text", "load_json"),
    "load_param_dict": ("relay_hw.text", "load_param_dict"),
    "nn": ("relay_hw.op", "nn"),
    "save_json": ("relay_hw.text", "save_json"),
    "save_param_dict": ("relay_hw.text", "save_param_dict"),
    "to_python": ("relay_hw.backend.python_code", "to_python"),
    "var": ("relay_hw.ir.build", "var"),
}

__all__ = [
    "ANY",
    "Call",
    "Clause",
    "Constant",
    "Constructor",
    "Expr",
    "FuncType",
    "Function",
    "GlobalTypeVar",
    "GlobalVar",
    "IRModule",
    "If",
    "IncompleteType",
    "Kind",
    "Let",
    "Match",
    "Op",
    "Pattern",
    "PatternConstructor",
    "PatternTuple",
    "PatternVar",
    "PatternWildcard",
    "RefCreate",
    "RefRead",
    "RefType",
    "RefWrite",
    "Span",
    "TensorType",
    "Tuple",
    "TupleGetItem",
    "TupleType",
    "Type",
    "TypeCall",
    "TypeData",
    "TypeVar",
    "Var",
    "__version__",
    "analysis",
    "astext",
    "build",
    "compare",
    "const",
    "create_executor",
    "dataflow_pattern",
    "explore",
    "fromtext",
    "frontend",
    "interp",
    "load_json",
    "load_param_dict",
    "nn",
    "op",
    "prelude",
    "qnn",
    "quantize",
    "report",
    "runtime",
    "save_json",
    "save_param_dict",
    "scalar_type",
    "text",
    "to_python",
    "transform",
    "var",
]


def __getattr__(name: str) -> Any:
    """Import submodules, and Relay's operators as `relay.add`, `relay.reshape`, ..., at their first use."""
    if name in _SUBMODULES:
        return importlib.import_module(f"relay_hw.{name}")
    if name in _ELSEWHERE:
        module, attribute = _ELSEWHERE[name]
        return getattr(importlib.import_module(module), attribute)
    if name == "__version__":
        return _version()
    if not name.startswith("_"):
        operators = importlib.import_module("relay_hw.op")
        if name in operators.__all__:
            return getattr(operators, name)
    raise AttributeError(f"relay_hw has no attribute {name!r}")


def _version() -> str:
    """The version of the installed distribution; a checkout that is only on the path has none."""
    try:
        return importlib.metadata.version("relay-hw")
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUBMODULES, *importlib.import_module("relay_hw.op").__all__})
