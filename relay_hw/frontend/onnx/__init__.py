"""The ONNX importer: one file for each family of operators.

What onnx defines by other operators is written out by that definition unless it has a converter. Sizes that a model
leaves open have names while a graph is converted (`sizes.py`), so what does not depend on them stays known.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from relay_hw.frontend.onnx import (
    algebra,
    cast,
    contrib_quantized,
    control,
    conv,
    dense,
    elementwise,
    image,
    indexing,
    learning,
    norm,
    pool,
    qlinear,
    qonnx,
    quantize,
    recurrent,
    reduce,
    resize,
    sequence,
    shape,
)
from relay_hw.frontend.onnx.node import Converter

FAMILIES: Final = (
    *(conv, pool, dense, norm, elementwise, reduce, shape, resize, cast, indexing, image, algebra, learning),
    *(quantize, qlinear, contrib_quantized, qonnx, recurrent),
    *(control, sequence),
)
CONVERTERS: Final = MappingProxyType(
    {
        converter.operator: converter
        for family in FAMILIES
        for converter in family.CONVERTERS
        if converter.domain == "ai.onnx"
    }
)
FOREIGN: Final = MappingProxyType(
    {
        (converter.domain, converter.operator): converter
        for family in FAMILIES
        for converter in family.CONVERTERS
        if converter.domain != "ai.onnx"
    }
)


def find_converter(domain: str, operator: str) -> Converter | None:
    """The converter of an operator; None if there is none."""
    return CONVERTERS.get(operator) if domain == "ai.onnx" else FOREIGN.get((domain, operator))


__all__ = ["CONVERTERS", "FAMILIES", "FOREIGN", "Converter", "find_converter"]
