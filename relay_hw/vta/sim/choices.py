"""Where implementations of VTA disagree: a switch for each place, and what each implementation chose.

In: a core. Out: `Choices`. A program that gives the same results under all of them depends on none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from relay_hw.vta.geometry import Core
from relay_hw.vta.isa import Queue


class Shift(Enum):
    """How SHR reads its amount."""

    # Any amount; a negative one shifts left.
    FULL = "full"
    # The low five bits, signed: from -16 to 15.
    FIVE_BITS = "five bits"
    # From 0 to 31; a negative immediate shifts left, a negative entry of ACC has no meaning.
    RIGHT = "right"


@dataclass(frozen=True, slots=True)
class Choices:
    """One reading of the rules.

    `out_buffer`: STORE reads what GEMM and ALU left in OUT, not ACC. `multiplies`: ALU has MUL. `loads_bytes`: LOAD
    knows ACC_8BIT. `pads_wgt`, `pads_acc`: LOAD puts zeros around what goes there. `one_row`: ALU changes the first
    row of an entry only. `in_order`: one instruction after the other, without tokens. `most_tokens`: what a counter
    holds; `loses_tokens`: more are lost, else the giver waits. `first`: the order in which modules are given their
    turn.
    """

    out_buffer: bool = True
    shift: Shift = Shift.FULL
    multiplies: bool = False
    loads_bytes: bool = False
    pads_wgt: bool = True
    pads_acc: bool = True
    one_row: bool = False
    in_order: bool = False
    most_tokens: int = 1024
    loses_tokens: bool = False
    first: tuple[Queue, ...] = (Queue.LOAD, Queue.COMPUTE, Queue.STORE)


CHOICES: Final[Mapping[Core, Choices]] = {
    Core.HLS: Choices(shift=Shift.FIVE_BITS, pads_wgt=False),
    Core.CHISEL: Choices(shift=Shift.RIGHT, one_row=True, most_tokens=255, loses_tokens=True),
    Core.FSIM: Choices(out_buffer=False, multiplies=True, loads_bytes=True),
    Core.OPENCL: Choices(multiplies=True, loads_bytes=True, pads_acc=False, in_order=True),
}
