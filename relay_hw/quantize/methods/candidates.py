"""Chooses the best of several strategies by noise on held-out calibration samples.

In: a float network, names of strategies, calibration data. Out: the strategy to use. Test data have no part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import QuantizeError
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import copy_with
from relay_hw.quantize.batch import run_samples
from relay_hw.quantize.methods.mixed import logits
from relay_hw.quantize.strategy import Strategy

Array = NDArray[Any]
HELD_OUT = 4  # every fourth sample


def best_candidate(
    mod: IRModule,
    candidates: Sequence[Strategy],
    data: Mapping[str, Array],
    realize: Callable[[Strategy, Mapping[str, Array]], IRModule],
) -> Strategy:
    """The candidate whose results, before a softmax, are nearest to those of `mod` on a quarter of `data`.

    `realize` quantizes by a strategy with the other three quarters. Raises QuantizeError for less than two samples.
    """
    count = len(next(iter(data.values())))
    if count < 2:
        raise QuantizeError(f"calibration data must hold at least 2 samples to choose a strategy by, not {count}")
    held = np.arange(count) % HELD_OUT == 1
    shown = {name: np.asarray(array)[~held] for name, array in data.items()}
    hidden = {name: np.asarray(array)[held] for name, array in data.items()}
    wanted = _results(mod, hidden)
    noises = [float(np.square(_results(realize(one, shown), hidden) - wanted).sum()) for one in candidates]
    return candidates[int(np.argmin(noises))]


def _results(mod: IRModule, data: Mapping[str, Array]) -> Array:
    main = mod["main"]
    body = logits(main.body)
    cut = IRModule({"main": copy_with(main, body=body, ret_type=None, checked_type=None)}, mod.types)
    result = run_samples(cut, data)
    parts = result if isinstance(result, tuple) else (result,)
    return np.concatenate([np.asarray(part, np.float64).reshape(-1) for part in parts])
