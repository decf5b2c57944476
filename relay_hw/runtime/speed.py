"""How fast a build is on a board: its launches by the board's clock and memory, the line to it, the host beside it.

In: a build, a board. Out: `Speed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from accel.fpga.boards import HostLink, find_board
from accel.fpga.soc_map import SocMap
from accel.fpga.timed_board import LaunchCycles, TimedBoard
from accel.isa.config import AccelConfig
from accel.isa.errors import AccelError
from accel.isa.program import Program, SectionKind
from accel.sim.cycle.timing import time_stream
from accel.sim.memory import memory_model
from relay_hw.errors import RelayHwError
from relay_hw.report import Figure, HostTime, Speed
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.board import OnBoard
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.holding import Footprints
from relay_hw.runtime.ports import random_samples
from relay_hw.runtime.steady import steady

# The last of so many samples is one among many: programs have windows of their own by the third.
_SAMPLES = 4


def speed_on(place: OnBoard, artifact: Artifact, host: HostTime | None, data: Mapping[str, Any] | None = None) -> Speed:
    """How fast an inference in steady state is there. `host`: what it takes beside; `data`: samples, else random ones.

    What the line takes is what the driver of boards sends for one sample among many, in the time of that line.
    """
    cycles = MemoryCycles(artifact.config, place.memory)
    state = steady(Footprints(artifact.config), artifact.programs, artifact.manifest.calls)
    launches = state.total(lambda name, stream: cycles(artifact.programs[name], stream))
    figures = [Figure("accelerator", launches / place.clock_hz)]
    soc = _map(place, artifact.config)
    board = None if soc is None else line_seconds(artifact, soc, cycles, data)
    if board is not None:
        figures.append(Figure("with its line", board))
        figures += [] if host is None else [Figure("end to end", board + host.seconds)]
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
    """The System as its driver sees it; None for a line that has no clock here."""
    board = find_board(place.board)
    if board.link is not HostLink.SERIAL:
        return None
    return SocMap(board.name, config.name, config.hash32, place.clock_hz, board.sdram.size_bytes, board.baud)


def line_seconds(
    artifact: Artifact, soc: SocMap, cycles: LaunchCycles, data: Mapping[str, Any] | None = None
) -> float | None:
    """Seconds of a sample on a System and its serial line; None where nothing is launched, or no sample can be run."""
    if not artifact.programs:
        return None
    device, seconds = TimedBoard(artifact.config, soc, cycles), 0.0
    executor = Executor(artifact, device)
    try:
        given = data or random_samples(artifact.manifest.inputs, _SAMPLES, 0, artifact.has_control_flow)
        for number in range(_SAMPLES):
            begin = device.line.now()
            executor.run(_sample(given, number), 1)
            seconds = device.line.now() - begin
    except (RelayHwError, AccelError):
        return None
    return seconds


def _sample(data: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The data with sample `number` first; they come again where there are fewer."""
    return {
        name: np.roll(rows, -number, axis=0) if isinstance(rows, np.ndarray) else rows for name, rows in data.items()
    }
