"""What tests need of the extra `fpga`, and the reason that they print where it is missing."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from relay_hw.accel.fpga.board_top import missing_modules
from relay_hw.accel.fpga.families import toolchain
from relay_hw.accel.fpga.parts import FlowError, find_part
from relay_hw.accel.fpga.tools import find_tool
from relay_hw.accel.sim.verilator import find_toolchain


def missing_tools(*names: str) -> list[str]:
    """Of these programs, those that are not there."""
    return [name for name in names if not _is_there(name)]


def _is_there(tool: str) -> bool:
    try:
        return bool(find_tool(tool))
    except FlowError:
        return False


def _needs(missing: list[str]) -> pytest.MarkDecorator:
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} (extra fpga) not installed")


_SERIAL = [] if importlib.util.find_spec("serial") else ["pyserial"]
needs_litex = _needs(missing_modules())
needs_boards = _needs([*missing_modules(), *_SERIAL])
needs_yosys = _needs(missing_tools("yosys"))
needs_tools = _needs(missing_tools(*toolchain(find_part("lfe5u-25f")).tools))
needs_gowin = _needs(missing_tools(*toolchain(find_part("gw2a-18c")).tools))


def lint_messages(top: str, files: Mapping[str, str], folder: Path) -> str:
    """What Verilator says of Verilog with all its warnings on, written into `folder`; nothing where it is clean."""
    for file, text in files.items():
        (folder / file).write_text(text)
    tools = find_toolchain()
    sources = [file for file in files if file.endswith(".v")]
    command = [str(tools.verilator), "--lint-only", "-Wall", "-Wno-PINCONNECTEMPTY", "--default-language", "1364-2005"]
    command += ["--top-module", top, "+incdir+.", *sources]
    environment = {**os.environ, "VERILATOR_ROOT": str(tools.root)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    messages = done.stdout + done.stderr
    return "" if done.returncode == 0 and "%" not in messages else messages
