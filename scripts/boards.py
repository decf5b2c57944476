"""The tables of boards: what was built of which configuration, for which part, how fast, by which command.

In: the commands below, and the user's cache of bitstreams, counts and estimates. Out: docs/results/boards.json (what
was found, with the key of the design it was found for) and the tables of docs/boards.md. Rows without a result for
today's design keep an older one, marked.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from relay_hw.accel.fpga.boards import find_board
from relay_hw.accel.fpga.flow import build_bitstream, is_built
from relay_hw.accel.fpga.parts import FlowError, find_part
from relay_hw.accel.fpga.socs import Soc, board_soc, part_soc
from relay_hw.accel.fpga.synth import bitstreams_folder, cache_folder, cached, synthesise
from relay_hw.accel.fpga.vendor.estimate import estimate, is_estimated
from relay_hw.accel.fpga.vendor.targets import Form, find_target
from relay_hw.accel.isa.config import AccelConfig, load_config
from relay_hw.cli.commands import parser
from relay_hw.cli.fpga import seeds_of
from relay_hw.support.progress import ProgressStep, Steps
from scripts import area
from scripts.figures import replaced

ROOT = Path(__file__).resolve().parents[1]
FACTS, PAGE = ROOT / "docs" / "results" / "boards.json", ROOT / "docs" / "boards.md"
# The one of the way from a board to its results.
SHOWN = "bitstream --board ulx3s-85f --config ecp5 -o out"
BITSTREAMS = (
    "bitstream --part lfe5u-25f --config mini -o out",
    "bitstream --part lfe5u-25f --config mini --clock 70 -o out",
    "bitstream --part lfe5u-45f --config tiny --clock 60 -o out",
    SHOWN,
    "bitstream --board ulx3s-85f --config ecp5w4 --clock 60 -o out",
    "bitstream --board colorlight-i5 --config mini -o out",
)
# 128 products with weights of 8 bits, twice as many with the same bytes of weights a cycle, and with twice as many.
ARRAYS = ("ecp5", "ecp5w4", "ecp5x2")
PROJECTS = (
    "export --form vivado --board pynq-z1 --config tiny --estimate -o out",
    "export --form vivado --board pynq-z1 --config ecp5 --estimate -o out",
    "export --form vivado --board ultra96 --config ecp5 --estimate -o out",
    "export --form quartus --board de10nano --config tiny --estimate -o out",
    "export --form quartus --board de10nano --config ecp5 --estimate -o out",
)
Found = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", action="store_true", help="also make what the cache does not hold (an hour or more)")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose command holds this text")
    options = parser.parse_args(arguments)
    facts: dict[str, Found] = json.loads(FACTS.read_text()) if FACTS.exists() else {}
    readers: tuple[tuple[Sequence[str], Callable[[str, bool], Found | None]], ...] = (
        (BITSTREAMS, bitstream),
        (ARRAYS, array),
        (PROJECTS, project),
    )
    for commands, read in readers:
        for command in commands:
            if options.only not in command:
                continue
            try:
                found = read(command, options.build)
            except FlowError as error:
                print(f"{command}: {error}", file=sys.stderr)
                continue
            if found is not None:
                facts[command] = found | {"present": True}
            elif command in facts:
                facts[command]["present"] = False
            print(f"{command}: {'found' if found else 'not built'}", flush=True)
    kept = {command: facts[command] for command in (*BITSTREAMS, *ARRAYS, *PROJECTS) if command in facts}
    FACTS.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    PAGE.write_text(page(PAGE.read_text(), kept))
    return 0


def parsed(command: str) -> Namespace:
    """A command as the command line understands it."""
    return parser().parse_args(shlex.split(command))


def array_of(command: str) -> AccelConfig:
    """The configuration whose cells `scripts/area.py` would count."""
    (config,) = area.chosen(area.parsed(shlex.split(command))).values()
    return config


def soc_of(args: Namespace) -> Soc:
    """What `relay-hw bitstream` would build."""
    config = load_config(args.config)
    if args.part:
        sizes = {} if args.clock is None else {"mhz": args.clock}
        return part_soc(config, find_part(args.part), **sizes)
    return board_soc(config, find_board(args.board), args.clock)


def bitstream(command: str, build: bool) -> Found | None:
    """The report of a bitstream, if it is there or may be made."""
    args = parsed(command)
    design, folder = soc_of(args).design, bitstreams_folder()
    seeds = seeds_of(args)
    if not build and not is_built(design, seeds, folder):
        return None
    report = build_bitstream(design, seeds, folder, Steps(_print)).report
    keys = ("used", "available", "clocks", "timing_met", "key", "tools")
    return {"macs": load_config(args.config).macs_per_cycle} | {key: report[key] for key in keys}


def _print(step: ProgressStep) -> None:
    """A line of progress."""
    print(f"  {step.text}", flush=True)


def array(command: str, build: bool) -> Found | None:
    """What yosys counts for the accelerator alone, if it is there or may be made."""
    config = array_of(command)
    found = synthesise(config, cache_folder()) if build else cached(config, cache_folder())
    return found and {key: found[key] for key in ("luts", "flip_flops", "multipliers", "block_rams", "part")}


def project(command: str, build: bool) -> Found | None:
    """The estimate of a project, if it is there or may be made."""
    args = parsed(command)
    target, config = find_target(args.board, Form(args.form)), load_config(args.config)
    if not build and not is_estimated(target, config, cache_folder()):
        return None
    found = estimate(target, config, cache_folder(), Steps(_print))
    return {key: found[key] for key in ("macs", "used", "available", "yosys")}


def page(text: str, facts: dict[str, Found]) -> str:
    """docs/boards.md with the tables that the facts give."""
    text = replaced(text, "bitstreams", _table("relay-hw", BITSTREAMS, facts, _where, _bitstream_row, _BITSTREAM_HEAD))
    arrays = _table("python scripts/area.py", ARRAYS, facts, _macs, _array_row, _ARRAY_HEAD)
    text = replaced(text, "arrays", arrays)
    return replaced(text, "projects", _table("relay-hw", PROJECTS, facts, _where, _project_row, _PROJECT_HEAD))


def _table(
    program: str,
    commands: Sequence[str],
    facts: dict[str, Found],
    first: Callable[[str], str],
    row: Callable[[Found], list[str]],
    head: tuple[str, ...],
) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for command in commands:
        found = row(facts[command]) if command in facts else ["not built yet", *[""] * (len(head) - 3)]
        older = "" if command not in facts or facts[command].get("present", True) else " (an older RTL)"
        lines.append(f"| {' | '.join([first(command), *found])} | `{program} {command}`{older} |")
    return "\n".join(lines) + "\n"


_BITSTREAM_HEAD = ("Where", "MACs a cycle", "Asked", "Fmax", "LUT4", "Flip-flops", "MULT18X18D", "DP16KD", "Command")
_PROJECT_HEAD = ("Where", "MACs a cycle", "LUTs", "Flip-flops", "DSP blocks", "Block RAMs", "Command")
_ARRAY_HEAD = ("MACs a cycle", "LUT4", "Flip-flops", "MULT18X18D", "DP16KD", "Smallest part", "Command")


def _where(command: str) -> str:
    args = parsed(command)
    place = args.board or args.part
    return f"{place}, `{args.config}`"


def _macs(command: str) -> str:
    config = array_of(command)
    return f"{config.macs_per_cycle}, weights of {config.wgt_bits} bits"


def _share(found: Found, key: str) -> str:
    used, has = found["used"][key], found["available"].get(key)
    return f"{used:,}" if not has else f"{used:,} ({100 * used / has:.0f} %)"


def _bitstream_row(found: Found) -> list[str]:
    # The accelerator's clock is the slowest; a link may have a faster one of its own.
    clocks = sorted(found["clocks"].values(), key=lambda clock: clock["asked_mhz"])
    asked = f"{', '.join(format(clock['asked_mhz'], 'g') for clock in clocks)} MHz"
    reached = f"{', '.join(format(clock['mhz'], '.1f') for clock in clocks)} MHz"
    if not found["timing_met"]:
        reached += ", missed"
    counts = [_share(found, key) for key in ("luts", "flip_flops", "multipliers", "block_rams")]
    return [str(found["macs"]), asked, reached, *counts]


def _array_row(found: Found) -> list[str]:
    counts = [f"{found[key]:,}" for key in ("luts", "flip_flops", "multipliers", "block_rams")]
    return [*counts, found["part"] or "none"]


def _project_row(found: Found) -> list[str]:
    counts = [_share(found, key) for key in ("luts", "flip_flops", "multipliers", "block_rams")]
    return [str(found["macs"]), *counts]


if __name__ == "__main__":
    sys.exit(main())
