"""Estimates with yosys what the accelerator takes of another vendor's part; results are cached by content.

In: a target, a configuration, a folder for results. Out: counts of cells; estimates, because the vendor's own tools
pack cells otherwise.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from relay_hw.accel.fpga.synth import rtl_sources, staged
from relay_hw.accel.fpga.tools import run_yosys, tool_version
from relay_hw.accel.fpga.vendor.ip import IP, ip_verilog
from relay_hw.accel.fpga.vendor.targets import Form, Target
from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.sim.result_cache import is_sealed, sealed
from relay_hw.support.progress import SILENT, Progress

_DONE, _ESTIMATED = "stat.txt", "estimated"
_RECIPES: Final = {
    Form.VIVADO: "synth_xilinx -family {family} -noiopad -noclkbuf -top {top}",
    Form.QUARTUS: "synth_intel_alm -family {family} -noiopad -noclkbuf -top {top}",
}
# LUTs that a cell takes; two LUTs of an ALM make one of Cyclone V's.
_LUTS: Final = {
    **{f"LUT{k}": 1.0 for k in range(1, 7)},
    **{"RAM32M": 4.0, "RAM64M": 4.0, "RAM32M16": 8.0, "RAM64M8": 8.0, "RAM64X1D": 2.0, "RAM128X1D": 4.0},
    **{"RAM32X1D": 2.0, "RAM256X1S": 4.0, "RAM512X1S": 8.0, "RAM64X8SW": 8.0, "RAM32X16DR8": 16.0, "RAM64X1S": 1.0},
    **{"SRL16E": 1.0, "SRLC16E": 1.0, "SRLC32E": 1.0},
    **{f"MISTRAL_ALUT{k}": 0.5 for k in range(2, 6)},
    **{"MISTRAL_ALUT6": 1.0, "MISTRAL_ALUT_ARITH": 0.5, "MISTRAL_NOT": 0.0, "MISTRAL_MLAB": 0.5},
}
_BLOCK_RAMS: Final = {"RAMB36E1": 1.0, "RAMB18E1": 0.5, "RAMB36E2": 1.0, "RAMB18E2": 0.5, "MISTRAL_M10K": 1.0}
# A block of Cyclone V holds three multipliers of 9 bits, two of 18, one of 27.
_MULTIPLIERS: Final = {
    **{"DSP48E1": 1.0, "DSP48E2": 1.0},
    **{"MISTRAL_MUL9X9": 1 / 3, "MISTRAL_MUL18X18": 0.5, "MISTRAL_MUL27X27": 1.0},
}


def is_estimated(target: Target, config: AccelConfig, folder: Path) -> bool:
    """Whether `estimate` would find its result in `folder`."""
    return is_sealed(_stage(target, config, folder), _ESTIMATED)


def estimate(target: Target, config: AccelConfig, folder: Path, progress: Progress = SILENT) -> dict[str, Any]:
    """Cells that the accelerator takes of the target's part. Minutes, where `folder` has no result yet.

    Raises FlowError.
    """
    stage = _stage(target, config, folder)

    def make() -> None:
        (stage / f"{IP}.v").write_text(ip_verilog(config, target.available["multipliers"]))
        sources = " ".join([*(path.name for path in rtl_sources()), f"{IP}.v"])
        run_yosys(stage, [f"read_verilog {sources}", _recipe(target), f"tee -o {_DONE} stat"], progress.started)

    sealed(stage, _ESTIMATED, [_DONE], make)
    used = _used((stage / _DONE).read_text())
    share = {name: round(used[name] / has, 3) for name, has in target.available.items()}
    facts = {"board": target.name, "part": target.part, "config": config.name, "macs": config.macs_per_cycle}
    return facts | {"used": used, "available": dict(target.available), "share": share, "yosys": tool_version("yosys")}


def _stage(target: Target, config: AccelConfig, folder: Path) -> Path:
    return staged(config, _recipe(target), folder, target.available["multipliers"])


def _recipe(target: Target) -> str:
    return _RECIPES[target.form].format(family=target.family, top=IP)


def _used(stat: str) -> dict[str, int]:
    """Resources from the text of yosys' `stat`: of its last part, which counts all modules together."""
    counts: dict[str, int] = {}
    for number, cell in re.findall(r"^\s+(\d+)\s+([A-Z][A-Z0-9_]+)\s*$", stat.split("\n===")[-1], re.MULTILINE):
        counts[cell] = counts.get(cell, 0) + int(number)
    flip_flops = sum(count for cell, count in counts.items() if cell.startswith(("FDRE", "FDSE", "FDCE", "FDPE")))
    return {
        "luts": _sum(counts, _LUTS),
        "flip_flops": flip_flops + counts.get("MISTRAL_FF", 0),
        "block_rams": _sum(counts, _BLOCK_RAMS),
        "multipliers": _sum(counts, _MULTIPLIERS),
    }


def _sum(counts: dict[str, int], weights: dict[str, float]) -> int:
    total = sum(counts.get(cell, 0) * weight for cell, weight in weights.items())
    return int(total) + (total > int(total))
