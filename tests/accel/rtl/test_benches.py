"""Runs the cocotb bench of every RTL module, in several shapes. `BENCHES` has a line for each: a test says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.gen_verilog import verilog_parameters
from relay_hw.accel.isa.spec import Mem
from relay_hw.accel.sim.bench.runner import environment, run_bench
from relay_hw.accel.sim.rtl_device import Sources
from relay_hw.accel.sim.verilator import Form, find_toolchain, rtl_files

# The depth of TAB follows from the number of tables.
DEPTHS = tuple(f"{mem.name}_DEPTH" for mem in Mem if mem is not Mem.TAB)


def sizes_of(name: str) -> dict[str, int]:
    """Parameters that the decoder needs, from a configuration."""
    keys = ("BLOCK_IN", "BLOCK_OUT", "WGT_BITS", "AXI_DATA_BITS", "TABLES", *DEPTHS)
    parameters = verilog_parameters(load_config(name))
    return {key: parameters[key] for key in keys} | {"LINE": load_config(name).line_bytes}


TINY, WIDE, W4, ECP5 = (sizes_of(name) for name in ("tiny", "wide", "w4", "ecp5"))
# 4-bit weights in little room.
HALF = {"BLOCK_IN": 32, "WGT_BITS": 4}

TOP = verilog_parameters(load_config("tiny"))
CORE = {key: value for key, value in TOP.items() if key != "CONFIG_HASH"}
EXEC = dict.fromkeys(DEPTHS, 64) | {"BLOCK_IN": 4, "BLOCK_OUT": 4, "OUT_LANES": 2, "BEATS_W": 18, "TABLES": 2}
EXEC |= {"COF_DEPTH": 256}
UNIT = {"BLOCK_OUT": 4, "ACC_DEPTH": 64, "OUT_LANES": 2}
OUTPUT = UNIT | {"OUT_DEPTH": 64, "PRM_DEPTH": 64}

# module: bench, then one dictionary of parameters for each shape.
BENCHES: dict[str, tuple[str, tuple[dict[str, int], ...]]] = {
    "vta_fifo": (
        "bench_fifo",
        (
            {"WIDTH": 8, "DEPTH": 2},
            {"WIDTH": 70, "DEPTH": 5},
            {"WIDTH": 1, "DEPTH": 1},
            {"WIDTH": 1, "DEPTH": 4, "EARLY": 1},
            {"WIDTH": 9, "DEPTH": 3, "EARLY": 9, "RESTS": 1},
            {"WIDTH": 12, "DEPTH": 1, "EARLY": 5, "RESTS": 1},
            {"WIDTH": 20, "DEPTH": 5, "EARLY": 8},
            {"WIDTH": 20, "DEPTH": 1, "EARLY": 19},
        ),
    ),
    "vta_count": ("bench_count", ({"MAX": 1}, {"MAX": 4}, {"MAX": 5})),
    "vta_ram_async": ("bench_ram_async", ({"WIDTH": 40, "DEPTH": 8, "ADDR_W": 3},)),
    "vta_ram_cols": ("bench_ram_cols", ({"COL_W": 16, "COLS": 4, "DEPTH": 8, "ADDR_W": 3},)),
    "vta_pick": (
        "bench_pick",
        tuple({"WIDTH": 5, "WAYS": ways, "WAY_W": max(1, ways.bit_length() - 1)} for ways in (1, 2, 4, 8)),
    ),
    "vta_ram_beat": (
        "bench_ram_beat",
        (
            {"BEAT_W": 64, "ELEM_W": 32, "DEPTH": 16},
            {"BEAT_W": 64, "ELEM_W": 256, "DEPTH": 8},
        ),
    ),
    "vta_row": ("bench_row", tuple({"BLOCK_OUT": lanes, "ACC_DEPTH": 256} for lanes in (4, 16, 32))),
    "vta_row_inverse": ("bench_row_inverse", ({},)),
    "vta_row_lane": ("bench_row_lane", ({},)),
    "vta_row_walk": ("bench_row_walk", ({"BLOCK_OUT": 4}, {"BLOCK_OUT": 16})),
    "vta_cof_mem": (
        "bench_cof_mem",
        (
            {"LANES": 1, "COF_DEPTH": 256},
            {"LANES": 4, "COF_DEPTH": 512},
            {"LANES": 8, "COF_DEPTH": 256, "BEAT_W": 256, "BEAT_ADDR_W": 12},
        ),
    ),
    "vta_tables": (
        "bench_tables",
        (
            {"LANES": 4, "TABLES": 2, "BEAT_W": 64},
            {"LANES": 1, "TABLES": 16, "BEAT_W": 256},
            {"LANES": 2, "TABLES": 8, "BEAT_W": 128},
        ),
    ),
    "vta_wgt_mem": (
        "bench_wgt_mem",
        (
            {"BEAT_W": 64, "ELEM_W": 128, "DEPTH": 16},
            {"BEAT_W": 128, "ELEM_W": 128, "DEPTH": 16},
            {"BEAT_W": 64, "ELEM_W": 512, "DEPTH": 8},
            {"BEAT_W": 64, "ELEM_W": 512, "DEPTH": 8, "WGT_BITS": 4, "FACTORS": 2},
            {"BEAT_W": 64, "ELEM_W": 1024, "DEPTH": 8, "FACTORS": 2},
        ),
    ),
    "vta_widen": (
        "bench_widen",
        (
            {"BEAT_W": 64, "WGT_BITS": 8, "FACTORS": 1},
            {"BEAT_W": 64, "WGT_BITS": 8, "FACTORS": 2},
            {"BEAT_W": 64, "WGT_BITS": 4, "FACTORS": 2},
            {"BEAT_W": 128, "WGT_BITS": 8, "FACTORS": 4},
        ),
    ),
    "vta_inp_mem": (
        "bench_inp_mem",
        (
            {"INP_LANES": 4, "BLOCK_OUT": 4, "DEPTH": 64, "BEAT_W": 64, "LINE": 16},
            {"INP_LANES": 8, "BLOCK_OUT": 16, "DEPTH": 32, "BEAT_W": 64, "LINE": 16},
            {"INP_LANES": 4, "BLOCK_OUT": 32, "DEPTH": 64, "BEAT_W": 64, "LINE": 32},
            {"INP_LANES": 2, "BLOCK_OUT": 4, "DEPTH": 64, "BEAT_W": 64, "LINE": 16},
            {"INP_LANES": 32, "BLOCK_OUT": 8, "DEPTH": 16, "BEAT_W": 128, "LINE": 32},
            {"INP_LANES": 16, "BLOCK_OUT": 16, "DEPTH": 4, "BEAT_W": 64, "LINE": 16},
            {"INP_LANES": 16, "BLOCK_OUT": 16, "DEPTH": 32, "BEAT_W": 64, "LINE": 16, "OPERAND": 2},
            {"INP_LANES": 16, "BLOCK_OUT": 8, "DEPTH": 32, "BEAT_W": 64, "LINE": 16, "OPERAND": 2},
        ),
    ),
    "vta_ram_out": (
        "bench_ram_out",
        ({"BEAT_W": 64, "ELEM_W": 32, "DEPTH": 16}, {"BEAT_W": 64, "ELEM_W": 128, "DEPTH": 8}),
    ),
    "vta_acc_mem": (
        "bench_acc_mem",
        (
            {"BLOCK_OUT": 4, "ACC_DEPTH": 64, "ACC_BANKS": 4, "OUT_LANES": 2, "BEAT_W": 64, "ROW": 1},
            {"BLOCK_OUT": 4, "ACC_DEPTH": 64, "ACC_BANKS": 2, "OUT_LANES": 1, "BEAT_W": 64, "ROW": 0},
            {"BLOCK_OUT": 4, "ACC_DEPTH": 64, "ACC_BANKS": 2, "OUT_LANES": 1, "BEAT_W": 64, "ROW": 1},
            {"BLOCK_OUT": 4, "ACC_DEPTH": 128, "ACC_BANKS": 8, "OUT_LANES": 1, "BEAT_W": 128, "ROW": 1},
            {"BLOCK_OUT": 16, "ACC_DEPTH": 64, "ACC_BANKS": 4, "OUT_LANES": 16, "BEAT_W": 64, "ROW": 1},
            {"BLOCK_OUT": 16, "ACC_DEPTH": 64, "ACC_BANKS": 4, "OUT_LANES": 4, "BEAT_W": 64, "ROW": 0},
        ),
    ),
    "vta_scratchpads": (
        "bench_scratchpads",
        (
            dict.fromkeys(DEPTHS, 32) | {"ACC_BANKS": 4, "BEATS_W": 18, "TABLES": 4},
            dict.fromkeys(DEPTHS, 32) | {"ACC_BANKS": 4, "BEATS_W": 18, "TABLES": 4, "COF_DEPTH": 0},
            dict.fromkeys(DEPTHS, 32) | {"BLOCK_IN": 16, "BLOCK_OUT": 16, "OUT_LANES": 4, "BEATS_W": 18, "TABLES": 2},
        ),
    ),
    "vta_once": ("bench_once", ({},)),
    "vta_dma_merge": ("bench_dma_merge", ({"AXI_DATA_BITS": 64}, {"AXI_DATA_BITS": 256})),
    "vta_dma_walk": (
        "bench_dma_walk",
        (
            {"AXI_DATA_BITS": 64, "BURST_BEATS": 64},
            {"AXI_DATA_BITS": 256, "BURST_BEATS": 16},
            {"AXI_DATA_BITS": 64, "BURST_BEATS": 1},
            {"AXI_DATA_BITS": 64, "BURST_BEATS": 2, "COUNT_W": 10, "LENGTH_W": 18},
        ),
    ),
    "vta_read_arb": (
        "bench_read_arb",
        ({"AXI_DATA_BITS": 64, "READ_OUTSTANDING": 4}, {"AXI_DATA_BITS": 64, "READ_OUTSTANDING": 1}),
    ),
    "vta_fetch": (
        "bench_fetch",
        ({"AXI_DATA_BITS": 64, "BURST_BEATS": 64}, {"AXI_DATA_BITS": 128, "BURST_BEATS": 4}, {"AXI_DATA_BITS": 256}),
    ),
    "vta_sems": ("bench_sems", ({},)),
    "vta_decode": ("bench_decode", (TINY, ECP5, WIDE, W4)),
    "vta_dispatch": ("bench_dispatch", (TINY | {"BEATS_W": 18, "LENGTH_W": 19}, W4 | {"BEATS_W": 18, "LENGTH_W": 24})),
    "vta_front": ("bench_front", (TINY | {"QUEUE_DEPTH": 2}, TINY | {"QUEUE_DEPTH": 2, "COF_DEPTH": 0})),
    "vta_load_place": (
        "bench_load_place",
        (
            {"AXI_DATA_BITS": 64, "INP_LANES": 4, "LINE_BEATS": 2, "BEATS_W": 20},
            {"AXI_DATA_BITS": 256, "INP_LANES": 32, "LINE_BEATS": 1, "BEATS_W": 18},
            {"AXI_DATA_BITS": 64, "INP_LANES": 16, "LINE_BEATS": 8, "BEATS_W": 14},
        ),
    ),
    "vta_load_data": (
        "bench_load_data",
        (
            {"AXI_DATA_BITS": 64, "INP_LANES": 4, "LINE_BEATS": 2, "BEATS_W": 20},
            {
                "AXI_DATA_BITS": 256,
                "INP_LANES": 32,
                "BEATS_W": 18,
                "LINE_BEATS": 1,
                "FACTORS": 2,
                "FACTOR_GRANULES": 32,
            },
            {"INP_LANES": 16, "LINE_BEATS": 8, "BEATS_W": 14, "FACTORS": 1, "FACTOR_GRANULES": 16},
            {"INP_LANES": 64, "LINE_BEATS": 8, "BEATS_W": 14, "FACTORS": 1, "FACTOR_GRANULES": 64},
        ),
    ),
    "vta_alu_lane": ("bench_alu_lane", ({},)),
    "vta_alu_mul": ("bench_alu_mul", ({},)),
    "vta_dot": (
        "bench_dot",
        (
            {"BLOCK_IN": 4},
            {"BLOCK_IN": 16, "DSP_PRODUCTS": 64},
            {"BLOCK_IN": 16, "DSP_PRODUCTS": 6},
            {"BLOCK_IN": 64, "DSP_PRODUCTS": 64},
            HALF | {"DSP_PRODUCTS": 64},
            HALF | {"DSP_PRODUCTS": 4},
        ),
    ),
    "vta_multiples": ("bench_multiples", ({},)),
    "vta_nibble": ("bench_nibble", ({},)),
    "vta_requant_lane": ("bench_requant_lane", ({"MULTIPLIER_BITS": 31}, {"MULTIPLIER_BITS": 16})),
    "vta_uop_walk": ("bench_uop_walk", ({"MUL_SLOTS": 3}, {"MUL_SLOTS": 2, "UOP_W": 7}, {"MUL_SLOTS": 65})),
    "vta_output_walk": (
        "bench_output_walk",
        ({"ACC_DEPTH": 1024, "OUT_DEPTH": 512, "PRM_DEPTH": 64, "GROUPS": 2}, {"GROUPS": 1, "PART": 4}),
    ),
    "vta_update": (
        "bench_update",
        (
            {"BLOCK_OUT": 4, "OUT_LANES": 2, "SUM_W": 18},
            {"BLOCK_OUT": 4, "OUT_LANES": 4, "SUM_W": 20},
            {"BLOCK_OUT": 4, "OUT_LANES": 1, "SUM_W": 18},
        ),
    ),
    "vta_compute": (
        "bench_compute",
        (
            UNIT | {"BLOCK_IN": 4, "INP_DEPTH": 256, "WGT_DEPTH": 64},
            UNIT | {"BLOCK_IN": 8, "BLOCK_OUT": 16, "INP_DEPTH": 256, "WGT_DEPTH": 64, "DSP_PRODUCTS": 6},
            UNIT | HALF | {"INP_DEPTH": 256, "WGT_DEPTH": 64, "DSP_PRODUCTS": 4},
        ),
    ),
    "vta_output": (
        "bench_output",
        (
            UNIT
            | {
                "INP_DEPTH": 256,
                "OUT_DEPTH": 64,
                "PRM_DEPTH": 64,
                "MULTIPLIER_BITS": 31,
                "INP_LANES": 16,
                "TABLES": 16,
            },
            UNIT
            | {"INP_DEPTH": 256, "OUT_DEPTH": 64, "PRM_DEPTH": 64, "MULTIPLIER_BITS": 16, "OUT_LANES": 4, "TABLES": 0},
            UNIT | {"INP_DEPTH": 1024, "OUT_DEPTH": 64, "PRM_DEPTH": 64, "BLOCK_OUT": 16, "TABLES": 2},
        ),
    ),
    "vta_load": (
        "bench_load",
        (
            {"AXI_DATA_BITS": 64, "BURST_BEATS": 64, "READ_OUTSTANDING": 16, "BEATS_W": 18},
            {"AXI_DATA_BITS": 64, "BURST_BEATS": 4, "READ_OUTSTANDING": 2, "BEATS_W": 18},
            {"READ_OUTSTANDING": 4, "BEATS_W": 18, "INP_LANES": 8, "FACTORS": 2, "FACTOR_GRANULES": 8},
        ),
    ),
    "vta_read_side": ("bench_read_side", ({"READ_OUTSTANDING": 4, "BEATS_W": 18}, {"BURST_BEATS": 4, "BEATS_W": 18})),
    "vta_store": (
        "bench_store",
        ({"AXI_DATA_BITS": 64, "BURST_BEATS": 8, "WRITE_OUTSTANDING": 4, "BEATS_W": 18},),
    ),
    "vta_counters": (
        "bench_counters",
        (
            {"COUNTERS": 16, "BEATS": 0xE000, "BEAT_LOG": 3},
            {"COUNTERS": 18, "BEATS": 0x30102, "BEAT_LOG": 5},
        ),
    ),
    "vta_axil": ("bench_axil", ({},)),
    "vta_stop": ("bench_stop", ({"ROW": 1}, {"ROW": 0})),
    "vta_fault": ("bench_fault", ({"SOURCES": 13}, {"SOURCES": 2})),
    "vta_csr": ("bench_csr", ({"CONFIG_HASH": 0x1234ABCD, "ROW": 1}, {"CONFIG_HASH": 0x1234ABCD, "ROW": 0})),
    "vta_exec": (
        "bench_exec",
        (
            EXEC | {"INP_DEPTH": 256},
            EXEC | {"INP_DEPTH": 256, "BLOCK_IN": 8, "BLOCK_OUT": 16, "OUT_LANES": 4},
            EXEC | HALF | {"INP_DEPTH": 256},
            EXEC | {"INP_DEPTH": 256, "COF_DEPTH": 0},
        ),
    ),
    "vta_core": ("bench_core", (CORE,)),
    "vta_top": ("bench_top", (TOP,)),
}

# Modules that have a form for simulation, and two that hold such modules, there in their first shape.
FAST = sorted(path.stem for path in rtl_files(form=Form.FAST) if path.parent.name == "fast")
HOLD_FAST = ("vta_compute", "vta_output")
# `make test` takes the first shapes of each module and form, `make test-benches` all of them.
QUICK_SHAPES = 2


def cases(most: int | None = None) -> list[tuple[str, str, dict[str, int], Form]]:
    """Benches with at most so many shapes of each module and form."""
    fabric = [(module, shape, Form.FABRIC) for module, (_, shapes) in BENCHES.items() for shape in shapes[:most]]
    fast = [(module, shape, Form.FAST) for module in FAST for shape in BENCHES[module][1][:most]]
    hold = [(module, BENCHES[module][1][0], Form.FAST) for module in HOLD_FAST]
    return [(module, BENCHES[module][0], shape, form) for module, shape, form in (*fabric, *fast, *hold)]


def with_benches(most: int | None = None) -> pytest.MarkDecorator:
    """Run a test with each of `cases`."""
    return pytest.mark.parametrize(
        ("module", "bench", "shape", "form"),
        cases(most),
        ids=lambda value: value.value if isinstance(value, Form) else str(value).replace(" ", ""),
    )


@pytest.fixture(scope="session")
def build_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("benches")


def test_every_module_has_a_bench() -> None:
    assert {path.stem for path in rtl_files()} == set(BENCHES)


@pytest.mark.parametrize("flags", ["", "w", "kw -- X=1"])
def test_verilators_makefile_finds_a_python(flags: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKEFLAGS", flags)
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    assert environment()["MAKEFLAGS"] == os.environ["MAKEFLAGS"]
    makefile = find_toolchain().root / "include" / "verilated.mk"
    printed = subprocess.run(["make", "-pn", "-f", makefile], capture_output=True, text=True, check=False).stdout
    assert f"\nPYTHON3 = {sys.executable}\n" in printed


@with_benches(QUICK_SHAPES)
def test_bench(module: str, bench: str, shape: dict[str, int], form: Form, build_root: Path) -> None:
    run_bench(module, bench, shape, build_root, Sources(form=form))


@pytest.mark.long
@with_benches()
def test_bench_of_many_seeds(module: str, bench: str, shape: dict[str, int], form: Form, build_root: Path) -> None:
    run_bench(module, bench, shape, build_root, Sources(form=form), range(1, 26))
