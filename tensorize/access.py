"""Which scratchpad entries and DRAM bytes a command touches, as ranges relative to its bases.

In: commands. Out: `Touch` values. `tokens` and `emit` order instructions by them; `check` computes its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from relay_hw.accel.isa.config import TABLE_RECORDS, TAPS, AccelConfig
from relay_hw.accel.isa.loops import with_second_steps
from relay_hw.accel.isa.rules import dram_extent, gather_rows, has_factors, row_coefficients, row_entries
from relay_hw.accel.isa.spec import TWO_OPERANDS, Dst, Form, GemmMode, Mem, Op
from relay_hw.accel.isa.state import element_bytes
from relay_hw.tensorize.commands import Command, Uop


class Space(IntEnum):
    """Scratchpads, by the number of their `Mem`, and DRAM."""

    INP = 0
    WGT = 1
    ACC = 2
    OUT = 3
    UOP = 4
    PRM = 5
    TAB = 6
    COF = 7
    DRAM = 8


@dataclass(frozen=True, slots=True)
class Touch:
    """Entries (bytes of DRAM) [begin, end) behind base `field`; `end` is one past the last."""

    field: str
    space: Space
    begin: int
    end: int
    write: bool


def touches(command: Command, config: AccelConfig) -> tuple[Touch, ...]:
    """Ranges that `command` reads and writes, each relative to what its base field refers to."""
    v = command.values
    match command.op:
        case Op.LOAD:
            space = Space(v["mem"])
            widened = (2 if space is Space.WGT else 4) if v.get("expand") else 1
            entries = _image_bytes(config, v) * widened // element_bytes(config, Mem(v["mem"]))
            if v.get("pitch") and not has_factors(v):
                entries = _plane_entries(config, v)
            return (
                Touch("dram", Space.DRAM, 0, dram_extent(config, command.op, v), False),
                Touch("sram", space, 0, entries, True),
            )
        case Op.GATHER:
            return (
                Touch("dram", Space.DRAM, 0, dram_extent(config, command.op, v), False),
                Touch("sram", Space.INP, 0, gather_rows(v) * v["x"] * v["pitch"], True),
            )
        case Op.STORE:
            entries = _image_bytes(config, v) // config.out_bytes
            return (
                Touch("sram", Space.OUT, 0, entries, False),
                Touch("dram", Space.DRAM, 0, dram_extent(config, command.op, v), True),
            )
        case Op.GEMM:
            return _gemm(v, command.uops, config)
        case Op.ALU:
            return _alu(v, command.uops)
        case Op.REQUANT:
            return _requant(command, config)
        case Op.ROW:
            return _row(v, config)
        case Op.FINISH:
            return ()


def _image_bytes(config: AccelConfig, v: Mapping[str, int]) -> int:
    rows = v.get("y_pad_0", 0) + v["y"] + v.get("y_pad_1", 0)
    runs = v.get("x_pad_0", 0) + v["x"] + v.get("x_pad_1", 0)
    return rows * runs * v["z"] * config.granule_bytes


def _loops(v: Mapping[str, int], name: str) -> int:
    return (v["iter_out"] - 1) * v.get(f"{name}_out", 0) + (v["iter_in"] - 1) * v.get(f"{name}_in", 0)


def _range(v: Mapping[str, int], name: str, values: Iterable[int]) -> tuple[int, int]:
    known = tuple(values)
    return min(known), max(known) + _loops(v, name) + 1


def _plane_entries(config: AccelConfig, v: Mapping[str, int]) -> int:
    """Entries from the first to the last that a LOAD to planes writes."""
    rows = v.get("y_pad_0", 0) + v["y"] + v.get("y_pad_1", 0)
    runs = v.get("x_pad_0", 0) + v["x"] + v.get("x_pad_1", 0)
    planes = v["z"] * config.granule_bytes // config.line_bytes
    return (TAPS * v["pitch"] * (planes - 1) + rows * runs) * config.line_entries


def _gemm(v: Mapping[str, int], uops: tuple[Uop, ...], config: AccelConfig) -> tuple[Touch, ...]:
    mode = GemmMode(v.get("mode", GemmMode.MATMUL))
    begin, end = _range(v, "inp", (u[1] for u in uops))
    found = [
        Touch("uop_begin", Space.UOP, 0, len(uops), False),
        Touch("acc_base", Space.ACC, *_range(v, "acc", (u[0] for u in uops)), True),
    ]
    first, last = _range(v, "wgt", (u[2] for u in uops))
    match mode:
        case GemmMode.MATMUL | GemmMode.ENTRY:
            more = config.operand_entries - 1 if mode is GemmMode.MATMUL else 0
            found.append(Touch("inp_base", Space.INP, begin, end + more, False))
            found.append(Touch("wgt_base", Space.WGT, first, last, False))
        case GemmMode.TAPS:
            found.append(Touch("inp_base", Space.INP, *_lines(begin, end, TAPS, config), False))
            groups = config.tap_groups
            found.append(Touch("wgt_base", Space.WGT, first // groups, (last - 1) // groups + 1, False))
        case GemmMode.MAX:
            # Of masks that reach different taps, the highest micro-op needs no more than the highest mask.
            reach = max(u[2] for u in uops).bit_length()
            found.append(Touch("inp_base", Space.INP, *_lines(begin, end, reach, config), False))
    return tuple(found)


def _lines(begin: int, end: int, reach: int, config: AccelConfig) -> tuple[int, int]:
    """Entries [begin, end) of INP that hold `reach` lines from each part of [begin, end) on."""
    return _entries(begin, end - 1 + (reach - 1) * config.line_parts, config)


def _entries(first: int, last: int, config: AccelConfig) -> tuple[int, int]:
    """Entries [begin, end) of INP that hold the output blocks from part `first` to part `last`."""
    return first // config.entry_parts, -(-(last + config.block_parts) // config.entry_parts)


def _alu(v: Mapping[str, int], uops: tuple[Uop, ...]) -> tuple[Touch, ...]:
    touched = [
        Touch("uop_begin", Space.UOP, 0, len(uops), False),
        Touch("dst_base", Space.ACC, *_range(v, "dst", (u[0] for u in uops)), True),
    ]
    if not v.get("use_imm"):
        touched.append(Touch("src_base", Space.ACC, *_range(v, "src", (u[1] for u in uops)), False))
    return tuple(touched)


def _requant(command: Command, config: AccelConfig) -> tuple[Touch, ...]:
    v = command.values
    acc = (0, _loops(v, "acc") + 1)
    space = {Dst.OUT: Space.OUT, Dst.ACC: Space.ACC, Dst.INP: Space.INP}[Dst(v["dst"])]
    written = (0, _loops(v, "dst") + 1)
    if space is Space.INP:
        first = command.refs["dst_base"].part
        written = _entries(first, first + _loops(v, "dst"), config)
    touched = [Touch("acc_base", Space.ACC, *acc, False), Touch("dst_base", space, *written, True)]
    if Form(v["form"]) in TWO_OPERANDS:
        second = {"acc_out": 0, "acc_in": 0, **v}
        touched.append(Touch("res_base", Space.ACC, 0, _loops(with_second_steps(second), "res") + 1, False))
    if v["form"] != Form.PASS:
        end = (v["iter_out"] - 1) * v.get("prm_out", 0) + 1
        touched.append(Touch("prm_base", Space.PRM, 0, end, False))
    if "table" in command.refs:
        touched.append(Touch("table", Space.TAB, 0, TABLE_RECORDS, False))
    return tuple(touched)


def _row(v: Mapping[str, int], config: AccelConfig) -> tuple[Touch, ...]:
    """Rows are replaced where they are."""
    end = (v["rows"] - 1) * v["row_step"] + (row_entries(config, v["columns"]) - 1) * v["entry_step"] + 1
    return (
        Touch("acc_base", Space.ACC, 0, end, False),
        Touch("acc_base", Space.ACC, 0, end, True),
        Touch("cof_base", Space.COF, 0, row_coefficients(config, v), False),
    )
