"""Models of cells against the forms that synthesis takes them from, and what they refuse."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from relay_hw.accel.fpga.parts import PARTS, Family
from relay_hw.accel.fpga.sim.netlist import cell_models
from relay_hw.accel.sim.bench.runner import environment, ready_made
from relay_hw.accel.sim.verilator import find_toolchain
from tests.accel.fpga.sim.bench_cells import FAMILY, TOPS

ROOT = Path(__file__).parents[4]
# The first part of each family; a later one of Gowin's has another reset of block RAMs.
PARTS_OF = {part.family: part for part in reversed(PARTS)}


def written(family: Family, folder: Path) -> list[Path]:
    """The models of a family's cells, as files."""
    found = [folder / name for name in cell_models(PARTS_OF[family])]
    for path, text in zip(found, cell_models(PARTS_OF[family]).values(), strict=True):
        path.write_text(text)
    return found


def run_cells(folder: Path, family: Family) -> tuple[int, int, str]:
    """Tests that ran and failed, and what they said."""
    from cocotb_tools.check_results import get_results
    from cocotb_tools.runner import get_runner

    os.environ.update(environment())
    (folder / "cells_top.v").write_text(TOPS[family]().text())
    runner = get_runner("verilator")
    arguments = ["--x-assign", "unique", "-Wno-fatal", "-Wno-lint", "--output-split", "0", *ready_made(folder)]
    sources = [folder / "cells_top.v", *written(family, folder)]
    runner.build(
        sources=sources, hdl_toplevel="cells_top", build_args=arguments, build_dir=folder, log_file=folder / "l"
    )
    with suppress(SystemExit):
        runner.test(
            hdl_toplevel="cells_top",
            test_module="tests.accel.fpga.sim.bench_cells",
            build_dir=folder,
            test_dir=folder,
            results_xml=str(folder / "results.xml"),
            log_file=folder / "log",
            seed=1,
            extra_env={"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), FAMILY: family.value},
        )
    return *get_results(folder / "results.xml"), (folder / "log").read_text()


@pytest.mark.parametrize("family", Family)
def test_models_are_as_the_forms_beside_them(family: Family, tmp_path: Path) -> None:
    ran, failed, log = run_cells(tmp_path, family)
    assert (ran, failed) == (1, 0), log[-3000:]


@pytest.mark.parametrize(
    ("cell", "sizes", "message"),
    [
        ("DP16KD", '.REGMODE_A("OUTREG")', "ERROR_REGMODE_must_be_NOREG"),
        ("DP16KD", '.CSDECODE_B("0b001")', "ERROR_CSDECODE_must_be_0b000"),
        ("DP16KD", '.CLKBMUX("INV")', "ERROR_CLKAMUX_and_CLKBMUX_must_not_be_INV"),
        ("MULT18X18D", '.RESETMODE("ASYNC")', "ERROR_RESETMODE_must_be_SYNC"),
        ("TRELLIS_FF", '.LSRMODE("PRLD")', "ERROR_LSRMODE_must_be_LSR"),
        ("ALU", ".ALU_MODE(0)", "ERROR_ALU_MODE_must_be_2"),
        ("SDPX9B", ".READ_MODE(1'b1)", "ERROR_READ_MODE_must_be_0"),
        ("SDPX9B", ".BIT_WIDTH_1(18)", "ERROR_BIT_WIDTH_must_be_36"),
        ("DPX9B", ".READ_MODE1(1'b1)", "ERROR_READ_MODE_must_be_0"),
        ("DPX9B", ".BIT_WIDTH_0(9)", "ERROR_BIT_WIDTH_must_be_18"),
    ],
)
def test_what_the_models_do_not_know_is_refused(cell: str, sizes: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "top.v").write_text(f"module top; {cell} #({sizes}) u_cell (); endmodule\n")
    (models,) = (written(family, tmp_path) for family in Family if f"{cell}.v" in cell_models(PARTS_OF[family]))
    tools = find_toolchain()
    command = [str(tools.verilator), "--lint-only", "-Wno-fatal", "-Wno-lint", "--top-module", "top", "top.v"]
    environment = {**os.environ, "VERILATOR_ROOT": str(tools.root)}
    done = subprocess.run(
        [*command, *map(str, models)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0 and message in done.stdout + done.stderr
