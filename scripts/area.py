"""Size and speed of the accelerator on Lattice ECP5: yosys' counts for each configuration, placed and routed on demand.

In: accel/rtl and accel/isa/configs. Out: a table, and build/area.json. Results are kept in the user's cache by the
content of RTL, parameters and tools, so that only what changed runs again; `relay-hw compare --area` reads them there.
Needs the extra `fpga` (yosys and nextpnr from PyPI).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from accel.fpga.synth import (
    PARTS,
    RTL,
    SYNTHESIS,
    SynthesisError,
    cache_folder,
    rtl_sources,
    run,
    staged,
    synthesise,
    yosys,
)
from accel.isa.config import AccelConfig, config_names, load_config
from accel.isa.gen_verilog import verilog_parameters

ROOT = Path(__file__).resolve().parents[1]
FOLDER = cache_folder()
OUTPUT = ROOT / "build" / "area.json"

# The core has more signals than a package has pins: a shell folds them into two shift registers.
WRAPPER = "vta_shell"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", nargs="*", default=config_names(), help="configurations (default: all)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=N", help="change a size, e.g. acc_banks=2")
    parser.add_argument("--route", choices=sorted(PARTS), help="place and route on this part as well")
    parser.add_argument("--output", type=Path, default=OUTPUT, help=f"JSON file (default: {OUTPUT.name} in build)")
    options = parser.parse_args(arguments)
    changes = {key: int(value) for key, value in (item.split("=") for item in options.set)}
    results: dict[str, Any] = json.loads(options.output.read_text()) if options.output.exists() else {}
    for name in options.config:
        config = replace(load_config(name), **changes)
        label = name + "".join(f",{key}={value}" for key, value in sorted(changes.items()))
        try:
            results[label] = synthesise(config, FOLDER)
            if options.route:
                results[label] = {**results[label], "routed": route(config, options.route)}
        except SynthesisError as error:
            print(f"{label}: {error}", file=sys.stderr)
            return 1
        print(row(label, results[label]), flush=True)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(results, indent=2, sort_keys=True) + "\n")
    return 0


def route(config: AccelConfig, part: str) -> dict[str, Any]:
    """Place and route inside a shell of two shift registers. Frequency in MHz and the path that bounds it."""
    command = f"nextpnr-ecp5 --{part} --speed 6 --seed 1 --freq 60"
    stage = staged(config, SYNTHESIS + command + shell(config), FOLDER)
    report = stage / "report.json"
    if not report.exists():
        (stage / f"{WRAPPER}.v").write_text(shell(config))
        sources = " ".join(path.name for path in rtl_sources())
        yosys(stage, [f"read_verilog {sources} {WRAPPER}.v", SYNTHESIS.format(top=WRAPPER), "tee -o stat.txt stat"])
        options = ["--json", "netlist.json", "--report", "report.json", "--detailed-timing-report"]
        run(stage, "nextpnr-ecp5", [*command.split()[1:], *options, "--lpf-allow-unconstrained", "--timing-allow-fail"])
    found = json.loads(report.read_text())
    clock, speed = next(iter(found["fmax"].items()))
    used = {key: value["used"] for key, value in found["utilization"].items() if value["used"]}
    return {"part": part, "mhz": round(speed["achieved"], 1), "used": used, "path": critical_path(found, clock)}


def critical_path(report: Mapping[str, Any], clock: str) -> list[str]:
    """Cells of the slowest path from register to register, with the delay up to each, in nanoseconds."""
    paths = [path for path in report["critical_paths"] if path["from"].endswith(clock) and path["to"].endswith(clock)]
    steps: list[str] = []
    total = 0.0
    for step in paths[0]["path"] if paths else []:
        total += step["delay"]
        if step["type"] != "routing":
            steps.append(f"{total:.2f} {step['to']['cell']}")
    return steps


def shell(config: AccelConfig) -> str:
    """Verilog of a shell: inputs from one shift register, outputs folded into another, four pins in all."""
    text = (RTL / "vta_top.v").read_text()
    ports = re.findall(r"^\s*(input|output)\s+wire\s+(?:\[\s*(.+?):0\]\s+)?(\w+)", text, re.MULTILINE)
    parameters = verilog_parameters(config)
    widths = {name: eval_width(high, parameters) for _, high, name in ports}
    inputs = [name for kind, _, name in ports if kind == "input" and name not in ("clk_i", "rst_ni")]
    outputs = [name for kind, _, name in ports if kind == "output"]
    total = sum(widths[name] for name in inputs)
    wide = sum(widths[name] for name in outputs)
    lines = [
        "`timescale 1ns / 1ps",
        "`default_nettype none",
        f"module {WRAPPER} (input wire clk_i, rst_ni, serial_i, output wire serial_o);",
    ]
    lines += [f"  reg [{total - 1}:0] in_q;", f"  reg [{wide - 1}:0] out_q;", f"  wire [{wide - 1}:0] out;"]
    lines += [
        "  reg rst_q;",
        f"  always @(posedge clk_i) {{in_q, rst_q}} <= {{in_q[{total - 2}:0], serial_i, rst_ni}};",
    ]
    lines += [f"  always @(posedge clk_i) out_q <= rst_q ? {{out_q[{wide - 2}:0], 1'b0}} ^ out : out;"]
    lines += [f"  assign serial_o = out_q[{wide - 1}];"]
    pins, at = [".clk_i(clk_i)", ".rst_ni(rst_q)"], 0
    for name in inputs:
        pins.append(f".{name}(in_q[{at}+:{widths[name]}])")
        at += widths[name]
    at = 0
    for name in outputs:
        pins.append(f".{name}(out[{at}+:{widths[name]}])")
        at += widths[name]
    sizes = ", ".join(f".{key}({value})" for key, value in parameters.items())
    lines += [f"  vta_top #({sizes}) u_top (", "    " + ",\n    ".join(pins), "  );", "endmodule", ""]
    return "\n".join(lines)


def eval_width(high: str, parameters: Mapping[str, int]) -> int:
    """Bits of a port from the text of its highest index: a number, PARAMETER-1 or PARAMETER/N-1."""
    if not high:
        return 1
    found = re.fullmatch(r"(\w+?)(?:/(\d+))?(?:-1)?", high.replace(" ", ""))
    if found is None:
        raise SynthesisError(f"width of a port must be a number or a parameter less one, not {high}")
    if found[1].isdigit():
        return int(found[1]) + 1
    return parameters[found[1]] // int(found[2] or 1)


def row(label: str, found: Mapping[str, Any]) -> str:
    """One line of the table."""
    text = f"{label:28} {found['luts']:7} LUT4  {found['flip_flops']:6} FF  {found['multipliers']:4} MULT18X18D  "
    text += f"{found['block_rams']:4} DP16KD  smallest part {found['part'] or 'none'}"
    if "routed" in found:
        text += f"; on {found['routed']['part']}: {found['routed']['mhz']} MHz"
    return text


if __name__ == "__main__":
    sys.exit(main())
