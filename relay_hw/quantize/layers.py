"""Names of a plan's layers, and the rule by which each becomes integers.

In: a plan and a strategy with exceptions. Out: `Layers`. Raises QuantizeError for exceptions that no layer matches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from relay_hw.errors import QuantizeError
from relay_hw.ir.expr import Call, Expr
from relay_hw.quantize.layer_rule import ActivationRule, LayerRule
from relay_hw.quantize.plan import make_plan
from relay_hw.quantize.steps import (
    AddStep,
    AverageStep,
    GateStep,
    LinearStep,
    NormStep,
    Plan,
    PlanStep,
    ProductStep,
    SoftmaxStep,
    is_depthwise,
)
from relay_hw.quantize.strategy import Place, Strategy
from relay_hw.support.names import one_of
from relay_hw.transform.graph import is_op, op_name


@dataclass(frozen=True, slots=True)
class Layers:
    """A plan without the layers that stay float, with the name and rule of each layer.

    `names` and `own` have an entry for every layer that computes: linear layers, sums, products, averages, softmax and
    norms of rows.
    """

    plan: Plan
    strategy: Strategy
    names: Mapping[PlanStep, str]
    own: Mapping[PlanStep, LayerRule]

    @property
    def linear(self) -> Iterator[LinearStep]:
        """Convolutions and dense layers in order of evaluation."""
        return (step for step in self.plan.steps if isinstance(step, LinearStep))

    @property
    def need_statistics(self) -> bool:
        """Whether the integers of any layer depend on its calibration activations."""
        return any(self.own[step].weights.needs_statistics for step in self.linear)

    def of_tensor(self, tensor: Expr) -> ActivationRule:
        """The rule of the layer that makes `tensor`; for inputs, of the widest layer that reads it."""
        for step in self.own:
            if step.output is tensor:
                return self.own[step].activations
        readers = [self.own[step].activations for step in self.own if tensor in step.inputs]
        return max(readers, key=lambda one: one.bits, default=self.strategy.activations)


def plan_layers(body: Expr, strategy: Strategy) -> Layers:
    """Plan `body` and resolve `strategy` into the rule of each layer."""
    whole = make_plan(body)
    names = layer_names(whole)
    _check_names(strategy, list(names.values()))
    places = _places(whole)
    left = [step for step, name in names.items() if not strategy.is_quantized(name, places.get(step))]
    by_output = {_anchor(step): name for step, name in names.items()}
    plan = make_plan(body, [_operator(step) for step in left]) if left else whole
    found = {step: by_output[_anchor(step)] for step in plan.steps if _anchor(step) in by_output and _computes(step)}
    at = {_anchor(step): place for step, place in places.items()}
    own = {step: strategy.for_layer(name, at.get(_anchor(step))) for step, name in found.items()}
    return Layers(plan, strategy, found, own)


def layer_names(plan: Plan) -> dict[PlanStep, str]:
    """Unique names of layers that compute: their source name, or operator and number."""
    names: dict[PlanStep, str] = {}
    used: dict[str, int] = {}
    for step in plan.steps:
        if _computes(step):
            span = _anchor(step).span
            name = str(span) if span is not None else f"{op_name(_anchor(step))}_{len(names)}"
            used[name] = used.get(name, 0) + 1
            names[step] = name if used[name] == 1 else f"{name}#{used[name]}"
    return names


def _computes(step: PlanStep) -> bool:
    return isinstance(step, (LinearStep, AddStep, GateStep, ProductStep, AverageStep, SoftmaxStep, NormStep))


def _anchor(step: PlanStep) -> Expr:
    """The main operator of a step, whatever follows it."""
    match step:
        case LinearStep():
            return step.linear.anchor
        case AverageStep():
            return step.pool
        case _:
            return step.output


def _operator(step: PlanStep) -> Expr:
    """The main operator, also for sums and products, whose anchor is the activation behind them."""
    found = _anchor(step)
    while isinstance(step, (AddStep, GateStep)) and not is_op(found, "add", "multiply"):
        assert isinstance(found, Call)
        found = found.args[0]
    return found


def _places(plan: Plan) -> dict[PlanStep, Place]:
    """For each linear layer, whether it is the first, the last, dense or depthwise."""
    linear = [step for step in plan.steps if isinstance(step, LinearStep)]
    return {
        step: Place(step is linear[0], step is linear[-1], is_op(step.linear.anchor, "nn.dense"), is_depthwise(step))
        for step in linear
    }


def _check_names(strategy: Strategy, names: list[str]) -> None:
    for choice in strategy.layers:
        if not any(choice.matches(name) for name in names):
            raise QuantizeError(one_of(f"strategy {strategy.name}: layer", names, choice.layer))
