"""Places and routes a netlist with nextpnr: its settings for each part, and when to give up.

In: a folder with netlist-SEED.json and design.lpf. Out: design-SEED.config and report-SEED.json there. On a large part
the two are steps of their own: refined-SEED.json is placed and refined, promise-SEED says how fast it is before wires
make detours, and what promises most is routed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from relay_hw.accel.fpga.parts import Family, Part
from relay_hw.accel.fpga.place.refine import REFINEMENT, refined
from relay_hw.accel.fpga.tools import Listener, run_tool
from relay_hw.accel.sim.result_cache import sealed
from relay_hw.support.progress import Labelled, Progress

# Routes that are too slow for the clock that is asked for are given up like those that share a wire: without that, a
# detour for the sake of a wire that is free again stays. With a clock out of reach router2 never comes to an end so:
# iterations with nothing wrong but slow routes after which it is told to route without. Nor does it where wires are too
# few: iterations after which a seed is given up.
_GIVE_UP_SLOW: Final = "--tmg-ripup"
_ONLY_SLOW: Final = 40
ITERATIONS: Final = 400
_ITERATION: Final = re.compile(r"iter=(\d+) .*overused=(\d+) overuse=\d+ (?:tmgfail=(\d+))?")
# nextpnr's defaults: delays are shorter by a quarter. A SoC on a large part is short of wires: the static placer
# makes them a fifth shorter, and router2 prices wires by how many want them, where router1 rips up without an end.
_DEFAULTS: Final = ("--placer", "heap", "--router", "router1")
# A clock so slow that nearly any placement reaches it: without regard to time `tiny` is placed and routed in three
# quarters of the time, for three quarters of the clock. What misses it is made once more, with regard to time.
_EASY_MHZ: Final = 30
_EASY: Final = (*_DEFAULTS, "--no-tmdriv")
_SHORT_OF_WIRES: Final = ("--placer", "static", "--router", "router2")
# The part of the period that refinement aims at, and the clocks that the router is asked for by that of the design, the
# next where one is out of reach: the rest is for the detours of wires, and for what the router is late in the end.
_AIM: Final = 0.88
_HASTE: Final = (1.03, 0.95)
# Large parts: by how much router2's price of a wire that others want grows in an iteration. With nextpnr's 2.0 hundreds
# of wires near block RAMs stay shared, as every way around them has become as dear.
_SETTINGS: Final = {"router2/currCongWeightMult": "0.25"}
_LARGE_LUTS: Final = 50_000
# What nextpnr says when it gets on; router1's table of arcs left begins with a number.
_STEPS: Final = ("at iteration", "Rout", "Running", "Placed", "iter=", "Max frequency")


class _OutOfReach(Exception):
    """Slow routes stay slow."""


class _TooFewWires(Exception):
    """Wires stay shared."""


def recipe(part: Part, mhz: float) -> tuple[object, ...]:
    """What decides how a netlist is placed and routed on a part, but for the netlist and the clock."""
    refinement = (_GIVE_UP_SLOW, _AIM, _HASTE, REFINEMENT) if is_large(part) else ()
    return (_options(part, mhz), refinement, sorted(settings(part).items()))


def settings(part: Part) -> dict[str, str]:
    """What nextpnr is told by the netlist."""
    return _SETTINGS if is_large(part) else {}


def is_large(part: Part) -> bool:
    """Whether a part is placed, refined and then routed, instead of both at once by nextpnr: large ones of ECP5."""
    return part.family is Family.ECP5 and part.luts > _LARGE_LUTS


def place_and_route(stage: Path, part: Part, mhz: float, seed: int, progress: Progress) -> bool:
    """Place and route netlist-SEED.json in `stage`. Whether every wire has one signal in the end. Raises FlowError."""
    if is_large(part):
        return _routed(stage, part, mhz, seed, progress)
    words = [*_arguments(part, mhz, seed), *_results(seed), "--json", f"netlist-{seed}.json"]
    *easy, last = _options(part, mhz)
    for options in easy:
        if _nextpnr(stage, [*words, *options], seed, progress) and _is_met(stage, seed):
            return True
        progress.started(f"seed {seed}: once more, with regard to time")
    return _nextpnr(stage, [*words, *last], seed, progress)


def promise(stage: Path, part: Part, mhz: float, seed: int, progress: Progress) -> float:
    """Place netlist-SEED.json on a large part and refine that. When the latest signal comes if its wires are routed
    without detours, in ns. What is there already is not made again. Raises FlowError."""
    placed, ready = (stage / f"{name}-{seed}.json" for name in ("placed", "refined"))
    latest = stage / f"latest-{seed}.txt"

    def make() -> None:
        words = [*_arguments(part, mhz, seed), *_SHORT_OF_WIRES, "--no-route"]
        words += ["--json", f"netlist-{seed}.json", "--write", placed.name]
        _nextpnr(stage, words, seed, progress)
        aim_ns = _AIM * 1000 / mhz
        document, latest_ns = refined(json.loads(placed.read_text()), aim_ns, Labelled(progress, f"seed {seed}"))
        ready.write_text(json.dumps(document))
        placed.unlink()
        latest.write_text(f"{latest_ns:.3f}")

    sealed(stage, f"promise-{seed}", [ready.name, latest.name], make)
    return float(latest.read_text())


def asked_mhz(part: Part, mhz: float, told: float) -> float:
    """The clock that a design asks for where nextpnr was told another one for the sake of the router."""
    return mhz if is_large(part) and any(abs(told - mhz * haste) < 0.01 for haste in _HASTE) else told


def _options(part: Part, mhz: float) -> tuple[tuple[str, ...], ...]:
    """Ways to place and route, the next where one fails."""
    if is_large(part):
        return (_SHORT_OF_WIRES,)
    return (_EASY, _DEFAULTS) if mhz <= _EASY_MHZ else (_DEFAULTS,)


def _is_met(stage: Path, seed: int) -> bool:
    """Whether every clock is as fast as nextpnr was asked for."""
    clocks = json.loads((stage / f"report-{seed}.json").read_text())["fmax"].values()
    return all(clock["achieved"] >= clock["constraint"] for clock in clocks)


def _arguments(part: Part, mhz: float, seed: int) -> list[str]:
    arguments = [f"--{part.flag}", "--package", part.package, "--speed", f"{part.speed}", "--seed", f"{seed}"]
    return [*arguments, "--freq", f"{mhz:g}", "--lpf", "design.lpf", "--lpf-allow-unconstrained", "--timing-allow-fail"]


def _results(seed: int) -> list[str]:
    return ["--textcfg", f"design-{seed}.config", "--report", f"report-{seed}.json", "--detailed-timing-report"]


def _routed(stage: Path, part: Part, mhz: float, seed: int, progress: Progress) -> bool:
    """Route what `promise` has placed."""
    hasty = stage / f"hasty-{seed}.json"
    words = [*_arguments(part, mhz, seed), *_SHORT_OF_WIRES, *_results(seed)]
    words += ["--no-pack", "--no-place", "--json", hasty.name]
    document = json.loads((stage / f"refined-{seed}.json").read_text())
    try:
        for haste in _HASTE:
            hasty.write_text(json.dumps(_with_clock(document, mhz * haste)))
            try:
                return _nextpnr(stage, [*words, _GIVE_UP_SLOW], seed, progress)
            except _OutOfReach:
                progress.started(f"seed {seed}: {mhz * haste:g} MHz are out of reach")
        progress.started(f"seed {seed}: once more, slow routes are left")
        return _nextpnr(stage, words, seed, progress)
    finally:
        hasty.unlink()


def _with_clock(document: dict[str, Any], mhz: float) -> dict[str, Any]:
    """A placed netlist with another clock to route it for: nextpnr has it from there, and not from its arguments."""
    modules = {
        name: {**module, "settings": {**module["settings"], "target_freq": f"{mhz * 1e6:.6f}"}}
        for name, module in document["modules"].items()
    }
    return {**document, "modules": modules}


def _nextpnr(stage: Path, words: Sequence[str], seed: int, progress: Progress) -> bool:
    """Run nextpnr; whether it came to an end with its wires. Raises FlowError and _OutOfReach."""
    try:
        run_tool(stage, "nextpnr-ecp5", words, _watching(_steps_of(progress, seed)))
    except _TooFewWires:
        return False
    return True


def _steps_of(progress: Progress, seed: int) -> Listener:
    """The few of nextpnr's lines that say how far it is."""

    def listen(line: str) -> None:
        text = line.removeprefix("Info: ").strip()
        if text.startswith(_STEPS) or (text[:1].isdigit() and "|" in text):
            progress.started(f"seed {seed}: {text}")

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
