"""Places, routes and packs designs for Gowin's parts, with nextpnr's himbaechel and apycula's packer.

In: a folder with netlist-SEED.json and design.cst. Out: placed-SEED.json and report-SEED.json, then a bitstream; before
that, a netlist that no placement has room for is refused, as nextpnr looks for one for hours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from relay_hw.accel.fpga.parts import FlowError, Part
from relay_hw.accel.fpga.tools import run_tool
from relay_hw.support.progress import Progress

# Both as nextpnr's defaults are.
OPTIONS: Final = ("--placer", "heap", "--router", "router1")
_TILE_LUTS: Final = 8
_MEMORY: Final = "RAM16"
_CARRY: Final = "ALU"


@dataclass(frozen=True, slots=True)
class Places:
    """Places for a LUT4 that a netlist takes at least: of logic, of carries, of flip-flops that have none to share.

    `left`: those of a part beside the tiles of memories of LUTs, which hold nothing else.
    """

    logic: int
    carries: int
    flip_flops: int
    left: int

    @property
    def wanted(self) -> int:
        """Places of all kinds together."""
        return self.logic + self.carries + self.flip_flops


def places(module: Mapping[str, Any], part: Part) -> Places:
    """Count the places that a module of yosys's JSON takes of a part.

    A flip-flop holds what the LUT4 or carry of its own place says. What comes from anywhere else, or is held by several
    flip-flops, goes through a LUT4 for each of the others.
    """
    cells: list[Mapping[str, Any]] = list(module["cells"].values())
    logic = [cell for cell in cells if cell["type"].startswith("LUT")]
    carries = [cell for cell in cells if cell["type"] == _CARRY]
    said = {bit for cell in logic for bit in cell["connections"]["F"]}
    said |= {bit for cell in carries for bit in cell["connections"].get("SUM", ())}
    held = [cell["connections"]["D"][0] for cell in cells if cell["type"].startswith("DFF")]
    memories = sum(cell["type"].startswith(_MEMORY) for cell in cells)
    shared = len(said.intersection(held))
    return Places(len(logic), len(carries), len(held) - shared, part.luts - _TILE_LUTS * memories)


def check_room(module: Mapping[str, Any], part: Part) -> None:
    """Refuse a netlist that takes more places than a part has. Raises FlowError."""
    takes = places(module, part)
    if takes.wanted > takes.left:
        raise FlowError(
            f"a netlist for {part.name} must take at most {takes.left:,} LUT4 beside its memories of LUTs, not "
            f"{takes.wanted:,}: {takes.logic:,} of logic, {takes.carries:,} of carries, {takes.flip_flops:,} in front "
            "of flip-flops"
        )


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
