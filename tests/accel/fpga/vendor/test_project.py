"""Projects for Vivado and Quartus: their Verilog is clean, their scripts run in Tcl against tools that write down."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from relay_hw.accel.fpga.parts import FlowError
from relay_hw.accel.fpga.soc_map import load_map
from relay_hw.accel.fpga.vendor.ip import IP, ip_verilog, ports
from relay_hw.accel.fpga.vendor.project import project_files
from relay_hw.accel.fpga.vendor.targets import TARGETS, Form, Target, find_target
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.sim.verilator import find_toolchain

TINY = load_config("tiny")
by_target = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
needs_tcl = pytest.mark.skipif(shutil.which("tclsh") is None, reason="tclsh is not installed")
VIVADO = [target for target in TARGETS if target.form is Form.VIVADO]


def write_project(folder: Path, target: Target) -> Path:
    for name, data in project_files(target, TINY, target.mhz).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


# One for each width of the bus, all that the block has of a configuration; tests/accel/rtl lints the rest.
@pytest.mark.parametrize("name", ["tiny", pytest.param("wide", marks=pytest.mark.long)])
def test_the_block_has_no_warnings(name: str, tmp_path: Path) -> None:
    config = load_config(name)
    files = project_files(TARGETS[0], config, 50)
    for path, data in files.items():
        if path.startswith("rtl/"):
            (tmp_path / Path(path).name).write_bytes(data)
    tools = find_toolchain()
    sources = sorted(path.name for path in tmp_path.glob("*.v"))
    command = [str(tools.verilator), "--lint-only", "-Wall", "--default-language", "1364-2005", "--top-module", IP]
    environment = {**os.environ, "VERILATOR_ROOT": str(tools.root)}
    done = subprocess.run(
        [*command, "+incdir+.", *sources], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    messages = done.stdout + done.stderr
    assert done.returncode == 0 and "%" not in messages, messages


def test_ports_of_the_block() -> None:
    rows = {name: (direction, bits) for direction, name, bits in ports(load_config("wide"))}
    assert rows["m_axi_wdata"] == ("output", 256) and rows["m_axi_wstrb"] == ("output", 32)
    assert rows["s_axil_awaddr"] == ("input", 12) and rows["clk_i"] == ("input", 1)
    assert len(rows) == 57 and all(name in ip_verilog(TINY, 220) for name in rows)


@by_target
def test_the_same_project_twice_and_what_it_says(target: Target, tmp_path: Path) -> None:
    files = project_files(target, TINY, 40)
    assert files == project_files(target, TINY, 40)
    assert b"Nobody has run this project" in files["README.md"].split(b"\n\n")[1]
    soc = load_map(write_project(tmp_path, target))
    assert (soc.board, soc.config_hash, soc.clock_hz) == (target.name, TINY.hash32, round(target.mhz * 1e6))
    board = json.loads(files["board.json"])
    assert board["memory_bytes"] == soc.memory_bytes and board["registers"] % 4096 == 0
    assert (board["memory_base"], board["registers_base"]) == (soc.memory_base, soc.registers_base)


# Commands of the tools write their name and arguments down, and answer what `answers` says.
_RECORDER = """
rename unknown tcl_unknown
set log [open @LOG@ w]
proc unknown {args} {
  global log answers
  puts $log $args
  flush $log
  foreach {pattern answer} $answers {
    if {[string match $pattern $args]} { return [uplevel #0 $answer] }
  }
  return "<$args>"
}
proc quit {text} { puts stderr $text; exit 1 }
"""


def run_tcl(folder: Path, script: str, answers: str = "", before: str = "") -> tuple[list[str], str]:
    """Lines of commands that the script gave to its tool, and its error, if any."""
    log = folder / "commands.log"
    text = _RECORDER.replace("@LOG@", str(log)) + f"set answers {{{answers}}}\n{before}\n"
    text += f"if {{[catch {{source {folder / script}}} message]}} {{ quit $message }}\n"
    runner = folder / "runner.tcl"
    runner.write_text(text)
    done = subprocess.run(["tclsh", str(runner)], capture_output=True, text=True, check=False, timeout=60)
    return log.read_text().splitlines(), done.stderr.strip()


def at(lines: list[str], text: str) -> int:
    found = [number for number, line in enumerate(lines) if text in line]
    assert found, (text, lines)
    return found[0]


_IMPLEMENTED = """
{wait_on_run *} {
  foreach path {relay_hw.runs/impl_1/system_wrapper.bit relay_hw.gen/sources_1/bd/system/hw_handoff/system.hwh} {
    set made [file join $here project $path]
    file mkdir [file dirname $made]
    close [open $made w]
  }
}
{get_property PROGRESS *} { return @PROGRESS@ }
{get_property STATUS *} { return "place_design ERROR" }
{get_board_parts *} { return @BOARDS@ }
"""


@needs_tcl
@pytest.mark.parametrize("target", VIVADO, ids=lambda target: target.name)
@pytest.mark.parametrize("boards", ["{}", "[list avnet.com:board:1.2]"])
def test_vivado(target: Target, boards: str, tmp_path: Path) -> None:
    folder = write_project(tmp_path, target)
    answers = _IMPLEMENTED.replace("@PROGRESS@", "100%").replace("@BOARDS@", boards)
    lines, error = run_tcl(folder, "project.tcl", answers)
    assert error == ""
    assert lines[0] == f"create_project -force relay_hw {folder}/project -part {target.part}"
    assert any(line.startswith("set_property board_part avnet.com:board:1.2") for line in lines) == (boards != "{}")
    added = lines[at(lines, "add_files -norecurse ")]
    assert added.count(".v") == len(list((folder / "rtl").iterdir())) and f"{IP}.v" in added
    order = ["create_bd_design", "-reference relay_hw_ip", "connect_bd_net", "connect_bd_intf_net", "assign_bd_address"]
    order += ["validate_bd_design", "make_wrapper", "launch_runs", "wait_on_run", "report_timing_summary"]
    places = [at(lines, text) for text in order]
    assert places == sorted(places)
    assert f"-offset 0x{target.registers:08X} -range 4K" in lines[places[4]]
    clocked = [line for line in lines if line.startswith("connect_bd_net") and "rst_ni" in line]
    assert len(clocked) == 1 and "peripheral_aresetn" in clocked[0]
    assert (folder / "relay_hw.bit").exists() and (folder / "relay_hw.hwh").exists()


@needs_tcl
def test_vivado_that_fails_is_told(tmp_path: Path) -> None:
    answers = _IMPLEMENTED.replace("@PROGRESS@", "55%").replace("@BOARDS@", "{}")
    _, error = run_tcl(write_project(tmp_path, VIVADO[0]), "project.tcl", answers)
    assert error == "implementation must end well, not with: place_design ERROR"
    assert not (tmp_path / "relay_hw.bit").exists()


_QUARTUS = """
package provide ::quartus::project 1
package provide ::quartus::flow 1
set quartus(args) {@ARGS@}
set quartus(quartus_rootpath) @ROOT@
"""


@needs_tcl
def test_quartus_alone(tmp_path: Path) -> None:
    folder = write_project(tmp_path, find_target("de10nano", Form.QUARTUS))
    before = _QUARTUS.replace("@ARGS@", "").replace("@ROOT@", str(tmp_path))
    lines, error = run_tcl(folder, "project.tcl", before=before)
    assert error == ""
    sources = [line for line in lines if "VERILOG_FILE" in line]
    assert len(sources) == len(list((folder / "rtl").glob("*.v")))
    assert at(lines, "project_new") < at(lines, "DEVICE 5CSEBA6U23I7") < at(lines, "execute_flow -compile")


@needs_tcl
def test_quartus_with_the_reference_design(tmp_path: Path) -> None:
    folder = write_project(tmp_path / "made", find_target("de10nano", Form.QUARTUS))
    tools = tmp_path / "sopc_builder" / "bin"
    tools.mkdir(parents=True)
    for name in ("qsys-script", "qsys-generate"):
        (tools / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {tmp_path}/tools.log\n')
        (tools / name).chmod(0o755)
    ghrd = tmp_path / "ghrd"
    ghrd.mkdir()
    before = _QUARTUS.replace("@ARGS@", str(ghrd)).replace("@ROOT@", str(tmp_path))
    _, error = run_tcl(folder, "project.tcl", before=before)
    assert error == f"FOLDER must hold soc_system.qsys of the reference design, not be {ghrd}"
    for name in ("soc_system.qsys", "DE10_NANO_SoC_GHRD.qpf"):
        (ghrd / name).touch()
    lines, error = run_tcl(folder, "project.tcl", before=before)
    assert error == ""
    said = (tmp_path / "tools.log").read_text().splitlines()
    assert said[0].startswith("qsys-script ") and f"--script={folder}/system.tcl" in said[0]
    assert said[1].startswith("qsys-generate ") and f"--search-path={folder},$" in said[1]
    assert at(lines, f"project_open -current_revision {ghrd}/DE10_NANO_SoC_GHRD") < at(lines, "execute_flow -compile")


@needs_tcl
def test_the_component_of_platform_designer(tmp_path: Path) -> None:
    folder = write_project(tmp_path, find_target("de10nano", Form.QUARTUS))
    lines, error = run_tcl(folder, f"{IP}_hw.tcl", before="package provide qsys 1")
    assert error == ""
    given = {line.split()[2] for line in lines if line.startswith("add_interface_port ")}
    assert given == {name for _, name, _ in ports(TINY)}
    listed = {line.split()[-1] if "TOP_LEVEL" not in line else line.split()[-2] for line in lines if "PATH" in line}
    assert listed == {f"rtl/{path.name}" for path in (folder / "rtl").iterdir()}
    lines, error = run_tcl(folder, "system.tcl", before="package provide qsys 1")
    assert error == ""
    assert lines[-1] == "save_system"
    assert "relay_hw.s_axil baseAddress 0x00040000" in lines[at(lines, "s_axil baseAddress")]


@pytest.mark.parametrize(
    ("name", "form", "message"),
    [
        ("de10nano", Form.VIVADO, "board for vivado must be one of pynq-z1, ultra96, not de10nano"),
        ("zcu102", Form.QUARTUS, "board for quartus must be one of de10nano, not zcu102"),
    ],
)
def test_boards_that_are_none(name: str, form: Form, message: str) -> None:
    with pytest.raises(FlowError, match=message):
        find_target(name, form)


@pytest.mark.parametrize("mhz", [0, 0.5, 401])
def test_clocks_that_are_none(mhz: float) -> None:
    with pytest.raises(FlowError, match=f"clock must be from 1 to 400 MHz, not {mhz:g}"):
        project_files(TARGETS[0], TINY, mhz)
