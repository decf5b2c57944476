"""The toy NPU: eight multipliers, one accumulator, one requantizer. Its simulator counts a cycle for eight products.

In: programs, int8 vectors. Out: int8 vectors, cycles.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from examples.toy_npu.program import DenseLayer
from relay_hw.target import Answer, Measured

LANES = 8
# Cycles of an output besides its products: one to clear the accumulator, one to requantize.
OVERHEAD = 2

Int8 = NDArray[np.int8]


def cycles_of(layer: DenseLayer) -> int:
    """Cycles of a layer: outputs one after the other."""
    outputs, inputs = layer.weight.shape
    return outputs * (-(-inputs // LANES) + OVERHEAD)


def run_layer(layer: DenseLayer, vector: Int8) -> Int8:
    """One layer on a vector, every step in integers."""
    sums = layer.weight.astype(np.int64) @ vector.astype(np.int64) + layer.bias
    wrapped = sums.astype(np.int32).astype(np.int64)
    half = np.where(layer.shift > 0, np.int64(1) << np.maximum(layer.shift - 1, 0), 0)
    scaled = (wrapped * layer.multiplier + half >> layer.shift) + layer.zero_point
    return np.clip(scaled, layer.low, layer.high).astype(np.int8)


class Simulator:
    """A `relay_hw.target.Session`: the regions of a build on a simulated NPU."""

    def __init__(self, programs: Mapping[str, Sequence[DenseLayer]]) -> None:
        self._programs = programs

    def settle(self, region: str) -> None:
        """Weights come with every launch: nothing is to be made ready."""

    def run(self, region: str, samples: Iterable[Sequence[Int8]]) -> Generator[Answer, None, None]:
        """The region on samples, a row each."""
        layers = self._programs[region]
        for (rows,) in samples:
            begin = time.perf_counter()
            values = [rows]
            for layer in layers:
                values.append(np.stack([run_layer(layer, row) for row in values[layer.source]]))
            cycles = sum(map(cycles_of, layers)) * len(rows)
            yield values[-1], Measured(cycles, time.perf_counter() - begin)

    def repeats(self, calls: Sequence[str], loads: Mapping[int, str]) -> frozenset[int]:
        """Nothing is loaded apart."""
        return frozenset()

    def close(self) -> None:
        """Nothing is held."""
