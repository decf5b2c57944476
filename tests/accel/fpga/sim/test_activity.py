"""What switches on netlists: numbers of small ones by hand, what the model refuses, programs on that of `tiny`."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay_hw.accel.fpga.parts import FlowError, find_part
from relay_hw.accel.fpga.sim.activity import MODEL, ActivityDevice, Kind, header, weigh
from relay_hw.accel.fpga.sim.tables import tables
from relay_hw.accel.fpga.synth import bitstreams_folder
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.randprog import random_program
from relay_hw.accel.sim.cycle import CycleDevice
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.accel.sim.verilator import find_compiler
from tests.accel.fpga.extra import needs_yosys

CYCLES = 64
# Cycle by cycle: what is settled, then the edge. The input `go_i` is high in every fourth cycle.
MAIN = """
#include <algorithm>
#include "netlist.h"
#include "netlist_model.h"
int main(int, char** arguments) {
    switching::Netlist netlist{kNetlist};
    netlist.settle();
    netlist.begin();
    for (int k = 0; k < CYCLES; ++k) {
        netlist.set(kPorts[0], k % 4 == 3);
        netlist.settle();
        netlist.clock();
    }
    netlist.end();
    netlist.settle();
    netlist.clock();
    return !netlist.save(arguments[1]);
}
"""
OUTPUTS = ("Z", "Q", "S0", "S1", "COUT", "DO", "P")


def cell(kind: str, sizes: dict[str, str] | None = None, **pins: int | str | list[int | str]) -> dict[str, Any]:
    """A cell of yosys's JSON."""
    return {
        "type": kind,
        "parameters": sizes or {},
        "connections": {pin: bits if isinstance(bits, list) else [bits] for pin, bits in pins.items()},
        "port_directions": {pin: "output" if pin.startswith(OUTPUTS) else "input" for pin in pins},
    }


def module(**cells: dict[str, Any]) -> dict[str, Any]:
    """Cells between the clock 2, the input 3 and the output 4."""
    ports = {"clk_i": ("input", 2), "go_i": ("input", 3), "done_o": ("output", 4)}
    return {"ports": {name: {"direction": way, "bits": [bit]} for name, (way, bit) in ports.items()}, "cells": cells}


def counted(found: dict[str, Any], folder: Path) -> dict[Kind, int]:
    """What the model counts in CYCLES."""
    words = tables(found)
    (folder / "netlist.h").write_text(header(words))
    (folder / "main.cpp").write_text(MAIN.replace("CYCLES", str(CYCLES)))
    compiler, _ = find_compiler()
    flags = ["-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{MODEL}", "-I.", "main.cpp", "-o", "main"]
    subprocess.run([str(compiler), *flags], cwd=folder, check=True)
    subprocess.run(["./main", "counts"], cwd=folder, check=True)
    activity = weigh(found, words)(np.fromfile(folder / "counts", np.uint64))
    assert activity.cycles == CYCLES
    return {kind: count for kind, count in activity.counts.items() if count}


NOT_A = "0101010101010101"
A_XOR_B = "0110011001100110"


def counter() -> dict[str, dict[str, Any]]:
    """Two bits that count: 10 switches in each cycle, 11 in every second one."""
    return {
        "l0": cell("LUT4", {"INIT": NOT_A}, A=10, B="0", C="0", D="0", Z=12),
        "l1": cell("LUT4", {"INIT": A_XOR_B}, A=10, B=11, C="0", D="0", Z=13),
        "f0": cell("TRELLIS_FF", {"CEMUX": "1 "}, CLK=2, LSR="0", DI=12, Q=10),
        "f1": cell("TRELLIS_FF", {"CEMUX": "1 "}, CLK=2, LSR="0", DI=13, Q=11),
    }


