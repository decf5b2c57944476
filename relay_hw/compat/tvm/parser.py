"""TVM's `tvm.parser`: Relay text to modules."""

from __future__ import annotations

from relay_hw.compat.tvm.module import IRModule, as_module
from relay_hw.ir.expr import Expr
from relay_hw.text import parse as _parse
from relay_hw.text import parse_expr as _parse_expr


def parse(source: str, source_name: str = "from_string") -> IRModule:
    """The module that `source` describes."""
    return as_module(_parse(source, source_name))


fromtext = parse


def parse_expr(source: str) -> Expr:
    """The expression that `source` describes."""
    return _parse_expr(source)
