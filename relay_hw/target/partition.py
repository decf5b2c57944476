"""Splits a network into functions for the target and for the host, with a reason for every host operator.

In: a typed module with a target's composites, `main` one graph or outlined into fragments. Out: functions `@NAME_k` for
the target and `@host_k`, graphs that call them, and `mod.attrs["partition"]`, a tuple of PartitionRecord.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from relay_hw.analysis.products import call_macs, function_macs
from relay_hw.ir.expr import Call, Expr, Function, Op, Trait, Tuple, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import FuncType
from relay_hw.ir.visit import copy_with
from relay_hw.op import with_trait
from relay_hw.target.base import NO_RULES, PartitionRules, QuantizerRules
from relay_hw.target.records import PartitionRecord
from relay_hw.transform.base import Pass
from relay_hw.transform.fragments import DEVICE, FRAGMENT, fragments_of
from relay_hw.transform.graph import dataflow_order, is_op, op_name
from relay_hw.transform.outline import outline, values_of
from relay_hw.transform.regions import find_regions

HOST: Final = "host"
# Kinds of units besides the host's: on the target, and conversions at its border.
_DEVICE: Final = "device"
_BORDER: Final = "border"
# Operators whose semantics are exact wherever they run: conversions between float and integer, ends of classifiers.
BORDER_OPERATORS: Final = frozenset(
    {
        "qnn.quantize",
        "qnn.dequantize",
        "qnn.requantize",
        "nn.softmax",
        "nn.log_softmax",
        "argmax",
        "argmin",
    }
)
# They join neighbouring operators on the host.
MOVING_OPERATORS: Final = frozenset(with_trait(Trait.PERMUTES))


def partition_records(mod: IRModule) -> tuple[PartitionRecord, ...]:
    """The record of each operator of a partitioned module, in order."""
    records = mod.attrs["partition"]
    assert isinstance(records, tuple)
    return records


# An operator, its attributes and its operands.
_Same = tuple[str, object, Sequence[Expr]]


class PartitionDevice(Pass):
    """Splits `main`, or every fragment of a program with control flow, between `target` and the host.

    Operators that only convert between float and integer or move elements form host functions of their own: their
    semantics are exact wherever they run.
    """

    name = "partition-device"

    def __init__(
        self,
        target: PartitionRules,
        rules: QuantizerRules = NO_RULES,
        rules_of: Callable[[Function], PartitionRules] | None = None,
    ) -> None:
        """`rules`: what operators need to be quantized, for the reasons; None if nothing is quantized. `rules_of`: by
        which rules a fragment is split, where not all go by those of `target`."""
        self.target = target
        self.rules = rules
        self.rules_of = rules_of

    def transform(self, mod: IRModule) -> IRModule:
        taken = _Taken({self.target.name: 0, HOST: 0})
        new: dict[str, Function] = {}
        records: list[PartitionRecord] = []
        for name in fragments_of(mod):
            target = self.rules_of(mod[name]) if self.rules_of is not None else self.target
            function, refusals = _inline_refused(mod[name], name, target)
            refusals.update(_refused_fronts(function, name, target))
            split = _Split(target, self.rules, refusals, taken).graph(function, name)
            placed = {**mod[name].attrs} if DEVICE in mod[name].attrs else {}
            placed.pop(FRAGMENT, None)
            new |= {made: copy_with(part, attrs={**placed, **part.attrs}) for made, part in split[0].items()}
            records += split[1]
        before = mod.attrs.get("partition", ()) if not new else ()
        return replace(mod.with_functions(new), attrs={**mod.attrs, "partition": tuple(records) or before})


@dataclass(slots=True)
class _Taken:
    """Names that are in use: functions of each side, and layers."""

    counts: dict[str, int]
    layers: set[str] = field(default_factory=set[str])

    def function(self, where: str) -> str:
        """The next name `NAME_k` or `host_k`, each with its own counter."""
        self.counts[where] += 1
        return f"{where}_{self.counts[where] - 1}"


def _inline_refused(main: Function, what: str, target: PartitionRules) -> tuple[Function, dict[Call, str]]:
    """Replace composites that stay on the host by their operators; also returns the reason of each operator."""
    opened = _Opened(target)
    return copy_with(main, body=opened.graph(main.body, what, {})), opened.refusals


class _Opened:
    """Copies graphs with functions inlined that the target refuses."""

    def __init__(self, target: PartitionRules) -> None:
        self.refusals: dict[Call, str] = {}
        self._target = target
        # Each composite has a copy of the operators in front of it.
        self._once: dict[_Same, Expr] = {}

    def graph(self, root: Expr, what: str, memo: MutableMapping[Expr, Expr], reason: str | None = None) -> Expr:
        """The copy of `root`; `memo` maps its variables, `reason` says why it is inlined."""
        for node in dataflow_order(root, what):
            if node in memo:
                continue
            refusal = _refusal(node, self._target)
            if refusal is not None and isinstance(node, Call) and isinstance(node.op, Function):
                given: dict[Expr, Expr] = dict(zip(node.op.params, (memo[arg] for arg in node.args), strict=True))
                memo[node] = self.graph(node.op.body, "a composite", ChainMap(given, memo), refusal)
                continue
            memo[node] = new = _once(_copy(node, memo), self._once)
            if reason is not None and isinstance(new, Call):
                self.refusals[new] = reason
        return memo[root]


def _once(node: Expr, known: dict[_Same, Expr]) -> Expr:
    """`node`, or an equal operator call that exists already."""
    if not isinstance(node, Call) or not isinstance(node.op, Op) or node.op.has(Trait.EFFECT):
        return node
    return known.setdefault((node.op.name, node.attrs, node.args), node)


def _refusal(node: Expr, target: PartitionRules) -> str | None:
    if not isinstance(node, Call) or not isinstance(node.op, Function):
        return None
    if "Composite" not in node.op.attrs:
        return "it is called through a function that is not a composite of the accelerator: the pass Inline inlines it"
    return target.why_not(node.op)


def _refused_fronts(main: Function, what: str, target: PartitionRules) -> dict[Call, str]:
    """Why pads and reshapes in front of a composite cannot join it: it would be illegal with them."""
    found: dict[Call, str] = {}
    for reader in dataflow_order(main.body, what):
        if not isinstance(reader, Call) or not isinstance(reader.op, Function):
            continue
        name = str(reader.op.attrs["Composite"])
        if any(isinstance(n, Call) and target.takes_in(n, name) for n in dataflow_order(reader.op.body, "a composite")):
            continue
        for param, front in zip(reader.op.params, reader.args, strict=True):
            if isinstance(front, Call) and target.takes_in(front, name):
                reason = target.why_not(_with_front(reader.op, param, front))
                if reason is not None:
                    found[front] = reason
    return found


def _with_front(composite: Function, param: Var, front: Call) -> Function:
    """`composite` with `front` moved inside, in place of `param`."""
    outer = Var(param.name_hint, front.args[0].type, checked_type=front.args[0].type)
    memo: dict[Expr, Expr] = {param: copy_with(front, args=(outer, *front.args[1:]))}
    for node in dataflow_order(composite.body, "a composite"):
        if node not in memo:
            memo[node] = _copy(node, memo)
    params = [outer if old is param else old for old in composite.params]
    ty = FuncType(tuple(new.type for new in params), composite.body.type)
    return copy_with(composite, params=tuple(params), body=memo[composite.body], checked_type=ty)


def _copy(node: Expr, memo: Mapping[Expr, Expr]) -> Expr:
    """Copy `node` with the operands of `memo`, keeping its type."""
    match node:
        case Call():
            return copy_with(node, args=tuple(memo[arg] for arg in node.args))
        case Tuple():
            return copy_with(node, fields=tuple(memo[part] for part in node.fields))
        case TupleGetItem():
            return copy_with(node, tuple_value=memo[node.tuple_value])
        case _:
            return node


@dataclass(frozen=True, slots=True)
class _Split:
    """Divides graphs between the target and the host. `refusals`: why operators of refused composites stay."""

    target: PartitionRules
    rules: QuantizerRules
    refusals: Mapping[Call, str]
    taken: _Taken

    def graph(self, main: Function, what: str) -> tuple[dict[str, Function], Sequence[PartitionRecord]]:
        """Split one graph into functions of each side, and the graph that calls them."""
        units = [node for node in dataflow_order(main.body, what) if isinstance(node, Call)]
        if not units:
            return {}, ()
        index = {unit: position for position, unit in enumerate(units)}
        reads = [[index[v[0]] for arg in unit.args for v in values_of(arg) if isinstance(v, tuple)] for unit in units]
        kinds = _kinds(units, reads)
        numbers = find_regions(kinds, reads)
        kind_of = dict(zip(numbers, kinds, strict=True))
        wheres = [self.target.name if kind_of[number] == _DEVICE else HOST for number in sorted(kind_of)]
        names = [self.taken.function(where) for where in wheres]
        group = dict(zip(units, numbers, strict=True))
        functions, new_main = outline(main, units, group, names, dict(zip(names, wheres, strict=True)))
        on_host = [unit for unit, kind in zip(units, kinds, strict=True) if kind != _DEVICE]
        reasons = {unit: self.refusals.get(unit) or self.target.why_on_host(unit, self.rules) for unit in on_host}
        return {**functions, what: new_main}, self._records(units, [names[number] for number in numbers], reasons)

    def _records(
        self, units: Sequence[Call], functions: Sequence[str], reasons: Mapping[Call, str]
    ) -> tuple[PartitionRecord, ...]:
        records: list[PartitionRecord] = []
        for unit, function in zip(units, functions, strict=True):
            operator = str(unit.op.attrs["Composite"]) if isinstance(unit.op, Function) else op_name(unit) or "call"
            name = unique_name(_layer_name(unit, operator, self.target.anchors), self.taken.layers)
            reason = reasons.get(unit, "")
            where = HOST if unit in reasons else self.target.name
            records.append(PartitionRecord(name, operator, where, function, reason, _unit_macs(unit)))
        return tuple(records)


def _kinds(units: Sequence[Call], reads: Sequence[Sequence[int]]) -> list[str]:
    kinds: list[str] = []
    for unit, sources in zip(units, reads, strict=True):
        if isinstance(unit.op, Function):
            kinds.append(_DEVICE)
        elif op_name(unit) in BORDER_OPERATORS:
            kinds.append(_BORDER)
        elif op_name(unit) in MOVING_OPERATORS:
            before = kinds[sources[0]] if sources else _BORDER
            kinds.append(_BORDER if before == _DEVICE else before)
        else:
            kinds.append(HOST)
    return kinds


def _unit_macs(unit: Call) -> int:
    return function_macs(unit.op) if isinstance(unit.op, Function) else call_macs(unit)


def _layer_name(unit: Call, operator: str, anchors: frozenset[str]) -> str:
    """The name in the source of the operator that does the main work, else the operator's own."""
    if isinstance(unit.op, Function):
        spans = [n.span for n in dataflow_order(unit.op.body, "a composite") if isinstance(n, Call) and n.span]
        named = [n.span for n in dataflow_order(unit.op.body, "a composite") if is_op(n, *anchors) and n.span]
        span = (named or spans or [unit.span])[0]
    else:
        span = unit.span
    if span is None:
        return operator
    # A conversion stands beside the layer that it converts for: the plain name is that layer's.
    return f"{operator.removeprefix('qnn.')} {span}" if operator in ("qnn.quantize", "qnn.dequantize") else str(span)


def unique_name(name: str, taken: set[str]) -> str:
    """`name`, or a numbered variant if it is in use; the result is then in use."""
    new, count = name, 1
    while new in taken:
        count += 1
        new = f"{name} #{count}"
    taken.add(new)
    return new
