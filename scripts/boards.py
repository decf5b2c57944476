"""The tables of boards: what was built of which configuration, for which part, how fast, by which command.

In: the commands below, and the user's cache of bitstreams, counts and estimates. Out: docs/boards.json (what was found,
with the key of the design it was found for) and docs/boards.md. Rows without a result for today's design keep an older
one, marked.
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

from accel.fpga.boards import find_board
from accel.fpga.flow import build_bitstream, is_built
from accel.fpga.parts import FlowError, find_part
from accel.fpga.synth import cache_folder, cached, synthesise
from accel.fpga.systems import System, board_system, part_system
from accel.fpga.vendor.estimate import estimate, is_estimated
from accel.fpga.vendor.targets import Form, find_target
from accel.isa.config import AccelConfig, load_config
from relay_hw.cli.fpga import seeds_of
from relay_hw.cli.main import _parser
from scripts import area

ROOT = Path(__file__).resolve().parents[1]
FACTS, PAGE = ROOT / "docs" / "boards.json", ROOT / "docs" / "boards.md"
# The one of the way from a board to its results.
SHOWN = "bitstream --board ulx3s-85f --config ecp5 -o out"
BITSTREAMS = (
    "bitstream --part lfe5u-25f --config tiny -o out",
    "bitstream --part lfe5u-25f --config tiny --clock 75 -o out",
    "bitstream --part lfe5u-45f --config tiny --clock 50 -o out",
    SHOWN,
    "bitstream --board ulx3s-85f --config ecp5w4 --clock 60 -o out",
    "bitstream --board colorlight-i5 --config tiny -o out",
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
    PAGE.write_text(page(kept))
    return 0


def parsed(command: str) -> Namespace:
    """A command as the command line understands it."""
    return _parser().parse_args(shlex.split(command))


def array_of(command: str) -> AccelConfig:
    """The configuration whose cells `scripts/area.py` would count."""
    (config,) = area.chosen(area.parsed(shlex.split(command))).values()
    return config


def system_of(args: Namespace) -> System:
    """What `relay-hw bitstream` would build."""
    config = load_config(args.config)
    if args.part:
        sizes = {} if args.clock is None else {"mhz": args.clock}
        return part_system(config, find_part(args.part), **sizes)
    return board_system(config, find_board(args.board), args.clock)


def bitstream(command: str, build: bool) -> Found | None:
    """The report of a bitstream, if it is there or may be made."""
    args = parsed(command)
    design, folder = system_of(args).design, cache_folder().parent / "bitstreams"
    seeds = seeds_of(args)
    if not build and not is_built(design, seeds, folder):
        return None
    report = build_bitstream(design, seeds, folder, lambda line: print(f"  {line}", flush=True)).report
    keys = ("used", "available", "clocks", "timing_met", "key", "tools")
    return {"macs": load_config(args.config).macs_per_cycle} | {key: report[key] for key in keys}


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
    found = estimate(target, config, cache_folder(), lambda line: print(f"  {line}", flush=True))
    return {key: found[key] for key in ("macs", "used", "available", "yosys")}


def page(facts: dict[str, Found]) -> str:
    """docs/boards.md."""
    return (
        HEAD
        + _table("relay-hw", BITSTREAMS, facts, _where, _bitstream_row, _BITSTREAM_HEAD)
        + BETWEEN
        + _table("python scripts/area.py", ARRAYS, facts, _macs, _array_row, _ARRAY_HEAD)
        + MIDDLE
        + _table("relay-hw", PROJECTS, facts, _where, _project_row, _PROJECT_HEAD)
    )


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
    clock = min(found["clocks"].values(), key=lambda row: row["mhz"] / row["asked_mhz"], default=None)
    asked, reached = ("", "") if clock is None else (f"{clock['asked_mhz']:g} MHz", f"{clock['mhz']:.1f} MHz")
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


HEAD = f"""\
**No physical board has been seen yet: all of this was built and simulated, and nothing measured on silicon.**

# Boards

`relay-hw bitstream` turns a configuration into a bitstream with yosys, nextpnr and ecppack, which
`pip install 'relay-hw[fpga]'` brings. `--part` makes a System with block RAM and a serial line whose pins lie where the
tools put them: it shows that a design fits and how fast it is. `--board` makes one for a board: SDRAM behind LiteDRAM's
controller, a phase-locked loop, and a line to the host (USB serial on the ULX3S, Etherbone over Ethernet on the
Colorlight i5). A folder holds the bitstream, `report.json` and `soc.json`, which the driver reads.

With a board at hand:

    relay-hw {SHOWN}
    openFPGALoader -b ulx3s out/ulx3s-85f-ecp5.bit
    relay-hw selftest --device fpga --port /dev/ttyUSB0 --soc out -o selftest.json
    relay-hw run BUILD --input DATA.npz --device fpga --port /dev/ttyUSB0 --soc out

`selftest` tries registers, every address line of the memory, random programs against the functional simulator, counters
and faults. Its JSON says what was tested, with which bitstream, and what differed first; please send it, whether it
passed or not: it is what this page lacks. It names the system and the versions of the software, and nobody.

What stands in for a board until then:

- **The System in simulation.** The same Verilog that is placed and routed runs under Verilator with models of the pads,
  the loop and the memory chip, which refuses what its data sheet forbids; the driver talks to it through a socket
  (`accel/fpga/sim`). The MNIST CNN leaves the bytes of the functional simulator there.
- **The netlist in simulation.** What yosys gives to place and route, with models of the cells (`accel/fpga/sim/ecp5`),
  each held to the form that it is inferred from; `make test-netlist` runs programs on it. A block RAM that is read and
  written in one place at one edge gives garbage there, so that nothing can depend on it. That the models are as silicon
  is not proven.

