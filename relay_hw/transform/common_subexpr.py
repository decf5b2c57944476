"""Common subexpression elimination: equal calls on equal arguments become one node."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from relay_hw.analysis.scope import Scope, find_scopes
from relay_hw.ir.expr import Call, Constant, Expr, Function, Op, Trait, Tuple, TupleGetItem
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import post_order
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import is_external
from relay_hw.transform.redirect import redirect

Skip = Callable[[Call], bool]


class EliminateCommonSubexpr(FunctionPass):
    """Shares equal constants, and calls of the same operator with equal attributes on the same arguments.

    A call is shared with an equal one in a block around it, never with one in another branch: nothing is computed
    earlier than before. Operators with an effect, calls of functions and what `fskip` accepts are left alone.
    """

    name = "eliminate-common-subexpr"
    opt_level = 3
    pins_effects = True

    def __init__(self, fskip: Skip | None = None) -> None:
        self.fskip = fskip

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function):
            return function
        same = _choose(function, self.fskip)
        if not same:
            return function
        new = redirect(function, same.get)
        assert isinstance(new, Function)
        return new


def _choose(root: Function, skip: Skip | None) -> dict[Expr, Expr]:
    """For each node that an equal one can stand for, that one."""
    scopes = find_scopes(root)
    numbers: dict[Expr, int] = {}
    classes: dict[Hashable, int] = {}
    members: dict[int, list[Expr]] = {}
    for node in post_order(root):
        key = _key(node, numbers, skip)
        number = len(numbers) if key is None else classes.setdefault(key, len(numbers))
        numbers[node] = number
        if key is not None:
            members.setdefault(number, []).append(node)
    chosen: dict[Expr, Expr] = {}
    for group in members.values():
        if len(group) < 2:
            continue
        if isinstance(group[0], Constant):
            chosen.update((node, group[0]) for node in group[1:])
            continue
        # Outer blocks first; in one block the first one in order of evaluation.
        leaders: list[tuple[Scope, Expr]] = []
        for node in sorted(group, key=lambda one: scopes.of[one].block.depth):
            block = scopes.of[node].block
            leader = next((found for scope, found in leaders if scope.holds(block)), None)
            if leader is None:
                leaders.append((block, node))
            else:
                chosen[node] = leader
    return chosen


def _key(node: Expr, numbers: dict[Expr, int], skip: Skip | None) -> Hashable | None:
    match node:
        case Constant(data=data):
            return ("constant", str(data.dtype), data.shape, data.tobytes())
        case Call(op=Op() as op, args=args, attrs=attrs) if not op.has(Trait.EFFECT) and not (skip and skip(node)):
            return ("call", op.name, attrs, tuple(map(numbers.__getitem__, args)))
        case Tuple(fields=fields):
            return ("tuple", tuple(map(numbers.__getitem__, fields)))
        case TupleGetItem(tuple_value=value, index=index):
            return ("item", numbers[value], index)
        case _:
            return None
