"""Stretches of a network within which a channel may be scaled: the layers that make its tensors take the scale, those
that read them take it back, and what lies between (ReLU, pooling, sums) lets it through.

In: the plan of a float graph. Out: its stretches.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from relay_hw.ir.expr import Expr
from relay_hw.quantize.methods.columns import groups_of
from relay_hw.quantize.steps import AddStep, AverageStep, KeepStep, LinearStep, Plan, PlanStep, is_depthwise
from relay_hw.transform.graph import count_uses, is_op


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """Tensors whose channels have one scale, layers that make them, layers that read them.

    `bounds` has an entry for each tensor that is clipped from above: scales must keep its values below that.
    """

    tensors: tuple[Expr, ...]
    axis: int
    makers: tuple[LinearStep, ...]
    readers: tuple[LinearStep, ...]
    bounds: dict[Expr, float]


def find_stretches(body: Expr, plan: Plan) -> list[Stretch]:
    """The stretches of `body`, in order of evaluation."""
    finder = _Finder(body, plan)
    return [stretch for tensors in finder.groups() if (stretch := finder.stretch(tensors)) is not None]


class _Finder:
    def __init__(self, body: Expr, plan: Plan) -> None:
        self._makers: dict[Expr, PlanStep] = {step.output: step for step in plan.steps}
        self._readers: dict[Expr, list[LinearStep]] = {}
        self._leader: dict[Expr, Expr] = {}
        seen: Counter[Expr] = Counter()
        for step in plan.steps:
            self._find(step.output)
            if isinstance(step, LinearStep) and input_axis(step) >= 0:
                self._readers.setdefault(step.inputs[0], []).append(step)
            elif _lets_through(step):
                for tensor in step.inputs:
                    self._leader[self._find(tensor)] = self._find(step.output)
            else:
                continue
            seen.update(step.inputs)
        uses = count_uses(body)
        self._closed = {tensor for tensor in self._makers if uses[tensor] != seen[tensor]}

    def groups(self) -> Iterable[list[Expr]]:
        """Groups of tensors that operators between layers tie together."""
        members: dict[Expr, list[Expr]] = {}
        for tensor in self._leader:
            members.setdefault(self._find(tensor), []).append(tensor)
        return members.values()

    def stretch(self, tensors: list[Expr]) -> Stretch | None:
        """The stretch around `tensors`; None if other operators make or read one of them."""
        makers: list[LinearStep] = []
        bounds: dict[Expr, float] = {}
        for tensor in tensors:
            step = self._makers.get(tensor)
            if step is None or tensor in self._closed or step.low not in (-math.inf, 0.0):
                return None
            if isinstance(step, LinearStep):
                if is_op(step.linear.anchor, "nn.conv2d_transpose"):
                    return None
                makers.append(step)
            elif not _lets_through(step):
                return None
            if step.high != math.inf:
                bounds[tensor] = step.high
        readers = [reader for tensor in tensors for reader in self._readers.get(tensor, ())]
        if not makers or not readers or not _agree(makers, readers):
            return None
        return Stretch(tuple(tensors), makers[0].linear.axis, tuple(makers), tuple(readers), bounds)

    def _find(self, tensor: Expr) -> Expr:
        while self._leader.setdefault(tensor, tensor) is not tensor:
            tensor = self._leader[tensor]
        return tensor


def _agree(makers: list[LinearStep], readers: list[LinearStep]) -> bool:
    """Whether all have the same number of channels on the same axis."""
    channels, axis = makers[0].linear.channels, makers[0].linear.axis
    made = all((one.linear.channels, one.linear.axis) == (channels, axis) for one in makers)
    return made and all(one.linear.weight.shape[input_axis(one)] == channels for one in readers)


def _lets_through(step: PlanStep) -> bool:
    """Whether an operator keeps channels separate and passes scales through: sums, pooling."""
    return isinstance(step, (AddStep, AverageStep)) or (
        isinstance(step, KeepStep) and is_op(step.output, "nn.max_pool2d")
    )


def input_axis(step: LinearStep) -> int:
    """The weight's axis of input channels; -1 if there is none."""
    anchor = step.linear.anchor
    if is_op(anchor, "nn.dense"):
        return 1
    if not is_op(anchor, "nn.conv2d"):
        return -1
    if groups_of(step) == 1:
        return anchor.attrs.kernel_layout.index("I")
    return step.linear.weight_axis if is_depthwise(step) else -1
