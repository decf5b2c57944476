"""The page of boards: it is what the facts say, its commands are ones, and it promises nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from relay_hw.accel.fpga.boards import BOARDS, find_board
from relay_hw.accel.fpga.parts import find_part
from relay_hw.accel.fpga.vendor.targets import Form, find_target
from relay_hw.accel.isa.config import load_config
from scripts import boards

ROOT = Path(__file__).parents[2]
PAGE = boards.PAGE.read_text()


def test_the_page_is_what_the_facts_say() -> None:
    facts = json.loads(boards.FACTS.read_text())
    assert boards.page(PAGE, facts) == PAGE, "run: python scripts/boards.py"
    assert set(facts) <= {*boards.BITSTREAMS, *boards.ARRAYS, *boards.PROJECTS}
    assert boards.PAGE.read_text().splitlines()[0].startswith("**Not yet tested on hardware")


@pytest.mark.parametrize("command", [*boards.BITSTREAMS, *boards.PROJECTS])
def test_commands_are_commands(command: str) -> None:
    args = boards.parsed(command)
    load_config(args.config)
    if command in boards.PROJECTS:
        assert find_target(args.board, Form(args.form)).name == args.board and args.estimate
    elif args.board:
        assert find_board(args.board).name == args.board
    else:
        assert find_part(args.part).name == args.part
    assert f"`relay-hw {command}`" in boards.PAGE.read_text()


@pytest.mark.parametrize("command", boards.ARRAYS)
def test_arrays_are_configurations(command: str) -> None:
    config = boards.array_of(command)
    assert config.macs_per_cycle == config.block_in * config.block_out and config.wgt_bits in (4, 8)
    assert f"`python scripts/area.py {command}`" in boards.PAGE.read_text()


def test_clocks_of_boards_are_those_that_were_routed() -> None:
    facts = json.loads(boards.FACTS.read_text())
    routed: dict[tuple[str, str], float] = {}
    for command in set(boards.BITSTREAMS) & set(facts):
        args = boards.parsed(command)
        if args.board and facts[command]["timing_met"]:
            lines = {mhz for _, mhz in find_board(args.board).data_clocks}
            (routed[args.board, args.config],) = {row["asked_mhz"] for row in facts[command]["clocks"].values()} - lines
    assert {(b.name, fit.config): fit.mhz for b in BOARDS for fit in b.fits if fit.is_routed} == routed


def report(mhz: float) -> dict[str, Any]:
    used = {"luts": 12_000, "flip_flops": 6_000, "multipliers": 7, "block_rams": 28}
    clocks = {"clk_i": {"mhz": mhz, "asked_mhz": 25.0}}
    available = {"luts": 24_000, "multipliers": 28, "block_rams": 56}
    facts = {"used": used, "available": available, "clocks": clocks, "timing_met": mhz >= 25}
    return facts | {"macs": 16, "key": "k", "tools": {}}


def test_rows() -> None:
    command = boards.BITSTREAMS[0]
    row = "| lfe5u-25f, `mini` | 16 | 25 MHz | 31.2 MHz | 12,000 (50 %) | 6,000 | 7 (25 %) | 28 (50 %) |"
    assert row in boards.page(PAGE, {command: report(31.23)})
    two = report(31.23)
    two["clocks"] = {"rx": {"mhz": 142.07, "asked_mhz": 125.0}} | two["clocks"]
    assert "| 25, 125 MHz | 31.2, 142.1 MHz |" in boards.page(PAGE, {command: two})
    text = boards.page(PAGE, {command: report(20.0) | {"present": False}})
    assert "20.0 MHz, missed" in text and f"`relay-hw {command}` (an older RTL) |" in text
    assert text.count("not built yet") == len(boards.BITSTREAMS) + len(boards.ARRAYS) + len(boards.PROJECTS) - 1


def test_rows_of_arrays() -> None:
    counts = {"luts": 51_000, "flip_flops": 21_000, "multipliers": 153, "block_rams": 170}
    text = boards.page(PAGE, {boards.ARRAYS[1]: counts | {"part": "lfe5u-85f"}})
    assert "| 256, weights of 4 bits | 51,000 | 21,000 | 153 | 170 | lfe5u-85f |" in text
    assert "| none |" in boards.page(PAGE, {boards.ARRAYS[1]: counts | {"part": None}})


def test_what_the_cache_holds_is_kept_and_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards, "FACTS", tmp_path / "boards.json")
    monkeypatch.setattr(boards, "PAGE", tmp_path / "boards.md")
    boards.PAGE.write_text(PAGE)
    command = boards.BITSTREAMS[0]
    answers: dict[bool, Any] = {True: report(30.0), False: None}
    monkeypatch.setattr(boards, "project", lambda _command, _build: None)
    monkeypatch.setattr(boards, "array", lambda _command, _build: None)
    monkeypatch.setattr(boards, "bitstream", lambda found, build: answers[build] if found == command else None)
    assert boards.main([]) == 0
    assert json.loads(boards.FACTS.read_text()) == {}
    assert boards.main(["--build", "--only", "lfe5u-25f"]) == 0
    assert json.loads(boards.FACTS.read_text())[command]["present"] is True
    assert boards.main([]) == 0
    assert json.loads(boards.FACTS.read_text())[command]["present"] is False
    assert "(an older RTL)" in boards.PAGE.read_text()
