"""The `.asm` programs on the functional device, and the assembler's round trip over them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relay_hw.accel.isa.asm import assemble, assemble_file
from relay_hw.accel.isa.config import AccelConfig, load_config
from relay_hw.accel.isa.disasm import disassemble
from relay_hw.accel.sim.functional import FunctionalDevice
from tests.accel.isa.runner import PROGRAM_DIR, PROGRAMS, exp_text, oracle_run, run_asm


def by_name(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", PROGRAMS, ids=by_name)
def test_functional(path: Path) -> None:
    stats = run_asm(path, FunctionalDevice)
    if stats is not None:
        assert stats.cycles is None
        assert stats.counters["INSTRUCTIONS"] == assemble_file(path).count


@pytest.mark.parametrize("path", PROGRAMS, ids=by_name)
def test_what_scratchpads_held_before_does_not_show(path: Path) -> None:
    def dirty(config: AccelConfig) -> FunctionalDevice:
        device, rng = FunctionalDevice(config), np.random.default_rng(1)
        for memory in device.state.scratch.values():
            memory[:] = rng.integers(0, 256, memory.size, np.uint8)
        return device

    run_asm(path, dirty)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", ["double_buffer", "semaphores", "through_memory", "config_wide"])
def test_any_order_of_units_gives_the_same_bytes(name: str, seed: int) -> None:
    run_asm(PROGRAM_DIR / f"{name}.asm", lambda config: FunctionalDevice(config, order_seed=seed))


@pytest.mark.parametrize("path", PROGRAMS, ids=by_name)
def test_expected_bytes_are_the_oracles(path: Path) -> None:
    program = assemble_file(path)
    assert path.with_suffix(".exp").read_text() == exp_text(oracle_run(program, load_config(program.config)))


@pytest.mark.parametrize("path", PROGRAMS, ids=by_name)
def test_disassembly_assembles_to_the_same_program(path: Path) -> None:
    program = assemble_file(path)
    assert assemble(disassemble(program)) == program


def test_every_program_has_its_expectation() -> None:
    assert {path.stem for path in PROGRAM_DIR.glob("*.exp")} == {path.stem for path in PROGRAMS}
