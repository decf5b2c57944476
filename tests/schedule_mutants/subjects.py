"""Programs to be mutated: small regions of every kind of layer on seven configurations, as the compiler writes them.

In: a name of `REGIONS`. Out: `Subject`: the region, its program, random inputs, and what the interpreter says of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.config import AccelConfig, load_config
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Function
from relay_hw.ir.module import IRModule
from relay_hw.op import transpose
from relay_hw.tensorize import Segment, compile_function
from relay_hw.tensorize.emit.check import check_program
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.validate.proof import validate
from tests.targets import target_for
from tests.tensorize.regions import Regions

Arrays = Sequence[NDArray[np.int8]]
LAUNCHES = 2


@dataclass(frozen=True, slots=True)
class Case:
    """A region for a configuration. `bits`: what its weights fit. `resident`, `on_chip`: options of the compiler."""

    config: AccelConfig
    layers: Callable[[Regions], Function]
    bits: int = 8
    resident: bool = True
    on_chip: bool = True


@dataclass(frozen=True, slots=True)
class Subject:
    """A sound program. `inputs` and `outputs`: of launches that follow each other."""

    name: str
    function: Function
    segment: Segment
    config: Target
    inputs: tuple[Arrays, ...]
    outputs: tuple[Arrays, ...]


def subject(name: str) -> Subject:
    """The compiled region of this name, which its check and its proof accept."""
    case = REGIONS[name]
    config = target_for(case.config)
    function = case.layers(Regions(len(name), config, case.bits))
    segment = compile_function(function, config, "accel_0", case.resident, case.on_chip)
    check_program(segment.program, config)
    validate(function, segment, config)
    inputs = tuple(_inputs(function, seed) for seed in range(LAUNCHES))
    module = IRModule.from_expr(function)
    outputs = tuple(_several(evaluate(module, list(values))) for values in inputs)
    return Subject(name, function, segment, config, inputs, outputs)


def _inputs(function: Function, seed: int) -> Arrays:
    rng = np.random.default_rng(seed)
    return [rng.integers(-128, 128, p.type_annotation.static_shape).astype(np.int8) for p in function.params]


def _several(value: object) -> Arrays:
    return [np.asarray(one) for one in (value if isinstance(value, tuple) else (value,))]


def _residual(build: Regions) -> Function:
    x = build.input(16, 7, 6)
    y = build.conv(x, 16, padding=(1, 1, 1, 1), residual=x)
    y = build.max_pool(y, (2, 2), (2, 2))
    z = build.conv(y, 24, padding=(1, 1, 1, 1), pad_value=3)
    return build.function(build.dense(z, 12))


def _depthwise(build: Regions) -> Function:
    x = build.input(20, 6, 7)
    y = build.conv(x, 20, groups=20, padding=(1, 1, 1, 1))
    y = build.conv(y, 24, (1, 1), strides=(2, 1))
    return build.function(build.sum_pool(y, (3, 3), (2, 2), (1, 1, 1, 1)))


def _image(build: Regions) -> Function:
    x = build.input(3, 9, 11)
    y = build.conv(x, 16, strides=(2, 2), padding=(1, 1, 1, 1))
    return build.function(build.sum_pool(y, (5, 6)), build.max_pool(y, (3, 3), (1, 1), (1, 1, 1, 1)))


def _transposed(build: Regions) -> Function:
    x = build.input(12, 4, 5)
    y = build.conv_transpose(x, 9, zero_point=5)
    return build.function(build.add(y, build.clip(y, -20, 60)))


def _batch(build: Regions) -> Function:
    """Matrix products of a batch of two, one of whose operands is transposed on the device."""
    left, right = build.tensor(2, 16, 32), build.tensor(2, 32, 16)
    turned = build.move(lambda a: transpose(a, (0, 2, 1)), right)
    return build.function(build.product(build.rows(left, 32), turned))


def _factored(build: Regions) -> Function:
    x = build.input(32, 5, 5)
    build.factored = True
    y = build.conv(x, 16, padding=(1, 1, 1, 1))
    build.factored = False
    return build.function(build.conv(y, 16, (1, 1)))


def _wide_pools(build: Regions) -> Function:
    """Windows that INP cannot hold, so that the ALU combines them."""
    x = build.input(10, 12, 12)
    return build.function(build.sum_pool(x, (10, 8), (1, 2)), build.max_pool(x, (11, 9), (1, 2)))


def _tiles(build: Regions) -> Function:
    """Layers that are cut into several tiles."""
    x = build.input(40, 10, 10)
    y = build.conv(x, 40, padding=(1, 1, 1, 1))
    return build.function(build.conv(y, 20, (3, 3), (2, 2), residual=build.input(20, 4, 4)))


def _changed(name: str, **sizes: int) -> AccelConfig:
    base = load_config(name)
    return replace(base, name=f"{base.name}-changed", **sizes)


def _rows(build: Regions) -> Function:
    x = build.input(5, 20)
    y = build.norm(build.softmax(build.rows(x, 22), causal=True))
    return build.function(build.norm(y, centered=False))


REGIONS: Mapping[str, Case] = MappingProxyType(
    {
        "residual on tiny": Case(load_config("tiny"), _residual, resident=False, on_chip=False),
        "residual on default": Case(load_config("default"), _residual),
        "residual on w4": Case(load_config("w4"), _residual),
        "residual with one bank": Case(_changed("default", acc_banks=1), _residual, resident=False),
        "depthwise on default": Case(load_config("default"), _depthwise, resident=False, on_chip=False),
        "depthwise on ecp5": Case(load_config("ecp5"), _depthwise),
        "depthwise on w4": Case(load_config("w4"), _depthwise, bits=4, resident=False),
        "image on default": Case(load_config("default"), _image, resident=False),
        "image on ecp5": Case(load_config("ecp5"), _image),
        "transposed on tiny": Case(load_config("tiny"), _transposed, resident=False),
        "transposed on wide": Case(load_config("wide"), _transposed),
        "pools with few lines": Case(_changed("tiny", inp_depth=64), _wide_pools, resident=False),
        "tiles on tiny": Case(load_config("tiny"), _tiles),
        "batch on default": Case(load_config("default"), _batch),
        "batch on ecp5x2": Case(load_config("ecp5x2"), _batch, resident=False),
        "rows on tiny": Case(load_config("tiny"), _rows, resident=False),
        "rows on default": Case(load_config("default"), _rows),
        "factors on default": Case(load_config("default"), _factored, resident=False),
        "factors on ecp5w4": Case(load_config("ecp5w4"), _factored),
    }
)
