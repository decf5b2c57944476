"""Boards: what LiteX makes of their SoC, the same text every time, and what its driver is told."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from relay_hw.accel.fpga import board_top
from relay_hw.accel.fpga.board_top import BoardSoc, cycles, memory_setup
from relay_hw.accel.fpga.boards import BOARDS, Board, find_board
from relay_hw.accel.fpga.parts import FlowError
from relay_hw.accel.fpga.sim.soc import chip_parameters
from relay_hw.accel.fpga.soc_map import SocMap, load_map
from relay_hw.accel.fpga.socs import Soc, board_soc
from relay_hw.accel.isa.config import load_config
from tests.accel.fpga.extra import needs_litex

TINY = load_config("tiny")
ULX3S = find_board("ulx3s-85f")


@pytest.fixture(scope="module")
def made() -> Callable[[Board], Soc]:
    socs: dict[str, Soc] = {}

    def make(board: Board) -> Soc:
        if board.name not in socs:
            socs[board.name] = board_soc(TINY, board)
        return socs[board.name]

    return make


def top(soc: Soc) -> str:
    return soc.design.files["fpga_board.v"]


@needs_litex
@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_the_same_text_every_time(
    board: Board, made: Callable[[Board], Soc], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = made(board)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    assert board_soc(TINY, board) == first
    text = top(first)
    assert not re.search(r"20\d\d-\d\d|LiteX \(|litex-|/home|/usr|site-packages|Date|Version", text)
    assert str(Path.home()) not in text


@needs_litex
@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_every_port_has_its_pin(board: Board, made: Callable[[Board], Soc]) -> None:
    head = re.search(r"module fpga_board \((.*?)\);", top(made(board)), re.DOTALL)
    assert head is not None
    ports: set[str] = set()
    for high, name in re.findall(r"wire\s+(?:\[(\d+):0\])?\s*(\w+)", head[1]):
        ports |= {f"{name}[{k}]" for k in range(int(high) + 1)} if high else {name}
    constraints = made(board).design.constraints
    assert set(re.findall(r'LOCATE COMP "(.*?)" SITE "\w+";', constraints)) == ports
    assert set(re.findall(r'IOBUF PORT "(.*?)" IO_TYPE=LVCMOS33', constraints)) == ports
    sites = re.findall(r'SITE "(\w+)"', constraints)
    assert len(sites) == len(set(sites))
    clocks = [("clk25", "25"), *((pin, f"{mhz:g}") for pin, mhz in board.data_clocks)]
    assert re.findall(r'FREQUENCY PORT "(\w+)" (\S+) MHZ;', constraints) == clocks


def loop(text: str) -> dict[str, int]:
    """Numbers of the phase-locked loop, by its parameters."""
    cell = re.search(r"EHXPLLL #\((.*?)\) EHXPLLL", text, re.DOTALL)
    assert cell is not None
    return {name: int(value) for name, value in re.findall(r"\.(\w+)\s*\(\d+'d(\d+)\)", cell[1])}


@needs_litex
@pytest.mark.parametrize("mhz", [25, 60, 80, 100])
def test_the_loop_makes_the_clock_and_its_phase(mhz: int) -> None:
    for board in BOARDS:
        text = top(board_soc(TINY, board, mhz))
        numbers = loop(text)
        # The loop feeds back one of its outputs.
        back = re.search(r'\.FEEDBK_PATH\s*\("INT_O(\w+)"\)', text)
        assert back is not None
        oscillator = board.input_mhz / numbers["CLKI_DIV"] * numbers["CLKFB_DIV"] * numbers[f"CLKO{back[1]}_DIV"]
        assert 400 <= oscillator <= 800
        assert oscillator / numbers["CLKOP_DIV"] == oscillator / numbers["CLKOS_DIV"] == mhz
        eighths = {
            name: 8 * (numbers[f"CLKO{name}_CPHASE"] - numbers[f"CLKO{name}_DIV"] + 1) + numbers[f"CLKO{name}_FPHASE"]
            for name in "PS"
        }
        shift = (eighths["S"] - eighths["P"]) / (8 * numbers["CLKOS_DIV"]) * 360
        assert abs(shift - board.sdram.clock_phase) <= 360 / (16 * numbers["CLKOS_DIV"])


@needs_litex
def test_the_map_survives_its_file(made: Callable[[Board], Soc], tmp_path: Path) -> None:
    soc = made(ULX3S).map
    (tmp_path / "soc.json").write_text(soc.to_json())
    assert load_map(tmp_path) == soc
    # Whole cycles of a bit: 25 for 3 MBaud.
    assert (soc.memory_bytes, soc.clock_hz, soc.baud) == (1 << 25, 75_000_000, 3_000_000)
    assert soc.config_hash == TINY.hash32


PLAIN_MAP = SocMap("ulx3s-85f", "ecp5", 0x1234, 50_000_000, 1 << 25, 1_000_000)
NONE = r"soc\.json must be the soc\.json of `relay-hw bitstream`: "


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"setup": {"address": 1}}, NONE + r"soc\.json\.setup must have the field ready"),
        ({"clock_hz": "50e6"}, NONE + r'soc\.json\.clock_hz must be an integer, not "50e6"'),
        ({"board": None}, NONE + r"soc\.json\.board must be a string, not null"),
        ({"other": 1}, NONE + r"soc\.json must have the fields board, config, .*, not other"),
        ({"memory_bytes": -1}, r"soc\.json must hold numbers of 32 bits, not -1"),
        ({"memory_base": 1 << 32}, r"soc\.json must hold numbers of 32 bits, not 4294967296"),
        (
            {"setup": {"address": 1, "ready": 1, "steps": [{"what": "x", "writes": [[1]], "pause_us": 1}]}},
            NONE + r"soc\.json\.setup\.steps\[0\]\.writes\[0\] must be a list of 2, not of 1",
        ),
        (
            {"setup": {"address": 1, "ready": 1, "steps": [{"what": "x", "writes": [[1, -2]], "pause_us": 1}]}},
            r"soc\.json must hold numbers of 32 bits, not -2",
        ),
    ],
)
def test_a_map_that_is_none(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    (tmp_path / "soc.json").write_text(json.dumps(json.loads(PLAIN_MAP.to_json()) | changes))
    with pytest.raises(FlowError, match=sentence):
        load_map(tmp_path)


def test_a_map_that_is_no_object(tmp_path: Path) -> None:
    (tmp_path / "soc.json").write_text(PLAIN_MAP.to_json())
    assert load_map(tmp_path) == PLAIN_MAP
    (tmp_path / "soc.json").write_text("[]")
    with pytest.raises(FlowError, match=NONE + r"soc\.json must be an object, not \[\]"):
        load_map(tmp_path)


def test_the_setup_is_what_the_data_sheet_says() -> None:
    names = ("control", "pi0_address", "pi0_baddress", "pi0_command", "pi0_command_issue")
    registers = {f"sdram_dfii_{name}": 4 * k for k, name in enumerate(names)}
    setup = memory_setup(ULX3S.sdram, registers)
    commands = []
    for step in setup.steps:
        state = dict(step.writes)
        if 16 in state:
            # chip, write enable, column and row strobes
            commands.append((state[12] & 15, state[4]))
    precharge, refresh, mode = (11, 1 << 10), (13, 0), (15, 2 << 4)
    assert commands == [precharge, *[refresh] * 8, mode]
    assert setup.steps[0].pause_us >= 100 and dict(setup.steps[0].writes) == {0: 2}
    assert dict(setup.steps[-1].writes) == {setup.address: setup.ready} == {0: 1}


def test_times_in_cycles() -> None:
    assert [cycles(ns, 80_000_000) for ns in (12.5, 12.6, 20, 44, 66)] == [1, 2, 2, 4, 6]
    sizes = chip_parameters(ULX3S.sdram, 80_000_000)
    assert (sizes["T_RCD"], sizes["T_RAS"], sizes["T_REFI"], sizes["ROW_BITS"]) == (2, 4, 625, 13)


def test_what_is_refused() -> None:
    with pytest.raises(FlowError, match="board must be one of ulx3s-85f, colorlight-i5, not icebreaker"):
        find_board("icebreaker")
    with pytest.raises(FlowError, match="clock of ulx3s-85f must be from 20 to 100 MHz, not 120"):
        BoardSoc(TINY, ULX3S, 120_000_000, 1_000_000)
    with pytest.raises(FlowError, match="baud must be at most a quarter of the clock, not 30000000"):
        BoardSoc(TINY, ULX3S, 80_000_000, 30_000_000)


@needs_litex
def test_a_clock_that_the_loop_cannot_make() -> None:
    with pytest.raises(FlowError, match=r"clock must be one that the board's PLL can make, not 77\.77 MHz"):
        board_soc(TINY, ULX3S, 77.77)


def test_without_litex(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board_top.importlib.util, "find_spec", lambda name: None if name == "litedram" else object())
    with pytest.raises(FlowError, match=r"litedram must be installed: pip install 'relay-hw\[fpga\]'"):
        board_soc(TINY, ULX3S)


@needs_litex
def test_what_litex_says_is_told() -> None:
    board = replace(ULX3S, name="nowhere")
    with pytest.raises(FlowError, match=r"LiteX must build the SoC of nowhere, not stop: .*board must be one of"):
        board_soc(TINY, board)
