"""Which nodes of a model can be imported. In: a model as it was read. Out: nothing, or one error with every reason."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from relay_hw.errors import UnsupportedError
from relay_hw.frontend.onnx import CONVERTERS, find_converter
from relay_hw.frontend.onnx.functions import has_definition
from relay_hw.frontend.onnx.node import Node, Subgraph
from relay_hw.frontend.onnx.source import Source

_RANDOM = "results must not be random: give the numbers as an input"
_WORDS = "tensors must hold numbers, not words: compute this before the model"
# Why some operators have no converter, and what to do instead.
HINTS = {
    **dict.fromkeys(
        ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"), _RANDOM
    ),
    **dict.fromkeys(("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"), _WORDS),
    "ImageDecoder": "images must be decoded before the model: give their pixels as an input",
}
# Exceptions of converters and numpy for invalid inputs and attributes.
UNFIT = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def check_supported(source: Source) -> None:
    """Raise UnsupportedError if nodes cannot be imported; the message lists all of them."""
    refuse(source, _reasons(source.nodes, set(source.arrays)))


def _reasons(nodes: Sequence[Node], known: set[str]) -> list[str]:
    """Reasons why nodes cannot be imported, also nodes of inner graphs."""
    found: list[str] = []
    for node in nodes:
        reason = _why_not(node, known)
        if reason is not None:
            found.append(f"{node.operator} (node {node.name}, opset {node.opset}): {reason}")
        for inner in node.attrs.values():
            if isinstance(inner, Subgraph):
                found += _reasons(inner.nodes, known | set(inner.arrays))
        if node.operator in ("Shape", "Size") or all(name in known for name in node.inputs if name):
            known.update(node.outputs)
    return found


def refuse(source: Source, reasons: Sequence[str]) -> None:
    """Raise UnsupportedError with all `reasons`, if there are any."""
    if reasons:
        count = f"{len(reasons)} node{'s' * (len(reasons) > 1)}"
        raise UnsupportedError(
            f"every node of {source.name} must be one that can be imported, not {count}: {'; '.join(reasons)}"
        )


def _why_not(node: Node, known: set[str]) -> str | None:
    converter = find_converter(node.domain, node.operator)
    if converter is None:
        hint = HINTS.get(node.operator) if node.domain == "ai.onnx" else None
        if hint is not None:
            return hint
        where = "" if node.domain == "ai.onnx" else f" of domain {node.domain}"
        return f"no converter knows this operator{where}{_nearest(node)}"
    try:
        return None if converter.check is None else converter.check(node, known)
    except UNFIT:  # onnx's checker comes behind the conversion
        return "it must have the attributes that it is defined with, each of its kind"


def _nearest(node: Node) -> str:
    """The most similar operator with a converter, as the end of a sentence."""
    if node.domain != "ai.onnx" and (node.operator in CONVERTERS or has_definition("", node.operator)):
        return f"; ai.onnx has {node.operator}"
    short = sorted(name for name in CONVERTERS if len(name) > 3 and node.operator.startswith(name))
    near = short[-1:] or get_close_matches(node.operator, CONVERTERS, 1, 0.75)
    return f"; the nearest that has one is {near[0]}" if near else ""
