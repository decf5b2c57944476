"""quantize: the whole way from a float module to its integer form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import copy_with
from relay_hw.quantize.calibrate import Progress, calibrate, check_data
from relay_hw.quantize.plan import make_plan
from relay_hw.quantize.realize import Probe, realize
from relay_hw.quantize.recipes import find_strategy
from relay_hw.quantize.strategy import Strategy
from relay_hw.transform.infer_type import InferType
from relay_hw.transform.pipelines import simplify_pipeline

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Realized:
    """`mod` is the quantized module, `reference` the simplified float one; `probes` pair their tensors."""

    mod: IRModule
    reference: IRModule
    probes: tuple[Probe, ...]
    strategy: Strategy


def quantize(
    mod: IRModule,
    strategy: str | Strategy = "int8",
    calibration: Mapping[str, Array] | None = None,
    multiplier_bits: int | None = None,
    progress: Progress | None = None,
) -> IRModule:
    """`mod` with its convolutions, dense layers, poolings and residual adds in integers.

    `calibration` has an array for each input of `main`, samples on the first axis. `multiplier_bits` is the width of
    requantization multipliers (by default the strategy's, 31). Inputs and outputs stay float. `progress` is called
    with samples done and samples in all. Raises QuantizeError for a strategy that is unknown or cannot be applied.
    """
    return realize_module(mod, strategy, calibration, multiplier_bits, progress).mod


def realize_module(
    mod: IRModule,
    strategy: str | Strategy = "int8",
    calibration: Mapping[str, Array] | None = None,
    multiplier_bits: int | None = None,
    progress: Progress | None = None,
) -> Realized:
    """As `quantize`, with what a report on accuracy needs besides the module."""
    chosen = find_strategy(strategy)
    if multiplier_bits is not None:
        chosen = replace(chosen, multiplier_bits=multiplier_bits)
    reference = simplify_pipeline()(InferType()(mod))
    main = reference["main"]
    check_data(main.params, chosen, calibration)
    plan = make_plan(main.body)
    ranges = calibrate(reference, plan.integers, chosen, calibration, progress)
    body, probes = realize(main.body, plan, ranges, chosen)
    new = reference.with_functions({"main": copy_with(main, body=body, checked_type=None)})
    return Realized(InferType()(new), reference, probes, chosen)
