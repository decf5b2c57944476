"""Makes a bitstream from Verilog: yosys, passes over the netlist, floorplan, nextpnr, packer; every step is kept.

In: a `Design`. Out: a bitstream and what is known of it. A build that was interrupted goes on where it stopped;
the same design and tools give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

from relay_hw.accel.fpga import gowin
from relay_hw.accel.fpga.families import toolchain
from relay_hw.accel.fpga.parts import Family, FlowError, Part
from relay_hw.accel.fpga.place.carries import without_ends
from relay_hw.accel.fpga.place.floorplan import FLOORPLAN, floorplanned
from relay_hw.accel.fpga.place.registers import with_registers
from relay_hw.accel.fpga.place.signs import without_copies
from relay_hw.accel.fpga.report import Timing, read_timing, worst
from relay_hw.accel.fpga.route import ITERATIONS, asked_mhz, is_large, place_and_route, promise, recipe, settings
from relay_hw.accel.fpga.synth import files_of
from relay_hw.accel.fpga.tools import run_tool, run_yosys, tool_version
from relay_hw.accel.sim.result_cache import is_sealed, seal, sealed
from relay_hw.support.progress import SILENT, Progress, Stoppable

Result = TypeVar("Result")


class _Unrouted(Exception):
    """Wires are too few."""


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
        tools = toolchain(self.part)
        for name, text in sorted({**self.files, **files_of(tools.maps)}.items()):
            digest.update(f"{name}\0{text}\0".encode())
        versions = [tool_version(tool) for tool in tools.tools]
        steps = (*tools.synthesis, *_recipe(self.part, self.mhz))
        asked = (self.top, self.part, self.constraints, self.mhz, steps, versions)
        digest.update(repr(asked).encode())
        return digest.hexdigest()[:24]


def _recipe(part: Part, mhz: float) -> tuple[object, ...]:
    """What is done to a netlist on its way to a bitstream."""
    match part.family:
        case Family.ECP5:
            last = () if is_large(part) else ("carries",)
            return ("signs", "registers", FLOORPLAN, *last, recipe(part, mhz))
        case Family.GOWIN:
            return (gowin.OPTIONS, toolchain(part).derate)


@dataclass(frozen=True, slots=True)
class Bitstream:
    """A finished bitstream.

    `data`: the file; `report`: a JSON object, the same for the same design, tools and seeds.
    """

    data: bytes
    report: dict[str, Any]


def build_bitstream(design: Design, seeds: Sequence[int], folder: Path, progress: Progress = SILENT) -> Bitstream:
    """Synthesise; floorplan, place and route once a seed; pack the fastest. `folder` keeps what was made.

    On a large part routing takes longer than all before it: of the seeds placed there the one that promises most is
    routed, another only where that fails. Raises FlowError.
    """
    if not seeds:
        raise FlowError("seeds must be at least 1, not 0")
    stage = synthesised(design, folder, progress)
    promised = _promised(design, stage, seeds, progress)
    tried = (
        _first_routed(design, stage, promised, progress) if promised else _all_routed(design, stage, seeds, progress)
    )
    routed = {seed: timing for seed, timing in tried.items() if timing is not None}
    if not routed:
        which = ", ".join(map(str, seeds))
        raise FlowError(
            f"a wire must have one signal, not more after {ITERATIONS} iterations of the router (seed {which}): "
            "ask for more seeds or a smaller accelerator"
        )
    best = max(routed, key=lambda seed: worst(routed[seed]))
    data = _pack(design.part, stage, best, progress)
    return Bitstream(data, _report(design, stage, promised, tried, best, data))


def is_built(design: Design, seeds: Sequence[int], folder: Path) -> bool:
    """Whether `build_bitstream` would find everything in `folder`."""
    stage = folder / design.key()
    ended = {seed for seed in seeds if any(is_sealed(stage, f"{end}-{seed}") for end in ("routed", "unrouted"))}
    if not is_large(design.part):
        return bool(seeds) and ended == set(seeds)
    if not seeds or not all(is_sealed(stage, f"promise-{seed}") for seed in seeds):
        return False
    order = _by_promise(_promised(design, stage, seeds, SILENT))
    first = next((seed for seed in order if not is_sealed(stage, f"unrouted-{seed}")), None)
    return first is None or first in ended


def synthesised(design: Design, folder: Path, progress: Progress = SILENT) -> Path:
    """The folder in `folder` that holds a design's synthesised.json, made now unless it is there. Raises FlowError."""
    stage = folder / design.key()
    stage.mkdir(parents=True, exist_ok=True)
    sealed(
        stage,
        "synthesised",
        ["synthesised.json", toolchain(design.part).constraints],
        lambda: _synthesise(design, stage, progress),
    )
    return stage


