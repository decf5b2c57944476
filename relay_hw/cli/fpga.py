"""Commands on FPGAs: bitstream.

In: parsed arguments. Out: exit status; a bitstream, `report.json` and `soc.json` in a folder.
"""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

from relay_hw.cli.console import Console
from relay_hw.errors import InputError

REPORT = "report.json"


def bitstream_command(args: Namespace, console: Console) -> int:
    """Synthesise, place, route and pack; the fastest of the seeds is kept."""
    from accel.fpga.flow import build_bitstream
    from accel.fpga.parts import find_part
    from accel.fpga.soc_map import SOC_FILE
    from accel.fpga.synth import cache_folder
    from accel.fpga.systems import part_system
    from accel.isa.config import load_config
    from relay_hw.runtime.artifact import replace_files

    system = part_system(load_config(args.config), find_part(args.part), args.clock, args.memory_kib * 1024)
    output = _writable(args.output)
    built = build_bitstream(
        system.design, range(1, args.seeds + 1), cache_folder().parent / "bitstreams", lambda line: console.step(line)
    )
    bitstream = output / f"{system.design.name}.bit"
    report = json.dumps(built.report, indent=2, sort_keys=True) + "\n"
    texts = {SOC_FILE: system.map.to_json().encode(), REPORT: report.encode()}
    replace_files(output, {bitstream.name: built.data, **texts})
    console.result(built.report | {"bitstream": str(bitstream)}, _text(built.report, bitstream))
    return 0


def _writable(folder: Path) -> Path:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} must be a folder, not a file")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _text(report: dict[str, Any], bitstream: Path) -> str:
    used, has = report["used"], report["available"]
    lines = [f"{report['design']} on {report['part']}, seed {report['seed']}"]
    for key, label in (("luts", "LUT4"), ("multipliers", "MULT18X18D"), ("block_rams", "DP16KD")):
        lines.append(f"  {label:12} {used[key]:7,} of {has[key]:7,}  {100 * used[key] / has[key]:5.1f} %")
    lines.append(f"  {'flip-flops':12} {used['flip_flops']:7,}")
    for name, clock in report["clocks"].items():
        met = "met" if clock["mhz"] >= clock["asked_mhz"] else "missed"
        lines.append(f"  clock {name}: {clock['mhz']:.1f} MHz, {clock['asked_mhz']:g} MHz asked: {met}")
    slowest = ", ".join(f"{name} {ns:.1f} ns" for name, ns in report["critical_modules"].items())
    lines.append(f"  slowest path: {slowest}")
    lines.append(f"bitstream: {bitstream}")
    return "\n".join(lines)
