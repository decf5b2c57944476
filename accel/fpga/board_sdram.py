"""Timing model of a board's SDRAM for the cycle simulator: the chip behind LiteDRAM's controller, at the SoC's clock.

In: a board, a clock. Out: a `MemoryModel`. `docs/memory.md` says where each figure comes from, and what is left out.
"""

from __future__ import annotations

from typing import Final

from relay_hw.accel.fpga.board_top import cycles
from relay_hw.accel.fpga.boards import Board
from relay_hw.accel.fpga.litex_soc import BUFFER_BEATS
from relay_hw.accel.sim.dram_timing import MemoryModel, Sdram

# LiteDRAM's description of every SDR chip: cycles from a write's last column to READ, of one column.
_WRITE_TO_READ: Final = 2
_COLUMN: Final = 1
_BUS_BYTES: Final = 8


def board_memory(board: Board, clock_hz: int) -> MemoryModel:
    """The model of a board's memory at a clock. Raises ConfigError for a clock too slow to refresh."""
    chip = board.sdram
    latency = chip.cas_latency
    rp, rfc = cycles(chip.t_rp, clock_hz), cycles(chip.t_rfc, clock_hz)
    sdram = Sdram(
        column_bytes=chip.data_bits // 8,
        row_bytes=chip.columns * chip.data_bits // 8,
        banks=chip.banks,
        rp=rp,
        rcd=cycles(chip.t_rcd, clock_hz),
        # What the controller waits for is write latency (it takes that of reads), write recovery and one column.
        recovery=latency + cycles(chip.t_wr, clock_hz) + _COLUMN - 2,
        bank_switch=3,
        turn=latency + 3,
        write_to_read=_WRITE_TO_READ + latency + _COLUMN,
        refresh_every=chip.refresh_every(clock_hz),
        refresh=rp + rfc + 4,
        read_buffer=BUFFER_BEATS * _BUS_BYTES,
        write_buffer=BUFFER_BEATS * _BUS_BYTES,
    )
    return MemoryModel(latency + 9, 1, 1, 1, sdram)
