"""Integer arithmetic of one lane: wrap-around, rounding shifts and operations of the ALU.

`relay_hw` states the same arithmetic on its own as the meaning of its named integer operations; a test compares them.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.alu import AluOp
from relay_hw.accel.isa.spec import Rounding

Int64: TypeAlias = NDArray[np.int64]


def wrap32(value: Int64) -> Int64:
    """Two's complement wrap-around to 32 bits, kept in int64."""
    return value.astype(np.int32).astype(np.int64)


def sign_extend(value: Int64, bits: int) -> Int64:
    """The low `bits` bits as a two's complement number."""
    unused = 64 - bits
    return (value << unused) >> unused


def round_shift(value: Int64, shift: Int64, rounding: Rounding) -> Int64:
    """Arithmetic right shift by 0 to 62 bits with one rounding. |value| is at most 2**62."""
    one = np.ones_like(shift)
    half: Int64 = np.where(shift > 0, one << np.maximum(shift - 1, 0), 0)
    match rounding:
        case Rounding.FLOOR:
            return value >> shift
        case Rounding.HALF_UP:
            return (value + half) >> shift
        case Rounding.HALF_AWAY:
            return np.where(value < 0, -((half - value) >> shift), (value + half) >> shift)
        case Rounding.HALF_EVEN:
            rounded: Int64 = (value + half) >> shift
            dropped: Int64 = value & ((one << shift) - 1)
            return rounded - ((shift > 0) & (dropped == half) & (rounded & 1 == 1))


def alu(op: AluOp, a: Int64, b: Int64, rounding: Rounding) -> Int64:
    """One ALU operation on int32 lanes held in int64; the result is wrapped by the caller. `clip` unpacks b."""
    match op:
        case AluOp.MOV:
            return b
        case AluOp.ADD:
            return a + b
        case AluOp.MUL:
            return a * b
        case AluOp.MIN:
            return np.minimum(a, b)
        case AluOp.MAX:
            return np.maximum(a, b)
        case AluOp.SHR:
            return round_shift(a, b & 31, rounding)
        case AluOp.CLIP:
            return np.maximum(np.minimum(a, sign_extend(b, 16)), sign_extend(b >> 16, 16))
