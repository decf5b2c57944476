"""The post-dominator tree of a dataflow graph, for operator fusion.

In: the nodes of a function in post-order, with the pattern of each and of each edge. Out: for each node the first node
that everything made of its value flows through, and the largest pattern on the way there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from relay_hw.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    FusionPattern,
    If,
    Let,
    Match,
    Op,
    Trait,
    Tuple,
    TupleGetItem,
    Var,
)
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import children

_SIMPLE = ("int32", "int64", "float32", "float64", "bool")


@dataclass(slots=True, eq=False)
class Node:
    """One node of the graph; `outputs` are the nodes that read it, with the pattern of each edge.

    `is_external`: something outside of the graph (a branch, a binding, the result) reads it as well.
    """

    expr: Expr
    index: int
    pattern: FusionPattern = FusionPattern.OPAQUE
    outputs: list[tuple[Node, FusionPattern]] = field(default_factory=list["tuple[Node, FusionPattern]"])
    is_external: bool = False


@dataclass(slots=True, eq=False)
class Dominator:
    """A node's place in the tree; `pattern`: of the path to `parent`."""

    node: Node
    parent: Dominator | None = None
    depth: int = 1
    pattern: FusionPattern = FusionPattern.OPAQUE


def dataflow_graph(order: Sequence[Expr]) -> list[Node]:
    """The graph of the nodes of `order`, which is a post-order; reads by anything but operator calls, tuples and
    projections are external."""
    nodes = [Node(expr, index) for index, expr in enumerate(order)]
    by_expr = {node.expr: node for node in nodes}
    for node in nodes:
        _connect(node, by_expr)
    return nodes


def _connect(node: Node, by_expr: Mapping[Expr, Node]) -> None:
    match node.expr:
        case Call(op=Op() as op, args=args) if is_fusable(op):
            node.pattern = _operator_pattern(op)
            for arg in args:
                by_expr[arg].outputs.append((node, _edge(node, arg)))
        case Tuple(fields=fields):
            node.pattern = FusionPattern.TUPLE
            for part in fields:
                if isinstance(part.checked_type, TensorType):
                    by_expr[part].outputs.append((node, FusionPattern.INJECTIVE))
                else:
                    by_expr[part].is_external = True
        case TupleGetItem(tuple_value=value) if isinstance(node.expr.checked_type, TensorType):
            node.pattern = FusionPattern.INJECTIVE
            by_expr[value].outputs.append((node, FusionPattern.INJECTIVE))
        case Constant(data=data):
            if data.ndim == 0 and str(data.dtype) in _SIMPLE:
                node.pattern = FusionPattern.ELEMWISE
        case Call() | TupleGetItem() | Let() | If() | Match() | Function():
            _expose(node.expr, by_expr)
        case Var():
            pass
        case other:
            _expose(other, by_expr)


def _expose(expr: Expr, by_expr: Mapping[Expr, Node]) -> None:
    for part in children(expr):
        if part in by_expr:
            by_expr[part].is_external = True


def is_fusable(op: Op) -> bool:
    """Whether calls of `op` may be fused; effects and annotations may not."""
    return not op.has(Trait.EFFECT) and not op.has(Trait.MARK)


def _operator_pattern(op: Op) -> FusionPattern:
    # Its own pattern is that of an identity; what it is there for is to stand between.
    return FusionPattern.OPAQUE if op.name == "annotation.stop_fusion" else op.pattern


def _edge(node: Node, arg: Expr) -> FusionPattern:
    """A broadcast that does not change this argument's shape is elementwise to it."""
    if node.pattern is not FusionPattern.BROADCAST:
        return node.pattern
    mine, theirs = node.expr.checked_type, arg.checked_type
    same = isinstance(mine, TensorType) and isinstance(theirs, TensorType) and mine.shape == theirs.shape
    return FusionPattern.ELEMWISE if same else node.pattern


def post_dominators(nodes: Sequence[Node]) -> list[Dominator]:
    """The tree, one entry a node."""
    tree = [Dominator(node) for node in nodes]
    for place in reversed(tree):
        node = place.node
        if node.is_external or not node.outputs:
            continue
        pattern = FusionPattern.ELEMWISE
        parent: Dominator | None = None
        for number, (reader, edge) in enumerate(node.outputs):
            other = tree[reader.index]
            parent, way = (other, FusionPattern.ELEMWISE) if number == 0 else _common(parent, other)
            pattern = max(pattern, edge, way)
        if parent is not None:
            place.parent, place.depth, place.pattern = parent, parent.depth + 1, pattern
    return tree


def _common(left: Dominator | None, right: Dominator | None) -> tuple[Dominator | None, FusionPattern]:
    """The least common ancestor, and the largest pattern on both ways to it."""
    pattern = FusionPattern.ELEMWISE
    while left is not right:
        if left is None or right is None:
            return None, FusionPattern.OPAQUE
        if left.depth < right.depth:
            pattern, right = max(pattern, right.pattern), right.parent
        elif right.depth < left.depth:
            pattern, left = max(pattern, left.pattern), left.parent
        else:
            pattern = max(pattern, left.pattern, right.pattern)
            left, right = left.parent, right.parent
    return left, pattern
