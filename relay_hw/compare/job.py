"""The tasks of a comparison that worker processes run: float outputs of some launches, one strategy's row.

In: a `Setting`, what is asked. Out: arrays, a `Row`. Nothing here writes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.compare.data import Samples
from relay_hw.compare.evaluate import Evaluator
from relay_hw.compare.hardware_cost import costs, with_strategy_bits
from relay_hw.compare.measures import Quality, measure
from relay_hw.compare.mixed import prices_at
from relay_hw.compare.network import Network
from relay_hw.compare.network_work import FLOAT, network_work
from relay_hw.compare.places import Place
from relay_hw.compare.probes import layer_rows
from relay_hw.compare.rows import Row
from relay_hw.compare.stored import stored_bytes
from relay_hw.compare.targets import elsewhere
from relay_hw.errors import QuantizeError, RelayHwError
from relay_hw.ir.module import IRModule
from relay_hw.quantize import NumberFormat, Strategy
from relay_hw.quantize.held_back import Checked, realize_checked
from relay_hw.quantize.main import realize_module
from relay_hw.report import render_html
from relay_hw.runtime.prices import needs_prices
from relay_hw.support.progress import Labelled, Progress

Array = NDArray[Any]

# Launches that noise and histograms of layers are taken from.
PROBED: Final = 32
# Bits of a weight in formats that are simulated; blocks of 32 share an exponent of 8 bits.
_FORMAT_BITS: Final = {
    NumberFormat.FP8_E4M3: 8.0,
    NumberFormat.FP8_E5M2: 8.0,
    NumberFormat.MXINT8: 8.25,
    NumberFormat.MXFP8: 8.25,
    NumberFormat.MXFP6: 6.25,
    NumberFormat.MXFP4: 4.25,
}


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """What all strategies share. They see `calibration`; the best is chosen on `held_out`, which none of them saw; both
    are None if there are no data. `is_classifier`: outputs are scores of classes; `engine`: of `ENGINES`; `name`: of
    the model; `targets`: others than ours."""

    network: Network
    test: Samples
    calibration: Samples | None
    held_out: Samples | None
    places: tuple[Place, ...]
    engine: str
    is_classifier: bool
    name: str
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class FloatOutputs:
    """Outputs of the float network: [N, D] each."""

    test: Array
    held_out: Array | None


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A strategy's row, and the page of each of its builds by configuration."""

    row: Row
    pages: Mapping[str, str]


def float_outputs(setting: Setting, which: str, start: int, stop: int, progress: Progress) -> Array:
    """The float network on launches `start` to `stop` of the data called `which` (test or held_out)."""
    samples = setting.test if which == "test" else setting.held_out
    assert samples is not None
    evaluator = Evaluator(setting.network.mod, setting.network.output, "numpy", is_integer=False)
    return evaluator.run(samples.part(start, stop), progress).outputs