def _synthesise(design: Design, stage: Path, progress: Progress) -> None:
    progress.started("synthesis: yosys")
    tools = toolchain(design.part)
    for name, text in {**design.files, **files_of(tools.maps)}.items():
        (stage / name).write_text(text)
    (stage / tools.constraints).write_text(design.constraints)
    sources = " ".join(name for name in design.files if name.endswith(".v"))
    synthesis = [command.format(top=design.top) for command in tools.synthesis]
    written = ["check -noinit", "blackbox =A:whitebox", "write_json mapped.json"]
    run_yosys(stage, [f"read_verilog {sources}", *synthesis, *written])
    netlist = json.loads((stage / "mapped.json").read_text())
    if design.part.family is Family.ECP5:
        netlist["modules"][design.top] = with_registers(without_copies(netlist["modules"][design.top]))
    (stage / "synthesised.json").write_text(json.dumps(netlist))


def _lay_out(design: Design, stage: Path, seed: int, progress: Progress) -> None:
    """Write the netlist that is placed with a seed, unless it is there."""
    target = stage / f"netlist-{seed}.json"

    def make() -> None:
        netlist = json.loads((stage / "synthesised.json").read_text())
        if design.part.family is Family.GOWIN:
            gowin.check_room(netlist["modules"][design.top], design.part)
        if design.part.family is Family.ECP5:
            progress.started(f"floorplan: block RAMs and multipliers, seed {seed}")
            module = floorplanned(netlist["modules"][design.top], design.part, seed)
            module |= {"settings": settings(design.part)}
            # Where LUTs are short; a large part is short of wires.
            module = module if is_large(design.part) else without_ends(module)
            netlist = {**netlist, "modules": {**netlist["modules"], design.top: module}}
        target.write_text(json.dumps(netlist))

    sealed(stage, f"laid_out-{seed}", [target.name], make)


def _promised(design: Design, stage: Path, seeds: Sequence[int], progress: Progress) -> dict[int, float]:
    """By seed, when the latest signal comes if wires make no detours, in ns; empty on a part that is not large."""
    if not is_large(design.part):
        return {}

    def place(seed: int, progress: Progress) -> float:
        if not is_sealed(stage, f"promise-{seed}"):
            _lay_out(design, stage, seed, progress)
            progress.started(f"place: nextpnr, seed {seed}")
        return promise(stage, design.part, design.mhz, seed, progress)

    promised = _for_each(seeds, place, progress)
    if (latest := min(promised.values())) * design.mhz > 1000:
        # Routing takes an hour, and wires that hurry in vain make detours that others then lack.
        progress.started(f"placement promises {1000 / latest:.1f} MHz of {design.mhz:g}: more seeds may promise more")
    return promised


def _by_promise(promised: Mapping[int, float]) -> list[int]:
    return sorted(promised, key=lambda seed: (promised[seed], seed))


def _first_routed(
    design: Design, stage: Path, promised: Mapping[int, float], progress: Progress
) -> dict[int, Timing | None]:
    """Seeds that were routed, the one that promises most first, until wires suffice."""
    tried: dict[int, Timing | None] = {}
    for seed in _by_promise(promised):
        tried[seed] = _route(design, stage, seed, progress)
        if tried[seed] is not None:
            break
    return tried


