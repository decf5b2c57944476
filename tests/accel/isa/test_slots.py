"""Slots of instructions: one table, which the page of timing shows and simulator and tensorizer read."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from relay_hw.accel.isa import gen_timing
from relay_hw.accel.isa.alu import AluOp
from relay_hw.accel.isa.config import AccelConfig, config_names, load_config
from relay_hw.accel.isa.slots import Slots, alu_slots, instruction_slots, slots_table
from relay_hw.accel.isa.spec import Form, GemmMode, Op
from relay_hw.accel.sim.cycle.unit_work import work_of
from relay_hw.tensorize.commands import Command
from relay_hw.tensorize.schedule.step_work import command_cycles

CONFIGS = [load_config(name) for name in config_names()]
TURNS = {"iter_out": 3, "iter_in": 5}


def instructions() -> list[tuple[Op, dict[str, int]]]:
    """Every kind of instruction that takes slots."""
    gemm = [(Op.GEMM, {"mode": mode}) for mode in GemmMode]
    pairs = [(alu_op, imm) for alu_op, imm in product(AluOp, (0, 1)) if imm or alu_op is not AluOp.CLIP]
    alu = [(Op.ALU, {"alu_op": alu_op, "use_imm": imm}) for alu_op, imm in pairs]
    requant = [(Op.REQUANT, {"form": form, "dst": 1}) for form in Form]
    return [(op, {**TURNS, "uop_begin": 2, "uop_end": 9, **fields}) for op, fields in (*gemm, *alu, *requant)]


def test_the_page_of_timing_has_the_table() -> None:
    assert gen_timing.main(["--check"]) == 0


def test_a_stale_table_is_found_and_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "TIMING.md"
    page.write_text(gen_timing.TIMING_PATH.read_text().replace("| G + 2 |", "| G + 3 |"))
    monkeypatch.setattr(gen_timing, "TIMING_PATH", page)
    assert gen_timing.main(["--check"]) == 1
    assert "TIMING.md must match slots.py" in capsys.readouterr().out
    assert gen_timing.main(["--write"]) == 0
    assert page.read_text() == gen_timing.timing_text(page.read_text())
    assert "| micro-op of ALU, tensor form: MUL | G + 2 |" in page.read_text()


def test_a_page_without_the_mark_is_refused() -> None:
    with pytest.raises(ValueError, match=r"TIMING\.md must have the mark that begins the table of slots"):
        gen_timing.timing_text("# Timing\n")


def test_slots_read_as_they_are_counted() -> None:
    for fixed, groups in product(range(3), range(3)):
        slots = Slots(fixed, groups)
        for count in (1, 2, 16):
            value = sum(
                int(term.removesuffix("G") or 1) * count if term.endswith("G") else int(term)
                for term in str(slots).replace(" G", "G").split(" + ")
            )
            assert value == slots.of(count)
    assert all(slots.of(1) > 0 for _, slots in slots_table())


@pytest.mark.parametrize("config", [*CONFIGS, replace(CONFIGS[0], name="one", out_lanes=1)], ids=lambda c: c.name)
def test_simulator_and_tensorizer_count_alike(config: AccelConfig) -> None:
    for op, fields in instructions():
        uops = tuple((0, 0, 0, 0) for _ in range(fields["uop_end"] - fields["uop_begin"]))
        expected = instruction_slots(config, op, fields, len(uops))
        assert work_of(config, op, fields).slots == expected > 0
        assert command_cycles(Command(op, fields, {}, uops), config) == expected


def test_what_takes_slots_ahead() -> None:
    config = load_config("default")
    groups = config.block_out // config.out_lanes
    assert alu_slots(AluOp.MUL, use_imm=False).of(groups) == groups + 2
    assert [alu_slots(alu_op, use_imm=True).of(groups) for alu_op in (AluOp.ADD, AluOp.SHR, AluOp.CLIP)] == [1, 2, 2]
    add = {**TURNS, "form": Form.ADD}
    assert instruction_slots(config, Op.REQUANT, add) == 2 * instruction_slots(config, Op.REQUANT, {**add, "form": 0})
