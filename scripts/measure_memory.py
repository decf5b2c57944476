"""ResNet-8 on memories of boards: cycles by the cycle simulator, for docs/memory.md and docs/boards.md.

In: examples/models, configurations, memory models. Out: docs/results/memory.json. Two or three minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples.models import find
from examples.models.builder import INPUT, images
from relay_hw.accel.isa.config import AccelConfig, load_config
from relay_hw.accel.isa.program import Program, SectionKind
from relay_hw.accel.isa.spec import Op
from relay_hw.accel.sim.cycle import CycleDevice
from relay_hw.accel.sim.dram_timing import memory_model
from relay_hw.frontend import from_onnx
from relay_hw.runtime.compile import CompiledModel, compile_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.target.accel.board import on_board

OUTPUT = Path(__file__).resolve().parents[1] / "docs" / "results" / "memory.json"
NETWORK = "resnet8"
BOARD = "ulx3s"
ON_BOARD = "ulx3s-85f"
STANDARD = "standard"
# Changes to `ecp5`, by the names that the pages use.
CHANGES: Mapping[str, Mapping[str, int]] = {
    "acc_depth_512": {"acc_depth": 512},
    "burst_beats_16": {"burst_beats": 16},
    "queue_depth_8": {"queue_depth": 8},
    "outstanding_2": {"read_outstanding": 2, "write_outstanding": 2},
    "queue_depth_4": {"queue_depth": 4},
    "axi_data_bits_128": {"axi_data_bits": 128},
    "wgt_depth_512": {"wgt_depth": 512},
    "inp_depth_4096": {"inp_depth": 4096},
    "inp_depth_2048": {"inp_depth": 2048},
    "acc_banks_2": {"acc_banks": 2},
}
OTHERS = ("ecp5w4", "ecp5x2")


def compiled(config: AccelConfig, memory: str) -> CompiledModel:
    """The network for a configuration and a memory model; weights are seeded, and time depends on no data."""
    model = find(NETWORK).model()
    shape = [axis.dim_value for axis in model.graph.input[0].type.tensor_type.shape.dim][1:]
    mod, params = from_onnx(model)
    strategy = "int8" if config.wgt_bits > 4 else "w4a8"
    return compile_model(
        mod,
        CompileOptions(config=config, strategy=strategy, name=NETWORK, memory=memory),
        params=params,
        calibration={INPUT: images(shape, 1, seed=1)},
    )


def timed(program: Program, config: AccelConfig, memory: str) -> dict[str, int]:
    """Counters of a launch whose resident weights are there, and its cycles of products."""
    device = CycleDevice(config, memory_model(memory), data=False)
    device.load(program)
    if program.resident is not None:
        device.launch(SectionKind.RESIDENT)
    found = dict(device.launch().counters)
    products = sum(work.slots for work in device.timing.works if work.op is Op.GEMM)
    return {
        "cycles": found["CYCLES"],
        "bytes": found["READ_BYTES"] + found["WRITE_BYTES"],
        "product_cycles": products,
    }


def measured(config: AccelConfig, made_for: str, on: str) -> dict[str, int]:
    """One program made for a memory, on a memory."""
    (segment,) = compiled(config, made_for).segments.values()
    return timed(segment.program, config, on)


def on_its_board(name: str) -> dict[str, int]:
    """The network on the board's SoC, whose memory is timed at the clock that was routed."""
    place = on_board(ON_BOARD, name)
    found = measured(load_config(name), place.memory, place.memory)
    return found | {"mhz": place.clock_hz // 10**6, "images_per_second": place.clock_hz // found["cycles"]}


def measure(say: Callable[[str], object]) -> dict[str, Any]:
    """Everything that the pages show."""
    ecp5 = load_config("ecp5")
    found: dict[str, Any] = {"ecp5": {}}
    for made_for in (STANDARD, BOARD):
        for on in (STANDARD, BOARD):
            say(f"ecp5, made for {made_for}, on {on}")
            found["ecp5"][f"{made_for}-on-{on}"] = measured(ecp5, made_for, on)
    found["changes"] = {}
    for name, sizes in CHANGES.items():
        say(f"ecp5 with {name}")
        found["changes"][name] = measured(replace(ecp5, name=f"ecp5-{name}", **sizes), BOARD, BOARD)
    for name in OTHERS:
        say(name)
        config = load_config(name)
        found[name] = {f"{memory}-on-{memory}": measured(config, memory, memory) for memory in (STANDARD, BOARD)}
    found["boards"] = {}
    for name in ("ecp5", "ecp5w4"):
        say(f"{name} on {ON_BOARD}")
        found["boards"][name] = on_its_board(name)
    cycles = found["ecp5"][f"{BOARD}-on-{BOARD}"]["cycles"]
    found["rates"] = {"images_per_second_at_80_mhz": int(80e6 / cycles), "mhz_for_500": 500 * cycles / 1e6}
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args(arguments)
    found = measure(lambda line: print(line, file=sys.stderr, flush=True))
    OUTPUT.write_text(json.dumps(found, indent=1) + "\n")
    print(f"written to {OUTPUT.relative_to(OUTPUT.parents[2])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
