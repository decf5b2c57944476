"""The model of an SDRAM chip: keeps words, and refuses every command that a data sheet forbids, with its reason."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from relay_hw.accel.fpga.sim import soc
from relay_hw.accel.fpga.sim.board import CXX_FLAGS
from relay_hw.accel.sim.verilator import find_toolchain, run_verilator, runtime_objects, user_cache_folder

MODEL = Path(soc.__file__).with_name("sdram_chip.v")
BENCH = Path(__file__).with_name("sdram_bench.cpp")
RCD, RP, RAS, RC, RFC, RRD, WR, MRD = 3, 3, 7, 10, 9, 2, 2, 2
POWER_UP, REFI = 20, 60
WRAPPER = f"""
module bench #(parameter CAS_LATENCY = 2) (
    input wire clk_i, input wire cke_i, input wire [2:0] command_i, input wire [1:0] bank_i,
    input wire [10:0] address_i, input wire [1:0] mask_i, input wire drive_i, input wire [15:0] data_i,
    output wire [15:0] data_o
);
  wire [15:0] data;
  assign data = drive_i ? data_i : 16'bz;
  assign data_o = data;
  sdram_chip #(
      .ROW_BITS(11), .COLUMN_BITS(8), .CAS_LATENCY(CAS_LATENCY), .T_RCD({RCD}), .T_RP({RP}), .T_RAS({RAS}),
      .T_RC({RC}), .T_RFC({RFC}), .T_RRD({RRD}), .T_WR({WR}), .T_MRD({MRD}), .T_POWER_UP({POWER_UP}),
      .T_REFI({REFI}), .REFRESH_LATE(3)
  ) u_chip (
      .clk_i(clk_i), .cke_i(cke_i), .cs_ni(1'b0), .ras_ni(command_i[2]), .cas_ni(command_i[1]),
      .we_ni(command_i[0]), .bank_i(bank_i), .address_i(address_i), .mask_i(mask_i), .data_io(data)
  );
endmodule
"""
MODE, REFRESH, PRECHARGE, ACTIVATE, WRITE, READ, STOP, NONE = range(8)
ALL = 1 << 10
Cycle = tuple[int, int, int, int, int, int, int]
Chip = Callable[..., tuple[list[int], str]]


def step(command: int, bank: int = 0, address: int = 0, data: int | None = None, mask: int = 0, cke: int = 1) -> Cycle:
    return (cke, command, bank, address, mask, int(data is not None), data or 0)


def wait(count: int) -> list[Cycle]:
    return [step(NONE)] * count


def setup(latency: int = 2) -> list[Cycle]:
    cycles = [step(NONE, cke=0)] * 4 + wait(POWER_UP) + [step(PRECHARGE, 0, ALL), *wait(RP - 1)]
    for _ in range(2):
        cycles += [step(REFRESH), *wait(RFC - 1)]
    return [*cycles, step(MODE, 0, latency << 4), *wait(MRD - 1)]


def opened(row: int = 5, bank: int = 0) -> list[Cycle]:
    return [*setup(), step(ACTIVATE, bank, row), *wait(RCD - 1)]


@pytest.fixture(scope="module", params=[2, 3])
def chip(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Chip:
    """Runs cycles: data on the bus before each edge, and what the chip said."""
    folder = tmp_path_factory.mktemp("chip")
    tools = find_toolchain()
    (folder / "bench.v").write_text(WRAPPER)
    (folder / "sdram_chip.v").write_text(MODEL.read_text())
    arguments = ["--cc", "-O3", "--no-timing", "-Wno-fatal", "-Wno-lint", "-Wno-style", "--prefix", "Vbench"]
    arguments += [f"-GCAS_LATENCY={request.param}", "--top-module", "bench", "--Mdir", "obj"]
    run_verilator(tools, [*arguments, "bench.v", "sdram_chip.v"], folder)
    objects = folder / "obj"
    (objects / "model.cpp").write_text("".join(f'#include "{path.name}"\n' for path in sorted(objects.glob("V*.cpp"))))
    include = tools.root / "include"
    runtime = runtime_objects(tools, CXX_FLAGS, ("verilated.cpp", "verilated_threads.cpp"), user_cache_folder())
    command = [str(tools.cxx), *CXX_FLAGS, "-O0", f"-I{objects}", f"-I{include}", f"-I{include / 'vltstd'}"]
    command += ["-o", str(folder / "bench"), str(BENCH), str(objects / "model.cpp"), *runtime]
    subprocess.run(command, check=True)

    def run(cycles: list[Cycle]) -> tuple[list[int], str]:
        text = "\n".join(" ".join(map(str, cycle)) for cycle in cycles)
        done = subprocess.run([folder / "bench"], input=text, capture_output=True, text=True, check=False)
        assert done.returncode == (3 if done.stderr else 0), done.stderr
        return [int(line) for line in done.stdout.splitlines() if line.isdigit()], done.stderr

    run.latency = request.param  # type: ignore[attr-defined]
    return run


def adapted(chip: Chip, cycles: list[Cycle]) -> list[Cycle]:
    """The same with the mode of the chip's latency."""
    latency = chip.latency  # type: ignore[attr-defined]
    return [(*row[:3], latency << 4, *row[4:]) if row[1] == MODE and row[3] == 32 else row for row in cycles]


def test_words_come_back_after_the_latency(chip: Chip) -> None:
    latency = chip.latency  # type: ignore[attr-defined]
    cycles = [*opened(), step(WRITE, 0, 7, 0xBEEF), step(WRITE, 0, 8, 0x1234), step(READ, 0, 7), step(READ, 0, 8)]
    data, said = chip(adapted(chip, [*cycles, *wait(6)]))
    assert said == ""
    at = len(cycles) - 2
    assert data[at + latency : at + latency + 2] == [0xBEEF, 0x1234]


def test_masks_keep_bytes_and_hold_the_bus(chip: Chip) -> None:
    latency = chip.latency  # type: ignore[attr-defined]
    cycles = [*opened(), step(WRITE, 0, 7, 0xBEEF), step(WRITE, 0, 7, 0x1234, mask=1)]
    data, said = chip(adapted(chip, [*cycles, step(READ, 0, 7), *wait(5)]))
    assert said == "" and data[len(cycles) + latency] == 0x12EF


def test_random_legal_traffic_is_kept(chip: Chip) -> None:
    """Rows of all banks, with and without auto-precharge, against a dictionary; refreshed in time."""
    rng, words = random.Random(1), dict[tuple[int, int, int], int]()
    latency = chip.latency  # type: ignore[attr-defined]
    cycles, expected = setup(), dict[int, int]()
    for turn in range(300):
        bank, row, column = rng.randrange(4), rng.randrange(3), rng.randrange(4)
        closing = rng.random() < 0.5
        cycles += [step(ACTIVATE, bank, row), *wait(RCD - 1)]
        if rng.random() < 0.5:
            words[bank, row, column] = rng.randrange(1 << 16)
            cycles.append(step(WRITE, bank, column | ALL * closing, words[bank, row, column]))
        else:
            expected[len(cycles) + latency] = words.get((bank, row, column), 0)
            cycles.append(step(READ, bank, column | ALL * closing))
        cycles += wait(RAS)
        cycles += [] if closing else [step(PRECHARGE, bank)]
        cycles += wait(RC)
        if turn % 2:
            cycles += [step(REFRESH), *wait(RFC - 1)]
    data, said = chip(adapted(chip, cycles))
    assert said == ""
    assert {at: data[at] for at in expected} == expected


def least(rule: str, cycles: int, found: int) -> str:
    return rf"sdram: {rule} must be at least {cycles} cycles, not {found} "


HOLD = [*opened(), step(WRITE, 0, 7, 1)]
CLOSED = [*opened(), *wait(RAS - RCD), step(PRECHARGE)]
REFUSED = {
    "power-up": ([*wait(5), step(PRECHARGE, 0, ALL)], least("time from power-up to the first command", POWER_UP, 6)),
    "no refreshes": (
        [*wait(POWER_UP), step(PRECHARGE, 0, ALL), *wait(RP), step(MODE, 0, 32)],
        "the mode register must come after precharge and two refreshes",
    ),
    "no precharge": ([*wait(POWER_UP), step(REFRESH)], "a refresh must come after a precharge of all banks"),
    "no mode": ([*setup()[:-MRD], *wait(9), step(ACTIVATE)], "a row must be opened after the initialisation"),
    "mode": ([*setup()[:-MRD], *wait(9), step(MODE, 0, 33)], "the mode must be bursts of one and the latency"),
    "tMRD": ([*setup()[: 1 - MRD], step(ACTIVATE)], least("tMRD", MRD, 1)),
    "tRFC": ([*setup(), step(REFRESH), *wait(RFC - 2), step(ACTIVATE)], least("tRFC", RFC, RFC - 1)),
    "tRCD of a read": ([*setup(), step(ACTIVATE), *wait(RCD - 2), step(READ)], least("tRCD", RCD, RCD - 1)),
    "tRCD of a write": ([*setup(), step(ACTIVATE), *wait(RCD - 2), step(WRITE)], least("tRCD", RCD, RCD - 1)),
    "tRAS": ([*opened(), *wait(RAS - RCD - 1), step(PRECHARGE)], least("tRAS", RAS, RAS - 1)),
    "tRAS of all": ([*opened(), step(PRECHARGE, 0, ALL)], least("tRAS", RAS, RCD)),
    "tWR": ([*opened(), *wait(RAS), step(WRITE), step(PRECHARGE)], least("tWR", WR, 1)),
    "tRP": ([*CLOSED, *wait(RP - 2), step(REFRESH)], least("tRP", RP, RP - 1)),
    "tRP of a row": ([*CLOSED, *wait(RP - 2), step(ACTIVATE)], least("tRP", RP, RP - 1)),
    "tRP after its own precharge": (
        [*opened(), *wait(RAS), step(READ, 0, ALL), *wait(RP - 1), step(ACTIVATE)],
        least("tRP", RP, RP - 1),
    ),
    "tRP after a write's own precharge": (
        [*opened(), *wait(RAS), step(WRITE, 0, ALL, 1), *wait(WR + RP - 2), step(ACTIVATE)],
        least("tRP", RP, RP - 1),
    ),
    "tRRD": ([*setup(), step(ACTIVATE), *wait(RRD - 2), step(ACTIVATE, 1)], least("tRRD", RRD, RRD - 1)),
    "closed bank": ([*opened(), step(READ, 1)], "an access must find its bank open"),
    "open bank": ([*opened(), step(ACTIVATE)], "a row must be opened in a closed bank"),
    "refresh of open banks": ([*opened(), step(REFRESH)], "a refresh must find all banks closed"),
    "mode with open banks": ([*opened(), step(MODE, 0, 32)], "the mode register must be written with all banks closed"),
    "bus": ([*opened(), step(READ), step(WRITE, 0, 0, 1)], "a write must wait until the data of a read have left"),
    "stop": ([*opened(), step(STOP)], "bursts of one word must not be stopped"),
    "clock enable": ([*setup(), step(NONE, cke=0)], "clock enable must stay high"),
    "refresh": ([*HOLD, *wait(5 * REFI)], "refresh must come in time"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_data_sheet_forbids(chip: Chip, name: str) -> None:
    cycles, sentence = REFUSED[name]
    _, said = chip(adapted(chip, cycles))
    assert re.search(sentence, said) and said.count("\n") == 1, said


def test_the_bus_is_free_one_cycle_after_the_data(chip: Chip) -> None:
    latency = chip.latency  # type: ignore[attr-defined]
    for gap, legal in ((latency, True), (latency - 1, False)):
        _, said = chip(adapted(chip, [*opened(), step(READ), *wait(gap), step(WRITE, 0, 0, 1), *wait(2)]))
        assert (said == "") is legal
