"""Netlists, as place and route gets them, run programs: the SoC of a part behind the driver, and the core alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from relay_hw.accel.fpga.device import FpgaDevice
from relay_hw.accel.fpga.flow import Design
from relay_hw.accel.fpga.open_link import open_link
from relay_hw.accel.fpga.part_top import FPGA_RTL
from relay_hw.accel.fpga.parts import find_part
from relay_hw.accel.fpga.sim.board import BoardModel, build_board, running_board
from relay_hw.accel.fpga.sim.netlist import (
    NETLIST,
    cell_models,
    core_design,
    netlist_board,
    netlist_rtl,
    netlist_verilog,
)
from relay_hw.accel.fpga.socs import part_soc
from relay_hw.accel.fpga.synth import bitstreams_folder
from relay_hw.accel.fpga.vendor.ip import IP
from relay_hw.accel.isa.asm import assemble_file
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.errors import Fault
from relay_hw.accel.isa.program import Program
from relay_hw.accel.isa.randprog import random_program
from relay_hw.accel.sim.device import Device
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.accel.sim.rtl_device import RtlDevice, Sources
from relay_hw.accel.sim.selftest import self_test
from tests.accel.fpga.extra import needs_yosys
from tests.accel.isa.runner import PROGRAMS

serial = pytest.importorskip("serial", reason="pyserial (extra fpga) is not installed")

TINY = load_config("tiny")
DIVISOR = 4
PATIENCE = 300
PART = find_part("lfe5u-25f")
SOC = part_soc(TINY, PART, 2, 1 << 15, 2_000_000 // DIVISOR)
BITSTREAMS = bitstreams_folder()


ECHO = """
module echo (input wire clk_i, input wire rst_ni, input wire rx_i, output wire tx_o);
  wire valid, full, got, ready;
  wire [7:0] data, kept;
  reg [7:0] sum_q, last_q, total_q;
  wire [15:0] product = last_q * total_q;
  fpga_uart_rx #(.DIVISOR(4)) u_rx (.clk_i(clk_i), .rst_ni(rst_ni), .rx_i(rx_i), .valid_o(valid), .data_o(data));
  always @(posedge clk_i) if (!rst_ni) sum_q <= 8'd0; else if (valid) sum_q <= sum_q + data * 8'd3;
  always @(posedge clk_i)
    if (!rst_ni) {last_q, total_q} <= 16'd0; else if (valid) {last_q, total_q} <= {data, sum_q};
  vta_fifo #(.WIDTH(8), .DEPTH(16)) u_fifo (
      .clk_i(clk_i), .rst_ni(rst_ni), .push_i(valid && !full), .data_i(sum_q ^ data ^ product[11:4]), .full_o(full),
      .valid_o(got), .data_o(kept), .pop_i(got && ready)
  );
  fpga_uart_tx #(.DIVISOR(4)) u_tx (
      .clk_i(clk_i), .rst_ni(rst_ni), .valid_i(got), .ready_o(ready), .data_i(kept), .tx_o(tx_o)
  );
endmodule
"""


@needs_yosys
@pytest.mark.parametrize(
    ("part", "found"),
    [
        ("lfe5u-25f", ("REG_INPUTA_CLK", "TRELLIS_FF", "CCU2C")),
        ("gw2a-18c", ("MULT9X9", "DFFR", "RAM16SDP4", "ALU")),
        ("gw5ast-138c", ("MULT12X12", "DFFR", "RAM16SDP4", "ALU")),
    ],
)
def test_a_small_system_answers_as_its_source(part: str, found: tuple[str, ...], tmp_path: Path) -> None:
    files = {"echo.v": ECHO} | {
        name: SOC.design.files[name] for name in ("vta_fifo.v", "vta_count.v", "vta_ram_async.v")
    }
    files |= {f"fpga_uart_{way}.v": (FPGA_RTL / f"fpga_uart_{way}.v").read_text() for way in ("rx", "tx")}
    design = Design("echo", "echo", files, find_part(part), "", 25)
    text = netlist_verilog(design, tmp_path)
    assert all(cell in text for cell in found) and "vta_fifo #" not in text
    netlist = BoardModel("echo", {NETLIST: text, **cell_models(design.part)}, level="-O1")
    sent = bytes(range(1, 200, 7))
    answers: list[bytes] = []
    for model in (BoardModel("echo", files), netlist):
        with running_board(build_board(model), DIVISOR) as address, serial.serial_for_url(address, timeout=60) as line:
            line.write(sent)
            answers.append(line.read(len(sent)))
    total, product, expected = 0, 0, bytearray()
    for byte in sent:
        expected.append(total ^ byte ^ product >> 4 & 255)
        total, product = (total + 3 * byte) % 256, total * byte
    assert answers == [bytes(expected)] * 2


def outcome(device: Device, program: Program) -> tuple[str, bytes]:
    """What ended a launch, and the window after it; what is left of a fault's store has no meaning."""
    device.load(program)
    try:
        device.launch()
    except Fault as fault:
        return f"{fault.code.name} {fault.index}", b""
    return "done", device.read(0, program.window_bytes).tobytes()


def programs(window_bytes: int) -> list[tuple[str, Program]]:
    """Every program of the instruction set's tests for `tiny`, faults included, that fits."""
    found = [(path.stem, assemble_file(path)) for path in PROGRAMS if not path.stem.startswith("deadlock")]
    return [(name, each) for name, each in found if each.config == "tiny" and each.window_bytes <= window_bytes]


@pytest.fixture(scope="module")
def board() -> Iterator[FpgaDevice]:
    program = build_board(netlist_board(SOC, BITSTREAMS))
    with running_board(program, DIVISOR) as address:
        device = FpgaDevice(TINY, open_link(address, 1, PATIENCE), SOC.map)
        yield device
        device.close()


@pytest.mark.long
@needs_yosys
def test_the_netlist_of_a_system_runs_programs(board: FpgaDevice) -> None:
    chosen = programs(8192)
    begin = time.perf_counter()
    for name, program in chosen:
        assert outcome(board, program) == outcome(FunctionalDevice(TINY), program), name
    print(f"{len(chosen)} programs on the netlist of {SOC.design.name}, {time.perf_counter() - begin:.0f} s")
    assert len(chosen) >= 20


@pytest.mark.long
@needs_yosys
def test_the_netlist_of_a_system_passes_the_self_test(board: FpgaDevice) -> None:
    found = self_test(board, 1)
    assert all(finding.ok for finding in found), found


@pytest.mark.long
@needs_yosys
def test_the_netlist_of_the_core_runs_programs(tmp_path: Path) -> None:
    """Cycles, too, are those of the source: the netlist is the same circuit."""
    rtl = netlist_rtl(TINY, PART, BITSTREAMS, tmp_path / "rtl")
    netlist, source = RtlDevice(TINY, model=Sources(rtl)), RtlDevice(TINY)
    chosen = programs(1 << 20) + [(f"random {seed}", random_program(TINY, seed, 60)) for seed in range(20)]
    try:
        for name, program in chosen:
            assert outcome(netlist, program) == outcome(FunctionalDevice(TINY), program), name
            assert outcome(source, program)[0] == outcome(netlist, program)[0]
            if not name.startswith("fault"):
                assert netlist.launch().counters == source.launch().counters, name
    finally:
        netlist.close()
        source.close()
    assert len(chosen) >= 40


def test_the_core_alone_is_a_design() -> None:
    design = core_design(TINY, PART)
    assert design.top == IP and f"{IP}.v" in design.files and design.name == "core-tiny"
    assert "module vta_top" in design.files["vta_top.v"]
