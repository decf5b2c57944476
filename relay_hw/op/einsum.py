"""The operator einsum: sums of products by Einstein's convention.

In: types, attributes, arrays. Out: types, arrays, `Call` nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_letters
from typing import Any as AnyValue

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, Op, Solver
from relay_hw.ir.expr import Tuple as TupleExpr
from relay_hw.ir.types import Dim, TensorType, Type
from relay_hw.op.base import ANCHOR, Array, Attrs, call, out_type, same_dim, same_dtype, tensor_tuple
from relay_hw.op.gradients.common import ops, parts_of
from relay_hw.op.gradients.selection import identity, places_of, size_of

__all__ = ["einsum"]


@dataclass(frozen=True, slots=True)
class EinsumAttrs(Attrs):
    equation: str = ""


def _terms(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The letters of each argument and of the result, with ellipses expanded to unused capital letters."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    sides = left.split(",")
    if len(sides) != len(ranks):
        raise TypeCheckError(f"the equation of einsum must have {len(ranks)} terms, not {equation!r}")
    spare = [letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if letter not in text]
    wide = max((rank - len(side) + 3 for side, rank in zip(sides, ranks, strict=True) if "..." in side), default=0)
    dots = "".join(spare[:wide])
    found: list[str] = []
    for side, rank in zip(sides, ranks, strict=True):
        count = rank - len(side) + 3 if "..." in side else 0
        term = side.replace("...", dots[len(dots) - count :] if count > 0 else "")
        if len(term) != rank or not (term.isalpha() or not term):
            raise TypeCheckError(f"a term of einsum must name {rank} axes, not {side!r}")
        found.append(term)
    if not arrow:
        letters = "".join(found)
        right = "..." * bool(dots) + "".join(sorted(x for x in set(letters) - set(dots) if letters.count(x) == 1))
    return found, right.replace("...", dots)


def _einsum_type(types: Sequence[Type], attrs: EinsumAttrs, solver: Solver) -> Type | None:
    parts = tensor_tuple("einsum", types)
    if parts is None:
        return None
    dtype = same_dtype("einsum", *parts)
    terms, result = _terms(attrs.equation, [part.rank for part in parts])
    sizes: dict[str, Dim] = {}
    for term, part in zip(terms, parts, strict=True):
        for letter, dim in zip(term, part.shape, strict=True):
            known = sizes.get(letter, dim)
            if not same_dim(known, dim) and 1 not in (known, dim):
                raise TypeCheckError(f"axes {letter} of einsum must have one size, not {known} and {dim}")
            sizes[letter] = dim if known == 1 or not isinstance(known, int) else known
    if any(letter not in sizes for letter in result) or len(set(result)) != len(result):
        raise TypeCheckError(f"the result of einsum must name axes of its terms once each, not be {attrs.equation!r}")
    return TensorType([sizes[letter] for letter in result], dtype)


def _einsum(attrs: EinsumAttrs, values: Sequence[AnyValue], result: Type) -> Array:
    # numpy's einsum does not know bfloat16.
    parts = [np.asarray(part, np.float32 if part.dtype.kind == "V" else None) for part in values[0]]
    return np.asarray(np.einsum(attrs.equation.replace(" ", ""), *parts)).astype(out_type(result).dtype)


def _einsum_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The adjoint of a factor is an einsum of the result's adjoint with the other factors."""
    parts = parts_of(call.args[0])
    terms, result = _terms(call.attrs.equation, [part.tensor_type.rank for part in parts])
    return (TupleExpr([_factor_slope(parts, terms, result, at, adjoint) for at in range(len(parts))]),)


def _factor_slope(parts: Sequence[Expr], terms: Sequence[str], result: str, at: int, adjoint: Expr) -> Expr:
    """An axis that nothing else names is filled with ones, an axis that is named twice is a diagonal."""
    op, x = ops(), parts[at]
    dtype = x.tensor_type.dtype
    others = [(part, term) for index, (part, term) in enumerate(zip(parts, terms, strict=True)) if index != at]
    factors = [(adjoint, result), *others]
    spare = iter(sorted(set(ascii_letters) - set("".join(terms)) - set(result)))
    wanted = ""
    for axis, letter in enumerate(terms[at]):
        if letter in wanted:
            twin = next(spare)
            factors.append((identity(size_of(x, axis), x), letter + twin))
            letter = twin
        elif not any(letter in term for _, term in factors):
            factors.append((op.cast(op.ones_like(places_of(size_of(x, axis))), dtype), letter))
        wanted += letter
    equation = ",".join(term for _, term in factors) + "->" + wanted
    # Of an axis of size 1 that was repeated, the repetitions are added up.
    return op.collapse_sum_like(einsum([factor for factor, _ in factors], equation), x)


EINSUM = Op(
    "einsum",
    1,
    _einsum_type,
    _einsum,
    attrs_type=EinsumAttrs,
    gradient=_einsum_gradient,
    traits=ANCHOR,
    doc="products summed by Einstein's convention",
)


def einsum(data: Expr | Sequence[Expr], equation: str) -> Call:
    """The sum of products of the tensors of `data` that `equation` writes in numpy's notation."""
    return call(EINSUM, (data if isinstance(data, Expr) else TupleExpr(tuple(data)),), EinsumAttrs(equation))


OPS = (EINSUM,)
