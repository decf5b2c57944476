"""Signal-to-quantization-noise ratio of each layer: how far its integer tensor is from the float one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.interp import Interpreter
from relay_hw.ir.expr import Expr, Function, Tuple
from relay_hw.ir.module import IRModule
from relay_hw.quantize.calibration import check_data
from relay_hw.quantize.main import Realized

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class LayerNoise:
    """One layer: `sqnr_db` is 10 log10(power of the float tensor / power of the difference); inf without noise."""

    name: str
    operator: str
    sqnr_db: float
    scale: float
    zero_point: int


def layer_noise(realized: Realized, data: Mapping[str, Array]) -> tuple[LayerNoise, ...]:
    """The noise of each layer over `data`, in order of evaluation, including the noise of the layers before it.

    `data` is like calibration data. In a program with control flow each fragment is measured by its recorded inputs in
    calibration: `data` is not looked at. Raises QuantizeError if it does not fit.
    """
    if realized.fragments:
        parts = (layer_noise(p.realized, p.data) for p in realized.fragments.values() if p.data is not None)
        return tuple(row for part in parts for row in part)
    probes = realized.probes
    params = realized.reference["main"].params
    float_side = _probing(realized.reference, [probe.reference for probe in probes])
    integer_side = _probing(realized.mod, [probe.integer for probe in probes])
    signal, noise = np.zeros(len(probes)), np.zeros(len(probes))
    for batch in check_data(params, data):
        wanted = float_side.call_global("main", batch)
        found = integer_side.call_global("main", batch)
        for index, (probe, want, got) in enumerate(zip(probes, wanted, found, strict=True)):
            exact = np.asarray(want, np.float64)
            value = (got.astype(np.float64) - probe.params.zero_point) * probe.params.scale
            signal[index] += float(np.square(exact).sum())
            noise[index] += float(np.square(exact - value).sum())
    return tuple(
        LayerNoise(probe.name, probe.operator, decibel(s, n), probe.params.scale, probe.params.zero_point)
        for probe, s, n in zip(probes, signal, noise, strict=True)
    )


def _probing(mod: IRModule, tensors: list[Expr]) -> Interpreter:
    """An interpreter of a function that returns `tensors`, nodes over the parameters of `main`."""
    return Interpreter(IRModule({"main": Function(mod["main"].params, Tuple(tensors))}, mod.types))


def decibel(signal: float, noise: float) -> float:
    """The ratio of two powers; inf without noise, -inf without signal."""
    if noise == 0.0:
        return math.inf
    return 10 * math.log10(signal / noise) if signal > 0.0 else -math.inf
