"""The call graph of a module. In: a module. Out: its functions in groups, callees first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relay_hw.errors import WellFormedError
from relay_hw.ir.expr import Expr, GlobalVar
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import post_order


def globals_used(expr: Expr) -> tuple[str, ...]:
    """The names of the global functions that `expr` mentions, in order of appearance."""
    return tuple(dict.fromkeys(node.name_hint for node in post_order(expr) if isinstance(node, GlobalVar)))


def call_graph(mod: IRModule) -> dict[str, tuple[str, ...]]:
    """For every function the functions that it mentions. Raises WellFormedError for an unknown one."""
    graph = {name: globals_used(function) for name, function in mod.functions.items()}
    for name, used in graph.items():
        for target in used:
            if target not in mod.functions:
                raise WellFormedError(_unknown(target, name, mod), _span(target, mod.functions[name]))
    return graph


def call_order(mod: IRModule) -> list[tuple[str, ...]]:
    """Groups of mutually recursive functions, callees before callers, each group in order of definition."""
    graph = call_graph(mod)
    place = {name: index for index, name in enumerate(graph)}
    return [tuple(sorted(group, key=place.__getitem__)) for group in _components(graph)]


def _components(graph: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Strongly connected components, callees first (Tarjan's algorithm with an explicit stack)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    open_names: dict[str, None] = {}
    found: list[list[str]] = []
    for root in graph:
        if root in number:
            continue
        work = [(root, iter(graph[root]))]
        number[root] = low[root] = len(number)
        open_names[root] = None
        while work:
            name, targets = work[-1]
            for target in targets:
                if target not in number:
                    number[target] = low[target] = len(number)
                    open_names[target] = None
                    work.append((target, iter(graph[target])))
                    break
                if target in open_names:
                    low[name] = min(low[name], number[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == number[name]:
                    found.append(_close(name, open_names))
    return found


def _close(name: str, open_names: dict[str, None]) -> list[str]:
    group: list[str] = []
    while name in open_names:
        group.append(open_names.popitem()[0])
    return group


def _unknown(target: str, user: str, mod: IRModule) -> str:
    return f"@{target} in @{user} must be a function of the module ({', '.join('@' + n for n in mod.functions)})"


def _span(target: str, user: Expr):
    return next((n.span for n in post_order(user) if isinstance(n, GlobalVar) and n.name_hint == target), None)
