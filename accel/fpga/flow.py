"""From Verilog to a bitstream: yosys, operands of multipliers, floorplan, nextpnr-ecp5, ecppack; every step is kept.

In: a `Design`. Out: a bitstream and what is known of it. A build that was interrupted goes on where it stopped;
the same design and tools give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from accel.fpga.floorplan import FLOORPLAN, floorplanned
from accel.fpga.parts import FlowError, Part
from accel.fpga.registers import with_registers
from accel.fpga.report import Timing, read_timing, worst
from accel.fpga.signs import without_copies
from accel.fpga.synth import SYNTHESIS, resources
from accel.fpga.tools import Listener, run_tool, run_yosys, tool_version

TOOLS: Final = ("yosys", "nextpnr-ecp5", "ecppack")
# Routes that are too slow for the clock that is asked for are given up like those that share a wire: without that, a
# detour for the sake of a wire that is free again stays. With a clock out of reach router2 never comes to an end so:
# iterations after which it is told to route without, in all and with nothing wrong but slow routes.
_GIVE_UP_SLOW: Final = "--tmg-ripup"
_ITERATIONS, _ONLY_SLOW = 400, 40
_ITERATION: Final = re.compile(r"iter=(\d+) .*overused=(\d+) .*tmgfail=(\d+)")
# nextpnr's defaults: delays are shorter by a quarter. A System on a large part is short of wires: the static placer
# makes them a fifth shorter, and router2 prices wires by how many want them, where router1 rips up without an end.
_DEFAULTS: Final = ("--placer", "heap", "--router", "router1")
_SHORT_OF_WIRES: Final = ("--placer", "static", "--router", "router2", _GIVE_UP_SLOW)
# By how much router2's price of a wire that others want grows in an iteration. With nextpnr's 2.0 hundreds of wires
# near block RAMs stay shared, as every way around them has become as dear.
_SETTINGS: Final = {"router2/currCongWeightMult": "0.5"}
_LARGE_LUTS: Final = 50_000
# What nextpnr says when it gets on; router1's table of arcs left begins with a number.
_STEPS: Final = ("at iteration", "Rout", "Running", "Placed", "iter=", "Max frequency")


@dataclass(frozen=True, slots=True)
class Design:
    """Everything that decides a bitstream. `files`: flat names and texts; `constraints`: an LPF file; `mhz`: asked."""

    name: str
    top: str
    files: Mapping[str, str]
    part: Part
    constraints: str
    mhz: float

    def key(self) -> str:
        """Hash of the design and of the tools."""
        digest = hashlib.sha256()
        for name, text in sorted(self.files.items()):
            digest.update(f"{name}\0{text}\0".encode())
        versions = [tool_version(tool) for tool in TOOLS]
        recipe = (SYNTHESIS, "signs", "registers", FLOORPLAN, place_and_route(self.part), sorted(_SETTINGS.items()))
        asked = (self.top, self.part, self.constraints, self.mhz, recipe, versions)
        digest.update(repr(asked).encode())
        return digest.hexdigest()[:24]


@dataclass(frozen=True, slots=True)
class Bitstream:
    """`data`: the file; `report`: a JSON object, the same for the same design, tools and seeds."""

    data: bytes
    report: dict[str, Any]


def place_and_route(part: Part) -> tuple[str, ...]:
    """What nextpnr is told of how to place and route on a part."""
    return _SHORT_OF_WIRES if part.luts > _LARGE_LUTS else _DEFAULTS


def build_bitstream(design: Design, seeds: Sequence[int], folder: Path, listen: Listener | None = None) -> Bitstream:
    """Synthesise; floorplan, place and route once a seed; pack the fastest. `folder` keeps what was made.

    Raises FlowError.
    """
    if not seeds:
        raise FlowError("seeds must be at least 1, not 0")
    tell = listen or (lambda _line: None)
    stage = synthesised(design, folder, listen)
    with ThreadPoolExecutor(min(len(seeds), os.cpu_count() or 1)) as pool:
        timings = list(pool.map(lambda seed: _route(design, stage, seed, tell), seeds))
    best = max(range(len(seeds)), key=lambda k: (worst(timings[k]), -k))
    data = _pack(stage, seeds[best], tell)
    return Bitstream(data, _report(design, stage, seeds, timings, best, data))


def is_built(design: Design, seeds: Sequence[int], folder: Path) -> bool:
    """Whether `build_bitstream` would find everything in `folder`."""
    stage = folder / design.key()
    return bool(seeds) and all((stage / f"routed-{seed}").exists() for seed in seeds)


def synthesised(design: Design, folder: Path, listen: Listener | None = None) -> Path:
    """The folder in `folder` that holds a design's synthesised.json, made now unless it is there. Raises FlowError."""
    stage = folder / design.key()
    stage.mkdir(parents=True, exist_ok=True)
    if (stage / "synthesised").exists():
        return stage
    if listen is not None:
        listen("synthesis: yosys")
    for name, text in design.files.items():
        (stage / name).write_text(text)
    (stage / "design.lpf").write_text(design.constraints)
    sources = " ".join(name for name in design.files if name.endswith(".v"))
    synthesis = SYNTHESIS.format(top=design.top)
    written = ["check -noinit", "blackbox =A:whitebox", "write_json mapped.json"]
    run_yosys(stage, [f"read_verilog {sources}", synthesis, *written])
    netlist = json.loads((stage / "mapped.json").read_text())
    netlist["modules"][design.top] = with_registers(without_copies(netlist["modules"][design.top]))
    (stage / "synthesised.json").write_text(json.dumps(netlist))
    (stage / "synthesised").touch()
    return stage


