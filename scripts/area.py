"""Size of the accelerator on Lattice ECP5: yosys' counts for each configuration.

In: accel/rtl and accel/isa/configs. Out: a table, and build/area.json. Results are kept in the user's cache by the
content of RTL, parameters and tools, so that only what changed runs again; `relay-hw compare --area` reads them there.
Needs the extra `fpga` (yosys from PyPI). Frequencies come from `relay-hw bitstream`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from relay_hw.accel.fpga.parts import FlowError
from relay_hw.accel.fpga.synth import cache_folder, synthesise
from relay_hw.accel.isa.config import AccelConfig, config_names, load_config

ROOT = Path(__file__).resolve().parents[1]
FOLDER = cache_folder()
OUTPUT = ROOT / "build" / "area.json"


def main(arguments: Sequence[str] | None = None) -> int:
    options = parsed(arguments)
    results: dict[str, Any] = json.loads(options.output.read_text()) if options.output.exists() else {}
    for label, config in chosen(options).items():
        try:
            results[label] = synthesise(config, FOLDER)
        except FlowError as error:
            print(f"{label}: {error}", file=sys.stderr)
            return 1
        print(row(label, results[label]), flush=True)
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(results, indent=2, sort_keys=True) + "\n")
    return 0


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", nargs="*", default=config_names(), help="configurations (default: all)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=N", help="change a size, e.g. acc_banks=2")
    parser.add_argument("--output", type=Path, default=OUTPUT, help=f"JSON file (default: {OUTPUT.name} in build)")
    return parser.parse_args(arguments)


def chosen(options: argparse.Namespace) -> dict[str, AccelConfig]:
    """The configurations asked for, each by its name and what is changed of it."""
    changes = {key: int(value) for key, value in (item.split("=") for item in options.set)}
    label = "".join(f",{key}={value}" for key, value in sorted(changes.items()))
    return {name + label: replace(load_config(name), **changes) for name in options.config}


def row(label: str, found: Mapping[str, Any]) -> str:
    """One line of the table."""
    text = f"{label:28} {found['luts']:7} LUT4  {found['flip_flops']:6} FF  {found['multipliers']:4} MULT18X18D  "
    return text + f"{found['block_rams']:4} DP16KD  smallest part {found['part'] or 'none'}"


if __name__ == "__main__":
    sys.exit(main())
