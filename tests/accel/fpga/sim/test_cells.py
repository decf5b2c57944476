"""Models of the ECP5's cells against the forms that synthesis takes them from, and what they refuse."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from accel.fpga.sim.netlist import CELLS
from accel.sim.bench.runner import environment
from accel.sim.verilator import find_toolchain
from tests.accel.fpga.sim.cells import cells_top

ROOT = Path(__file__).parents[4]


def run_cells(folder: Path, text: str) -> tuple[int, int, str]:
    """Tests that ran and failed, and what they said."""
    from cocotb_tools.check_results import get_results
    from cocotb_tools.runner import get_runner

    os.environ.update(environment())
    (folder / "cells_top.v").write_text(text)
    runner = get_runner("verilator")
    arguments = ["--x-assign", "unique", "-Wno-fatal", "-Wno-lint", "--output-split", "0", "-CFLAGS", "-O0"]
    sources = [folder / "cells_top.v", *CELLS]
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
            extra_env={"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        )
    return *get_results(folder / "results.xml"), (folder / "log").read_text()


def test_models_are_as_the_forms_beside_them(tmp_path: Path) -> None:
    ran, failed, log = run_cells(tmp_path, cells_top().text())
    assert (ran, failed) == (1, 0), log[-3000:]


@pytest.mark.parametrize(
    ("cell", "sizes", "message"),
    [
        ("DP16KD", '.REGMODE_A("OUTREG")', "ERROR_REGMODE_must_be_NOREG"),
        ("DP16KD", '.CSDECODE_B("0b001")', "ERROR_CSDECODE_must_be_0b000"),
        ("DP16KD", '.CLKBMUX("INV")', "ERROR_CLKAMUX_and_CLKBMUX_must_not_be_INV"),
        ("MULT18X18D", '.RESETMODE("ASYNC")', "ERROR_RESETMODE_must_be_SYNC"),
        ("TRELLIS_FF", '.LSRMODE("PRLD")', "ERROR_LSRMODE_must_be_LSR"),
    ],
)
def test_what_the_models_do_not_know_is_refused(cell: str, sizes: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "top.v").write_text(f"module top; {cell} #({sizes}) u_cell (); endmodule\n")
    tools = find_toolchain()
    command = [str(tools.verilator), "--lint-only", "-Wno-fatal", "-Wno-lint", "--top-module", "top", "top.v"]
    environment = {**os.environ, "VERILATOR_ROOT": str(tools.root)}
    done = subprocess.run(
        [*command, *map(str, CELLS)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0 and message in done.stdout + done.stderr
