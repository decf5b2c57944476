"""Syntheses that the area model is fitted to: small changes of configurations, by yosys, and the fit.

In: accel/rtl and the points below. Out: docs/results/area_points.json, a row for each synthesis, written after each of
them; accel/fpga/area.json, what the model needs. Results are kept by content, so only what changed runs again.
No point has the row unit: it is synthesised alone, for two widths (`--row-unit`).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.optimize import nnls

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from relay_hw.accel.fpga.area import FITTED, row_terms, terms
from relay_hw.accel.fpga.parts import ECP5_PARTS
from relay_hw.accel.fpga.synth import SYNTHESIS, cache_folder, cells, content_key, core_files, synthesise
from relay_hw.accel.fpga.tools import run_yosys, tool_version
from relay_hw.accel.isa.config import ROW_QUARTERS, AccelConfig, config_from_dict, load_config

ROOT: Final = Path(__file__).resolve().parents[1]
RESULTS: Final = ROOT / "docs" / "results" / "area_points.json"
# What synthesis counts for, and the cells that the model gives.
PART: Final = ECP5_PARTS[-1]
CELLS: Final = ("luts", "flip_flops")
# The row unit's top module, and the blocks of outputs for which it is synthesised: its cells are on a line between.
ROW_UNIT: Final = "vta_row"
ROW_BLOCKS: Final = (4, 16)
# A configuration that ships, and what is changed of it. Those with a star are held back from the fit.
POINTS: Final = (
    "tiny",
    "tiny,multiplier_bits=16",
    "tiny,out_lanes=4",
    "tiny,axi_data_bits=128",
    "tiny,block_in=8,block_out=8,out_lanes=2,multiplier_bits=16",
    "ecp5",
    "ecp5x2",
    "tiny,block_out=8,acc_banks=4",
    "*tiny,block_in=8,multiplier_bits=16",
    "ecp5w4",
    "tiny,block_out=16,out_lanes=4,multiplier_bits=16",
    "*tiny,block_in=8,block_out=8,out_lanes=4,acc_banks=4,multiplier_bits=16",
    "tiny,wgt_depth=4096,inp_depth=8192,acc_depth=2048,queue_depth=16",
    "tiny,block_in=16,acc_banks=1,multiplier_bits=16",
    "tiny,block_in=32,block_out=8,acc_banks=1,multiplier_bits=16",
    "tiny,block_in=8,block_out=8,axi_data_bits=256,multiplier_bits=16",
    "*ecp5,block_in=4,out_lanes=8",
    "tiny,block_in=16,block_out=8,out_lanes=8",
    "*ecp5,axi_data_bits=128,acc_banks=2",
    "ecp5w4,out_lanes=8,axi_data_bits=128,multiplier_bits=31",
    "*ecp5,block_out=8,out_lanes=2,acc_banks=8",
    "ecp5,wgt_depth=256,inp_depth=2048",
    "ecp5x2,out_lanes=16",
    "*ecp5x2,out_lanes=8,acc_banks=2,inp_depth=2048",
    "ecp5w4,block_out=16",
    "ecp5,acc_banks=8,queue_depth=8,prm_depth=128,uop_depth=2048",
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    text = "synthesise the first N points only; 0: fit to the results that there are"
    parser.add_argument("--first", type=int, default=len(POINTS), metavar="N", help=text)
    parser.add_argument("--only", default="", metavar="TEXT", help="points whose name holds this text; others stay")
    parser.add_argument("--row-unit", action="store_true", help="synthesise the row unit, and no points")
    options = parser.parse_args(arguments)
    known = json.loads(RESULTS.read_text())
    units = [row_unit(block) for block in ROW_BLOCKS] if options.row_unit else known["row_units"]
    rows = {point["point"]: point for point in known["points"]}
    for text in POINTS[: 0 if options.row_unit else options.first]:
        if options.only not in text:
            continue
        point = row(text)
        rows[point["point"]] = point
        write(in_order(rows), units)
        print(f"{text}: {compared(point, json.loads(FITTED.read_text()))}", flush=True)
    write(in_order(rows), units)
    return 0


def in_order(rows: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Results by the order of POINTS; those of points that are no longer there are dropped."""
    names = [text.lstrip("*") for text in POINTS]
    return [rows[name] for name in names if name in rows]


def write(points: Sequence[Mapping[str, Any]], units: Sequence[Mapping[str, int]]) -> None:
    """Write results, the model fitted to them, and how far it is from those that were held back and from the others."""
    model = fitted(points, units)
    content = {"yosys": tool_version("yosys"), "agreement": agreement(points, model), "points": list(points)}
    content["row_units"] = list(units)
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")
    FITTED.write_text(json.dumps(model, indent=1) + "\n")


