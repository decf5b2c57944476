"""The RTL is free of warnings for every configuration, and parameters that no hardware could have stop it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from relay_hw.accel.isa.config import config_names, load_config
from relay_hw.accel.isa.gen_verilog import verilator_flags
from relay_hw.accel.sim.verilator import RTL_DIR, find_toolchain

SCRIPT = Path(__file__).parents[3] / "scripts" / "lint_rtl.py"


@pytest.fixture(scope="module")
def lint_rtl() -> ModuleType:
    spec = importlib.util.spec_from_file_location("lint_rtl", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def elaborate(lint_rtl: ModuleType, *changes: str) -> subprocess.CompletedProcess[str]:
    """Verilator on the tiny configuration with changed parameters, warnings off."""
    tools = find_toolchain()
    environment = {**os.environ, "VERILATOR_ROOT": str(tools.root)}
    flags = [
        str(tools.verilator),
        "--lint-only",
        "--default-language",
        "1364-2005",
        "-Wno-lint",
        "-Wno-style",
        f"-I{RTL_DIR / 'gen'}",
    ]
    flags += ["--top-module", "vta_top", *verilator_flags(load_config("tiny")), *changes, *lint_rtl.sources()]
    return subprocess.run(flags, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", config_names())
def test_no_warning(lint_rtl: ModuleType, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert lint_rtl.main([name]) == 0
    assert capsys.readouterr().out == f"{name}, fast form: clean\n{name}, fabric form: clean\n"


def test_file_list_names_every_source_once() -> None:
    listed = (RTL_DIR / "filelist.f").read_text().split()
    assert sorted(listed) == sorted(
        str(path.relative_to(RTL_DIR)) for path in RTL_DIR.rglob("*.v") if path.parent.name != "fast"
    )


def test_a_warning_is_a_failure(lint_rtl: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = tmp_path / "vta_top.v"
    bad.write_text("module vta_top (input wire [3:0] a_i, output wire [1:0] b_o);\n  assign b_o = a_i;\nendmodule\n")
    monkeypatch.setattr(lint_rtl, "sources", lambda form: [str(bad)])
    monkeypatch.setattr(lint_rtl, "verilator_flags", lambda config: [])
    assert lint_rtl.main(["tiny"]) == 1


def test_the_unchanged_configuration_elaborates(lint_rtl: ModuleType) -> None:
    result = elaborate(lint_rtl)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("-GBLOCK_IN=6", "BLOCK_IN_must_be_a_power_of_two_from_4_to_64"),
        ("-GBLOCK_OUT=128", "BLOCK_OUT_must_be_a_power_of_two_from_4_to_64"),
        ("-GINP_DEPTH=1000", "INP_DEPTH_must_be_a_power_of_two_from_8_to_65536"),
        ("-GPRM_DEPTH=4", "PRM_DEPTH_must_be_a_power_of_two_from_8_to_65536"),
        ("-GDSP_PRODUCTS=3", "DSP_PRODUCTS_must_be_at_least_4"),
        ("-GWGT_BITS=5", "WGT_BITS_must_be_4_or_8"),
        ("-GWGT_BITS=4", "BLOCK_IN_must_be_two_lines_for_WGT_BITS_4"),
        ("-GOUT_LANES=8", "OUT_LANES_must_be_a_power_of_two_up_to_BLOCK_OUT"),
        ("-GACC_BANKS=3", "ACC_BANKS_must_be_a_power_of_two_up_to_16"),
        ("-GMULTIPLIER_BITS=32", "MULTIPLIER_BITS_must_be_from_8_to_31"),
        ("-GAXI_DATA_BITS=96", "AXI_DATA_BITS_must_be_64_128_or_256"),
        ("-GBURST_BEATS=128", "BURST_BEATS_must_be_a_power_of_two_up_to_64"),
        ("-GREAD_OUTSTANDING=0", "READ_OUTSTANDING_and_WRITE_OUTSTANDING_must_be_from_1_to_64"),
        ("-GCOF_DEPTH=128", "COF_DEPTH_must_be_0_or_a_power_of_two_from_256_to_65536_by_BLOCK_OUT"),
        ("-GCOF_DEPTH=32768", "COF_DEPTH_must_be_0_or_a_power_of_two_from_256_to_65536_by_BLOCK_OUT"),
        ("-GAXI_DATA_BITS=128", "COF_DEPTH_must_be_0_where_an_entry_is_no_whole_beat"),
        ("-GQUEUE_DEPTH=1", "QUEUE_DEPTH_must_be_from_2_to_64"),
    ],
)
def test_bad_parameter_stops_elaboration(lint_rtl: ModuleType, change: str, message: str) -> None:
    result = elaborate(lint_rtl, change)
    assert result.returncode != 0
    assert f"ERROR_{message}" in result.stderr
