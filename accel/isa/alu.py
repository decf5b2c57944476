"""Operations of the tensor ALU: one row each, from which legality, slots and the controls of the lanes follow.

Readers: encoder, checks, `slots.py`, `accel/rtl/gen/vta_isa.vh`, benches. What an operation computes is in `arith.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from textwrap import fill
from types import MappingProxyType


class AluOp(IntEnum):
    """Operations of the tensor ALU on int32 lanes; `b` is the source vector's lane or the immediate."""

    MOV = 0
    ADD = 1
    MUL = 2
    MIN = 3
    MAX = 4
    SHR = 5
    CLIP = 6


class Control(Enum):
    """What a lane does with the old value and the second operand; the value is the name in Verilog."""

    ZERO = "ZERO"  # no old value
    ADD = "ADD"  # sum of both
    COMPARE = "COMPARE"  # the smaller one
    GREATER = "GREATER"  # with COMPARE: the larger one
    SHIFT = "SHIFT"  # the old value shifted by the second operand, then rounded
    PRODUCT = "PRODUCT"  # of the multipliers, a group of lanes a slot
    BOUNDS = "BOUNDS"  # the second operand is two bounds: a slot ahead raises, the next one lowers


@dataclass(frozen=True, slots=True)
class AluRow:
    """One operation. `is_ahead`: a slot goes ahead of it, also where the second operand is an immediate."""

    doc: str
    controls: frozenset[Control]
    is_ahead: bool = False
    needs_imm: bool = False

    def has(self, control: Control) -> bool:
        """Whether the lanes use this control for the operation."""
        return control in self.controls


def _row(doc: str, *controls: Control, is_ahead: bool = False, needs_imm: bool = False) -> AluRow:
    return AluRow(doc, frozenset(controls), is_ahead, needs_imm)


_SHIFT = "a shifted right by the low five bits of b, with `rounding`"
_BOUNDS = "max(min(a, upper), lower) with upper the low and lower the high 16 bits of `imm`, both signed"


ALU_OPS: Mapping[AluOp, AluRow] = MappingProxyType(
    {
        AluOp.MOV: _row("b", Control.ADD, Control.ZERO),
        AluOp.ADD: _row("a + b", Control.ADD),
        AluOp.MUL: _row("a * b", Control.PRODUCT),
        AluOp.MIN: _row("min(a, b)", Control.COMPARE),
        AluOp.MAX: _row("max(a, b)", Control.COMPARE, Control.GREATER),
        AluOp.SHR: _row(_SHIFT, Control.ADD, Control.SHIFT, is_ahead=True),
        AluOp.CLIP: _row(_BOUNDS, Control.COMPARE, Control.BOUNDS, is_ahead=True, needs_imm=True),
    }
)


def is_legal(alu_op: int, use_imm: int) -> bool:
    """Whether a known operation has the second operand that it needs."""
    return bool(use_imm) or not ALU_OPS[AluOp(alu_op)].needs_imm


def with_control(control: Control) -> list[AluOp]:
    """The operations for which the lanes use a control."""
    return [op for op, row in ALU_OPS.items() if row.has(control)]


def operations_text() -> str:
    """What each operation computes, and which need an immediate, for the manual."""
    each = "; ".join(f"`{op.name.lower()}` {row.doc}" for op, row in ALU_OPS.items())
    bound = ", ".join(f"`{op.name.lower()}`" for op, row in ALU_OPS.items() if row.needs_imm)
    return fill(f"{each}. `use_imm` must be 1 for {bound}.", 120, break_long_words=False, break_on_hyphens=False)


def verilog_sets() -> dict[str, int]:
    """Sets of operations by their names in Verilog, bit n for operation n."""
    sets = {
        "LEGAL": list(AluOp),
        "NEEDS_IMM": [op for op, row in ALU_OPS.items() if row.needs_imm],
        "AHEAD": [op for op, row in ALU_OPS.items() if row.is_ahead],
        **{control.value: with_control(control) for control in Control},
    }
    return {name: sum(1 << op for op in ops) for name, ops in sets.items()}
