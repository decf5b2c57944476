"""Runs the regions of a build on the functional simulator, as VTA's runtime does on a board.

In: programs, int8 arrays. Out: int8 arrays, counts of instructions, micro-ops and bytes, and cycles by a model.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from relay_hw.target import Answer, Measured
from relay_hw.vta.geometry import Geometry
from relay_hw.vta.layout import pack, unpack
from relay_hw.vta.program import Program
from relay_hw.vta.sim.choices import CHOICES, Choices
from relay_hw.vta.sim.cycles import modelled_cycles
from relay_hw.vta.sim.machine import run
from relay_hw.vta.sim.state import Dram, new_state

Int8 = NDArray[np.int8]
# Where sections lie in a simulation: the first page of what a PYNQ gives away.
BASE = 0x1600_0000


class Simulated:
    """A `relay_hw.target.Session`. `choices`: what an implementation does, by default that of the geometry's target."""

    def __init__(self, programs: Mapping[str, Program], choices: Choices | None = None) -> None:
        self._programs = programs
        self._choices = choices

    def settle(self, region: str) -> None:
        """Weights come with every launch: nothing is to be made ready."""

    def run(self, region: str, samples: Iterable[Sequence[Int8]]) -> Generator[Answer, None, None]:
        """The region on samples."""
        program = self._programs[region]
        choices = self._choices or CHOICES[program.head.geometry.core]
        for arrays in samples:
            begin = time.perf_counter()
            results, counts = launch(program, arrays, choices)
            answer = results[0] if len(results) == 1 else tuple(results)
            counters = {**counts, "modelled_cycles": modelled_cycles(program.words, program.head.geometry)}
            yield answer, Measured(None, time.perf_counter() - begin, counters)

    def repeats(self, calls: Sequence[str], loads: Mapping[int, str]) -> frozenset[int]:
        """Nothing is loaded apart."""
        return frozenset()

    def close(self) -> None:
        """Nothing is held."""


def launch(program: Program, arrays: Sequence[Int8], choices: Choices) -> tuple[list[Int8], Mapping[str, int]]:
    """One run: results, and what the machine counted."""
    geometry, addresses = program.head.geometry, program.addresses(BASE)
    memory = program.image(addresses)
    for port, array in zip(program.inputs, arrays, strict=True):
        packed = pack(array, port.dims, geometry).reshape(-1)
        begin = addresses[port.section] - BASE
        memory[begin : begin + len(packed)] = packed.view(np.uint8)
    counts = run(program.placed(addresses), new_state(geometry, Dram(memory, BASE)), choices)
    return [_result(program, k, memory, addresses, geometry) for k in range(len(program.outputs))], counts


def _result(program: Program, k: int, memory: NDArray[np.uint8], addresses: Sequence[int], geometry: Geometry) -> Int8:
    port = program.outputs[k]
    begin = addresses[port.section] - BASE
    size = program.head.sections[port.section].size
    return unpack(memory[begin : begin + size].view(np.int8), port.dims, geometry).reshape(port.shape)
