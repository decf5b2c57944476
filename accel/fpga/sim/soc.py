"""Simulates a board's SoC: the Verilog that is placed and routed, with models of pads, PLL and memory chip.

In: a board's SoC. Out: what `relay_hw.accel.fpga.sim.board` builds; time is counted in cycles of the SoC's clock.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from relay_hw.accel.fpga.board_top import cycles
from relay_hw.accel.fpga.boards import Board, HostLink, SdramChip
from relay_hw.accel.fpga.sim.board import ETHERNET, SERIAL, BoardModel
from relay_hw.accel.fpga.socs import Soc

TOP: Final = "fpga_board_sim"
_HERE: Final = Path(__file__).parent
_CELLS: Final = ("DELAYG", "EHXPLLL", "FD1S3BX", "IDDRX1F", "IFS1P3BX", "ODDRX1F", "OFS1P3BX", "TRELLIS_IO")
_MODELS: Final = (*(_HERE / "ecp5" / f"{name}.v" for name in _CELLS), _HERE / "sdram_chip.v")
# Time after power-up before the first command, by the data sheets.
_POWER_UP_NS: Final = 100_000


def simulated_board(board: Board, soc: Soc) -> BoardModel:
    """The model of a board with its memory chip and its link to the host."""
    models = {path.name: path.read_text() for path in _MODELS}
    wrapper = _wrapper(board, soc.map.clock_hz)
    harness = SERIAL if board.link is HostLink.SERIAL else ETHERNET
    return BoardModel(TOP, {**soc.design.files, **models, f"{TOP}.v": wrapper}, harness=harness)


def chip_parameters(chip: SdramChip, clock_hz: int) -> dict[str, int]:
    """Parameters of sdram_chip.v at a clock."""
    times = {"T_RCD": chip.t_rcd, "T_RP": chip.t_rp, "T_RAS": chip.t_ras, "T_RC": chip.t_rc, "T_RFC": chip.t_rfc}
    times |= {"T_RRD": chip.t_rrd, "T_WR": chip.t_wr, "T_POWER_UP": _POWER_UP_NS}
    return {
        "DATA_BITS": chip.data_bits,
        "ROW_BITS": (chip.rows - 1).bit_length(),
        "COLUMN_BITS": (chip.columns - 1).bit_length(),
        "CAS_LATENCY": chip.cas_latency,
        "T_REFI": chip.refresh_every(clock_hz),
        **{name: cycles(time, clock_hz) for name, time in times.items()},
    }


def _wrapper(board: Board, clock_hz: int) -> str:
    chip = board.sdram
    sizes = chip_parameters(chip, clock_hz)
    line, pins = _LINES[board.link]
    return _TEXT.format(
        top=TOP,
        clock=board.clock_pin,
        reset=board.reset_pin,
        reset_value="rst_ni" if board.reset_level == 0 else "!rst_ni",
        led=f"{board.led_pin}0",
        row=sizes["ROW_BITS"] - 1,
        data=chip.data_bits - 1,
        mask=chip.data_bits // 8 - 1,
        line=line,
        line_pins=pins,
        chip_pins=".sdram_cke(enable), .sdram_cs_n(select_n), .sdram_dm(mask)," if chip.has_mask else "",
        tied="" if chip.has_mask else "assign mask = 0; assign enable = 1'b1; assign select_n = 1'b0;",
        sizes=", ".join(f".{name}({value})" for name, value in sizes.items()),
    )


# Pins of the wrapper, and what they are on the board.
_LINES: Final = {
    HostLink.SERIAL: (
        "    input wire rx_i,\n    output wire tx_o,",
        ".serial_rx(rx_i), .serial_tx(tx_o),",
    ),
    HostLink.ETHERBONE: (
        "    input wire rx_ctl_i,\n    input wire [3:0] rx_data_i,\n"
        "    output wire tx_ctl_o,\n    output wire [3:0] tx_data_o,",
        ".eth_clocks0_rx(clk_i), .eth_clocks0_tx(), .eth0_rst_n(), .eth0_mdc(), .eth0_mdio(),\n"
        "      .eth0_rx_ctl(rx_ctl_i), .eth0_rx_data(rx_data_i), .eth0_tx_ctl(tx_ctl_o), .eth0_tx_data(tx_data_o),",
    ),
}
_TEXT = """\
// Written by relay_hw's simulation of boards: a board's SoC and its memory chip.
`timescale 1ns / 1ps
`default_nettype none

module {top} (
    input wire clk_i,
    input wire rst_ni,
{line}
    output wire done_o
);
  wire clock, enable, select_n, ras_n, cas_n, we_n;
  wire [1:0] bank;
  wire [{row}:0] address;
  wire [{mask}:0] mask;
  wire [{data}:0] data;
  {tied}

  fpga_board u_board (
      .{clock}(clk_i), .{reset}({reset_value}), .{led}(done_o),
      {line_pins}
      {chip_pins}
      .sdram_clock(clock), .sdram_ras_n(ras_n), .sdram_cas_n(cas_n), .sdram_we_n(we_n),
      .sdram_ba(bank), .sdram_a(address), .sdram_dq(data)
  );
  sdram_chip #({sizes}) u_chip (
      .clk_i(clock), .cke_i(enable), .cs_ni(select_n), .ras_ni(ras_n), .cas_ni(cas_n), .we_ni(we_n),
      .bank_i(bank), .address_i(address), .mask_i(mask), .data_io(data)
  );
endmodule

`default_nettype wire
"""
