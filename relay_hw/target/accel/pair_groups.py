"""Groups sums and products of int8 tensors that are computed for each other only into one layer of the accelerator.

In: calls of a dataflow graph. Out: groups, composites like those of `fuse`. A rotary embedding or the state of an LSTM
is one layer then, and what it makes on the way never leaves the chip.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from relay_hw.ir.expr import Call, Expr
from relay_hw.target.accel.groups import PAIRS, TABLE, TreeGroup
from relay_hw.target.accel.move_groups import is_moving, move_group
from relay_hw.transform.graph import is_op, shape_of

NAME: Final = "accel.pairs"
_SCALE: Final = "fixed.requantize"
# Anchors of the composites that may end in a sum or product.
LAYERS: Final = ("nn.conv2d", "nn.dense")
# Operands share the accumulators: of more there is little room for each.
MOST_OPERANDS: Final = 8


def pair_groups(
    root: Call, uses: Mapping[Expr, int], readers: Mapping[Expr, Sequence[Expr]], taken: set[Expr]
) -> Iterator[TreeGroup]:
    """Candidates: the tree of sums and products that ends in `root`, with what reorders the channels of an operand and
    without; none where that is a single sum or product.
    """
    for deep in (True, False):
        group = _Trees(uses, readers, taken, deep).ending_in(root)
        if group is not None:
            yield group


@dataclass(frozen=True, slots=True)
class _Trees:
    """What is known of the graph. `deep`: with what reorders the channels of an operand."""

    uses: Mapping[Expr, int]
    readers: Mapping[Expr, Sequence[Expr]]
    taken: set[Expr]
    deep: bool

    def ending_in(self, root: Call) -> TreeGroup | None:
        """The tree, near operands before far ones; None where it is a single sum or product."""
        first = self._calls(root)
        members, inputs, operands = list(first), dict[Expr, None](), 2
        waiting = list(first[-1].args) if first else []
        while waiting:
            expr = waiting.pop(0)
            calls = self._calls(expr) if operands < MOST_OPERANDS and self._is_own(expr) else ()
            if calls and not any(map(self._is_layer, calls[-1].args)):
                members += calls
                waiting += calls[-1].args
                operands += 1
            elif moved := self._reordered(expr, members):
                members += moved.members
                inputs |= dict.fromkeys(moved.inputs)
            else:
                inputs[expr] = None
        return TreeGroup(NAME, root, frozenset(members), tuple(inputs)) if len(members) > len(first) else None

    def _is_own(self, expr: Expr) -> bool:
        """Whether nobody else reads the value."""
        return self.uses[expr] == 1 and expr not in self.taken

    def _calls(self, expr: Expr) -> tuple[Call, ...]:
        """A sum or product of tensors of one shape, behind the table that it goes through; nothing for other values."""
        if not isinstance(expr, Call):
            return ()
        if is_op(expr, TABLE):
            inner = expr.args[0]
            found = self._calls(inner) if is_op(inner, *PAIRS) and self._is_own(inner) else ()
            return (expr, *found) if found else ()
        alike = is_op(expr, *PAIRS) and all(shape_of(arg) == shape_of(expr) for arg in expr.args)
        return (expr,) if alike else ()

    def _is_layer(self, expr: Expr) -> bool:
        """Whether a layer makes the value, which takes in a sum or product of it."""
        inner = expr.args[0] if isinstance(expr, Call) and is_op(expr, TABLE) else expr
        own = self._is_own(expr) and self._is_own(inner)
        return own and isinstance(inner, Call) and is_op(inner, _SCALE) and is_op(inner.args[0], *LAYERS)

    def _reordered(self, expr: Expr, members: Sequence[Call]) -> TreeGroup | None:
        """The operators that only move elements of one tensor to the value; for one operand of a tree."""
        if not self.deep or not isinstance(expr, Call) or not self._is_own(expr) or any(map(is_moving, members)):
            return None
        found = move_group(expr, self.uses, self.readers, self.taken, deep=True)
        return found if found is not None and len(found.inputs) == 1 else None
