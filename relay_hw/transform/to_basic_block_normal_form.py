"""ToBasicBlockNormalForm: binds nodes that several blocks share by `let`; inside a block the graph stays a graph."""

from __future__ import annotations

from relay_hw.analysis.scope import find_scopes
from relay_hw.ir.expr import Expr, Function, If, Match
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import children, post_order
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import is_external
from relay_hw.transform.normal_form import ATOMS, normalize


class ToBasicBlockNormalForm(FunctionPass):
    """Binds by a `let` each node that is used in another block (function body, branch, arm) than its own."""

    name = "to-basic-block-normal-form"
    opt_level = 1
    pins_effects = True

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function):
            return function
        shared = crossing(function)
        return normalize(function, shared.__contains__) if shared else function


def crossing(root: Expr) -> set[Expr]:
    """The nodes, atoms left out, that are used in a block inside the one that they belong to."""
    scopes = find_scopes(root)
    found: set[Expr] = set()
    for node in post_order(root):
        if node not in scopes.of:
            continue
        here = scopes.of[node].block
        inner = _block_parts(node)
        for part in children(node):
            if part not in scopes.of or isinstance(part, ATOMS):
                continue
            home = scopes.of[part].block
            if home.owner is not node if part in inner else home is not here:
                found.add(part)
    return found


def _block_parts(node: Expr) -> tuple[Expr, ...]:
    """The parts of `node` that are blocks."""
    match node:
        case Function(body=body):
            return (body,)
        case If(true_branch=then, false_branch=other):
            return (then, other)
        case Match(clauses=clauses):
            return tuple(clause.rhs for clause in clauses)
        case _:
            return ()


def is_basic_block_normal_form(root: Expr) -> bool:
    """Whether no block uses a node of another one but by name."""
    return not crossing(root)
