"""No figure is better than its bound: layers against the array, launches against array, output stage and bus."""

from __future__ import annotations

import pytest

from examples.models import find
from examples.models.builder import INPUT
from examples.models.builder import images as draw_images
from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.spec import Unit
from relay_hw.accel.sim.cycle.losses import Account, accounts, stretches
from relay_hw.accel.sim.cycle.timing import time_code
from relay_hw.accel.sim.dram_timing import memory_model
from relay_hw.frontend import from_onnx
from relay_hw.runtime.compile import CompiledModel, compile_model
from relay_hw.runtime.options import RESIDENT, CompileOptions
from relay_hw.target.accel.roofline import launch_bounds, layer_needs
from relay_hw.tensorize import Segment
from tests.networks.as_onnx import module_of, samples_of
from tests.networks.draw import draw

CONFIGS = ("default", "tiny", "w4")
# Networks of examples/models, some on smaller images.
SIZES = {"resnet8": None, "ds_cnn": None, "wake_words": None, "resnet18": 32, "mobilenet_v2": 64, "dcgan": None}
# As fast as a memory can be, and a slow one: a bound must hold for each.
MEMORIES = ("standard,latency=1", "narrow")


def check_segment(segment: Segment, config: AccelConfig) -> int:
    """Layers with products whose bound was held against their cycles."""
    needs = layer_needs(segment, config)
    code = segment.program.code
    bound = launch_bounds(segment.name, needs, config)
    held = 0
    for name in MEMORIES:
        timing = time_code(config, memory_model(name), code.offset, code.data or b"")
        spent = accounts(stretches(timing, segment.owners))
        for number, row in enumerate(needs):
            cycles = spent.get(number, Account()).total
            assert cycles >= row.cost.array_cycles(config), f"{segment.layers[number].name} on {config.name}, {name}"
            held += row.cost.macs > 0
        assert timing.cycles >= bound.cycles, f"{segment.name} on {config.name}, {name}: {bound}"
        # Each part of the bound is what the launch really used.
        counters = timing.counters
        assert bound.reads * config.bus_bytes == counters["READ_BYTES"] + counters["FETCH_BYTES"]
        assert bound.writes * config.bus_bytes == counters["WRITE_BYTES"]
        assert bound.output == sum(work.slots for work in timing.works if work.unit is Unit.OUTPUT)
        assert bound.rows == sum(work.slots for work in timing.works if work.unit is Unit.ROW)
    return held


def check(compiled: CompiledModel) -> int:
    return sum(check_segment(segment, compiled.config) for segment in compiled.segments.values())


def random_build(seed: int, config: str, resident: str) -> CompiledModel:
    """A drawn network on hardware of its own choice."""
    recipe = draw(seed)
    mod, params = module_of(recipe)
    strategy = "w4a8" if config == "w4" and seed % 2 else "int8"
    options = CompileOptions(config=config, strategy=strategy, resident=resident)
    return compile_model(mod, options, params=params, calibration=samples_of(recipe, 2))


def example_build(name: str, size: int | None, config: str, resident: str) -> CompiledModel:
    model = find(name).model(size)
    shape = [axis.dim_value for axis in model.graph.input[0].type.tensor_type.shape.dim][1:]
    mod, params = from_onnx(model)
    data = {INPUT: draw_images(shape, 1, seed=1)}
    return compile_model(
        mod, CompileOptions(config=config, name=name, resident=resident), params=params, calibration=data
    )


@pytest.mark.parametrize("resident", RESIDENT)
@pytest.mark.parametrize("config", CONFIGS)
def test_random_networks(config: str, resident: str) -> None:
    assert sum(check(random_build(seed, config, resident)) for seed in (2, 5)) > 0


@pytest.mark.parametrize(("name", "config", "resident"), [("ds_cnn", "default", "auto"), ("resnet8", "w4", "off")])
def test_example_networks(name: str, config: str, resident: str) -> None:
    assert check(example_build(name, None, config, resident)) > 0


@pytest.mark.long
@pytest.mark.parametrize("resident", RESIDENT)
@pytest.mark.parametrize("config", CONFIGS)
def test_many_networks(config: str, resident: str) -> None:
    held = sum(check(random_build(seed, config, resident)) for seed in range(20))
    held += sum(check(example_build(name, size, config, resident)) for name, size in SIZES.items())
    print(f"\n{config}, resident {resident}: {held} layers, none below its bound", end=" ")
    assert held > 100
