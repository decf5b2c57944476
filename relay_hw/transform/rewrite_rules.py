"""Rules that replace a call by a simpler expression of the same value and type, applied until none applies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from relay_hw.ir.expr import Constant, Expr, Function, TupleGetItem
from relay_hw.ir.visit import Rewriter, rebuild
from relay_hw.transform.graph import count_uses, op_name, typed

# Rules make progress on their own; the bound turns a mistake in one into an error instead of an endless loop.
_MAX_ROUNDS = 1000


@dataclass(slots=True)
class Uses:
    """Use counts of nodes, updated while a graph is rewritten; never too low."""

    counts: dict[Expr, int] = field(default_factory=dict[Expr, int])

    def is_single(self, expr: Expr) -> bool:
        """Whether `expr` has a single use, so that changing it affects nothing else."""
        return self.counts.get(expr, 1) <= 1


Apply = Callable[[Any, Uses], "Expr | None"]


@dataclass(frozen=True, slots=True)
class Rule:
    """`apply` gets a call of one of `operators` (or a projection, where it is `TUPLE_ITEM`) with typed arguments.

    It returns a typed expression of the same type, or None if the rule does not hold.
    """

    name: str
    operators: tuple[str, ...]
    apply: Apply


TUPLE_ITEM = "tuple item"


def apply_rules(function: Function, rules: Sequence[Rule]) -> Function:
    """`function` with every rule applied as often as possible; the same object where none applies."""
    by_operator: dict[str, list[Rule]] = {}
    for rule in rules:
        for operator in rule.operators:
            by_operator.setdefault(operator, []).append(rule)
    for _ in range(_MAX_ROUNDS):
        rewriter = _Round(by_operator, count_uses(function))
        new = rewriter.rewrite(function)
        assert isinstance(new, Function)
        if not rewriter.fired:
            return function
        function = new
    raise RuntimeError(f"rules must come to an end, not still apply after {_MAX_ROUNDS} rounds: {rewriter.fired}")


class _Round(Rewriter):
    def __init__(self, rules: dict[str, list[Rule]], counts: dict[Expr, int]) -> None:
        super().__init__()
        self.fired: set[str] = set()
        self._rules = rules
        self._old = dict(counts)
        self._uses = Uses(counts)

    def _rewrite_node(self, node: Expr) -> Expr:
        new = rebuild(node, self._memo)
        return self._settle(node, new if new is node else typed(new, node.checked_type), _rule_key(new))

    def _settle(self, old: Expr, new: Expr, key: str) -> Expr:
        result = new
        for rule in self._rules.get(key, ()):
            found = rule.apply(new, self._uses)
            if found is not None:
                # Rules behind it in the same round ask for types.
                assert found.checked_type is not None, f"rule {rule.name} must give an expression its type"
                self.fired.add(rule.name)
                result = found
                break
        if result is not old and not isinstance(result, Constant):
            self._uses.counts[result] = self._uses.counts.get(result, 0) + self._old[old]
        return result


def _rule_key(node: Expr) -> str:
    return TUPLE_ITEM if isinstance(node, TupleGetItem) else op_name(node)
