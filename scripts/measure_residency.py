"""What constants that stay on the device save: networks of several regions, for docs/schedules.md.

In: networks of tests/relay_hw/steady_networks.py. Out: docs/results/residency.json, a table in the page. Five minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from relay_hw import tensorize
from relay_hw.accel.sim.dram_timing import memory_model
from relay_hw.runtime.compile import CompiledModel, compile_model, device_functions
from relay_hw.runtime.options import CompileOptions
from relay_hw.target.accel.clock import STANDARD, target_of
from relay_hw.target.accel.residency import Footprints
from relay_hw.target.accel.steady import steady
from scripts.figures import replaced
from tests.relay_hw.steady_networks import NETWORKS, network

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "docs" / "results" / "residency.json"
PAGE = ROOT / "docs" / "schedules.md"
Segments = dict[str, tensorize.Segment]
Row = dict[str, int]


def compiled(number: int, resident: str) -> CompiledModel:
    """A network for `default` and its standard memory."""
    mod, data = network(number)
    params = {name: value for name, value in data.items() if name != "x"}
    return compile_model(
        mod, CompileOptions(host_target="numpy", resident=resident), params=params, calibration={"x": data["x"]}
    )


def inference(model: CompiledModel, segments: Segments) -> int:
    """Cycles of an inference in steady state, from the exact counts of each launch."""
    programs = {name: segment.program for name, segment in segments.items()}
    state = steady(Footprints(model.config), programs, model.calls.order)
    launched = sum(turns.launches * segments[name].cycles for name, turns in state.turns.items())
    return launched + state.reload_cycles(model.config, programs, memory_model(STANDARD))


def alone(model: CompiledModel, plain: Segments, name: str) -> Segments:
    """The segments of `plain`, but for one region that may keep constants on the device."""
    function = device_functions(model.stages["partitioned"], "accel")[name]
    target = target_of(model.config, memory_model(STANDARD))
    return {**plain, name: tensorize.compile_function(function, target, name, True)}


def measured(number: int) -> Row:
    """Cycles of an inference: nothing stays, the best of each region's constants alone, and `--resident auto`."""
    auto, off = compiled(number, "auto"), compiled(number, "off")
    plain = dict(off.segments)
    return {
        "regions": len(plain),
        "launches": len(off.calls.order),
        "off": inference(off, plain),
        "single": min(inference(off, alone(off, plain, name)) for name in plain),
        "auto": inference(auto, dict(auto.segments)),
    }


def body(found: dict[str, Row]) -> str:
    """The table of the page."""
    lines = ["| Network | Regions | Launches | `off` | best region alone | `auto` | `auto` / `off` |", "|---" * 7 + "|"]
    for name, row in found.items():
        cells = (row["regions"], row["launches"], row["off"], row["single"], row["auto"])
        lines.append(f"| {name} | {' | '.join(f'{cell:,}' for cell in cells)} | {row['auto'] / row['off']:.2f} |")
    return "\n".join(lines) + "\n"


def measure(numbers: Sequence[int], say: Callable[[str], object]) -> dict[str, Row]:
    """A row for each network."""
    found: dict[str, Row] = {}
    for number in numbers:
        found[str(number)] = measured(number)
        say(f"network {number}: {found[str(number)]}")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all, write results and page."""
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args(arguments)
    found = measure(NETWORKS, lambda line: print(line, file=sys.stderr, flush=True))
    OUTPUT.write_text(json.dumps(found, indent=1) + "\n")
    PAGE.write_text(replaced(PAGE.read_text(), "residency", body(found)))
    print(f"written to {OUTPUT.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