## Bitstreams

Cells and frequencies are those of the command beside them, part of speed grade 6.
`scripts/boards.py` writes the table from the results that these commands leave in the user's cache.

What is short on these parts is wire, not logic, and most of it is short near block RAMs and multipliers, which lie in a
few rows across the chip. nextpnr's placer leaves them in nearly any order there (`accel/fpga/floorplan.py` has the
measure); with sites chosen before it starts, the wires of `tiny` are 19 % shorter and those of `ecp5` by a third, and
designs route that did not before. Small parts are then placed and routed by nextpnr's defaults, whose delays are
shorter by a quarter; on the LFE5U-85F its static placer leaves fewer wires, and router2 comes to an end.

`tiny` on the LFE5U-25F takes 63 % of the LUTs, 47 of 56 block RAMs and all 28 multipliers. The wheels' tools run in
WebAssembly on one core and take 4 minutes 26 seconds for it with an empty cache, their translation for the machine
included. 25 MHz are a clock that nearly any placement reaches: up to 30 MHz nextpnr is told to place and route without
regard to time first, and with it only where that misses the clock.

`ecp5`, 128 multiplications a cycle, with the whole System of the ULX3S: 81.6 MHz where 80 are asked, with Debian's
yosys 0.66 and nextpnr 0.11.1. In the simulation of that System ResNet-8 takes 106,360 cycles, 752 images a second at
80 MHz; 500 need 53.2 MHz. Two folders gave the same bytes. Three things were between it and that clock:

- Signals that come late and from far away decide last. LiteDRAM's bank machines compared rows in front of all that
  they decide, 13 ns; `accel/fpga/row_hits.py` lets a register say it. The output stage, far from the semaphores that
  start its instructions, works out both cases, and chooses at the end.
- The static placer makes wires short, whichever of them are late; what lies on late paths is then moved
  (`accel/fpga/refine.py`), before the router starts: of 590 signals that came later than 11.0 ns 53 are left, the
  latest at 11.7 ns instead of 14.8. A seed has a floorplan of its own, and that decides much: seeds 1, 3 and 5 promised
  11.7, 12.4 and 13.2 ns. With `--seeds N` all are placed, six minutes each, and the one that promises most is routed.
- The router takes what time it has, and is a little late in the end. It is asked for 3 % more than the design needs; if
  that is out of reach for 5 % less, and then once more with slow routes left as they are.

At 12.26 ns the longest way is the report of a semaphore with too many tokens, and hundreds of signals of the ALU's
lanes come nearly as late. `report.json` says under `late` what else does.

Two settings of router2 decide the rest. The price of a wire that others want grows by 0.25 instead of 2 in each
iteration; with 2, 130 to 700 wires near the accumulators stay shared, as every way around them has become as dear. And
routes that are too slow for the clock asked are given up as shared ones are (`--tmg-ripup`): of two placements of one
netlist that promised 57 and 55 MHz, router2 made 41.5 MHz without and 59.5 MHz with it. A seed that leaves wires shared
after 400 iterations is given up.

`ecp5x2`, 256 multiplications by weights of 8 bits, half of them by LUTs, takes 69,375 cycles for ResNet-8, so that 34.7
MHz are 500 images a second. Its placement promises 49.5 MHz, but no routing of it has come to its end: asked for 40,
of three tries one left 24 wires shared after 258 iterations and then more again, one 159 after 96, and one 4,303
after 64, which then fell by 2 % each; about an hour went into each of them. Its weights come over 2,048 wires from
the block RAMs to the lanes, twice those of `ecp5`.

`ecp5w4` has 256 multiplications by weights of 4 bits, which come over as many wires as the weights of `ecp5`: it takes
no more logic than that, and came to 61.7 MHz where 60 were asked, in 18 minutes. Its longest ways, 15.9 ns, are those
from the weights to products out of LUTs. Its blocks of 8 outputs are half a line of INP, so that the output stage
cannot leave activations there (`tensorize/forward.py`): ResNet-8's pass through the memory chip, and take 194,355
cycles with that chip's times at 80 MHz. With the standard memory of the simulators it is 64,951 cycles, and 103,749 on
`ecp5`.

Empty rows are still to be built. Without the accelerator, the ULX3S' System routes at 91.7 MHz and that of the
Colorlight i5 at 48 MHz.

"""
BETWEEN = """
## Products out of LUTs

An array larger than a part's multipliers makes the others out of LUTs, in two digits to the base of four, which choose
among multiples of the input that all lanes share (`vta_nibble`). With its part of the lane's adders such a product
takes 128 LUT4 and 41 flip-flops with weights of 8 bits, and 65 and 27 with weights of 4. The accelerator alone, with
the multipliers of an LFE5U-85F, counted by yosys; `ecp5w4` has half as many output lanes as the others, and fewer
LUTs for what is behind the products:

"""
MIDDLE = """
## Other families

`relay-hw export --form vivado|quartus --board NAME` writes a project for the makers' own tools: Tcl, constraints, the
accelerator with AXI4 and AXI4-Lite interfaces, and `serve.py`, which runs on the board's Linux and lets the driver
reach the accelerator over the network as it reaches an ECP5 board. **These projects were not built with vendor tools.**
What is done instead: yosys synthesises them, which gives the estimates below; the scripts run in Tcl against tools that
only write down what they are told; `serve.py` passes the self-test with the Verilog in simulation behind it. Estimates
leave out what surrounds the accelerator, and the makers' tools pack cells otherwise.

"""


if __name__ == "__main__":
    sys.exit(main())
