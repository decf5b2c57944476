"""nextpnr on a netlist: how it is told to place and route a part, and when it has tried long enough.

In: a folder with netlist-SEED.json and design.lpf. Out: design-SEED.config and report-SEED.json there.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from accel.fpga.parts import Part
from accel.fpga.tools import Listener, run_tool

# Routes that are too slow for the clock that is asked for are given up like those that share a wire: without that, a
# detour for the sake of a wire that is free again stays. With a clock out of reach router2 never comes to an end so:
# iterations with nothing wrong but slow routes after which it is told to route without. Nor does it where wires are too
# few: iterations after which a seed is given up.
_GIVE_UP_SLOW: Final = "--tmg-ripup"
_ONLY_SLOW: Final = 40
ITERATIONS: Final = 400
_ITERATION: Final = re.compile(r"iter=(\d+) .*overused=(\d+) overuse=\d+ (?:tmgfail=(\d+))?")
# nextpnr's defaults: delays are shorter by a quarter. A System on a large part is short of wires: the static placer
# makes them a fifth shorter, and router2 prices wires by how many want them, where router1 rips up without an end.
_DEFAULTS: Final = ("--placer", "heap", "--router", "router1")
_SHORT_OF_WIRES: Final = ("--placer", "static", "--router", "router2", _GIVE_UP_SLOW)
# By how much router2's price of a wire that others want grows in an iteration. With nextpnr's 2.0 hundreds of wires
# near block RAMs stay shared, as every way around them has become as dear.
SETTINGS: Final = {"router2/currCongWeightMult": "0.25"}
_LARGE_LUTS: Final = 50_000
# What nextpnr says when it gets on; router1's table of arcs left begins with a number.
_STEPS: Final = ("at iteration", "Rout", "Running", "Placed", "iter=", "Max frequency")


class _OutOfReach(Exception):
    """Slow routes stay slow."""


class _TooFewWires(Exception):
    """Wires stay shared."""


def options(part: Part) -> tuple[str, ...]:
    """What nextpnr is told of how to place and route on a part."""
    return _SHORT_OF_WIRES if part.luts > _LARGE_LUTS else _DEFAULTS


def place_and_route(stage: Path, part: Part, mhz: float, seed: int, tell: Listener) -> bool:
    """Place and route netlist-SEED.json in `stage`. Whether every wire has one signal in the end.

    Raises FlowError.
    """
    arguments = [f"--{part.flag}", "--package", part.package, "--speed", f"{part.speed}", "--seed", f"{seed}"]
    arguments += [*options(part), "--freq", f"{mhz:g}", "--json", f"netlist-{seed}.json", "--lpf", "design.lpf"]
    arguments += ["--textcfg", f"design-{seed}.config", "--report", f"report-{seed}.json", "--detailed-timing-report"]
    arguments += ["--lpf-allow-unconstrained", "--timing-allow-fail"]
    for words in (arguments, [word for word in arguments if word != _GIVE_UP_SLOW]):
        try:
            run_tool(stage, "nextpnr-ecp5", words, _watching(_steps_of(tell, seed)))
            return True
        except _OutOfReach:
            tell(f"seed {seed}: {mhz:g} MHz are out of reach; once more, slow routes are left")
        except _TooFewWires:
            break
    return False


def _steps_of(tell: Listener, seed: int) -> Listener:
    """The few of nextpnr's lines that say how far it is."""

    def listen(line: str) -> None:
        text = line.removeprefix("Info: ").strip()
        if text.startswith(_STEPS) or (text[:1].isdigit() and "|" in text):
            tell(f"seed {seed}: {text}")

    return listen


def _watching(listen: Listener) -> Listener:
    """A listener that raises `_OutOfReach` or `_TooFewWires` where router2 would go on without an end."""
    only_slow = 0

    def hear(line: str) -> None:
        nonlocal only_slow
        listen(line)
        if (found := _ITERATION.search(line)) is None:
            return
        iteration, shared, slow = int(found[1]), int(found[2]), int(found[3] or 0)
        only_slow = only_slow + 1 if slow and not shared else 0
        if only_slow >= _ONLY_SLOW or (slow and iteration >= ITERATIONS):
            raise _OutOfReach
        if shared and iteration >= ITERATIONS:
            raise _TooFewWires

    return hear
