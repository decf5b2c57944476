"""Checks the size of a typed module at run time: every result, and all constants that are folded before.

In: a typed module, limits. Out: nothing, or InputError where a few characters of text ask for more memory than that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from relay_hw.analysis.folding import tensors_of, width_of
from relay_hw.ir.expr import Call, Constant, Expr, Let, Op, Tuple, TupleGetItem
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import post_order
from relay_hw.limits import OF_WEIGHTS, Limits, product
from relay_hw.span import Span


def check_sizes(mod: IRModule, limits: Limits, source: str) -> IRModule:
    """Return `mod` if no result exceeds `limits`, nor all computed constants together.

    `source`: the file, which messages name where a node has no place in it. Raises InputError.
    """
    given, computed = 0, 0
    for name, function in mod.functions.items():
        whole = Span(f"{source}, @{name}")
        fixed: set[Expr] = set()
        bound: dict[Expr, Expr] = {node.var: node.value for node in post_order(function) if isinstance(node, Let)}
        for node in post_order(function):
            tensors = tensors_of(node.checked_type) if node.checked_type is not None else []
            # JSON remembers the places of the text that it was made of.
            span = node.span if node.span is not None and node.span.source == source else whole
            for tensor in tensors:
                limits.check("tensor_elements", "the elements of a result", _elements(tensor), span)
            if isinstance(node, Constant):
                given += node.data.nbytes
            if not _is_fixed(node, fixed, bound):
                continue
            fixed.add(node)
            if isinstance(node, Call):
                computed += sum(_elements(tensor) * width_of(tensor.dtype) for tensor in tensors)
                beyond = max(computed - OF_WEIGHTS * given, 0)
                limits.check("folded_bytes", "the bytes of computed constants beyond the weights", beyond, span)
    return mod


def _is_fixed(node: Expr, fixed: Collection[Expr], bound: Mapping[Expr, Expr]) -> bool:
    """Whether a node's value depends on constants alone. `fixed`: the nodes below it that do; `bound`: by variable."""
    match node:
        case Constant():
            return True
        case Call(op=Op(), args=parts) | Tuple(fields=parts):
            # A variable comes before its value in the order of a walk, and is asked for by those that read it.
            return all(part in fixed or bound.get(part) in fixed for part in parts)
        case TupleGetItem(tuple_value=part) | Let(body=part):
            return part in fixed or bound.get(part) in fixed
        case _:
            return False


def _elements(tensor: TensorType) -> int:
    """Number of elements; dynamic sizes, which depend on data, count as 1."""
    return product(dim for dim in tensor.shape if isinstance(dim, int))
