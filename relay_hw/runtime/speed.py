"""Predicts the speed of a build on a board: launches at its clock and memory, the link, the host's operators.

In: a build, a board. Out: `Speed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from relay_hw.accel.fpga.boards import HostLink, find_board
from relay_hw.accel.fpga.soc_map import SocMap
from relay_hw.accel.fpga.timed_board import LaunchCycles, TimedBoard
from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.errors import AccelError
from relay_hw.accel.isa.program import Program, SectionKind
from relay_hw.accel.sim.cycle.timing import time_stream
from relay_hw.accel.sim.dram_timing import memory_model
from relay_hw.errors import RelayHwError
from relay_hw.report import Figure, HostTime, Speed
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.ports import random_samples
from relay_hw.target.accel.board import OnBoard
from relay_hw.target.accel.residency import Footprints
from relay_hw.target.accel.steady import steady

# The last of these samples is in steady state: by the third, programs have their own windows.
_SAMPLES = 4
# Time per sample: the difference between a long and a short batch, divided by the additional samples.
_SHORT_BATCH, _LONG_BATCH = 4, 8


@dataclass(frozen=True, slots=True)
class LineSeconds:
    """Seconds of a sample with the link: run alone, and per sample in a long batch."""

    alone: float
    batched: float


def speed_on(place: OnBoard, artifact: Artifact, host: HostTime | None, data: Mapping[str, Any] | None = None) -> Speed:
    """Speed of a steady-state inference on a board. `host`: the host's time; `data`: samples, else random ones.

    The link's time is that of everything that the driver sends for one sample among many.
    """
    cycles = MemoryCycles(artifact.config, place.memory)
    state = steady(Footprints(artifact.config), artifact.programs, artifact.manifest.calls)
    launches = state.total(lambda name, stream: cycles(artifact.programs[name], stream))
    figures = [Figure("accelerator", launches / place.clock_hz)]
    soc = _map(place, artifact.config)
    board = None if soc is None else link_seconds(artifact, soc, cycles, data)
    if board is not None:
        figures += [Figure("with its link", board.alone), Figure("in a batch", board.batched)]
        figures += [] if host is None else [Figure("end to end", board.alone + host.seconds)]
    return Speed(place.board, place.clock_hz, place.is_routed, tuple(figures))


class MemoryCycles:
    """Cycles of launches with a board's memory; each stream of a program is timed once."""

    def __init__(self, config: AccelConfig, memory: str) -> None:
        self._config = config
        self._memory = memory_model(memory)
        self._known: dict[tuple[int, SectionKind], int] = {}

    def __call__(self, program: Program, stream: SectionKind) -> int:
        key = (id(program), stream)
        if key not in self._known:
            self._known[key] = time_stream(self._config, self._memory, program.stream(stream)).cycles
        return self._known[key]


def _map(place: OnBoard, config: AccelConfig) -> SocMap | None:
    """The SoC's address map for its driver; None for a link whose speed is not modelled."""
    board = find_board(place.board)
    if board.link is not HostLink.SERIAL:
        return None
    return SocMap(board.name, config.name, config.hash32, place.clock_hz, board.sdram.size_bytes, board.baud)


def link_seconds(
    artifact: Artifact, soc: SocMap, cycles: LaunchCycles, data: Mapping[str, Any] | None = None
) -> LineSeconds | None:
    """Seconds with the SoC and its link; None if nothing is launched, or no sample can be run.

    `data`: samples where these decide what is launched. Others may be like one another, and what is there already is
    not sent again.
    """
    if not artifact.programs:
        return None
    rows = artifact.manifest
    device, alone = TimedBoard(artifact.config, soc, cycles), 0.0
    executor = Executor(artifact, device)

    def spent(samples: Mapping[str, Any], count: int) -> float:
        begin = device.stream.now()
        executor.run(samples, count, chunk=count)
        return device.stream.now() - begin

    try:
        given = data if data and artifact.has_control_flow else None
        given = given or random_samples(rows.inputs, _LONG_BATCH, 0, artifact.has_control_flow)
        for number in range(_SAMPLES):
            alone = spent(_from(given, number, 1), 1)
        short, long = (spent(_from(given, 0, count), count) for count in (_SHORT_BATCH, _LONG_BATCH))
    except (RelayHwError, AccelError):
        return None
    return LineSeconds(alone, (long - short) / (_LONG_BATCH - _SHORT_BATCH))


def _from(data: Mapping[str, Any], first: int, count: int) -> dict[str, Any]:
    """That many samples from number `first` on, repeated if there are fewer."""
    places = range(first, first + count)
    return {
        name: np.take(rows, places, axis=0, mode="wrap") if isinstance(rows, np.ndarray) else rows
        for name, rows in data.items()
    }