def strategy_row(setting: Setting, strategy: Strategy, floats: FloatOutputs, progress: Progress) -> Measured:
    """Measure one strategy, except for its area. Raises RelayHwError if it cannot be applied to the network."""
    seconds: dict[str, float] = {}
    network = setting.network
    progress.started("quantizing")
    begin = time.perf_counter()
    data = as_given(setting.calibration) if setting.calibration is not None else None
    strategy = with_strategy_bits(strategy, setting.places)
    priced = needs_prices(strategy)
    checked = realize_checked(
        network.mod,
        strategy,
        data,
        progress=progress,
        cost=prices_at(network.mod, strategy, data, setting.places[0]) if priced else None,
        held_out=as_given(setting.held_out) if setting.held_out is not None else None,
    )
    realized = checked.realized
    seconds["quantize"] = time.perf_counter() - begin

    evaluator = Evaluator(realized.mod, network.output, setting.engine, is_integer=not strategy.simulated)
    evaluation = evaluator.run(setting.test, Labelled(progress, "test data"))
    seconds["evaluate"] = evaluation.seconds
    _check_finite(evaluation.outputs)
    test = _quality(setting, setting.test, evaluation.outputs, floats.test)
    held_out = None
    if setting.held_out is not None and floats.held_out is not None:
        found = evaluator.run(setting.held_out, Labelled(progress, "held-out data"))
        held_out = _quality(setting, setting.held_out, found.outputs, floats.held_out)
        seconds["evaluate"] += found.seconds

    progress.started("measuring layers")
    begin = time.perf_counter()
    probed = setting.held_out or setting.calibration or setting.test
    layers = layer_rows(realized, probed.part(0, PROBED))
    seconds["layers"] = time.perf_counter() - begin

    begin = time.perf_counter()
    (sample,) = setting.test.take(0, 1)
    built, reason = costs(network.mod, realized.mod, realized.strategy, setting.places, sample, progress)
    others = elsewhere(network.mod, realized.mod, realized.strategy, setting.targets, progress)
    seconds["compile"] = time.perf_counter() - begin
    row = Row(
        name=strategy.name,
        summary=strategy.summary,
        test=test,
        held_out=held_out,
        costs=tuple(one.cost for one in built),
        reason="; ".join(filter(None, [reason, *_kept(checked)])),
        unplaced_bytes=weight_bytes(network.mod, realized.mod, strategy, setting.places[0].config),
        layers=layers,
        engine=evaluation.engine,
        note=evaluation.note,
        seconds=seconds,
        elsewhere=others,
    )
    return Measured(row, {one.cost.config: render_html(replace(one.report, model=setting.name)) for one in built})


def held_out_db(setting: Setting, strategy: Strategy, floats: FloatOutputs, progress: Progress) -> float:
    """Signal-to-noise ratio of a strategy on the samples that are held out."""
    assert setting.held_out is not None and floats.held_out is not None
    progress.started(f"trying {strategy.name}")
    data = as_given(setting.calibration) if setting.calibration is not None else None
    found = realize_module(setting.network.mod, with_strategy_bits(strategy, setting.places), data)
    evaluator = Evaluator(found.mod, setting.network.output, setting.engine, is_integer=not strategy.simulated)
    outputs = evaluator.run(setting.held_out, Labelled(progress, "held-out data")).outputs
    quality = _quality(setting, setting.held_out, outputs, floats.held_out)
    return math.inf if quality.sqnr_db is None else quality.sqnr_db


def _check_finite(outputs: Array) -> None:
    """Raise QuantizeError for outputs with NaN or infinity, as the float network's are finite."""
    broken = int(outputs.size - np.isfinite(outputs).sum())
    if broken:
        raise QuantizeError(
            f"outputs must be finite as they are in float, not NaN or infinite in {broken:,} of {outputs.size:,} values"
        )


def _kept(checked: Checked) -> list[str]:
    """Notes on a strategy: layers left in float, the gain from training, problems of the result."""
    floats = (f"layer {one.layer} kept in float: {one.reason}" for one in checked.kept)
    return [*floats, *checked.realized.notes, *checked.warnings]


def weight_bytes(mod: IRModule, quantized: IRModule, strategy: Strategy, config: AccelConfig) -> int:
    """Bytes of all weights as `config` stores them; for simulated formats, as they would be stored."""
    bits = _FORMAT_BITS.get(strategy.number_format)
    if bits is None:
        return stored_bytes(quantized, config)
    return round(sum(layer.weights for layer in network_work(mod).layers) * bits / 8)


def float_weight_bytes(mod: IRModule) -> int:
    """Bytes of the float network's weights."""
    return sum(layer.weights for layer in network_work(mod).layers) * FLOAT // 8


def _quality(setting: Setting, samples: Samples, outputs: Array, reference: Array) -> Quality:
    return measure(outputs, reference, samples.labels, samples.targets, setting.is_classifier)


def as_given(samples: Samples) -> dict[str, Array]:
    """Inputs by name, samples on the first axis."""
    found: dict[str, Array] = {}
    for name, array in samples.inputs.items():
        found[name] = array.reshape(samples.count, *array.shape[2:])
    return found


def labelled(strategy: Strategy, error: RelayHwError) -> RelayHwError:
    """The error with the strategy's name in front, unless it has it already."""
    text = str(error)
    return type(error)(text if f"strategy {strategy.name}" in text else f"strategy {strategy.name}: {text}")
