"""Matches sums and products of activations, one inside the other, to a kernel.

In: a composite of `fixed.add` and `fixed.mul`, each with a table behind it or none. Out: `PairsKernel`. Operands are
parameters, as they are or with their channels in another order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from relay_hw.ir.expr import Call, Expr, Function, Var
from relay_hw.ir.visit import post_order
from relay_hw.tensorize.kernel import Leaf, Pair, PairsKernel
from relay_hw.tensorize.match.moves import read_order
from relay_hw.tensorize.match.reader import Reader
from relay_hw.tensorize.match.reading import need, var_type

ADD: Final = "fixed.add"
MUL: Final = "fixed.mul"
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PairsReader(Reader):
    """Walks from the last sum or product to what is read."""

    def pairs(self) -> tuple[PairsKernel, Shape]:
        """The kernel and the shape of its result. Raises TensorizeError."""
        root, shape = self._pair(self.composite.body)
        read = {leaf.source for leaf in root.leaves}
        reordered = sum(leaf.select is not None for leaf in root.leaves)
        need(
            reordered <= 1, f"one operand at most must have channels in another order, not {reordered}", self.composite
        )
        for number, param in enumerate(self.composite.params):
            need(number in read, f"parameters must be read, not only passed as {param.name_hint} is", param)
        return PairsKernel(self._image(self.composite.params[root.leaves[0].source]), root), shape

    def _pair(self, expr: Expr) -> tuple[Pair, Shape]:
        body, table = self._through_table(expr)
        call = self._call(body)
        name = self._name(call)
        need(name in (ADD, MUL), f"operator must be {ADD} or {MUL}, not {name}", call)
        (y, left), (r, right) = map(self._operand, call.args)
        need(left == right, f"operands of {name} must have one shape, not {left} and {right}", call)
        read = self._add_stage if name == ADD else self._mul_stage
        return Pair(read(call, False, table), y, r), left

    def _operand(self, expr: Expr) -> tuple[Leaf | Pair, Shape]:
        if isinstance(expr, Var):
            self._image(expr)
            return Leaf(self._param(expr, self.composite)), var_type(expr).static_shape
        call = self._call(expr)
        if self._name(call) in (ADD, MUL, "fixed.table"):
            return self._pair(call)
        return self._selected(call)

    def _selected(self, call: Call) -> tuple[Leaf, Shape]:
        """A parameter whose channels other operators put in another order."""
        read = [node for node in post_order(call) if isinstance(node, Var)]
        need(len(set(read)) == 1, f"channels must come from one operand, not {len(set(read))}", call)
        kernel, shape = read_order(Function([read[0]], call, span=call.span), self.config)
        need(kernel is not None, "operands of sums and products must only have channels in another order", call)
        return Leaf(self._param(read[0], call), kernel), shape
