"""Lowers Relay operators to Relax and TE, one family per file; other operators run on numpy."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from relay_hw.backend.tvm.ops import broadcast, elementwise, linear, norm, pool, quantized, reduce, rows, shape
from relay_hw.backend.tvm.ops.base import Arg, Context, Lowering, tensor

FAMILIES = (elementwise, broadcast, linear, pool, norm, reduce, shape, quantized, rows)
LOWERINGS: Mapping[str, Lowering] = MappingProxyType(
    {name: lowering for family in FAMILIES for name, lowering in family.LOWERINGS.items()}
)
__all__ = ["LOWERINGS", "Arg", "Context", "Lowering", "tensor"]