def test_nets_count_the_pins_that_they_drive(tmp_path: Path) -> None:
    found = counted(module(**counter()), tmp_path)
    # 10 drives two tables, 11 one of them; 12 and 13 go to the flip-flop beside their table.
    assert found[Kind.FLIP_FLOP] == 2 * CYCLES + CYCLES // 2
    assert found[Kind.LOCAL] == CYCLES - 1 + CYCLES // 2
    assert found[Kind.CLOCK] == 2 * 2 * CYCLES
    assert Kind.LUT not in found and Kind.INPUT not in found


def test_a_table_that_leaves_its_slice_is_no_local_net(tmp_path: Path) -> None:
    read = cell("LUT4", {"INIT": NOT_A}, A=12, B=3, C="0", D="0", Z=4)
    found = counted(module(**counter(), read=read), tmp_path)
    # 12 has two readers now, 4 leads to the output, the input goes to a table that does not look at it.
    assert found[Kind.LUT] == 2 * (CYCLES - 1) + CYCLES - 1
    assert found[Kind.INPUT] == CYCLES // 2 - 1


def test_carries_have_a_wire_of_their_own(tmp_path: Path) -> None:
    sizes = {"INIT0": "1001011010101010", "INIT1": "1001011010101010", "INJECT1_0": "NO", "INJECT1_1": "NO"}
    one = {"B0": "1", "B1": "1", "C0": "1", "C1": "1", "D0": "1", "D1": "1"}
    low = cell("CCU2C", sizes, CIN="1", A0=10, A1=11, S0=12, S1=13, COUT=14, **one)
    high = cell("CCU2C", sizes, CIN=14, A0="0", A1="0", S0=4, **one)
    found = counted(module(low=low, high=high, f0=counter()["f0"], f1=counter()["f1"]), tmp_path)
    assert found[Kind.FLIP_FLOP] == CYCLES + CYCLES // 2
    # The carry out is high in one of four cycles, and so is the sum above it, which leads to the output.
    assert found[Kind.CARRY] == 2 * (CYCLES // 4) - 1
    assert found[Kind.LOCAL] == CYCLES - 1 + CYCLES // 2 + 2 * (CYCLES // 4) - 1


def test_block_rams_count_bits_of_accesses_and_reads_that_nobody_asked_for(tmp_path: Path) -> None:
    widths = {"DATA_WIDTH_A": f"{18:032b}", "DATA_WIDTH_B": f"{18:032b}", "WRITEMODE_A": "READBEFOREWRITE"}
    pins: dict[str, Any] = {"CEA": "1", "WEA": 3, "ADA0": "1", "ADA1": "0", "DIA0": 10, "ADA4": 11}
    pins |= {"CEB": 3, "WEB": "0", "ADB4": 11, "DOB0": 4, "RSTA": "0", "RSTB": "0"}
    found = counted(module(**counter(), ram=cell("DP16KD", widths, CLKA=2, CLKB=2, **pins)), tmp_path)
    # Written and read in every fourth cycle; the port that writes reads in all others, for nobody.
    assert found[Kind.WRITE] == found[Kind.READ] == 18 * CYCLES // 4
    assert found[Kind.IDLE] == 18 * (CYCLES - CYCLES // 4)


@pytest.mark.parametrize("registers", [{}, {"REG_INPUTA_CLK": "CLK0", "REG_INPUTB_CLK": "CLK0"}])
def test_multipliers_count_partial_products_that_change(registers: dict[str, str], tmp_path: Path) -> None:
    pins = {"A0": 10, "A17": 11, "B1": 11, "B2": 11, "SIGNEDA": "1", "SIGNEDB": "0", "CE0": "1", "RST0": "0", "P3": 4}
    found = counted(module(**counter(), product=cell("MULT18X18D", registers, CLK0=2, **pins)), tmp_path)
    values = [(k & 1 | (k >> 1 & 1) << 17, (k >> 1 & 1) * 6) for k in range(CYCLES)]
    values = [(0, 0), *values[:-1]] if registers else values
    bits = np.array([[[a >> i & b >> j & 1 for i in range(18)] for j in range(18)] for a, b in values])
    assert found[Kind.PARTIAL] == np.abs(np.diff(bits, axis=0)).sum() > 0
    products = [(a - (a >> 17 << 18)) * b >> 3 & 1 for a, b in values]
    assert found.get(Kind.PRODUCT, 0) == np.abs(np.diff(products)).sum()


def test_tables_as_memory_are_written_at_the_edge_and_read_at_once(tmp_path: Path) -> None:
    sizes = {"WREMUX": "WRE", "WCKMUX": "WCK"}
    zero: list[int | str] = ["0"] * 4
    memory = cell(
        "TRELLIS_DPR16X4", sizes, WCK=2, WRE=3, WAD=zero, RAD=zero, DI=[11, "0", "0", "0"], DO=[4, 20, 21, 22]
    )
    found = counted(module(**counter(), memory=memory), tmp_path)
    # Written in cycles 3, 7, ..., when the counter's upper bit is 1.
    assert found[Kind.LUT_MEMORY] == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (cell("PFUMX", Z=4), "cell wrong must be one of LUT4, CCU2C"),
        (cell("TRELLIS_FF", {"CLKMUX": "INV"}, CLK=2, Q=4), "TRELLIS_FF CLKMUX must be CLK, not INV"),
        (cell("TRELLIS_FF", {"SRMODE": "ASYNC"}, CLK=2, LSR=3, Q=4), "SRMODE must be LSR_OVER_CE or CE_OVER_LSR"),
        (cell("TRELLIS_FF", CLK=3, Q=4), "must have one clock to be counted, not 2"),
        (cell("DP16KD", {"RESETMODE": "ASYNC"}, RSTA=3), "DP16KD RESETMODE must be SYNC where a port has a reset"),
        (cell("DP16KD", {"INITVAL_00": "1"}), "DP16KD INITVAL must be 0"),
        (cell("DP16KD", {"REGMODE_A": "OUTREG"}), "DP16KD REGMODE_A must be NOREG, not OUTREG"),
        (cell("TRELLIS_DPR16X4", {"INITVAL": "1"}), "TRELLIS_DPR16X4 INITVAL must be 0"),
        (cell("MULT18X18D", {"REG_OUTPUT_CLK": "CLK0"}, CLK0=2), "REG_OUTPUT_CLK must be NONE, not CLK0"),
        (cell("LUT4", {"INIT": NOT_A}, A=4, Z=4), "must have registers in each of its loops"),
    ],
)
def test_what_the_model_does_not_know_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(FlowError, match=message):
        tables(module(**counter(), wrong=wrong))


def test_ports_of_more_than_a_word_are_refused() -> None:
    found = module(**counter())
    found["ports"]["done_o"]["bits"] = [4] * 65
    with pytest.raises(FlowError, match="port done_o must have at most 64 bits to be counted, not 65"):
        header(tables(found))


@pytest.mark.long
@needs_yosys
def test_programs_on_the_netlist_leave_the_same_bytes_in_the_same_cycles() -> None:
    config = load_config("tiny")
    device, cycles, model = (
        ActivityDevice(config, find_part("lfe5u-25f"), bitstreams_folder()),
        CycleDevice(config),
        FunctionalDevice(config),
    )
    try:
        for seed in range(12):
            program = random_program(config, seed, 60)
            for each in (device, cycles, model):
                each.load(program)
            stats, expected = device.launch(), cycles.launch()
            model.launch()
            assert stats.counters == expected.counters, seed
            assert np.array_equal(device.read(0, program.window_bytes), model.read(0, program.window_bytes)), seed
            activity = device.activity()
            assert activity.cycles == pytest.approx(stats.cycles, abs=2)
            assert all(activity.counts[kind] > 0 for kind in Kind)
    finally:
        device.close()
