"""Wraps the accelerator as an IP block for vendor tools: fixed sizes, AXI interfaces under their usual names.

In: a configuration. Out: the Verilog of `relay_hw_ip`.
"""

from __future__ import annotations

import re

from relay_hw.accel.fpga.multipliers import core_parameters
from relay_hw.accel.fpga.synth import RTL
from relay_hw.accel.isa.config import AccelConfig
from relay_hw.support.quote import comment

IP = "relay_hw_ip"
_CLOCK = """\
    (* X_INTERFACE_INFO = "xilinx.com:signal:clock:1.0 clk_i CLK" *)
    (* X_INTERFACE_PARAMETER = "ASSOCIATED_BUSIF s_axil:m_axi, ASSOCIATED_RESET rst_ni" *)
"""
_RESET = """\
    (* X_INTERFACE_INFO = "xilinx.com:signal:reset:1.0 rst_ni RST" *)
    (* X_INTERFACE_PARAMETER = "POLARITY ACTIVE_LOW" *)
"""
_PORT = re.compile(r"^\s+(input|output)\s+wire\s+(?:\[\s*([^]]+?)\s*:\s*0\s*\]\s*)?(\w+),?$", re.MULTILINE)


def ports(config: AccelConfig) -> list[tuple[str, str, int]]:
    """Direction, name and bits of each port, as vta_top has them."""
    text = (RTL / "vta_top.v").read_text()
    head = text[: text.index(");\n")]
    widths = {"AXI_DATA_BITS-1": config.axi_data_bits, "AXI_DATA_BITS/8-1": config.bus_bytes}
    found: list[tuple[str, str, int]] = []
    for direction, high, name in _PORT.findall(head):
        bits = widths[high] if high in widths else int(high or 0) + 1
        found.append((direction, name, bits))
    return found


def ip_verilog(config: AccelConfig, multipliers: int) -> str:
    """`relay_hw_ip`: vta_top with the sizes of a configuration, for a part with so many multiplier blocks.

    Vivado reads the attributes, others skip them.
    """
    rows = ports(config)
    lines: list[str] = []
    for direction, name, bits in rows:
        marks = {"clk_i": _CLOCK, "rst_ni": _RESET}.get(name, "")
        width = f"[{bits - 1}:0] " if bits > 1 else ""
        lines.append(f"{marks}    {direction} wire {width}{name}")
    sizes = ", ".join(f".{key}(32'd{value})" for key, value in sorted(core_parameters(config, multipliers).items()))
    links = ",\n".join(f"      .{name}({name})" for _, name, _ in rows)
    return (
        f"// The accelerator in configuration {comment(config.name)}: AXI4-Lite registers s_axil, AXI4 memory m_axi.\n"
        "`resetall\n`timescale 1ns / 1ps\n`default_nettype none\n\n"
        f"module {IP} (\n" + ",\n".join(lines) + "\n);\n"
        f"  vta_top #({sizes}) u_top (\n{links}\n  );\nendmodule\n\n`resetall\n"
    )
