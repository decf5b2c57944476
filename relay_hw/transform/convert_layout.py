"""ConvertLayout: gives chosen operators another data layout, with transforms only where the layout changes.

In: a typed module. Out: the same with `layout_transform` at the borders; operators that do not care follow along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from relay_hw.dataflow_pattern.grouping import outside_fused
from relay_hw.errors import InputError
from relay_hw.ir.expr import Call, Expr, Function, Op, Trait, Tuple, TupleGetItem
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType, TupleType
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import is_external, make, rebuilt, remake, shape_of, typed_tuple

# The kernel layout that "default" means beside a data layout.
KERNELS: Final[Mapping[str, str]] = MappingProxyType(
    {"NCHW": "OIHW", "NHWC": "HWIO", "HWNC": "HWOI", "NCW": "OIW", "NWC": "WIO", "NCDHW": "OIDHW", "NDHWC": "DHWIO"}
)


class ConvertLayout(FunctionPass):
    """`desired_layouts` maps operators to `[data layout]` or `[data layout, kernel layout]`; "default" as the kernel
    layout takes the usual one, as the data layout leaves the operator alone.

    Layouts must be permutations of the operator's own. Raises InputError for others.
    """

    name = "convert-layout"
    opt_level = 3
    pins_effects = True

    def __init__(self, desired_layouts: Mapping[str, Sequence[str]] | None = None) -> None:
        self.desired_layouts = {name: tuple(layouts) for name, layouts in (desired_layouts or {}).items()}

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function) or not self.desired_layouts:
            return function
        return _Converter(self.desired_layouts).convert(function)


@dataclass(frozen=True, slots=True)
class _Laid:
    """A value whose axes are in the order `now` instead of `before`."""

    expr: Expr
    before: str
    now: str

    def axis(self, axis: int) -> int:
        """The new position of an axis of the old order."""
        return self.now.index(self.before[axis % len(self.before)])


class _Converter:
    def __init__(self, desired: Mapping[str, Sequence[str]]) -> None:
        self._desired = desired
        self._memo: dict[Expr, Expr] = {}
        self._laid: dict[Expr, _Laid] = {}
        self._tuples: dict[Expr, _Laid] = {}

    def convert(self, root: Function) -> Function:
        for node in outside_fused(root):
            found = self._try(node)
            if found is not None:
                self._laid[node] = found
                # The old layout, once for all readers that need it.
                self._memo[node] = _transform(found.expr, found.now, found.before)
            elif node not in self._memo:
                self._memo[node] = rebuilt(node, self._memo)
        new = self._memo[root]
        assert isinstance(new, Function)
        return new

    def _try(self, node: Expr) -> _Laid | None:
        """The node in another layout, if there is a reason; None if it stays."""
        match node:
            case TupleGetItem(tuple_value=value, index=index) if value in self._tuples:
                return self._item(node, self._tuples[value], index)
            case Call(op=Op() as op) if op.has(Trait.ANCHOR) and hasattr(node.attrs, "data_layout"):
                return self._convolution(node, op.name)
            case Call(op=Op() as op, args=args) if op.has(Trait.POOLS):
                return self._pool(node, op.name)
            case Call(op=Op() as op, args=args) if args and not op.has(Trait.EFFECT):
                return self._follow(node, op)
            case _:
                return None

    def _item(self, node: TupleGetItem, whole: _Laid, index: int) -> _Laid | None:
        item = TupleGetItem(whole.expr, index, span=node.span, checked_type=whole.expr.type.fields[index])  # type: ignore[attr-defined]
        if isinstance(item.type, TensorType) and item.type.rank == len(whole.now):
            return replace(whole, expr=item)
        # The statistics of a batch norm have no layout.
        self._memo[node] = item
        return None

    def _convolution(self, node: Call, name: str) -> _Laid | None:
        attrs = node.attrs
        wanted = self._desired.get(name, ("default",))
        before: str = attrs.data_layout
        if wanted[0] == "default" or (attrs.out_layout or before) != before:
            return None
        kernel = wanted[1] if len(wanted) > 1 else "default"
        kernel = KERNELS.get(wanted[0], "") if kernel == "default" else kernel
        _check(name, "data", before, wanted[0])
        _check(name, "kernel", attrs.kernel_layout, kernel)
        if (before, attrs.kernel_layout) == (wanted[0], kernel):
            return None
        data = self._to(node.args[0], before, wanted[0])
        weight = _transform(self._memo[node.args[1]], attrs.kernel_layout, kernel)
        rest = [self._memo[arg] for arg in node.args[2:]]
        new = replace(attrs, data_layout=wanted[0], kernel_layout=kernel, out_layout="")
        return _Laid(remake(node, (data, weight, *rest), new), before, wanted[0])

    def _pool(self, node: Call, name: str) -> _Laid | None:
        attrs, source = node.attrs, self._laid.get(node.args[0])
        before: str = attrs.layout
        wanted = self._desired.get(name, ("default",))[0]
        if wanted == "default":
            if source is None or source.before != before:
                return None
            wanted = source.now
        _check(name, "data", before, wanted)
        out = getattr(attrs, "out_layout", "")
        if wanted == before or (out or before) != before:
            return None
        data = self._to(node.args[0], before, wanted)
        new = replace(attrs, layout=wanted, **({"out_layout": ""} if out else {}))
        return _Laid(remake(node, (data,), new), before, wanted)

    def _follow(self, node: Call, op: Op) -> _Laid | None:
        """Layout-agnostic operators take the layout of their argument."""
        source = self._source(node)
        if source is None:
            return None
        if op.has(Trait.ALONG_AXIS):
            return self._with_axis(node, source)
        if op.name == "nn.pad":
            return self._pad(node, source)
        if op.has(Trait.REDUCES):
            return self._reduce(node, source)
        if op.has(Trait.ELEMENTWISE) and len(node.args) == 1:
            return replace(source, expr=remake(node, (source.expr,), node.attrs))
        if op.has(Trait.ELEMENTWISE):
            return self._broadcast(node, source)
        return None

    def _source(self, node: Call) -> _Laid | None:
        fields = node.args[0].fields if isinstance(node.args[0], Tuple) else ()
        return next((self._laid[arg] for arg in (*fields, *node.args) if arg in self._laid), None)

    def _with_axis(self, node: Call, source: _Laid) -> _Laid | None:
        first = node.args[0]
        parts = first.fields if isinstance(first, Tuple) else (first,)
        if any(part.tensor_type.rank != len(source.before) for part in parts):
            return None
        attrs = replace(node.attrs, axis=source.axis(node.attrs.axis))
        moved = [self._to(part, source.before, source.now) for part in parts]
        data = typed_tuple(moved) if isinstance(first, Tuple) else moved[0]
        call = remake(node, (data, *(self._memo[arg] for arg in node.args[1:])), attrs)
        if isinstance(node.checked_type, TupleType):
            self._tuples[node] = replace(source, expr=call)
            self._memo[node] = rebuilt(node, self._memo)
            return None
        return replace(source, expr=call)

    def _pad(self, node: Call, source: _Laid) -> _Laid | None:
        if node.args[0] not in self._laid:
            return None
        order = [source.before.index(letter) for letter in source.now]
        width = tuple(node.attrs.pad_width[axis] for axis in order)
        args = (source.expr, *(self._memo[arg] for arg in node.args[1:]))
        return replace(source, expr=remake(node, args, replace(node.attrs, pad_width=width)))

    def _reduce(self, node: Call, source: _Laid) -> _Laid | None:
        attrs, rank = node.attrs, len(source.before)
        given = range(rank) if attrs.axis is None else (attrs.axis,) if isinstance(attrs.axis, int) else attrs.axis
        axes = {axis % rank for axis in given}
        axes = set(range(rank)) - axes if attrs.exclude else axes
        new = replace(attrs, axis=tuple(sorted(source.axis(axis) for axis in axes)), exclude=False)
        if attrs.keepdims:
            return replace(source, expr=remake(node, (source.expr,), new))
        kept = [letter for index, letter in enumerate(source.before) if index not in axes]
        if kept == [letter for letter in source.now if letter in kept]:
            self._memo[node] = remake(node, (source.expr,), new)
        return None

    def _broadcast(self, node: Call, source: _Laid) -> _Laid | None:
        rank = len(source.before)
        if node.tensor_type.rank != rank:
            return None
        args: list[Expr] = []
        for arg in node.args:
            shape = shape_of(arg)
            if arg in self._laid and self._laid[arg].before != source.before:
                return None
            if arg not in self._laid and shape is None:
                return None
            args.append(self._aligned(arg, shape or (), rank, source))
        return replace(source, expr=remake(node, args, node.attrs))

    def _aligned(self, arg: Expr, shape: Sequence[int], rank: int, source: _Laid) -> Expr:
        """`arg` so that it broadcasts in the new order."""
        if arg in self._laid or len(shape) == rank:
            return self._to(arg, source.before, source.now)
        if all(size == 1 for size in shape):
            return self._memo[arg]
        wide = make("expand_dims", (self._memo[arg],), axis=0, num_newaxis=rank - len(shape))
        return _transform(wide, source.before, source.now)

    def _to(self, node: Expr, before: str, now: str) -> Expr:
        laid = self._laid.get(node)
        if laid is not None and laid.before == before:
            return _transform(laid.expr, laid.now, now)
        return _transform(self._memo[node], before, now)


def _transform(expr: Expr, source: str, target: str) -> Expr:
    if source == target:
        return expr
    return make("layout_transform", (expr,), src_layout=source, dst_layout=target, span=expr.span)


def _check(name: str, what: str, given: str, wanted: str) -> None:
    if sorted(given) != sorted(wanted):
        raise InputError(f"the {what} layout of {name} must be a permutation of {given}, not {wanted or 'unknown'}")
