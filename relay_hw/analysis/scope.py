"""Finds scopes of graph nodes. In: an expression. Out: for each node the innermost scope that holds all its uses.

A function body, a branch, an arm and the body of a let each open a scope. Where a shared node belongs to a scope that
lies outside of the branch or closure in which it is met first, it must be computed before that branch or closure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from relay_hw.ir.expr import Expr, Function, If, Let, Match, Var
from relay_hw.ir.visit import children, pattern_vars


class ScopeKind(Enum):
    ROOT = auto()
    FUNCTION = auto()
    BRANCH = auto()
    LET = auto()


@dataclass(slots=True, eq=False)
class Scope:
    """One scope; `owner` opened it. `level` counts the functions around it.

    `function` is the nearest function body, `block` the nearest scope that need not run when its parent runs.
    """

    kind: ScopeKind
    owner: Expr | None = None
    parent: Scope | None = None
    depth: int = 0
    jump: Scope = field(init=False, repr=False)
    function: Scope = field(init=False, repr=False)
    level: int = field(init=False)
    block: Scope = field(init=False, repr=False)

    def __post_init__(self) -> None:
        parent = self.parent
        self.function = self if parent is None or self.kind is ScopeKind.FUNCTION else parent.function
        self.level = 0 if parent is None else parent.level + (self.kind is ScopeKind.FUNCTION)
        self.block = parent.block if parent is not None and self.kind is ScopeKind.LET else self
        # Skew-binary jump pointers: an ancestor at any depth in a logarithmic number of steps.
        if parent is None:
            self.jump = self
        elif parent.depth - parent.jump.depth == parent.jump.depth - parent.jump.jump.depth:
            self.jump = parent.jump.jump
        else:
            self.jump = parent

    def ancestor(self, depth: int) -> Scope:
        """The enclosing scope at `depth`."""
        scope = self
        while scope.depth > depth:
            assert scope.parent is not None
            scope = scope.jump if scope.jump.depth >= depth else scope.parent
        return scope

    def holds(self, other: Scope) -> bool:
        """Whether `other` is this scope or lies in it."""
        return other.depth >= self.depth and other.ancestor(self.depth) is self


def common_scope(a: Scope, b: Scope) -> Scope:
    """The innermost scope that holds both."""
    a, b = a.ancestor(b.depth), b.ancestor(a.depth)
    while a is not b:
        if a.jump is not b.jump:
            a, b = a.jump, b.jump
        else:
            assert a.parent is not None and b.parent is not None
            a, b = a.parent, b.parent
    return a


@dataclass(frozen=True, slots=True)
class Scopes:
    """`of`: the scope of each node's uses. `binders`: the scope in which a variable is bound.

    `hoisted`: for an if, match or function the nodes to compute before it, in order. `uses`: how many uses a node has.
    `captured`: the nodes that a function uses and that belong to a scope around it, variables included.
    """

    of: dict[Expr, Scope]
    binders: dict[Var, Scope]
    bound_twice: tuple[Var, ...]
    hoisted: dict[Expr, list[Expr]]
    uses: dict[Expr, int]
    captured: set[Expr]


# (used node, what the use opens or None)
_Edge = tuple[Expr, "ScopeKind | None"]


def find_scopes(root: Expr) -> Scopes:
    """The scopes of every node below `root`."""
    order, first_user = _discover(root)
    top = Scope(ScopeKind.ROOT)
    of: dict[Expr, Scope] = {root: top}
    uses: dict[Expr, int] = {root: 1}
    entered: dict[tuple[Expr, int], Scope] = {}
    binders: dict[Var, Scope] = {}
    twice: list[Var] = []
    deepest: dict[Expr, int] = {}
    for node in reversed(order):
        here = of[node]
        inner = here
        for index, (part, kind) in enumerate(_policies(node)):
            if kind is None:
                inner = here
            elif kind is not ScopeKind.LET or inner is here:
                inner = Scope(kind, node, here, here.depth + 1)
            entered[node, index] = inner
            of[part] = common_scope(of[part], inner) if part in of else inner
            uses[part] = uses.get(part, 0) + 1
            deepest[part] = max(deepest.get(part, 0), inner.level)
        for index, var in _bindings(node):
            if var in binders:
                twice.append(var)
            binders[var] = entered[node, index]
            # An unused bound variable still needs a scope.
            of.setdefault(var, entered[node, index])
    captured = {node for node, level in deepest.items() if level > of[node].level}
    return Scopes(of, binders, tuple(twice), _hoisted(order, first_user, of, entered), uses, captured)


def _policies(node: Expr) -> list[_Edge]:
    """The uses that `node` makes. Binders are no uses."""
    match node:
        case Let(value=value, body=body):
            # A function may call itself by the name that the let gives it.
            return [(value, ScopeKind.LET if isinstance(value, Function) else None), (body, ScopeKind.LET)]
        case Function(body=body):
            return [(body, ScopeKind.FUNCTION)]
        case If(cond=cond, true_branch=then, false_branch=other):
            return [(cond, None), (then, ScopeKind.BRANCH), (other, ScopeKind.BRANCH)]
        case Match(data=data, clauses=clauses):
            return [(data, None), *((clause.rhs, ScopeKind.BRANCH) for clause in clauses)]
        case _:
            return [(part, None) for part in children(node)]


def _bindings(node: Expr) -> list[tuple[int, Var]]:
    """The variables that `node` binds, each with the number of the use that opens their scope."""
    match node:
        case Let(var=var):
            return [(1, var)]
        case Function(params=params):
            return [(0, param) for param in params]
        case Match(clauses=clauses):
            return [(index, var) for index, clause in enumerate(clauses, start=1) for var in pattern_vars(clause.lhs)]
        case _:
            return []


def _discover(root: Expr) -> tuple[list[Expr], dict[Expr, tuple[Expr, int]]]:
    """Post-order over uses, and for each node the use by which it is reached first."""
    order: list[Expr] = []
    first_user: dict[Expr, tuple[Expr, int]] = {}
    seen: set[Expr] = set()
    stack: list[tuple[Expr, Expr | None, int]] = [(root, None, 0)]
    while stack:
        node, user, index = stack.pop()
        if index < 0:
            order.append(node)
            continue
        if node in seen:
            continue
        seen.add(node)
        if user is not None:
            first_user[node] = (user, index)
        edges = _policies(node)
        if not edges:
            order.append(node)
            continue
        stack.append((node, None, -1))
        stack.extend((edges[place][0], node, place) for place in range(len(edges) - 1, -1, -1))
    return order, first_user


def _hoisted(
    order: list[Expr],
    first_user: dict[Expr, tuple[Expr, int]],
    of: dict[Expr, Scope],
    entered: dict[tuple[Expr, int], Scope],
) -> dict[Expr, list[Expr]]:
    hoisted: dict[Expr, list[Expr]] = {}
    for node in order:
        use = first_user.get(node)
        if use is None or not _policies(node):
            continue
        home, met = of[node].block, entered[use].block
        if home is met:
            continue
        while met.parent is not None and met.parent.block is not home:
            met = met.parent.block
        assert met.owner is not None
        hoisted.setdefault(met.owner, []).append(node)
    return hoisted
