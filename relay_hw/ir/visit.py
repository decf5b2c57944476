"""Iterative traversals of expressions: children, post-order, memoised rewriting, substitution.

Each node of the graph is visited once however many users it has, so sharing is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

from relay_hw.ir.expr import (
    Call,
    Clause,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    Op,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)

E = TypeVar("E", bound=Expr)


def copy_with(node: E, **changes: Any) -> E:
    """A copy of `node` with some fields replaced, without validating it again."""
    new = object.__new__(type(node))
    new.__dict__.update(node.__dict__)
    new.__dict__.update(changes)
    return new


def pattern_vars(pattern: Pattern) -> tuple[Var, ...]:
    """The variables that `pattern` binds, left to right."""
    found: list[Var] = []
    stack = [pattern]
    while stack:
        top = stack.pop()
        match top:
            case PatternVar(var=var):
                found.append(var)
            case PatternConstructor(patterns=inner) | PatternTuple(patterns=inner):
                stack.extend(reversed(inner))
            case _:
                pass
    return tuple(found)


def children(node: Expr) -> tuple[Expr, ...]:
    """The direct sub-expressions in evaluation order; binders come before what they bind in."""
    match node:
        case Call(op=op, args=args):
            return (op, *args)
        case Tuple(fields=fields):
            return tuple(fields)
        case TupleGetItem(tuple_value=value) | RefCreate(value=value) | RefRead(ref=value):
            return (value,)
        case Let(var=var, value=value, body=body):
            return (var, value, body)
        case If(cond=cond, true_branch=then, false_branch=other):
            return (cond, then, other)
        case Function(params=params, body=body):
            return (*params, body)
        case RefWrite(ref=ref, value=value):
            return (ref, value)
        case Match(data=data, clauses=clauses):
            arms = ((*pattern_vars(clause.lhs), clause.rhs) for clause in clauses)
            return (data, *(part for arm in arms for part in arm))
        case _:
            return ()


def post_order(root: Expr) -> Iterator[Expr]:
    """Every node below and including `root`, each once, sub-expressions first."""
    seen: set[Expr] = set()
    stack: list[tuple[Expr, bool]] = [(root, False)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            yield node
            continue
        if node in seen:
            continue
        seen.add(node)
        parts = children(node)
        if not parts:
            yield node
            continue
        stack.append((node, True))
        stack.extend((part, False) for part in reversed(parts))


def readers_of(root: Expr) -> dict[Expr, list[Expr]]:
    """The nodes that have each node as a part, one for each use; `root` has none."""
    found: dict[Expr, list[Expr]] = {}
    for node in post_order(root):
        for part in children(node):
            found.setdefault(part, []).append(node)
    return found


class Rewriter:
    """A bottom-up rewriting, each node once. Override `rewrite_<node>(old, new)`.

    `new` is `old` with its parts already rewritten; it is `old` itself where no part changed. A changed node loses
    its `checked_type` (read types from `old`). Binders must be rewritten to variables.
    """

    def __init__(self) -> None:
        self._memo: dict[Expr, Expr] = {}

    def rewrite(self, root: Expr) -> Expr:
        """The rewritten graph. Nodes visited in an earlier call keep their result."""
        memo = self._memo
        for node in post_order(root):
            if node not in memo:
                memo[node] = self._rewrite_node(node)
        return memo[root]

    def rewrite_var(self, old: Var, new: Var) -> Expr:
        return new

    def rewrite_global_var(self, old: GlobalVar, new: GlobalVar) -> Expr:
        return new

    def rewrite_constant(self, old: Constant, new: Constant) -> Expr:
        return new

    def rewrite_op(self, old: Op, new: Op) -> Expr:
        return new

    def rewrite_constructor(self, old: Constructor, new: Constructor) -> Expr:
        return new

    def rewrite_tuple(self, old: Tuple, new: Tuple) -> Expr:
        return new

    def rewrite_tuple_get_item(self, old: TupleGetItem, new: TupleGetItem) -> Expr:
        return new

    def rewrite_call(self, old: Call, new: Call) -> Expr:
        return new

    def rewrite_let(self, old: Let, new: Let) -> Expr:
        return new

    def rewrite_if(self, old: If, new: If) -> Expr:
        return new

    def rewrite_function(self, old: Function, new: Function) -> Expr:
        return new

    def rewrite_ref_create(self, old: RefCreate, new: RefCreate) -> Expr:
        return new

    def rewrite_ref_read(self, old: RefRead, new: RefRead) -> Expr:
        return new

    def rewrite_ref_write(self, old: RefWrite, new: RefWrite) -> Expr:
        return new

    def rewrite_match(self, old: Match, new: Match) -> Expr:
        return new

    def _rewrite_node(self, node: Expr) -> Expr:
        new = rebuild(node, self._memo)
        method: Callable[[Expr, Expr], Expr] = getattr(self, _METHODS[type(node)])
        return method(node, new)


_METHODS: Mapping[type[Expr], str] = {
    Var: "rewrite_var",
    GlobalVar: "rewrite_global_var",
    Constant: "rewrite_constant",
    Op: "rewrite_op",
    Constructor: "rewrite_constructor",
    Tuple: "rewrite_tuple",
    TupleGetItem: "rewrite_tuple_get_item",
    Call: "rewrite_call",
    Let: "rewrite_let",
    If: "rewrite_if",
    Function: "rewrite_function",
    RefCreate: "rewrite_ref_create",
    RefRead: "rewrite_ref_read",
    RefWrite: "rewrite_ref_write",
    Match: "rewrite_match",
}


def rebuild(node: E, memo: Mapping[Expr, Expr]) -> E:
    """`node` with each part replaced by its `memo` entry; `node` itself if nothing changes."""
    if all(memo[part] is part for part in children(node)):
        return node
    match node:
        case Call(op=op, args=args):
            changes: dict[str, Any] = {"op": memo[op], "args": _all(args, memo)}
        case Tuple(fields=fields):
            changes = {"fields": _all(fields, memo)}
        case TupleGetItem(tuple_value=value):
            changes = {"tuple_value": memo[value]}
        case Let(var=var, value=value, body=body):
            changes = {"var": _binder(var, memo), "value": memo[value], "body": memo[body]}
        case If(cond=cond, true_branch=then, false_branch=other):
            changes = {"cond": memo[cond], "true_branch": memo[then], "false_branch": memo[other]}
        case Function(params=params, body=body):
            changes = {"params": tuple(_binder(param, memo) for param in params), "body": memo[body]}
        case RefCreate(value=value):
            changes = {"value": memo[value]}
        case RefRead(ref=ref):
            changes = {"ref": memo[ref]}
        case RefWrite(ref=ref, value=value):
            changes = {"ref": memo[ref], "value": memo[value]}
        case Match(data=data, clauses=clauses):
            arms = tuple(Clause(rebuild_pattern(c.lhs, memo), memo[c.rhs]) for c in clauses)
            changes = {"data": memo[data], "clauses": arms}
        case _:
            return node
    return cast(E, copy_with(node, **changes, checked_type=None))


def rebuild_pattern(pattern: Pattern, memo: Mapping[Expr, Expr]) -> Pattern:
    """`pattern` with its variables replaced by their `memo` entries."""
    match pattern:
        case PatternVar(var=var):
            new = _binder(var, memo)
            return pattern if new is var else PatternVar(new)
        case PatternConstructor(constructor=constructor, patterns=inner):
            return PatternConstructor(constructor, tuple(rebuild_pattern(p, memo) for p in inner))
        case PatternTuple(patterns=inner):
            return PatternTuple(tuple(rebuild_pattern(p, memo) for p in inner))
        case _:
            return pattern


def _all(nodes: Sequence[Expr], memo: Mapping[Expr, Expr]) -> tuple[Expr, ...]:
    return tuple(memo[node] for node in nodes)


def _binder(var: Var, memo: Mapping[Expr, Expr]) -> Var:
    new = memo.get(var, var)
    if not isinstance(new, Var):
        raise TypeError(f"binder %{var.name_hint} must be rewritten to a variable, not {type(new).__name__}")
    return new


class _Substitution(Rewriter):
    def __init__(self, mapping: Mapping[Var, Expr]) -> None:
        super().__init__()
        self._mapping = mapping

    def rewrite_var(self, old: Var, new: Var) -> Expr:
        return self._mapping.get(old, new)


def substitute(expr: Expr, mapping: Mapping[Var, Expr]) -> Expr:
    """`expr` with each variable of `mapping` replaced. A mapped variable that `expr` binds must map to a variable."""
    return _Substitution(mapping).rewrite(expr)
