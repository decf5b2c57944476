"""Power-on and reset: whatever the chip holds before the first edge, or at a reset in mid-run, leaves no trace.

Random starts and resets on the Verilog under Verilator; programs under Icarus Verilog, which knows X. The suite runs a
sample, `make test-power-on` 1,000 starts, 200 resets and 50 programs in four states.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest

from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.errors import AccelError
from relay_hw.accel.isa.program import Program
from relay_hw.accel.isa.randprog import random_program
from relay_hw.accel.sim.cycle import CycleDevice
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.accel.sim.rtl_device import RtlDevice, Simulation, Sources
from relay_hw.accel.sim.verilator import RTL_DIR
from tests.accel.rtl.four_state.simulate import FourStates, missing

TINY = load_config("tiny")
STARTS, RESETS, PROGRAMS = (12, 1000), (12, 200), (2, 50)
# Resets of single registers that a start with zeros does not miss: file, what is left out, for what.
DROPPED = {
    "the launch's state": ("vta_csr.v", "    if (!rst_ni) begin\n      busy_q  <= 1'b0;\n      done_q  <= 1'b0;"),
}


def program_of(seed: int) -> Program:
    return random_program(TINY, seed, 5 + seed % 60)


class Expected:
    """What a program leaves in the window, and what it counts."""

    def __init__(self, program: Program) -> None:
        functional, cycle = FunctionalDevice(TINY), CycleDevice(TINY, data=False)
        for device in (functional, cycle):
            device.load(program)
        functional.launch()
        self.program = program
        self.window = functional.read(0, program.window_bytes).tobytes()
        self.counters = cycle.launch().counters

    def wrong(self, device: RtlDevice) -> str:
        """Launch it; what differs, or nothing."""
        device.load(self.program)
        counters = device.launch().counters
        if counters != self.counters:
            return f"counters {counters}, not {self.counters}"
        return "" if device.read(0, self.program.window_bytes).tobytes() == self.window else "bytes"


def wrong_starts(seeds: range, model: Sources | Path = Sources()) -> list[str]:  # noqa: B008
    """Starts of which a program's bytes or counters tell, with what is wrong."""
    expected = [Expected(program_of(seed)) for seed in range(4)]
    found: list[str] = []
    for seed in seeds:
        try:
            device = RtlDevice(TINY, run=Simulation(power_seed=seed), model=model)
            model = device.model.library
            wrong = expected[seed % len(expected)].wrong(device)
            device.close()
        except AccelError as error:
            wrong = str(error)
        found += [f"start {seed}: {wrong}"] * bool(wrong)
    return found


def wrong_resets(count: int) -> list[str]:
    """Resets at drawn moments after which the chip is not as new."""
    rng, found = Random(count), list[str]()
    expected = [Expected(program_of(seed)) for seed in range(4)]
    device = RtlDevice(TINY, run=Simulation(power_seed=count))
    for _ in range(count):
        cut, whole = rng.choice(expected), rng.choice(expected)
        moment = rng.randrange(cut.counters["CYCLES"] + 100)
        device.load(cut.program)
        device.core.launch(cut.program.code, 0)
        device.model.advance(moment)
        device.model.reset()
        wrong = whole.wrong(device)
        found += [f"reset at {moment}: {wrong}"] * bool(wrong)
    return found


@pytest.mark.parametrize("count", [STARTS[0], pytest.param(STARTS[1], marks=pytest.mark.long)])
def test_no_start_is_seen(count: int) -> None:
    assert wrong_starts(range(1, count + 1)) == []


@pytest.mark.parametrize("count", [RESETS[0], pytest.param(RESETS[1], marks=pytest.mark.long)])
def test_a_reset_at_any_moment_is_a_start(count: int) -> None:
    assert wrong_resets(count) == []


def without_reset(folder: Path, name: str, begins: str) -> Path:
    """A copy of the Verilog in which the registers of one `if (!rst_ni)` keep what they hold."""
    rtl = folder / "rtl"
    shutil.copytree(RTL_DIR, rtl)
    text = (rtl / name).read_text()
    assert text.count(begins) == 1
    (rtl / name).write_text(text.replace(begins, begins.replace("!rst_ni", "1'b0")))
    return rtl


@pytest.mark.long
@pytest.mark.parametrize("what", DROPPED)
def test_a_register_without_reset_is_found(what: str, tmp_path: Path) -> None:
    assert wrong_starts(range(1, 41), Sources(without_reset(tmp_path, *DROPPED[what])))


@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.parametrize("count", [PROGRAMS[0], pytest.param(PROGRAMS[1], marks=pytest.mark.long)])
def test_no_x_reaches_the_memory(count: int, tmp_path: Path) -> None:
    """Nor a port that says something, though what nothing keeps is X inside."""
    simulation = FourStates(TINY, tmp_path)
    for seed in range(count):
        expected = Expected(program_of(seed))
        outcome = simulation.run(expected.program)
        assert outcome.said.startswith("done"), f"seed {seed}: {outcome.said}"
        assert not outcome.unknown.any(), f"seed {seed}: X at byte {outcome.unknown.argmax()}"
        assert outcome.window.tobytes() == expected.window, f"seed {seed}"


@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.parametrize("what", DROPPED)
def test_x_is_seen(what: str, tmp_path: Path) -> None:
    outcome = FourStates(TINY, tmp_path, without_reset(tmp_path, *DROPPED[what])).run(program_of(0))
    assert outcome.said.startswith("X: ") and not outcome.window.size
