"""Rewriting by callbacks. In: patterns with callbacks, an expression. Out: the expression, until nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from relay_hw.analysis.infer import infer_expr, infer_type
from relay_hw.analysis.structural import structural_equal
from relay_hw.dataflow_pattern.grouping import Match, find_matches
from relay_hw.dataflow_pattern.matcher import Matches
from relay_hw.dataflow_pattern.patterns import DFPattern
from relay_hw.errors import InputError
from relay_hw.ir.expr import Expr, Function
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import copy_with, post_order, rebuild

# A rule that undoes another one would never end.
_MAX_ROUNDS = 1000

Apply = Callable[[Expr, Expr, "NodeMap"], Expr]


class NodeMap(Mapping[DFPattern, Sequence[Expr]]):
    """The node of each part of the pattern, each in a list of one, as callbacks in Relay read it."""

    def __init__(self, nodes: Matches) -> None:
        self._nodes = nodes

    def __getitem__(self, pattern: DFPattern) -> Sequence[Expr]:
        return [self._nodes[pattern]]

    def __iter__(self) -> Iterator[DFPattern]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)


class DFPatternCallback:
    """Set `pattern` and override `callback(pre, post, node_map)`.

    `pre` is the matched node, `post` the same with what lies below rewritten already, `node_map[part][0]` what a part
    of the pattern stands for. Return `post` to leave it. With `require_type` the nodes are typed; with `rewrite_once`
    each callback goes over the program once only.
    """

    pattern: DFPattern | None = None

    def __init__(self, require_type: bool = False, rewrite_once: bool = False) -> None:
        self.require_type = require_type
        self.rewrite_once = rewrite_once

    def callback(self, pre: Expr, post: Expr, node_map: NodeMap) -> Expr:
        """The replacement of a match."""
        raise InputError(f"{type(self).__name__} must have a method callback(pre, post, node_map)")

    def rewrite(self, expr: Expr) -> Expr:
        """`expr` with this callback applied."""
        return rewrite(self, expr)


def rewrite(
    callbacks: DFPatternCallback | Sequence[DFPatternCallback], expr: Expr, mod: IRModule | None = None
) -> Expr:
    """`expr` with every callback applied in turn until none changes anything.

    `mod` defines globals and data types where types are required. Raises InputError for a callback without pattern and
    for callbacks that go on for ever.
    """
    items = [callbacks] if isinstance(callbacks, DFPatternCallback) else list(callbacks)
    for _ in range(_MAX_ROUNDS):
        old = expr
        for item in items:
            expr = _apply(item, expr, mod)
        if expr is old or all(item.rewrite_once for item in items) or structural_equal(old, expr):
            return expr
        items = [item for item in items if not item.rewrite_once]
    raise InputError(f"callbacks must come to an end, not still rewrite after {_MAX_ROUNDS} rounds")


def _apply(item: DFPatternCallback, expr: Expr, mod: IRModule | None) -> Expr:
    if item.pattern is None:
        raise InputError(f"{type(item).__name__} must set its pattern")
    if item.require_type:
        expr = _typed(expr, mod)
    matches = {match.root: match for match in find_matches(item.pattern, expr)}
    if not matches:
        return expr
    memo: dict[Expr, Expr] = {}
    for node in post_order(expr):
        new = rebuild(node, memo)
        if new is not node and node.checked_type is not None:
            new = copy_with(new, checked_type=node.checked_type)
        memo[node] = new
        if node in matches:
            memo[node] = item.callback(node, new, NodeMap(_updated(matches[node], memo)))
    return memo[expr]


def _updated(match: Match, memo: Mapping[Expr, Expr]) -> Matches:
    # A node that re-association made up is not in the program.
    return {part: memo.get(node, node) for part, node in match.nodes.items()}


def _typed(expr: Expr, mod: IRModule | None) -> Expr:
    if isinstance(expr, Function):
        name = "main" if mod is None or "main" not in mod.functions else "rewritten"
        base = mod if mod is not None else IRModule()
        return infer_type(base.with_functions({name: expr}))[name]
    return infer_expr(expr, mod)
