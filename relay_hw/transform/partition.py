"""PartitionDevice: graphs become calls of device functions and host functions, with a reason for every host operator.

In: a typed module with composites (`MergeDeviceComposites`), `main` one graph or outlined into pieces. Out: functions
`@accel_k` and `@host_k`, graphs that call them, and `mod.attrs["partition"]`, a tuple of PartitionRecord.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from relay_hw.analysis.products import call_macs, total_macs
from relay_hw.ir.expr import Call, Expr, Function, Op, Tuple, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import FuncType
from relay_hw.ir.visit import copy_with, post_order
from relay_hw.transform.base import Pass
from relay_hw.transform.fuse import Legal, is_front
from relay_hw.transform.graph import dataflow_order, is_op, op_name
from relay_hw.transform.outline import outline, values_of
from relay_hw.transform.pieces import pieces_of
from relay_hw.transform.reasons import BORDER_OPERATORS, MOVING_OPERATORS, reason_for
from relay_hw.transform.regions import find_regions

ACCEL: Final = "accel"
HOST: Final = "host"
_BORDER: Final = "border"
_ANCHORS: Final = (
    "nn.conv2d",
    "nn.dense",
    "nn.batch_matmul",
    "nn.max_pool2d",
    "accel.sum_pool2d",
    "accel.conv2d_transpose",
    "accel.add",
)


@dataclass(frozen=True, slots=True)
class PartitionRecord:
    """Where one operator went. `function` is the global function that holds it; `reason` is empty on the device.
    `macs`: multiply-accumulates of one run of it."""

    name: str
    operator: str
    where: str
    function: str
    reason: str = ""
    macs: int = 0


def partition_records(mod: IRModule) -> tuple[PartitionRecord, ...]:
    """Where each operator of a partitioned module went, in order."""
    records = mod.attrs["partition"]
    assert isinstance(records, tuple)
    return records


# An operator, its attributes and its operands.
_Same = tuple[str, object, Sequence[Expr]]


class PartitionDevice(Pass):
    """Splits `main`, or every piece. `legal` says why a composite cannot run on the device; None where it can.

    Operators that only convert between float and integer or move elements form host functions of their own: they have
    one exact meaning in numpy wherever they run.
    """

    name = "partition-device"

    def __init__(self, legal: Legal | None = None, rules: Mapping[str, str] | None = MappingProxyType({})) -> None:
        """`rules`: what operators need to be quantized, for the reasons; None where nothing is."""
        self.legal = legal
        self.rules = rules

    def transform(self, mod: IRModule) -> IRModule:
        taken = _Taken()
        new: dict[str, Function] = {}
        records: list[PartitionRecord] = []
        for name in pieces_of(mod):
            function, refusals = _inline_refused(mod[name], name, self.legal)
            refusals.update(_refused_fronts(function, name, self.legal))
            split = _split(function, name, refusals, taken, self.rules)
            new |= split[0]
            records += split[1]
        before = mod.attrs.get("partition", ()) if not new else ()
        return replace(mod.with_functions(new), attrs={**mod.attrs, "partition": tuple(records) or before})


@dataclass(slots=True)
class _Taken:
    """Names given so far: functions of each side, and layers."""

    counts: dict[str, int] = field(default_factory=lambda: {ACCEL: 0, HOST: 0})
    layers: set[str] = field(default_factory=set[str])

    def function(self, where: str) -> str:
        """`accel_k` or `host_k`, each counted by itself."""
        self.counts[where] += 1
        return f"{where}_{self.counts[where] - 1}"


def _inline_refused(main: Function, what: str, legal: Legal | None) -> tuple[Function, dict[Call, str]]:
    """A graph with composites that stay on the host replaced by their operators, and the reason of each of those."""
    opened = _Opened(legal)
    return copy_with(main, body=opened.graph(main.body, what, {})), opened.refusals


class _Opened:
    """Copies of graphs in which functions that the accelerator does not take are written out."""

    def __init__(self, legal: Legal | None) -> None:
        self.refusals: dict[Call, str] = {}
        self._legal = legal
        # Each composite has a copy of what stands in front of it.
        self._once: dict[_Same, Expr] = {}

    def graph(self, root: Expr, what: str, memo: MutableMapping[Expr, Expr], reason: str | None = None) -> Expr:
        """The copy of `root`; `memo` has what its variables stand for, `reason` why it is written out."""
        for node in dataflow_order(root, what):
            if node in memo:
                continue
            refusal = _refusal(node, self._legal)
            if refusal is not None and isinstance(node, Call) and isinstance(node.op, Function):
                given: dict[Expr, Expr] = dict(zip(node.op.params, (memo[arg] for arg in node.args), strict=True))
                memo[node] = self.graph(node.op.body, "a composite", ChainMap(given, memo), refusal)
                continue
            memo[node] = new = _once(_copy(node, memo), self._once)
            if reason is not None and isinstance(new, Call):
                self.refusals[new] = reason
        return memo[root]


def _once(node: Expr, known: dict[_Same, Expr]) -> Expr:
    """`node`, or the equal call of an operator that is there already."""
    if not isinstance(node, Call) or not isinstance(node.op, Op) or node.op.has_effect:
        return node
    return known.setdefault((node.op.name, node.attrs, node.args), node)


def _refusal(node: Expr, legal: Legal | None) -> str | None:
    if not isinstance(node, Call) or not isinstance(node.op, Function):
        return None
    if "Composite" not in node.op.attrs:
        return "it is called through a function that is no composite of the accelerator: Inline puts it in its place"
    return legal(node.op) if legal is not None else None


def _refused_fronts(main: Function, what: str, legal: Legal | None) -> dict[Call, str]:
    """Pads and reshapes that a composite behind them could take in, were it legal then: why it is not."""
    found: dict[Call, str] = {}
    for reader in dataflow_order(main.body, what):
        if legal is None or not isinstance(reader, Call) or not isinstance(reader.op, Function):
            continue
        name = str(reader.op.attrs["Composite"])
        if any(isinstance(n, Call) and is_front(n, name) for n in dataflow_order(reader.op.body, "a composite")):
            continue
        for param, front in zip(reader.op.params, reader.args, strict=True):
            if isinstance(front, Call) and is_front(front, name):
                reason = legal(_with_front(reader.op, param, front))
                if reason is not None:
                    found[front] = reason
    return found


def _with_front(composite: Function, param: Var, front: Call) -> Function:
    """`composite` with `front` inside, in the place of `param`."""
    outer = Var(param.name_hint, front.args[0].type, checked_type=front.args[0].type)
    memo: dict[Expr, Expr] = {param: copy_with(front, args=(outer, *front.args[1:]))}
    for node in dataflow_order(composite.body, "a composite"):
        if node not in memo:
            memo[node] = _copy(node, memo)
    params = [outer if old is param else old for old in composite.params]
    ty = FuncType(tuple(new.type for new in params), composite.body.type)
    return copy_with(composite, params=tuple(params), body=memo[composite.body], checked_type=ty)


def _copy(node: Expr, memo: Mapping[Expr, Expr]) -> Expr:
    """`node` on the operands that `memo` holds, with its type."""
    match node:
        case Call():
            return copy_with(node, args=tuple(memo[arg] for arg in node.args))
        case Tuple():
            return copy_with(node, fields=tuple(memo[part] for part in node.fields))
        case TupleGetItem():
            return copy_with(node, tuple_value=memo[node.tuple_value])
        case _:
            return node


def _split(
    main: Function, what: str, refusals: dict[Call, str], taken: _Taken, rules: Mapping[str, str] | None
) -> tuple[dict[str, Function], Sequence[PartitionRecord]]:
    """One graph as functions of each side, and the graph, by its name, that calls them."""
    units = [node for node in dataflow_order(main.body, what) if isinstance(node, Call)]
    if not units:
        return {}, ()
    index = {unit: position for position, unit in enumerate(units)}
    reads = [[index[v[0]] for arg in unit.args for v in values_of(arg) if isinstance(v, tuple)] for unit in units]
    kinds = _kinds(units, reads)
    numbers = find_regions(kinds, reads)
    kind_of = dict(zip(numbers, kinds, strict=True))
    wheres = [ACCEL if kind_of[number] == ACCEL else HOST for number in sorted(kind_of)]
    names = [taken.function(where) for where in wheres]
    group = dict(zip(units, numbers, strict=True))
    functions, new_main = outline(main, units, group, names, dict(zip(names, wheres, strict=True)))
    reasons = {
        unit: refusals.get(unit) or reason_for(unit, rules) for unit, k in zip(units, kinds, strict=True) if k != ACCEL
    }
    records = _records(units, [names[number] for number in numbers], reasons, taken)
    return {**functions, what: new_main}, records


def _kinds(units: Sequence[Call], reads: Sequence[Sequence[int]]) -> list[str]:
    kinds: list[str] = []
    for unit, sources in zip(units, reads, strict=True):
        if isinstance(unit.op, Function):
            kinds.append(ACCEL)
        elif op_name(unit) in BORDER_OPERATORS:
            kinds.append(_BORDER)
        elif op_name(unit) in MOVING_OPERATORS:
            before = kinds[sources[0]] if sources else _BORDER
            kinds.append(_BORDER if before == ACCEL else before)
        else:
            kinds.append(HOST)
    return kinds


def _records(
    units: Sequence[Call], functions: Sequence[str], reasons: Mapping[Call, str], taken: _Taken
) -> tuple[PartitionRecord, ...]:
    records: list[PartitionRecord] = []
    for unit, function in zip(units, functions, strict=True):
        operator = str(unit.op.attrs["Composite"]) if isinstance(unit.op, Function) else op_name(unit) or "call"
        name = _unique(_layer_name(unit, operator), taken.layers)
        reason = reasons.get(unit, "")
        where = HOST if unit in reasons else ACCEL
        records.append(PartitionRecord(name, operator, where, function, reason, _unit_macs(unit)))
    return tuple(records)


def _unit_macs(unit: Call) -> int:
    return total_macs(post_order(unit.op.body)) if isinstance(unit.op, Function) else call_macs(unit)


def _layer_name(unit: Call, operator: str) -> str:
    """The name in the source of the operator that does the work, else the operator's own."""
    if isinstance(unit.op, Function):
        spans = [n.span for n in dataflow_order(unit.op.body, "a composite") if isinstance(n, Call) and n.span]
        anchors = [n.span for n in dataflow_order(unit.op.body, "a composite") if is_op(n, *_ANCHORS) and n.span]
        span = (anchors or spans or [unit.span])[0]
    else:
        span = unit.span
    if span is None:
        return operator
    # A conversion stands beside the layer that it converts for: the plain name is that layer's.
    return f"{operator.removeprefix('qnn.')} {span}" if operator in ("qnn.quantize", "qnn.dequantize") else str(span)


def _unique(name: str, taken: set[str]) -> str:
    new, count = name, 1
    while new in taken:
        count += 1
        new = f"{name} #{count}"
    taken.add(new)
    return new
