"""Steps of a quantization: what becomes integer, one step for each tensor that stays."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from relay_hw.ir.expr import Call, Expr
from relay_hw.quantize.rows import Norm, Softmax
from relay_hw.transform.graph import is_op
from relay_hw.transform.linear import Linear


@dataclass(frozen=True, slots=True, eq=False)
class PlanStep:
    """A step makes the tensor `output` of the float graph; `inputs` are the tensors that it reads as integers."""

    output: Expr
    inputs: tuple[Expr, ...]
    low: float = -math.inf  # what an activation at the end keeps
    high: float = math.inf


@dataclass(frozen=True, slots=True, eq=False)
class LinearStep(PlanStep):
    """A convolution or dense layer with its bias and activation."""

    linear: Linear = field(kw_only=True)


def is_depthwise(step: LinearStep) -> bool:
    """Whether each output channel reads only the input channel of the same number."""
    anchor = step.linear.anchor
    if not is_op(anchor, "nn.conv2d"):
        return False
    inputs = anchor.attrs.groups * step.linear.weight.shape[anchor.attrs.kernel_layout.index("I")]
    return anchor.attrs.groups == step.linear.channels == inputs > 1


@dataclass(frozen=True, slots=True, eq=False)
class AddStep(PlanStep):
    """The sum of two tensors of one shape, each times a positive number."""

    factors: tuple[float, float] = (1.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class ProductStep(PlanStep):
    """A matrix product of two tensors, whose zero points are 0."""


@dataclass(frozen=True, slots=True, eq=False)
class GateStep(PlanStep):
    """The product of a tensor and another one, of its shape or with one number for each channel."""


@dataclass(frozen=True, slots=True, eq=False)
class AverageStep(PlanStep):
    """The mean of windows."""

    pool: Call = field(kw_only=True)


@dataclass(frozen=True, slots=True, eq=False)
class KeepStep(PlanStep):
    """An operator whose result keeps its input's scale: max pooling, reshape, concatenate, pad."""


@dataclass(frozen=True, slots=True, eq=False)
class BoundStep(PlanStep):
    """A ReLU or clip without a layer in front: clips integers at their scale."""


@dataclass(frozen=True, slots=True, eq=False)
class TableStep(PlanStep):
    """A function of each element: its integer result for each integer is in a table."""


@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxStep(PlanStep):
    """The softmax of rows."""

    softmax: Softmax = field(kw_only=True)


@dataclass(frozen=True, slots=True, eq=False)
class NormStep(PlanStep):
    """A layer norm or RMS norm of rows."""

    norm: Norm = field(kw_only=True)


@dataclass(frozen=True, slots=True, eq=False)
class FloatStep(PlanStep):
    """An operator without integer form."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`steps` in order of evaluation; `group` maps each integer tensor to the tensors it shares a scale with."""

    steps: tuple[PlanStep, ...]
    group: dict[Expr, tuple[Expr, ...]]

    @property
    def symmetric(self) -> frozenset[Expr]:
        """Tensors whose zero point must be 0, and those that share a scale with them."""
        needed = [tensor for step in self.steps if isinstance(step, ProductStep) for tensor in step.inputs]
        return frozenset(tensor for one in needed for tensor in self.group[one])

    @property
    def integers(self) -> tuple[Expr, ...]:
        """All tensors whose range must be known."""
        return tuple(self.group)
