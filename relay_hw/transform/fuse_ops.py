"""Operator fusion by post-dominators: operators that can run in one loop nest become one function.

In: a typed module. Out: each group of operators as a call of a function literal with the attribute `Primitive`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from relay_hw.ir.expr import Call, Constant, Expr, Function, FusionPattern, Op, Trait, Tuple, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import FuncType
from relay_hw.ir.visit import children, copy_with, rebuild
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.context import PassContext
from relay_hw.transform.dominators import Dominator, Node, dataflow_graph, is_fusable, post_dominators
from relay_hw.transform.graph import has_trait, is_external, is_op

ELEMWISE, BROADCAST, INJECTIVE = FusionPattern.ELEMWISE, FusionPattern.BROADCAST, FusionPattern.INJECTIVE
REDUCE, ANCHOR, TUPLE = FusionPattern.COMM_REDUCE, FusionPattern.OUT_ELEMWISE_FUSABLE, FusionPattern.TUPLE
OPAQUE = FusionPattern.OPAQUE

# Whether a group of this pattern may lie on the way (False) or at its end (True).
Accept = Callable[[FusionPattern, bool], bool]


class FuseOps(FunctionPass):
    """`fuse_opt_level` 0 makes every operator a function of its own; the default takes the context's level.

    The context's `relay.FuseOps.max_depth` bounds the size of a group, `relay.FuseOps.link_params` takes constants in.
    """

    name = "fuse-ops"
    opt_level = 0
    pins_effects = True

    def __init__(self, fuse_opt_level: int = -1) -> None:
        self.fuse_opt_level = fuse_opt_level

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function):
            return function
        context = PassContext.current()
        level = self.fuse_opt_level if self.fuse_opt_level >= 0 else context.opt_level
        order = list(_outside_fused(function))
        nodes = dataflow_graph(order)
        groups = [Group(node) for node in nodes]
        if level > 0:
            max_depth = int(context.config.get("relay.FuseOps.max_depth", 256))
            _Partition(groups, post_dominators(nodes), max_depth).run()
        linked = bool(context.config.get("relay.FuseOps.link_params", False))
        new = _Builder(dict(zip(order, groups, strict=True)), linked).build(order)
        assert isinstance(new, Function)
        return new


def _outside_fused(root: Function) -> Iterator[Expr]:
    """Post-order that does not enter functions that are fused already."""
    seen: set[Expr] = set()
    stack: list[tuple[Expr, bool]] = [(root, False)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            yield node
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            is_fused = isinstance(node, Function) and node is not root and "Primitive" in node.attrs
            stack.extend((part, False) for part in (() if is_fused else reversed(children(node))))


@dataclass(slots=True, eq=False)
class Group:
    """A set of nodes by union-find; the entries are right at the representative."""

    root: Node
    parent: Group | None = None
    pattern: FusionPattern = OPAQUE
    size: int = 1
    has_anchor: bool = False
    params: dict[Expr, Var] = field(default_factory=dict[Expr, Var])

    def __post_init__(self) -> None:
        self.pattern = self.root.pattern
        self.has_anchor = self.pattern is ANCHOR

    def find(self) -> Group:
        group = self
        while group.parent is not None:
            group = group.parent
        while self.parent is not None:
            self.parent, self = group, self.parent
        return group


class _Partition:
    def __init__(self, groups: Sequence[Group], tree: Sequence[Dominator], max_depth: int) -> None:
        self._groups = groups
        self._tree = tree
        self._max_depth = max_depth

    def run(self) -> None:
        for phase in range(3):
            for group, place in zip(self._groups, self._tree, strict=True):
                if group.pattern is not OPAQUE and place.parent is not None:
                    self._try(group, place, place.parent.node, phase)

    def _try(self, group: Group, place: Dominator, sink: Node, phase: int) -> None:
        above = self._groups[sink.index]
        if phase == 2:
            root = above.find()
            into_tuple = above.pattern is TUPLE and root.pattern <= INJECTIVE
            if group.pattern <= INJECTIVE and into_tuple:
                self._fuse_if(place.node, sink, lambda kind, is_sink: kind <= INJECTIVE)
            return
        if group.find() is above.find() or above.pattern is TUPLE:
            return
        pattern = group.pattern
        if pattern is ANCHOR:
            if phase == 0 and place.pattern is ELEMWISE:
                self._fuse_if(place.node, sink, lambda kind, is_sink: kind <= BROADCAST)
        elif pattern <= BROADCAST:
            if place.pattern <= INJECTIVE or place.pattern is REDUCE:
                self._fuse_if(place.node, sink, lambda kind, is_sink: kind <= (ANCHOR if is_sink else INJECTIVE))
        elif pattern in (INJECTIVE, TUPLE) and phase == 1:
            self._fuse_if(place.node, sink, lambda kind, is_sink: kind <= INJECTIVE)

    def _fuse_if(self, source: Node, sink: Node, accept: Accept) -> None:
        between = list(self._between(source, sink))
        if not accept(self._groups[sink.index].find().pattern, True):
            return
        if not all(accept(self._groups[node.index].find().pattern, False) for node in between):
            return
        parts = {self._groups[node.index].find() for node in (source, sink, *between)}
        if sum(part.size for part in parts) > self._max_depth:
            return
        for node in (source, *between):
            _merge(self._groups[node.index].find(), self._groups[sink.index].find())

    def _between(self, source: Node, sink: Node) -> Iterator[Node]:
        seen = {source, sink}
        stack = [reader for reader, _ in source.outputs]
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                yield node
                stack.extend(reader for reader, _ in node.outputs)


def _merge(child: Group, parent: Group) -> None:
    if child is parent:
        return
    parent.size += child.size
    child.parent = parent
    if child.has_anchor:
        parent.has_anchor = True
        parent.pattern = max(child.pattern, parent.pattern)


class _Builder:
    """Writes groups as functions; every node keeps its type."""

    def __init__(self, groups: dict[Expr, Group], linked: bool) -> None:
        self._groups = groups
        self._linked = linked
        self._memo: dict[Expr, Expr] = {}

    def build(self, order: Sequence[Expr]) -> Expr:
        for node in order:
            new = self._node(node)
            self._memo[node] = new if new is node else copy_with(new, checked_type=node.checked_type)
        return self._memo[order[-1]]

    def _node(self, node: Expr) -> Expr:
        group = self._groups[node].find()
        is_root = group.root.expr is node
        match node:
            case Call(op=Op() as op, args=args) if is_fusable(op):
                if is_op(node, "annotation.stop_fusion"):
                    return self._memo[args[0]]
                new = copy_with(node, args=self._arguments(args, group))
                return self._call(new, group) if is_root else new
            case Tuple(fields=fields) if not is_root:
                return copy_with(node, fields=self._arguments(fields, group))
            case TupleGetItem(tuple_value=value) if self._groups[value].find() is group:
                new = copy_with(node, tuple_value=self._arguments((value,), group)[0])
                return self._call(new, group) if is_root else new
            case TupleGetItem(tuple_value=value) if not is_root:
                return copy_with(node, tuple_value=self._arguments((value,), group)[0])
            case _:
                return self._rebuilt(node)

    def _rebuilt(self, node: Expr) -> Expr:
        if isinstance(node, Function) and any(part not in self._memo for part in children(node)):
            return node
        return rebuild(node, self._memo)

    def _arguments(self, args: Sequence[Expr], group: Group) -> tuple[Expr, ...]:
        return tuple(self._argument(arg, group) for arg in args)

    def _argument(self, arg: Expr, group: Group) -> Expr:
        new = self._memo[arg]
        if self._groups[arg].find() is group or (self._linked and isinstance(new, Constant)):
            return new
        if new not in group.params:
            ty = arg.checked_type
            group.params[new] = Var(f"p{len(group.params)}", ty, checked_type=ty)
        return group.params[new]

    def _call(self, body: Expr, group: Group) -> Call:
        params = tuple(group.params.values())
        ty = FuncType(tuple(param.type for param in params), body.type)
        attrs = {"Primitive": 1, **({"relay.reshape_only": 1} if _only_reshapes(body) else {})}
        function = Function(params, body, body.type, attrs=attrs, checked_type=ty)
        return Call(function, tuple(group.params), span=body.span, checked_type=body.checked_type)


def _only_reshapes(body: Expr) -> bool:
    while isinstance(body, Call) and has_trait(body, Trait.RESHAPES):
        body = body.args[0]
        if isinstance(body, Var):
            return True
    return False
