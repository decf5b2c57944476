"""Slots: the cycles for which an instruction occupies the first stage of COMPUTE, OUTPUT or ROW without any stall.

In: a configuration and decoded fields. Out: slots of one micro-op, of one vector, of an instruction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from typing_extensions import assert_never

from relay_hw.accel.isa.alu import ALU_OPS, AluOp, Control
from relay_hw.accel.isa.config import ROW_QUARTERS, AccelConfig
from relay_hw.accel.isa.rules import row_entries
from relay_hw.accel.isa.spec import Form, Op


@dataclass(frozen=True, slots=True)
class Slots:
    """A number of slots that depends on the lane groups of a vector.

    `fixed` slots, and `groups` more for each of the G lane groups of a vector.
    """

    fixed: int
    groups: int = 0

    def of(self, groups: int) -> int:
        """Number of slots where a vector has `groups` lane groups."""
        return self.fixed + self.groups * groups

    def __str__(self) -> str:
        """`2`, `G`, `2 G`, `G + 1`."""
        groups = {0: "", 1: "G"}.get(self.groups, f"{self.groups} G")
        return " + ".join(text for text in (groups, str(self.fixed) if self.fixed or not groups else "") if text)


# Of one micro-op of GEMM, in every mode.
GEMM_SLOTS = Slots(1)
# Of one micro-op of ALU with an immediate; there are few multipliers for products.
ALU_SLOTS: Mapping[AluOp, Slots] = MappingProxyType(
    {op: Slots(1 + row.is_ahead, groups=int(row.has(Control.PRODUCT))) for op, row in ALU_OPS.items()}
)
# The same in the tensor form, which reads the source vector ahead.
TENSOR_SLOTS: Mapping[AluOp, Slots] = MappingProxyType(
    {op: Slots(2, groups=slots.groups) for op, slots in ALU_SLOTS.items() if not ALU_OPS[op].needs_imm}
)
# Of one vector of REQUANT: addition and product read two.
VECTOR_SLOTS: Mapping[Form, Slots] = MappingProxyType(
    {
        Form.SCALE: Slots(0, groups=1),
        Form.ADD: Slots(0, groups=2),
        Form.PASS: Slots(0, groups=1),
        Form.MUL: Slots(0, groups=2),
    }
)


# Of a round of ROW: one for each quarter of a row's entries, and those in which its last quarters leave the stages;
# at least as many as an inverse takes. A row takes part in one round for its maximum, one for its sums, one for their
# inverse and one for its results, while other rows are in the other stages.
ROW_DRAIN = 16
ROW_LEAST = 48
ROW_STAGES = 4


def row_round_slots(config: AccelConfig, columns: int) -> int:
    """Slots of one round of ROW."""
    return max(ROW_QUARTERS * row_entries(config, columns) + ROW_DRAIN, ROW_LEAST)


def lane_groups(config: AccelConfig) -> int:
    """G: groups of lanes in which the output stage, and MUL, take a vector."""
    return config.block_out // config.out_lanes


def vector_slots(config: AccelConfig, form: Form) -> int:
    """Slots of one vector of REQUANT."""
    return VECTOR_SLOTS[form].of(lane_groups(config))


def alu_slots(alu_op: AluOp, use_imm: bool) -> Slots:
    """Slots of one micro-op of ALU."""
    return (ALU_SLOTS if use_imm else TENSOR_SLOTS)[alu_op]


def uop_slots(config: AccelConfig, op: Op, values: Mapping[str, int]) -> int:
    """Slots of one micro-op of GEMM or ALU."""
    if op is Op.GEMM:
        return GEMM_SLOTS.of(lane_groups(config))
    return alu_slots(AluOp(values["alu_op"]), bool(values.get("use_imm"))).of(lane_groups(config))


def instruction_slots(config: AccelConfig, op: Op, values: Mapping[str, int], uops: int = 0) -> int:
    """Slots of a whole instruction; 0 for units that move data. `uops`: its micro-ops in one turn of its loops."""
    match op:
        case Op.GEMM | Op.ALU:
            return values["iter_out"] * values["iter_in"] * uops * uop_slots(config, op, values)
        case Op.REQUANT:
            return values["iter_out"] * values["iter_in"] * vector_slots(config, Form(values["form"]))
        case Op.ROW:
            return (values["rows"] + ROW_STAGES - 1) * row_round_slots(config, values["columns"])
        case Op.LOAD | Op.STORE | Op.GATHER | Op.FINISH:
            return 0
        case _:
            assert_never(op)


def slots_table() -> list[tuple[str, Slots]]:
    """(what one of, slots): equal operations of the ALU in one row."""
    rows = [("micro-op of GEMM, every mode", GEMM_SLOTS)]
    for form, table in (("with immediate", ALU_SLOTS), ("tensor form", TENSOR_SLOTS)):
        same: dict[Slots, list[str]] = {}
        for alu_op, slots in table.items():
            same.setdefault(slots, []).append(alu_op.name)
        rows += [(f"micro-op of ALU, {form}: {', '.join(names)}", slots) for slots, names in same.items()]
    return rows + [(f"vector of REQUANT, form {form.name.lower()}", slots) for form, slots in VECTOR_SLOTS.items()]
