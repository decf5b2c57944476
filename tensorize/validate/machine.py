"""Runs encoded instructions on terms, in program order. The table of what each instruction does is here.

In: a program and its configuration. Out: `Memories` as a launch leaves them. That program order is as good as every
order in which the units may run is what `emit/check.py` proves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from relay_hw.accel.isa.errors import Fault
from relay_hw.accel.isa.program import Instr
from relay_hw.accel.isa.rules import check_instruction
from relay_hw.accel.isa.spec import Op
from relay_hw.tensorize.validate.memories import Failure, Memories
from relay_hw.tensorize.validate.products import gemm
from relay_hw.tensorize.validate.rows import row
from relay_hw.tensorize.validate.transfers import gather, load, store
from relay_hw.tensorize.validate.vectors import alu, requant

Values = Mapping[str, int]


def _finish(state: Memories, v: Values, index: int) -> None:
    """The end of the program; changes nothing."""


TERMS: Mapping[Op, Callable[[Memories, Values, int], None]] = MappingProxyType(
    {
        Op.LOAD: load,
        Op.STORE: store,
        Op.GEMM: gemm,
        Op.ALU: alu,
        Op.REQUANT: requant,
        Op.FINISH: _finish,
        Op.GATHER: gather,
        Op.ROW: row,
    }
)
if missing := set(Op) - set(TERMS):
    raise NotImplementedError(f"instructions must have a meaning in terms, {sorted(missing)} have none")


def launch(state: Memories, body: Sequence[Instr]) -> None:
    """Run a stream of instructions. Raises Failure."""
    for index, (op, values) in enumerate(body):
        try:
            check_instruction(state.config, op, values, index)
        except Fault as fault:
            raise Failure(str(fault)) from None
        TERMS[op](state, values, index)
