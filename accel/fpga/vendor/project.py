"""Writes a project for vendor tools: sources, scripts, constraints, and the script that serves the board to a host.

In: a target, a configuration, a clock. Out: names and contents of files; nothing here was ever run by those tools.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from relay_hw.accel.fpga.parts import FlowError
from relay_hw.accel.fpga.soc_map import MEMORY_BASE, REGISTERS_BASE, SOC_FILE, SocMap
from relay_hw.accel.fpga.synth import core_sources
from relay_hw.accel.fpga.vendor.ip import IP, ip_verilog, ports
from relay_hw.accel.fpga.vendor.targets import Form, Target
from relay_hw.accel.isa.config import AccelConfig
from relay_hw.support.quote import comment, markdown, tcl_word

FOLDER: Final = Path(__file__).parent
MARK: Final = "board.json"
BITSTREAM: Final = "relay_hw.bit"
# Of a link that is no serial port: the driver asks for one.
_BAUD: Final = 1_000_000
_SCRIPTS: Final = {
    Form.VIVADO: {"project.tcl": "vivado.tcl"},
    Form.QUARTUS: {"project.tcl": "quartus.tcl", "system.tcl": "quartus_system.tcl"},
}
# Pins that show STATUS.done or STATUS.fault, where a board has a light on the fabric.
_DONE_PINS: Final = {"pynq-z1": ("R14", "LVCMOS33")}
_ROLES: Final = {"s_axil": ("axi4lite", "end"), "m_axi": ("axi4", "start")}


def project_files(target: Target, config: AccelConfig, mhz: float) -> dict[str, bytes]:
    """Files of the project by their path in it. Raises FlowError."""
    if not 1 <= mhz <= 400:
        raise FlowError(f"clock must be from 1 to 400 MHz, not {mhz:g}")
    texts = {f"rtl/{path.name}": path.read_text() for path in core_sources()}
    texts[f"rtl/{IP}.v"] = ip_verilog(config, target.available["multipliers"])
    texts |= {name: (FOLDER / source).read_text() for name, source in _SCRIPTS[target.form].items()}
    texts["settings.tcl"] = _settings(target, mhz)
    texts["serve.py"] = (FOLDER / "serve.py").read_text()
    soc = SocMap(
        board=target.name,
        config=config.name,
        config_hash=config.hash32,
        clock_hz=round(mhz * 1e6),
        memory_bytes=target.memory_bytes,
        baud=_BAUD,
    )
    texts[SOC_FILE] = soc.to_json()
    texts[MARK] = json.dumps(_board(target), indent=2, sort_keys=True) + "\n"
    texts["README.md"] = _readme(target, config, mhz)
    if target.form is Form.VIVADO:
        texts["constraints.xdc"] = _pins(target)
    else:
        texts["constraints.sdc"] = f"create_clock -name clk_i -period {1000 / mhz:.3f} [get_ports clk_i]\n"
        texts[f"{IP}_hw.tcl"] = _component(config)
    return {name: text.encode() for name, text in sorted(texts.items())}


def _settings(target: Target, mhz: float) -> str:
    pin = _DONE_PINS.get(target.name, ("", ""))[0]
    values = {
        "part": target.part,
        "family": target.family,
        "board_part": target.name.replace("ultra96", "ultra96*"),
        "mhz": f"{mhz:g}",
        "registers": f"0x{target.registers:08X}",
        "done_pin": pin,
    }
    return "".join(f"set {name} {tcl_word(value)}\n" for name, value in values.items())


def _board(target: Target) -> Mapping[str, object]:
    """What serve.py must know."""
    return {
        "board": target.name,
        "bitstream": BITSTREAM,
        "registers": target.registers,
        "memory": target.memory,
        "memory_bytes": target.memory_bytes,
        "memory_base": MEMORY_BASE,
        "registers_base": REGISTERS_BASE,
    }


def _pins(target: Target) -> str:
    if target.name not in _DONE_PINS:
        return "# No pins: registers and memory are reached through the processor.\n"
    pin, standard = _DONE_PINS[target.name]
    return f"set_property -dict {{PACKAGE_PIN {pin} IOSTANDARD {standard}}} [get_ports done]\n"


def _component(config: AccelConfig) -> str:
    """The accelerator as a component of Platform Designer."""
    lines = [
        f"# The accelerator in configuration {comment(config.name)}, for Platform Designer.",
        "package require qsys",
        f"set_module_property NAME {IP}",
        "set_module_property VERSION 1.0",
        'set_module_property DISPLAY_NAME "relay-hw accelerator"',
        "set_module_property EDITABLE false",
        'add_fileset synthesis QUARTUS_SYNTH "" ""',
        f"set_fileset_property synthesis TOP_LEVEL {IP}",
        f"add_fileset_file {IP}.v VERILOG PATH rtl/{IP}.v TOP_LEVEL_FILE",
    ]
    for path in core_sources():
        kind = "VERILOG" if path.suffix == ".v" else "VERILOG_INCLUDE"
        lines.append(f"add_fileset_file {path.name} {kind} PATH rtl/{path.name}")
    lines += [
        "add_interface clock clock end",
        "add_interface_port clock clk_i clk Input 1",
        "add_interface reset reset end",
        "set_interface_property reset associatedClock clock",
        "set_interface_property reset synchronousEdges DEASSERT",
        "add_interface_port reset rst_ni reset_n Input 1",
    ]
    depths = {"read": config.read_outstanding, "write": config.write_outstanding}
    for bus, (kind, end) in _ROLES.items():
        lines.append(f"add_interface {bus} {kind} {end}")
        lines += [f"set_interface_property {bus} associatedClock clock"]
        lines += [f"set_interface_property {bus} associatedReset reset"]
        if bus == "m_axi":
            lines += [f"set_interface_property {bus} {way}IssuingCapability {depth}" for way, depth in depths.items()]
            lines += [f"set_interface_property {bus} combinedIssuingCapability {sum(depths.values())}"]
        for direction, name, bits in ports(config):
            if name.startswith(f"{bus}_"):
                role = name.removeprefix(f"{bus}_")
                lines.append(f"add_interface_port {bus} {name} {role} {direction.capitalize()} {bits}")
    lines += ["add_interface done conduit end", "add_interface_port done done_o export Output 1"]
    return "\n".join(lines) + "\n"


_VIVADO_STEPS: Final = """\
1. On a machine with Vivado 2020.2 or later: `vivado -mode batch -source project.tcl`. It leaves `{bitstream}`,
   `relay_hw.hwh`, `utilization.txt` and `timing.txt` in this folder.