def _lay_out(design: Design, stage: Path, seed: int, tell: Listener) -> Path:
    """The netlist that is placed with a seed, written now unless it is there."""
    laid_out, done = stage / f"netlist-{seed}.json", stage / f"laid_out-{seed}"
    if done.exists():
        return laid_out
    tell(f"floorplan: block RAMs and multipliers, seed {seed}")
    netlist = json.loads((stage / "synthesised.json").read_text())
    module = floorplanned(netlist["modules"][design.top], design.part, seed) | {"settings": _SETTINGS}
    netlist = {**netlist, "modules": {**netlist["modules"], design.top: module}}
    laid_out.write_text(json.dumps(netlist))
    done.touch()
    return laid_out


def _route(design: Design, stage: Path, seed: int, tell: Listener) -> Timing:
    """Floorplan, place and route with a seed; the time of what is there already."""
    report, done = stage / f"report-{seed}.json", stage / f"routed-{seed}"
    if not done.exists():
        netlist, part = _lay_out(design, stage, seed, tell), design.part
        tell(f"place and route: nextpnr, seed {seed}")
        arguments = [f"--{part.flag}", "--package", part.package, "--speed", f"{part.speed}", "--seed", f"{seed}"]
        arguments += [*place_and_route(part), "--freq", f"{design.mhz:g}"]
        arguments += ["--json", netlist.name, "--lpf", "design.lpf", "--textcfg", f"design-{seed}.config"]
        arguments += ["--report", report.name, "--detailed-timing-report"]
        arguments += ["--lpf-allow-unconstrained", "--timing-allow-fail"]
        listen = _steps_of(tell, seed)
        try:
            run_tool(stage, "nextpnr-ecp5", arguments, _until_out_of_reach(listen))
        except _OutOfReach:
            tell(f"seed {seed}: {design.mhz:g} MHz are out of reach; once more, slow routes are left")
            run_tool(stage, "nextpnr-ecp5", [word for word in arguments if word != _GIVE_UP_SLOW], listen)
        done.touch()
    return read_timing(json.loads(report.read_text()))


def _steps_of(tell: Listener, seed: int) -> Listener:
    """The few of nextpnr's lines that say how far it is."""

    def listen(line: str) -> None:
        text = line.removeprefix("Info: ").strip()
        if text.startswith(_STEPS) or (text[:1].isdigit() and "|" in text):
            tell(f"seed {seed}: {text}")

    return listen


class _OutOfReach(Exception):
    """Slow routes stay slow."""


def _until_out_of_reach(listen: Listener) -> Listener:
    """A listener that raises `_OutOfReach` where router2 gives up slow routes without an end."""
    only_slow = 0

    def hear(line: str) -> None:
        nonlocal only_slow
        listen(line)
        if (found := _ITERATION.search(line)) is None:
            return
        iteration, shared, slow = (int(number) for number in found.groups())
        only_slow = only_slow + 1 if slow and not shared else 0
        if slow and (only_slow >= _ONLY_SLOW or iteration >= _ITERATIONS):
            raise _OutOfReach

    return hear


def _pack(stage: Path, seed: int, tell: Listener) -> bytes:
    target = stage / f"design-{seed}.bit"
    if not (stage / f"packed-{seed}").exists():
        tell("packing: ecppack")
        run_tool(stage, "ecppack", ["--compress", f"design-{seed}.config", target.name])
        (stage / f"packed-{seed}").touch()
    return target.read_bytes()


def _report(
    design: Design, stage: Path, seeds: Sequence[int], timings: Sequence[Timing], best: int, data: bytes
) -> dict[str, Any]:
    timing = timings[best]
    module = json.loads((stage / "synthesised.json").read_text())["modules"][design.top]
    used = resources(Counter(cell["type"] for cell in module["cells"].values()))
    return {
        "design": design.name,
        "part": design.part.name,
        "speed_grade": design.part.speed,
        "used": used,
        "available": {
            "luts": design.part.luts,
            "block_rams": design.part.block_rams,
            "multipliers": design.part.multipliers,
        },
        "placed": dict(timing.used),
        "clocks": {name: {"mhz": mhz, "asked_mhz": asked} for name, (mhz, asked) in timing.clocks.items()},
        "timing_met": all(mhz >= asked for mhz, asked in timing.clocks.values()),
        "critical_path": list(timing.path),
        "critical_modules": dict(timing.modules),
        "seed": seeds[best],
        "seeds": {str(seed): worst(timing) for seed, timing in zip(seeds, timings, strict=True)},
        "tools": {tool: tool_version(tool) for tool in TOOLS},
        "key": stage.name,
        "sha256": hashlib.sha256(data).hexdigest(),
    }