def agreement(points: Sequence[Mapping[str, Any]], model: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """Number of points that were fitted to and of those held back, and the largest error of each in percent; `earlier`:
    of configurations beside them that only an earlier RTL was synthesised of."""
    found: dict[str, Any] = {}
    for name, is_held in (("fitted", False), ("held_back", True)):
        rows = [point for point in points if point["held_back"] is is_held]
        errors = {cell: max((abs(error(point, cell, model)) for point in rows), default=0.0) for cell in CELLS}
        found[name] = {
            "points": len(rows),
            "earlier": 0 if is_held else len(earlier(points)),
            **{cell: round(100 * worst, 2) for cell, worst in errors.items()},
        }
    return found


def error(point: Mapping[str, Any], cell: str, model: Mapping[str, Mapping[str, float]]) -> float:
    """Of what synthesis counts, by how much a model is off."""
    return predicted(point, cell, model) / point[cell] - 1


def fitted(points: Sequence[Mapping[str, Any]], units: Sequence[Mapping[str, int]]) -> dict[str, dict[str, float]]:
    """Cells for each of the model's terms, none below 0, with the least sum of squared relative errors; those of the
    row unit by its two syntheses."""
    used = [*(point for point in points if not point["held_back"]), *earlier(points)]
    found: dict[str, dict[str, float]] = {}
    for cell in CELLS:
        rows = [without_rows(terms(sized(point), PART)) for point in used]
        counts = np.array([point[cell] for point in used], dtype=float)
        matrix = np.array([[*row.values()] for row in rows]) / counts[:, None]
        amounts, _ = nnls(matrix, np.ones(len(used)))
        found[cell] = {name: round(float(amount), 3) for name, amount in zip(rows[0], amounts, strict=True)}
        found[cell] |= row_cells(cell, units)
    return found


def without_rows(amounts: Mapping[str, float]) -> dict[str, float]:
    """Terms but those of the row unit, which no point has."""
    own = row_terms(configuration("tiny"))
    assert not any(amounts[name] for name in own)
    return {name: amount for name, amount in amounts.items() if name not in own}


def row_cells(cell: str, units: Sequence[Mapping[str, int]]) -> dict[str, float]:
    """Cells of the row unit without lanes, and of each of its lanes."""
    one, other = units
    lane = (other[cell] - one[cell]) / (other["lanes"] - one["lanes"])
    return {"row_unit": round(one[cell] - lane * one["lanes"], 3), "row_lanes": round(lane, 3)}


def row_unit(block_out: int) -> dict[str, int]:
    """The synthesis of the row unit alone, for blocks of so many outputs."""
    config = load_config("tiny")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in core_files().items():
            (folder / file).write_text(text)
        files = " ".join(file for file in core_files() if file.startswith(ROW_UNIT))
        sizes = f"-set BLOCK_OUT {block_out} -set ACC_DEPTH {config.acc_depth}"
        commands = [f"read_verilog {files}", f"chparam {sizes} {ROW_UNIT}", SYNTHESIS.format(top=ROW_UNIT)]
        run_yosys(folder, [*commands, "tee -o stat.txt stat"])
        counts = cells((folder / "stat.txt").read_text())
    return {"lanes": block_out // ROW_QUARTERS, **{key: counts[key] for key in (*CELLS, "multipliers")}}


def earlier(points: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Configurations that were synthesised for docs/boards.md, maybe of earlier RTL, as long as `points` lack them."""
    boards = json.loads((RESULTS.parent / "boards.json").read_text())
    missing = {name for name in POINTS if name in boards} - {point["point"] for point in points}
    return [{"point": name, "sizes": configuration(name).sizes, **boards[name]} for name in sorted(missing)]


def predicted(point: Mapping[str, Any], cell: str, model: Mapping[str, Mapping[str, float]]) -> float:
    """What a model says of a point."""
    return sum(model[cell][name] * amount for name, amount in terms(sized(point), PART).items())


def compared(point: Mapping[str, Any], model: Mapping[str, Mapping[str, float]]) -> str:
    """How far a model is from a synthesis, for people."""
    return ", ".join(f"{cell} {point[cell]:,} ({100 * error(point, cell, model):+.1f}%)" for cell in CELLS)


def sized(point: Mapping[str, Any]) -> AccelConfig:
    """The configuration of a result."""
    return config_from_dict(point["sizes"], "point")


def row(text: str) -> dict[str, Any]:
    """One synthesis: its name, whether it is held back, sizes, counts, and the key of RTL and parameters."""
    config = configuration(text)
    found = synthesise(config, cache_folder())
    counts = {key: found[key] for key in ("luts", "luts_as_memory", "flip_flops", "block_rams", "multipliers")}
    return {
        "point": text.lstrip("*"),
        "held_back": text.startswith("*"),
        "key": content_key(config),
        "sizes": config.sizes,
        **counts,
    }


def configuration(text: str) -> AccelConfig:
    """The configuration of a point, without the row unit."""
    name, *changes = text.lstrip("*").split(",")
    sizes = {key: int(value) for key, value in (change.split("=") for change in changes)}
    return replace(load_config(name), cof_depth=0, **sizes)


if __name__ == "__main__":
    sys.exit(main())
