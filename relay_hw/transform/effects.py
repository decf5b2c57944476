"""Side effects: finds the effects of nodes, and pins them by lets, so that passes keep their order.

In: a typed module. Out: the effect of every node; or the module with every effect in a `let` of its own, and the work
that closures share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum

from relay_hw.analysis.call_graph import call_order
from relay_hw.analysis.scope import find_scopes
from relay_hw.ir.expr import (
    Call,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    Op,
    RefCreate,
    RefRead,
    RefWrite,
    Trait,
    Tuple,
    TupleGetItem,
    Var,
)
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import post_order
from relay_hw.transform.normal_form import normalize


class Effect(IntEnum):
    """Kinds of effects, from none to arbitrary."""

    PURE = 0  # may be moved, merged, repeated, dropped
    READ = 1  # makes or reads a reference: may be dropped
    WRITE = 2  # changes a reference, prints, or calls something unknown


Effects = dict[Expr, Effect]


def module_effects(mod: IRModule) -> dict[str, Effect]:
    """The effect of a call of each global function. Recursion as such is no effect."""
    known: dict[str, Effect] = {}
    for group in call_order(mod):
        known.update(dict.fromkeys(group, Effect.PURE))
        while True:
            found = {name: node_effects(mod[name], known)[mod[name].body] for name in group}
            if all(known[name] == effect for name, effect in found.items()):
                break
            known.update(found)
    return known


def node_effects(root: Expr, known: Mapping[str, Effect]) -> Effects:
    """The effect of each node below `root`; `known`: effects of global functions."""
    order = list(post_order(root))
    local = {node.var: node.value for node in order if isinstance(node, Let) and isinstance(node.value, Function)}
    calls = {function: Effect.PURE for function in local.values()}
    while True:
        effects: Effects = {}
        for node in order:
            effects[node] = _effect(node, effects, local, calls, known)
        found = {function: effects[function.body] for function in calls}
        if found == calls:
            return effects
        calls = found


def _effect(
    node: Expr,
    effects: Effects,
    local: Mapping[Var, Function],
    calls: Mapping[Function, Effect],
    known: Mapping[str, Effect],
) -> Effect:
    match node:
        case Call(op=op, args=args):
            own = _callee(op, effects, local, calls, known)
            return max(own, effects[op], *map(effects.__getitem__, args)) if args else max(own, effects[op])
        case Tuple(fields=fields):
            return max(map(effects.__getitem__, fields), default=Effect.PURE)
        case TupleGetItem(tuple_value=value):
            return effects[value]
        case Let(value=value, body=body):
            return max(effects[value], effects[body])
        case If(cond=cond, true_branch=then, false_branch=other):
            return max(effects[cond], effects[then], effects[other])
        case Match(data=data, clauses=clauses):
            return max(effects[data], *(effects[clause.rhs] for clause in clauses))
        case RefCreate(value=value):
            return max(Effect.READ, effects[value])
        case RefRead(ref=ref):
            return max(Effect.READ, effects[ref])
        case RefWrite():
            return Effect.WRITE
        case _:
            return Effect.PURE


def _callee(
    op: Expr,
    effects: Effects,
    local: Mapping[Var, Function],
    calls: Mapping[Function, Effect],
    known: Mapping[str, Effect],
) -> Effect:
    match op:
        case Op():
            return Effect.WRITE if op.has(Trait.EFFECT) else Effect.PURE
        case Constructor():
            return Effect.PURE
        case GlobalVar(name_hint=name):
            return known.get(name, Effect.WRITE)
        case Function(body=body):
            return effects[body]
        case Var() if op in local:
            return calls[local[op]]
        case _:
            return Effect.WRITE


def pin_effects(mod: IRModule) -> IRModule:
    """The module with every effect bound by its own `let`, in the order of evaluation.

    The result of a block needs no name. All other nodes are then pure, wherever they stand. So is work bound that a
    function uses and that belongs to a scope around it: were the other uses to go, it would be done at each call. The
    same object where that is so already. Functions of an external compiler stay as they are.
    """
    known = module_effects(mod)
    new = {name: _pin(function, known) for name, function in mod.functions.items()}
    if all(new[name] is function for name, function in mod.functions.items()):
        return mod
    return mod.with_functions(new)


def _pin(function: Function, known: Mapping[str, Effect]) -> Function:
    if "Compiler" in function.attrs:
        return function
    effects = node_effects(function, known)
    loud = [node for node, effect in effects.items() if effect]
    shared = _shared_work(function, effects)
    if not shared and (not loud or _is_pinned(function, loud)):
        return function
    return normalize(
        function,
        lambda node: (bool(effects[node]) or node in shared) and not isinstance(node, Let),
        names_results=False,
    )


def _shared_work(root: Function, nodes: Iterable[Expr]) -> set[Expr]:
    """What closures use of scopes around them and have no name for. Tuples and projections are no work."""
    if not any(isinstance(node, Function) and node is not root for node in nodes):
        return set()
    found: set[Expr] = set()
    stack = list(find_scopes(root).captured)
    while stack:
        match stack.pop():
            case Call() | If() | Match() as node:
                found.add(node)
            case Tuple(fields=fields):
                stack.extend(fields)
            case TupleGetItem(tuple_value=part) | Let(body=part):
                stack.append(part)
            case _:
                pass
    return found


def _is_pinned(function: Function, loud: list[Expr]) -> bool:
    """Whether every node of `loud` is the value of one `let` or the result of one block; a `let` stands in a block."""
    values: set[Expr] = set()
    sequence: set[Expr] = set()
    elsewhere: set[Expr] = set()
    for node in post_order(function):
        match node:
            case Let(value=value, body=body):
                (elsewhere if value in values else values).add(value)
                (elsewhere if body in sequence else sequence).add(body)
            case Function(body=body):
                (elsewhere if body in sequence else sequence).add(body)
            case If(cond=cond, true_branch=then, false_branch=other):
                elsewhere.add(cond)
                for part in (then, other):
                    (elsewhere if part in sequence else sequence).add(part)
            case Match(data=data, clauses=clauses):
                elsewhere.add(data)
                for clause in clauses:
                    (elsewhere if clause.rhs in sequence else sequence).add(clause.rhs)
            case Call(op=op, args=args):
                elsewhere.update(args)
                elsewhere.add(op)
            case Tuple(fields=fields):
                elsewhere.update(fields)
            case TupleGetItem(tuple_value=value) | RefCreate(value=value) | RefRead(ref=value):
                elsewhere.add(value)
            case RefWrite(ref=ref, value=value):
                elsewhere.update((ref, value))
            case _:
                pass
    return all(node not in elsewhere and (node in sequence) != (node in values) for node in loud) and not any(
        isinstance(node, Let) and node in values for node in loud
    )
