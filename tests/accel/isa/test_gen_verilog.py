"""The generated Verilog header agrees with the tables, and stale copies are found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from relay_hw.accel.isa import gen_verilog
from relay_hw.accel.isa.config import config_names, load_config
from relay_hw.accel.isa.errors import FaultCode
from relay_hw.accel.isa.gen_verilog import HEADER_PATH, main, verilator_flags, verilog_header, verilog_parameters
from relay_hw.accel.isa.registers import REGISTERS
from relay_hw.accel.isa.spec import INSTRUCTIONS, PRM, UOP, Op

MACROS = dict(re.findall(r"^`define VTA_(\w+) (.+)$", verilog_header(), flags=re.MULTILINE))


def literal(text: str) -> int:
    """Value of a sized Verilog literal."""
    base, digits = text.split("'")[1][0], text.split("'")[1][1:]
    return int(digits, {"d": 10, "h": 16}[base])


def test_committed_header_is_fresh() -> None:
    assert HEADER_PATH.read_text() == verilog_header()
    assert main(["--check"]) == 0


def test_stale_header_is_found_and_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gen" / "vta_isa.vh"
    monkeypatch.setattr(gen_verilog, "HEADER_PATH", path)
    assert main(["--check"]) == 1
    assert "vta_isa.vh must match accel/isa/spec.py" in capsys.readouterr().out
    assert main(["--write"]) == 0
    assert main(["--check"]) == 0
    path.write_text(path.read_text().replace("8'd1", "8'd9", 1))
    assert main(["--check"]) == 1


@pytest.mark.parametrize("layout", [*(row.layout for row in INSTRUCTIONS), UOP, PRM], ids=lambda layout: layout.name)
def test_ranges_are_those_of_the_fields(layout) -> None:
    prefix = layout.name.upper()
    for field in layout.fields:
        bits = MACROS[f"{prefix}_{field.name.upper()}"].split(":")
        assert (int(bits[0]), int(bits[-1])) == (field.hi, field.lo)


@pytest.mark.parametrize("row", INSTRUCTIONS, ids=lambda row: row.name)
def test_reserved_bits_are_those_that_no_field_covers(row) -> None:
    covered = sum(((1 << field.width) - 1) << field.lo for field in row.layout.fields)
    assert literal(MACROS[f"{row.name.upper()}_RESERVED"]) == (1 << 256) - 1 - covered


def test_constants_are_those_of_the_enumerations() -> None:
    assert {op.name: literal(MACROS[f"OP_{op.name}"]) for op in Op} == {op.name: op.value for op in Op}
    assert all(literal(MACROS[f"FAULT_{code.name}"]) == code.value for code in FaultCode)
    assert all(literal(MACROS[f"REG_{r.name}"]) == r.offset for r in REGISTERS)


@pytest.mark.parametrize("name", config_names())
def test_parameters_are_those_of_the_top_module(name: str) -> None:
    config = load_config(name)
    text = (HEADER_PATH.parents[1] / "vta_top.v").read_text().split(") (")[0]
    declared = re.findall(r"parameter (?:\[31:0\] )?(\w+)\s*=", text)
    values = verilog_parameters(config)
    assert sorted(declared) == sorted(values)
    flags = verilator_flags(config)
    assert len(flags) == len(values)
    assert f"-GCONFIG_HASH=32'h{config.hash32:08x}" in flags
    assert f"-GBLOCK_OUT={config.block_out}" in flags


def test_x_is_written_in_the_header_alone() -> None:
    literal = re.compile(r"'s?[bhdo][0-9a-f_]*x", re.IGNORECASE)
    modules = {path.name: path.read_text() for path in HEADER_PATH.parents[1].rglob("*.v")}
    assert len(modules) > 40 and HEADER_PATH.read_text().count("1'bx") == 1
    assert not [name for name, text in modules.items() if literal.search(text)]
