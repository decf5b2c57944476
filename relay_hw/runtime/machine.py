"""The name of this machine, which host times are reported with. In: nothing. Out: its name."""

from __future__ import annotations

import platform
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")


def machine_name(cpuinfo: Path = CPUINFO) -> str:
    """The processor's name as the operating system reports it, else its architecture."""
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    for key in ("model name", "Model", "Hardware"):
        for line in lines:
            name, _, value = line.partition(":")
            if name.strip() == key and value.strip():
                return " ".join(value.split())
    return platform.processor() or platform.machine() or "an unknown processor"