def _all_routed(design: Design, stage: Path, seeds: Sequence[int], progress: Progress) -> dict[int, Timing | None]:
    return _for_each(seeds, lambda seed, progress: _route(design, stage, seed, progress), progress)


def _for_each(seeds: Sequence[int], work: Callable[[int, Progress], Result], progress: Progress) -> dict[int, Result]:
    """What comes of each seed, as many at a time as there are processors.

    Where one fails, or an interrupt comes, the others are stopped when they next report progress.
    """
    stopped = Event()
    with ThreadPoolExecutor(min(len(seeds), os.cpu_count() or 1)) as pool:
        tasks = [pool.submit(work, seed, Stoppable(progress, stopped.is_set)) for seed in seeds]
        try:
            return {seed: task.result() for seed, task in zip(seeds, tasks, strict=True)}
        except BaseException:
            stopped.set()
            for task in tasks:
                task.cancel()
            raise


def _route(design: Design, stage: Path, seed: int, progress: Progress) -> Timing | None:
    """Floorplan, place and route with a seed; the time of what is there already. None: wires are too few."""
    report, tools = stage / f"report-{seed}.json", toolchain(design.part)
    if is_sealed(stage, f"unrouted-{seed}"):
        return None

    def make() -> None:
        _lay_out(design, stage, seed, progress)
        progress.started(f"{'route' if is_large(design.part) else 'place and route'}: nextpnr, seed {seed}")
        match design.part.family:
            case Family.ECP5:
                if not place_and_route(stage, design.part, design.mhz, seed, progress):
                    raise _Unrouted
            case Family.GOWIN:
                gowin.place_and_route(stage, design.part, design.mhz / tools.derate, seed, progress)

    try:
        sealed(stage, f"routed-{seed}", [report.name, tools.placed.format(seed=seed)], make)
    except _Unrouted:
        progress.started(f"seed {seed}: wires are too few")
        # It says so of this netlist.
        seal(stage, f"unrouted-{seed}", [f"netlist-{seed}.json"])
        return None
    return read_timing(
        json.loads(report.read_text()), lambda told: asked_mhz(design.part, design.mhz, told), tools.derate
    )


def _pack(part: Part, stage: Path, seed: int, progress: Progress) -> bytes:
    tools = toolchain(part)
    placed, target = tools.placed.format(seed=seed), stage / f"design-{seed}{tools.suffix}"

    def make() -> None:
        progress.started(f"packing: {tools.tools[-1]}")
        match part.family:
            case Family.ECP5:
                run_tool(stage, "ecppack", ["--compress", placed, target.name])
            case Family.GOWIN:
                gowin.pack(stage, part, placed, target.name)

    sealed(stage, f"packed-{seed}", [target.name], make)
    return target.read_bytes()


def _report(
    design: Design,
    stage: Path,
    promised: Mapping[int, float],
    tried: Mapping[int, Timing | None],
    best: int,
    data: bytes,
) -> dict[str, Any]:
    timing = tried[best]
    assert timing is not None
    module = json.loads((stage / "synthesised.json").read_text())["modules"][design.top]
    tools = toolchain(design.part)
    used = tools.cells.resources(Counter(cell["type"] for cell in module["cells"].values()))
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
        "late": {group: {"ns": ns, "signals": count} for group, (ns, count) in timing.late.items()},
        "seed": best,
        "promised_ns": {str(seed): ns for seed, ns in promised.items()},
        "seeds": {str(seed): None if one is None else worst(one) for seed, one in tried.items()},
        "derate": tools.derate,
        "untimed": list(tools.untimed),
        "tools": {tool: tool_version(tool) for tool in tools.tools},
        "key": stage.name,
        "sha256": hashlib.sha256(data).hexdigest(),
    }
