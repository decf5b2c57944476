"""Boards as compilation targets: a configuration, the SoC's clock with it, the memory behind it.

In: names of a board and a configuration. Out: `OnBoard`.
"""

from __future__ import annotations

from dataclasses import dataclass

from relay_hw.accel.fpga.board_sdram import board_memory
from relay_hw.accel.fpga.boards import find_board
from relay_hw.accel.fpga.parts import FlowError
from relay_hw.accel.sim.dram_timing import memory_text
from relay_hw.errors import InputError


@dataclass(frozen=True, slots=True)
class OnBoard:
    """A configuration on a board: the SoC's clock and the memory that programs are optimised for, as the text of its
    model. `is_routed`: whether a bitstream has met that clock."""

    board: str
    config: str
    clock_hz: int
    memory: str
    is_routed: bool


def on_board(name: str, config: str | None = None) -> OnBoard:
    """A board with a configuration, by default the board's default one. Raises InputError."""
    try:
        board = find_board(name)
    except FlowError as error:
        raise InputError(str(error)) from None
    fit = board.fits[0] if config is None else board.fit(config)
    if fit is None:
        known = " or ".join(fit.config for fit in board.fits)
        raise InputError(f"configuration must be {known} on board {board.name}, not {config}: their clock is known")
    clock_hz = round(fit.mhz * 1e6)
    return OnBoard(board.name, fit.config, clock_hz, memory_text(board_memory(board, clock_hz)), fit.is_routed)
