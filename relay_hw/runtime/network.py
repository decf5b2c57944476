"""Makes the network graph of reports: every operator with its operands, scales, noise and sources.

In: the imported module with the lines that it is printed on, the partitioned module, rows of layers. Out: `Network`.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from relay_hw.ir.expr import Call, Expr, Function, GlobalVar, Let, Tuple, TupleGetItem
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType, TupleType, Type
from relay_hw.ir.visit import post_order
from relay_hw.quantize.report import LayerNoise
from relay_hw.report import INPUT, OUTPUT, Line, Network, Node
from relay_hw.span import Span
from relay_hw.target.records import LayerInfo
from relay_hw.transform.graph import dataflow_order, op_name

# Longer lines of text, such as those that write numbers out, are cut.
_LONGEST_LINE: Final = 160
# A node's number, a tuple of values, or nothing that is known before the program runs.
_Value = int | tuple["_Value", ...] | None


def network_of(
    imported: Mapping[Span, Sequence[Line]],
    partitioned: IRModule,
    layers: Sequence[LayerInfo],
    noise: Sequence[LayerNoise],
) -> Network:
    """The graph of a partitioned module. `imported`: lines of the imported module by the span of their call."""
    walk = _Walk(imported, partitioned, layers, noise)
    walk.graphs()
    return Network(tuple(walk.nodes))


def lines_by_span(lines: Mapping[Expr, tuple[int, str]]) -> dict[Span, list[Line]]:
    """Lines of a module by the span of the call that stands on each. `lines`: number and text by expression."""
    found: defaultdict[Span, list[Line]] = defaultdict(list)
    for node, (number, text) in lines.items():
        if isinstance(node, Call) and node.span is not None:
            found[node.span].append(Line(number, _cut(text)))
    return dict(found)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_LINE else f"{text[: _LONGEST_LINE - 1]}…"


class _Walk:
    """Makes a node of each operator, segment by segment, in the order in which `main` and its fragments call them."""

    def __init__(
        self,
        imported: Mapping[Span, Sequence[Line]],
        mod: IRModule,
        layers: Sequence[LayerInfo],
        noise: Sequence[LayerNoise],
    ) -> None:
        self.nodes: list[Node] = []
        self._imported = imported
        self._mod = mod
        self._layers = layers
        self._noise = {row.name: row for row in noise}
        self._counts = Counter[str]()
        self._waiting: defaultdict[str, list[int]] = defaultdict(list)
        for number, row in enumerate(layers):
            self._waiting[row.function].append(number)
        self._segments = dict.fromkeys(self._waiting)
        # Results of each segment, once its nodes are made.
        self._results: dict[str, _Value] = {}

    def graphs(self) -> None:
        """All functions that call segments, then segments that only functions called by value use."""
        for name, function in self._mod.functions.items():
            if name not in self._segments:
                self._graph(function, is_main=name == "main")
        for name in self._segments:
            if name not in self._results:
                self._segment(name, [None] * len(self._mod[name].params))

    def _graph(self, function: Function, is_main: bool) -> None:
        known: dict[Expr, _Value] = {}
        bound: dict[Expr, Expr] = {}
        if is_main:
            for param in function.params:
                known[param] = self._add(Node(param.name_hint, INPUT, INPUT, (), -1, *_type(param.type)))

        def value(expr: Expr) -> _Value:
            while expr in bound:
                expr = bound[expr]
            return known.get(expr)

        for node in post_order(function.body):
            match node:
                case Let(var=var, value=given):
                    bound[var] = given
                case Call(op=GlobalVar(name_hint=name), args=args) if name in self._segments:
                    known[node] = self._segment(name, [value(arg) for arg in args])
                case Tuple(fields=fields):
                    known[node] = tuple(value(field) for field in fields)
                case TupleGetItem(tuple_value=whole, index=index):
                    known[node] = _part(value(whole), index)
                case _:
                    pass
        if is_main:
            self._outputs(function.body, value(function.body))

    def _outputs(self, body: Expr, value: _Value) -> None:
        ty = body.checked_type
        types = ty.fields if isinstance(ty, TupleType) else (ty,)
        values = value if isinstance(value, tuple) else (value,)
        for number, (one, part) in enumerate(zip(values, types, strict=False)):
            name = OUTPUT if len(types) == 1 else f"{OUTPUT} {number}"
            self._add(Node(name, OUTPUT, OUTPUT, tuple(_numbers(one)), -1, *_type(part)))

    def _segment(self, name: str, args: Sequence[_Value]) -> _Value:
        """The nodes of a segment, made at its first call."""
        if name in self._results:
            return self._results[name]
        function = self._mod[name]
        known: dict[Expr, _Value] = dict(zip(function.params, args, strict=True))
        for node in dataflow_order(function.body, name):
            match node:
                case Call(args=operands):
                    known[node] = self._operator(name, node, [known.get(operand) for operand in operands])
                case Tuple(fields=fields):
                    known[node] = tuple(known.get(field) for field in fields)
                case TupleGetItem(tuple_value=whole, index=index):
                    known[node] = _part(known.get(whole), index)
                case _:
                    pass
        self._results[name] = known.get(function.body)
        return self._results[name]

    def _operator(self, segment: str, call: Call, operands: Sequence[_Value]) -> int:
        composite = call.op if isinstance(call.op, Function) else None
        operator = str(composite.attrs["Composite"]) if composite is not None else op_name(call) or "call"
        spans = list(dict.fromkeys(_spans(call)))
        number = self._row(segment, operator, [str(span) for span in spans])
        row = self._layers[number] if number >= 0 else None
        known = self._numbers_of(spans) if composite is not None else None
        inputs = dict.fromkeys(number for operand in operands for number in _numbers(operand))
        return self._add(
            Node(
                name=operator if row is None else row.name,
                operator=operator,
                where="" if row is None else row.where,
                inputs=tuple(inputs),
                layer=number,
                **dict(zip(("shape", "dtype"), _type(call.checked_type), strict=True)),
                names=tuple(map(str, spans)),
                relay=tuple(line for span in spans for line in self._imported.get(span, ())),
                scale=None if known is None else known.scale,
                zero_point=None if known is None else known.zero_point,
                noise_db=known.sqnr_db if known is not None and math.isfinite(known.sqnr_db) else None,
            )
        )

    def _row(self, segment: str, operator: str, names: Sequence[str]) -> int:
        """The row of a layer, found by one of its names; branches may be in another order there."""
        waiting = self._waiting[segment]
        same = [number for number in waiting if self._layers[number].operator == operator]
        named = [number for number in same if _plain(self._layers[number].name, operator) in names]
        found = next(iter(named or same or waiting), -1)
        if found >= 0:
            waiting.remove(found)
        return found

    def _numbers_of(self, spans: Sequence[Span]) -> LayerNoise | None:
        """The quantizer's record of the last layer that an operator was made from."""
        for name in map(str, reversed(spans)):
            if name in self._noise:
                self._counts[name] += 1
                count = self._counts[name]
                return self._noise.get(name if count == 1 else f"{name}#{count}")
        return None

    def _add(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1


def _plain(name: str, operator: str) -> str:
    """A layer's name in the source model."""
    head, mark, count = name.rpartition(" #")
    return (head if mark and count.isdecimal() else name).removeprefix(f"{operator.removeprefix('qnn.')} ")


def _spans(call: Call) -> Iterator[Span]:
    """Sources of a call; of a composite, those of its operators, in order."""
    inner = post_order(call.op.body) if isinstance(call.op, Function) else ()
    for node in (*inner, call):
        if isinstance(node, Call) and node.span is not None:
            yield node.span


def _part(value: _Value, index: int) -> _Value:
    return value[index] if isinstance(value, tuple) else value


def _numbers(value: _Value) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    for part in value if isinstance(value, tuple) else ():
        yield from _numbers(part)


def _type(ty: Type | None) -> tuple[str, str]:
    """Shape and element type as text."""
    if isinstance(ty, TensorType):
        return "x".join(map(str, ty.shape)) or "scalar", ty.dtype
    return ("", "") if ty is None else (str(ty), "")
