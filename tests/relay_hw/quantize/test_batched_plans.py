"""A network of many samples is planned as the network of one, so that what samples show of one holds for the other."""

from __future__ import annotations

from relay_hw.analysis import infer_type
from relay_hw.ir.module import IRModule
from relay_hw.quantize.batch import batched
from relay_hw.quantize.layers import plan_layers
from relay_hw.quantize.main import reference_of
from relay_hw.quantize.strategy_file import find_strategy
from relay_hw.runtime.compile import bind_params
from tests.networks.as_onnx import module_of
from tests.networks.draw import draw

NETWORKS = 80


def steps(mod: IRModule) -> list[tuple[str, int]]:
    """Kinds of steps, each with its number of inputs."""
    plan = plan_layers(mod["main"].body, find_strategy("int8")).plan
    return [(type(step).__name__, len(step.inputs)) for step in plan.steps]


def test_drawn_networks_have_one_plan() -> None:
    planned = 0
    for seed in range(NETWORKS):
        mod, params = module_of(draw(seed))
        reference = reference_of(infer_type(bind_params(mod, params)))
        many = batched(reference, 3)
        if many is not None:
            assert steps(many) == steps(reference), f"seed {seed}"
            planned += 1
    assert planned > NETWORKS // 2
