"""The ONNX frontend: one file for each family of operators."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from relay_hw.frontend.onnx import conv, dense, elementwise, norm, pool, quantize, reduce, resize, shape
from relay_hw.frontend.onnx.node import Converter

FAMILIES: Final = (conv, pool, dense, norm, elementwise, reduce, shape, resize, quantize)
CONVERTERS: Final = MappingProxyType(
    {converter.operator: converter for family in FAMILIES for converter in family.CONVERTERS}
)

__all__ = ["CONVERTERS", "FAMILIES", "Converter"]
