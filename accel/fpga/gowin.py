"""Place, route and pack for Gowin's parts: nextpnr's himbaechel and apycula's packer.

In: a folder with netlist-SEED.json and design.cst. Out: placed-SEED.json and report-SEED.json, then a bitstream.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from relay_hw.accel.fpga.parts import Part
from relay_hw.accel.fpga.tools import run_tool
from relay_hw.support.progress import Progress

# Both as nextpnr's defaults are.
OPTIONS: Final = ("--placer", "heap", "--router", "router1")


def place_and_route(stage: Path, part: Part, mhz: float, seed: int, progress: Progress) -> None:
    """Place and route netlist-SEED.json in `stage`. Raises FlowError."""
    words = ["--device", part.package, "--vopt", f"family={part.flag}", "--vopt", "cst=design.cst"]
    words += ["--seed", f"{seed}", "--freq", f"{mhz:g}", "--timing-allow-fail", *OPTIONS, "--detailed-timing-report"]
    words += ["--json", f"netlist-{seed}.json", "--write", f"placed-{seed}.json", "--report", f"report-{seed}.json"]
    run_tool(stage, "nextpnr-himbaechel-gowin", words, progress.started)


def pack(stage: Path, part: Part, placed: str, target: str) -> None:
    """Make a bitstream of what was placed and routed. Raises FlowError."""
    run_tool(stage, "gowin_pack", ["-d", part.flag, "-o", target, placed])


def constraints(part: Part) -> str:
    """A CST file: pins, high where nothing is connected."""
    rows = (f'IO_LOC "{port}" {pin};\nIO_PORT "{port}" IO_TYPE=LVCMOS33 PULL_MODE=UP;\n' for port, pin in part.pins)
    return "".join(rows)
