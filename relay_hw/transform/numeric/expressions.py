"""Elementwise expressions of a function: read from Relay as terms, and written back.

In: a typed function. Out: its expressions; and for what stands for one, typed calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from relay_hw.ir.expr import Call, Expr, Function, Op
from relay_hw.ir.visit import children, post_order
from relay_hw.transform.graph import constant, dtype_of, make, op_name, scalar_value
from relay_hw.transform.numeric.pieces import Pieces
from relay_hw.transform.numeric.terms import ARITY, Apply, Argument, Number, Term, arguments, subterms

# Expressions are cut where they would have more operators.
_MOST_OPERATORS: Final = 24
# These lose nothing, so that alone they are not worth a search.
_EXACT: Final = frozenset({"negative", "abs"})


@dataclass(frozen=True, slots=True)
class Expression:
    """An elementwise expression: the call that gives its result, its term, and what the term's arguments stand for."""

    root: Expr
    term: Term
    leaves: Mapping[str, Expr]


def expressions(function: Function, *, repeats: bool) -> list[Expression]:
    """The largest elementwise float32 expressions of a function that are worth a search.

    An expression ends at what other operators read as well, unless it `repeats` that.
    """
    nodes = list(post_order(function))
    outside = {part for node in nodes if not _is_elementwise(node) for part in children(node)}
    shared = {part for node in nodes for part in children(node)} & outside if not repeats else set[Expr]()
    waiting = [node for node in nodes if node in outside and _is_elementwise(node)]
    found: dict[Expr, Expression] = {}
    while waiting:
        root = waiting.pop()
        if root in found:
            continue
        one = _expression(root, shared - {root})
        found[root] = one
        # Where an expression was cut, another one ends.
        waiting += [leaf for leaf in one.leaves.values() if _is_elementwise(leaf)]
    return [found[node] for node in nodes if node in found and _is_worth(found[node].term)]


def _is_elementwise(node: Expr) -> bool:
    return (
        isinstance(node, Call)
        and isinstance(node.op, Op)
        and op_name(node) in ARITY
        and dtype_of(node) == "float32"
        and all(dtype_of(one) == "float32" for one in node.args)
    )


def _is_worth(term: Term) -> bool:
    inside = [one.op for one in subterms(term) if isinstance(one, Apply)]
    return len(inside) > 1 and not _EXACT.issuperset(inside) and len(arguments(term)) > 0


def _expression(root: Expr, ends: set[Expr]) -> Expression:
    """The term of `root`, down to what is not elementwise, to `ends`, or to the bound on operators."""
    inside: dict[Expr, None] = {}
    level = [root]
    while level and len(inside) < _MOST_OPERATORS:
        inside.update(dict.fromkeys(level[: _MOST_OPERATORS - len(inside)]))
        level = [
            one
            for node in level
            if node in inside
            for one in _args(node)
            if _is_elementwise(one) and one not in inside and one not in ends
        ]
    names: dict[Expr, str] = {}
    terms: dict[Expr, Term] = {}
    for node in _inner_order(root, inside):
        number = None if node in inside else _number(node)
        if node in inside:
            terms[node] = Apply(op_name(node), [terms[one] for one in _args(node)])
        elif number is not None:
            terms[node] = Number(number)
        else:
            terms[node] = Argument(names.setdefault(node, f"x{len(names)}"))
    return Expression(root, terms[root], {name: leaf for leaf, name in names.items()})


def _args(node: Expr) -> Sequence[Expr]:
    """The arguments of a call."""
    assert isinstance(node, Call)
    return node.args


def _inner_order(root: Expr, inside: Mapping[Expr, None]) -> list[Expr]:
    """The nodes of an expression and its leaves, arguments first."""
    order: dict[Expr, None] = {}
    stack = [(root, False)]
    while stack:
        node, is_done = stack.pop()
        if is_done or node not in inside:
            order[node] = None
        elif node not in order:
            stack.append((node, True))
            stack.extend((one, False) for one in reversed(_args(node)))
    return list(order)


def _number(node: Expr) -> Fraction | None:
    """The number that a leaf is everywhere, exactly; None for others and for what is not finite."""
    value = scalar_value(node)
    return Fraction(value) if value is not None and np.isfinite(value) else None


def written(pieces: Pieces, one: Expression) -> Expr:
    """The typed expression that computes `pieces` on the leaves of `one`."""
    made: dict[Term, Expr] = {}
    result = _written(pieces.terms[-1], one, made)
    for bound, term in reversed(list(zip(pieces.bounds, pieces.terms, strict=False))):
        below = make("less", (one.leaves[pieces.argument], constant(np.float32(bound))), span=one.root.span)
        result = make("where", (below, _written(term, one, made), result), span=one.root.span)
    return result


def _written(root: Term, one: Expression, made: dict[Term, Expr]) -> Expr:
    """A term as typed calls; equal subterms are one node."""
    for term in subterms(root):
        if term in made:
            continue
        match term:
            case Number(value=value):
                made[term] = constant(np.float32(float(value)), one.root.span)
            case Argument(name=name):
                made[term] = one.leaves[name]
            case Apply():
                made[term] = make(term.op, [made[part] for part in term.args], span=one.root.span)
    return made[root]
