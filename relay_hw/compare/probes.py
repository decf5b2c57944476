"""Compares each layer of a quantized network with the float one: noise, distribution of values, integer range.

In: `Realized`, samples. Out: a `LayerRow` for each layer, in order of evaluation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.compare.data import Samples
from relay_hw.compare.histogram import Counter, Histogram
from relay_hw.compare.measures import decibel
from relay_hw.interp import Interpreter
from relay_hw.ir.expr import Expr, Function, Tuple
from relay_hw.ir.module import IRModule
from relay_hw.quantize.calibration import check_data
from relay_hw.quantize.main import Realized

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class LayerRow:
    """One layer. `sqnr_db`: power of its float tensor over that of the difference, noise of the layers before included,
    None without noise. `clip`: the range that its integers hold, None if there are none."""

    name: str
    operator: str
    sqnr_db: float | None
    clip: tuple[float, float] | None
    histogram: Histogram


def layer_rows(realized: Realized, samples: Samples) -> tuple[LayerRow, ...]:
    """Noise and values of each layer over `samples`; for functions that control flow calls, over calibration data."""
    found = _own_rows(realized, samples.take(0, samples.launches))
    for fragment in realized.fragments.values():
        if fragment.data is not None:
            calls = check_data(fragment.realized.mod["main"].params, fragment.data)
            found += _own_rows(fragment.realized, calls[: samples.launches])
    names = _unique([row.name for row in found])
    return tuple(replace(row, name=name) for row, name in zip(found, names, strict=True))


def _own_rows(realized: Realized, batches: Iterable[Mapping[str, Array]]) -> tuple[LayerRow, ...]:
    probes = realized.probes
    if not probes:
        return ()
    float_side = _probing(realized.reference, [probe.reference for probe in probes])
    integer_side = _probing(realized.mod, [probe.integer for probe in probes])
    signal, noise = np.zeros(len(probes)), np.zeros(len(probes))
    counters = [Counter() for _ in probes]
    for inputs in batches:
        wanted = float_side.call_global("main", inputs)
        found = integer_side.call_global("main", inputs)
        for index, (probe, want, got) in enumerate(zip(probes, wanted, found, strict=True)):
            exact = np.asarray(want, np.float64)
            signal[index] += float(np.square(exact).sum())
            noise[index] += float(np.square(exact - _real(got, probe.params)).sum())
            counters[index].update(np.asarray(want))
    return tuple(
        LayerRow(probe.name, probe.operator, decibel(s, n), _clip(probe.params), counter.result())
        for probe, s, n, counter in zip(probes, signal, noise, counters, strict=True)
    )


def _unique(names: Sequence[str]) -> list[str]:
    """Names made unique by numbers."""
    found: list[str] = []
    for name in names:
        count = sum(1 for other in found if other == name or other.startswith(f"{name} #"))
        found.append(f"{name} #{count + 1}" if count else name)
    return found


def _probing(mod: IRModule, tensors: list[Expr]) -> Interpreter:
    """An interpreter of a function that returns `tensors`, nodes over the parameters of `main`."""
    functions: Mapping[str, Function] = {"main": Function(mod["main"].params, Tuple(tensors))}
    return Interpreter(mod.with_functions(functions))


def _real(value: Array, params: Any) -> Array:
    """The real values that integers represent; simulated formats hold real values already."""
    wide = np.asarray(value, np.float64)
    return wide if params is None or value.dtype.kind == "f" else (wide - params.zero_point) * params.scale


def _clip(params: Any) -> tuple[float, float] | None:
    if params is None:
        return None
    return (params.low - params.zero_point) * params.scale, (params.high - params.zero_point) * params.scale
