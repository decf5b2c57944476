"""AnnotateTarget: puts operators that a compiler supports between compiler_begin and compiler_end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from relay_hw.analysis.variables import free_type_vars
from relay_hw.dataflow_pattern.grouping import outside_fused
from relay_hw.ir.expr import Call, Expr, Function, Op, Trait, Tuple, TupleGetItem
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import rebuild
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import is_external, is_op, make, typed

# For each compiler the operators that it supports: always, never, or as a function of the call says.
Support = Mapping[str, Mapping[str, bool | Callable[[Call], bool]]]


class AnnotateTarget(FunctionPass):
    """Marks calls for the first of `targets` that supports them: operators by `supported`, composites by their names
    `target.something`. With `include_non_call_ops`, tuples and projections between them as well."""

    name = "annotate-target"
    opt_level = 0
    pins_effects = True

    def __init__(
        self,
        targets: str | Sequence[str] = (),
        include_non_call_ops: bool = True,
        supported: Support | None = None,
    ) -> None:
        self.targets = (targets,) if isinstance(targets, str) else tuple(targets)
        self.include_non_call_ops = include_non_call_ops
        self.supported = dict(supported or {})

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function) or not self.targets:
            return function
        memo: dict[Expr, Expr] = {}
        for node in outside_fused(function):
            new = _rebuilt(node, memo)
            target = self._target(node, new)
            memo[node] = new if target is None else _between(new, target)
        new = memo[function]
        assert isinstance(new, Function)
        return new

    def _target(self, old: Expr, new: Expr) -> str | None:
        match old:
            case Call(op=Op() as op, args=args) if not op.has(Trait.EFFECT) and not any(map(_is_open, (old, *args))):
                return next((name for name in self.targets if self._supports(name, op, old)), None)
            case Call(op=Function(attrs=attrs)) if "Composite" in attrs and not _is_open(old):
                name = str(attrs["Composite"]).partition(".")[0]
                return name if name in self.targets else None
            case Tuple() if self.include_non_call_ops and isinstance(new, Tuple) and new.fields:
                return _common_target(new.fields)
            case TupleGetItem() if self.include_non_call_ops and isinstance(new, TupleGetItem):
                return _common_target((new.tuple_value,))
            case _:
                return None

    def _supports(self, target: str, op: Op, call: Call) -> bool:
        answer = self.supported.get(target, {}).get(op.name, False)
        return answer(call) if callable(answer) else bool(answer)


def _is_open(node: Expr) -> bool:
    """Whether the type has variables, so that no global function of its own could hold the node."""
    return node.checked_type is not None and bool(free_type_vars(node.checked_type))


def _common_target(parts: Sequence[Expr]) -> str | None:
    names = {part.attrs.compiler if isinstance(part, Call) and is_op(part, END) else None for part in parts}
    return names.pop() if len(names) == 1 else None


BEGIN, END = "annotation.compiler_begin", "annotation.compiler_end"


def _between(node: Expr, target: str) -> Expr:
    match node:
        case Call(op=op, args=args):
            inner: Expr = Call(op, [_begin(arg, target) for arg in args], node.attrs, node.type_args, span=node.span)
        case Tuple(fields=fields):
            inner = Tuple([_begin(part, target) for part in fields], span=node.span)
        case TupleGetItem(tuple_value=value, index=index):
            inner = TupleGetItem(_begin(value, target), index, span=node.span)
        case _:
            raise AssertionError(f"{node!r} must be a call, tuple or projection")
    return make(END, (typed(inner, node.checked_type),), compiler=target, span=node.span)


def _begin(arg: Expr, target: str) -> Expr:
    return make(BEGIN, (arg,), compiler=target, span=arg.span)


def _rebuilt(node: Expr, memo: Mapping[Expr, Expr]) -> Expr:
    if isinstance(node, Function) and node.body not in memo:
        return node
    return typed(rebuild(node, memo), node.checked_type)
