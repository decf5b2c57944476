"""Cycles on the whole SoC of the ULX3S in simulation, beside the memory model's, for docs/memory.md and docs/boards.md.

In: ResNet-8 on `ecp5` and `ecp5x2`, random programs on `tiny`. Out: docs/results/soc.json. Half an hour or more.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measure_memory import BOARD, compiled

from relay_hw.accel.fpga.boards import find_board
from relay_hw.accel.fpga.device import FpgaDevice
from relay_hw.accel.fpga.open_link import open_link
from relay_hw.accel.fpga.sim.board import build_board, running_board
from relay_hw.accel.fpga.sim.soc import simulated_board
from relay_hw.accel.fpga.socs import board_soc
from relay_hw.accel.isa.config import AccelConfig, load_config
from relay_hw.accel.isa.errors import DeadlockError
from relay_hw.accel.isa.program import SectionKind
from relay_hw.accel.sim.cycle import CycleDevice
from relay_hw.accel.sim.dram_timing import memory_model
from tests.accel.sim.timed_programs import timed_program

OUTPUT = Path(__file__).resolve().parents[1] / "docs" / "results" / "soc.json"
CONFIGS = ("ecp5", "ecp5x2")
ULX3S = "ulx3s-85f"
# Short bits: the time of a simulated link is that of its bits.
DIVISOR = 4
PATIENCE_SECONDS = 3600
IMAGES = 3
PROGRAMS = 48
Say = Callable[[str], object]


@contextmanager
def soc(config: AccelConfig) -> Iterator[FpgaDevice]:
    """The board's SoC in simulation, with its driver."""
    board = find_board(ULX3S)
    soc = board_soc(config, board, baud=round(board.mhz * 1e6) // DIVISOR)
    with running_board(build_board(simulated_board(board, soc)), DIVISOR) as address:
        device = FpgaDevice(config, open_link(address, 1, PATIENCE_SECONDS), soc.map)
        yield device
        device.close()


def network(config: AccelConfig, say: Say) -> dict[str, Any]:
    """ResNet-8's launches one after another; time depends on no data, only on when the chip is refreshed."""
    (segment,) = compiled(config, BOARD).segments.values()
    program, model = segment.program, CycleDevice(config, memory_model(BOARD), data=False)
    model.load(program)
    if program.resident is not None:
        model.launch(SectionKind.RESIDENT)
    expected = model.launch().counters["CYCLES"]
    found: list[int] = []
    with soc(config) as device:
        device.load(program)
        if program.resident is not None:
            device.launch(SectionKind.RESIDENT)
        for image in range(IMAGES):
            found.append(device.launch().counters["CYCLES"])
            say(f"{config.name}, image {image + 1}: {found[-1]:,} cycles, {expected:,} in the model")
    apart = max(abs(100 * (expected / cycles - 1)) for cycles in found)
    return {"model": expected, "least": min(found), "most": max(found), "apart": apart}


def programs(config: AccelConfig, say: Say) -> dict[str, Any]:
    """Random programs that end, all together."""
    model, expected, truth, count = CycleDevice(config, memory_model(BOARD), data=False), 0, 0, 0
    with soc(config) as device:
        for seed in range(PROGRAMS):
            program = timed_program(config, seed)
            model.load(program)
            try:
                cycles = model.launch().counters["CYCLES"]
            except DeadlockError:
                continue
            device.load(program)
            expected, truth, count = expected + cycles, truth + device.launch().counters["CYCLES"], count + 1
            say(f"{config.name}, program {seed}: {truth:,} cycles so far, {expected:,} in the model")
    apart = abs(100 * (expected / truth - 1))
    return {"programs": count, "model": expected, "verilog": truth, "apart": apart}


def main(arguments: Sequence[str] | None = None) -> int:
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args(arguments)

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    found = {"tiny": programs(load_config("tiny"), say)} | {name: network(load_config(name), say) for name in CONFIGS}
    OUTPUT.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
