"""Integer arithmetic of the lanes: the numbers contract, shared by the instruction semantics and by nothing else.

`relay_hw` states the same arithmetic on its own as the meaning of its named integer operations; a test compares them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accel.isa.spec import AluOp, Rounding

Int64 = NDArray[np.int64]


def wrap32(value: Int64) -> Int64:
    """Two's complement wrap-around to 32 bits, kept in int64."""
    return value.astype(np.int32).astype(np.int64)


def round_shift(value: Int64, shift: Int64, rounding: Rounding) -> Int64:
    """Arithmetic right shift by 0 to 62 bits with one rounding. |value| is at most 2**62."""
    half = np.where(shift > 0, np.int64(1) << np.maximum(shift - 1, 0), 0)
    match rounding:
        case Rounding.FLOOR:
            return value >> shift
        case Rounding.HALF_UP:
            return (value + half) >> shift
        case Rounding.HALF_AWAY:
            return np.where(value < 0, -((half - value) >> shift), (value + half) >> shift)
        case Rounding.HALF_EVEN:
            rounded = (value + half) >> shift
            dropped = value & ((np.int64(1) << shift) - 1)
            tie = (shift > 0) & (dropped == half)
            return rounded - (tie & (rounded & 1 == 1))


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
            upper = (b & 0xFFFF).astype(np.int16).astype(np.int64)
            lower = (b >> 16).astype(np.int16).astype(np.int64)
            return np.maximum(np.minimum(a, upper), lower)