2. Copy this folder to the board, which runs a PYNQ image, and start `sudo python3 serve.py` there.
"""
_QUARTUS_STEPS: Final = """\
1. On a machine with Quartus Prime 18.1 or later: `quartus_sh -t project.tcl` compiles the accelerator alone, for its
   size and Fmax. `quartus_sh -t project.tcl FOLDER` puts it into a copy of Terasic's `DE10_NANO_SoC_GHRD`, which is the
   board's reference design and comes with the board, and compiles that.
2. Load the bitstream the way the board's Linux does (its raw form and a device-tree overlay, or U-Boot), with the
   bridges on, and start Linux with `mem=768M`: the accelerator takes memory above that.
3. Copy this folder to the board and start `sudo python3 serve.py` there.
"""


def _readme(target: Target, config: AccelConfig, mhz: float) -> str:
    steps = _VIVADO_STEPS.format(bitstream=BITSTREAM) if target.form is Form.VIVADO else _QUARTUS_STEPS
    return f"""\
# {markdown(config.name)} on {markdown(target.title)}, {mhz:g} MHz

**Nobody has run this project with {target.form.value.capitalize()} yet, or on a board.** What was checked: the Verilog
(simulated, synthesised by yosys), the syntax of the scripts, and `serve.py` against the Verilog in simulation.

{steps}
Then, on any computer with relay-hw, where `ssh -L 2000:localhost:2000 BOARD` is open:

    relay-hw selftest --device fpga --port socket://localhost:2000 --soc .
    relay-hw run BUILD --input DATA.npz --device fpga --port socket://localhost:2000 --soc .

`rtl/{IP}.v` is the accelerator with AXI4-Lite registers `s_axil`, an AXI4 master `m_axi` of
{config.axi_data_bits} bits, one clock and a synchronous reset; use it in a design of your own as it is.
"""
