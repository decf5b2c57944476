"""How often the operator calls of a program are executed. In: a module. Out: counts by call site.

A call site is known by its span: `mark` gives every operator call one of its own, and passes carry it along. A pad or
reshape in front of a layer, inside of its composite, is no execution: the accelerator makes addresses of it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from relay_hw.analysis import infer_type
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Expr, Function, Op
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import Rewriter, copy_with, post_order
from relay_hw.span import Span
from relay_hw.target.accel.composites import is_front
from relay_hw.transform import Pass

# Operators that are layers of a network. No rule may make two of one.
LAYERS: Final = ("nn.dense", "nn.conv2d", "nn.matmul", "nn.batch_matmul")


class _Marker(Rewriter):
    def __init__(self, numbers: itertools.count[int]) -> None:
        super().__init__()
        self._numbers = numbers

    def rewrite_call(self, old: Call, new: Call) -> Expr:
        if not isinstance(new.op, Op):
            return new
        return copy_with(new, span=Span("site", next(self._numbers)), checked_type=None)


def mark(mod: IRModule) -> IRModule:
    """The typed module with a span of its own for each operator call."""
    numbers = itertools.count(1)
    functions: dict[str, Function] = {}
    for name, function in mod.functions.items():
        marked = _Marker(numbers).rewrite(function)
        assert isinstance(marked, Function)
        functions[name] = marked
    return infer_type(mod.with_functions(functions))


def executions(mod: IRModule, args: Mapping[str, Any] | Sequence[Any]) -> Counter[tuple[int, str]]:
    """How often each operator of each call site is executed; site 0 is what passes have added without a span."""
    counts: Counter[tuple[int, str]] = Counter()
    addresses = set(_fronts(mod))

    def observe(node: Expr, value: Any) -> None:
        if isinstance(node, Call) and isinstance(node.op, Op) and node not in addresses:
            counts[node.span.line if node.span and node.span.source == "site" else 0, node.op.name] += 1

    evaluate(mod, args, observe=observe)
    return counts


def _fronts(mod: IRModule) -> Iterator[Expr]:
    """What stands in front of the layer of a composite."""
    for function in mod.functions.values():
        for composite in post_order(function):
            if isinstance(composite, Function) and "Composite" in composite.attrs:
                name = str(composite.attrs["Composite"])
                yield from (n for n in post_order(composite) if isinstance(n, Call) and is_front(n, name))


def more_often(before: Counter[tuple[int, str]], after: Counter[tuple[int, str]]) -> list[str]:
    """What is executed more often than before: an operator of a call site, or a kind of layer."""
    most: dict[int, int] = {}
    for (site, _), count in before.items():
        most[site] = max(most.get(site, 0), count)
    found = [
        f"{name} of call site {site}: {count} times, not {most.get(site, 0)}"
        for (site, name), count in after.items()
        if site and count > most.get(site, 0)
    ]
    for layer in LAYERS:
        old, new = (sum(count for (_, name), count in one.items() if name == layer) for one in (before, after))
        if new > old:
            found.append(f"{layer}: {new} times, not {old}")
    return found


def assert_no_more(step: Pass, mod: IRModule, inputs: Sequence[Mapping[str, Any]], what: str) -> IRModule:
    """`step` makes no operator call of the marked `mod` be executed more often, whatever the input."""
    new = step(mod)
    for given in inputs:
        found = more_often(executions(mod, given), executions(new, given))
        assert not found, f"{step!r} on {what}, k = {given.get('k')}: {'; '.join(found)}"
    return new
