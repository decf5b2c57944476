"""Simulates netlists: what yosys gives to place and route, with models of the part's cells.

In: a design. Out: what `relay_hw.accel.fpga.sim.board` builds, or a folder in the place of accel/rtl for `RtlDevice`.
That the models are as silicon is not proven; tests hold them to the forms that synthesis takes them from.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from relay_hw.accel.fpga.flow import Design, synthesised
from relay_hw.accel.fpga.parts import Family, Part
from relay_hw.accel.fpga.sim.board import BoardModel
from relay_hw.accel.fpga.socs import Soc, core_files
from relay_hw.accel.fpga.tools import run_yosys
from relay_hw.accel.fpga.vendor.ip import IP, ip_verilog, ports
from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.gen_verilog import verilog_parameters
from relay_hw.accel.sim.result_cache import sealed
from relay_hw.accel.sim.rtl_device import RtlDevice, Sources
from relay_hw.accel.sim.selftest import Finding, self_test
from relay_hw.support.progress import SILENT, Progress

_MODELS: Final = {
    Family.ECP5: ("CCU2C", "DP16KD", "L6MUX21", "LUT4", "MULT18X18D", "PFUMX", "TRELLIS_DPR16X4", "TRELLIS_FF")
    + ("ecp5_stage",),
    Family.GOWIN: ("ALU", "DFF", "DFFE", "DFFR", "DFFRE", "DFFS", "DFFSE", "DPX9B", "GND", "IBUF", "LUT1", "LUT2")
    + ("LUT3", "LUT4", "MULT12X12", "MULT18X18", "MULT36X36", "MULT9X9", "OBUF", "RAM16SDP4", "SDPX9B", "VCC"),
}
NETLIST: Final = "netlist.v"


def cell_models(part: Part) -> dict[str, str]:
    """Models of a part's cells, those that netlists of logic hold: texts by file name."""
    series = "`define GOWIN_5A\n" if part.flag.startswith("GW5A") else ""
    folder = Path(__file__).parent / part.family.value
    return {f"{name}.v": series + (folder / f"{name}.v").read_text() for name in _MODELS[part.family]}


def netlist_verilog(design: Design, folder: Path, progress: Progress = SILENT) -> str:
    """The netlist of a design as Verilog; `folder` keeps what was made. Raises FlowError."""
    stage = synthesised(design, folder, progress)
    file = stage / NETLIST
    words = ["read_json synthesised.json", f"write_verilog -noattr -simple-lhs {NETLIST}"]
    sealed(stage, "written", [NETLIST], lambda: run_yosys(stage, words, progress.started))
    return file.read_text()


def netlist_board(soc: Soc, folder: Path, progress: Progress = SILENT) -> BoardModel:
    """The simulated netlist of a SoC for a bare part. Raises FlowError."""
    files = {NETLIST: netlist_verilog(soc.design, folder, progress), **cell_models(soc.design.part)}
    # Megabytes of C++, run for seconds.
    return BoardModel(soc.design.top, files, level="-O1")


def core_design(config: AccelConfig, part: Part) -> Design:
    """The accelerator alone, with the sizes of a configuration: simulated, never placed."""
    files = {**core_files(), f"{IP}.v": ip_verilog(config, part.multipliers)}
    return Design(f"core-{config.name}", IP, files, part, "", 25.0)


def netlist_rtl(config: AccelConfig, part: Part, folder: Path, target: Path, progress: Progress = SILENT) -> Path:
    """`target`, made into a folder that stands for accel/rtl: vta_top around the core's netlist. Raises FlowError."""
    text = netlist_verilog(core_design(config, part), folder, progress)
    target.mkdir(parents=True, exist_ok=True)
    (target / NETLIST).write_text(text)
    (target / "vta_top.v").write_text(_top(config))
    models = cell_models(part)
    for name, model in models.items():
        (target / name).write_text(model)
    names = [*models, NETLIST, "vta_top.v"]
    (target / "filelist.f").write_text("".join(f"{name}\n" for name in names))
    return target


def netlist_findings(
    config: AccelConfig, part: Part, programs: int, folder: Path, progress: Progress = SILENT
) -> list[Finding]:
    """The self-test on the netlist of the accelerator, with so many random programs. Raises FlowError."""
    with TemporaryDirectory() as place:
        rtl = netlist_rtl(config, part, folder, Path(place) / "rtl", progress)
        progress.started("netlist: built for simulation")
        device = RtlDevice(config, model=Sources(rtl))
        try:
            return self_test(device, programs, progress=progress)
        finally:
            device.close()


def _top(config: AccelConfig) -> str:
    """vta_top as the harness wants it; its parameters are those that the netlist was made with."""
    rows = ports(config)
    sizes = ",\n".join(f"    parameter {name} = 32'd{value}" for name, value in verilog_parameters(config).items())
    pins = ",\n".join(f"    {way} wire {f'[{bits - 1}:0] ' if bits > 1 else ''}{name}" for way, name, bits in rows)
    links = ", ".join(f".{name}({name})" for _, name, _ in rows)
    return f"module vta_top #(\n{sizes}\n) (\n{pins}\n);\n  {IP} u_netlist ({links});\nendmodule\n"
