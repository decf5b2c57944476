"""Numbers of the output stage and of the row unit: how sums become int8.

In: nothing of Relay, nothing of a configuration. Out: what kernels (`kernel.py`) hold and lowerings write as records.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.spec import Rounding

Int64 = NDArray[np.int64]
# Of the output stage: 256 int8 results as bytes, that for -128 first.
Table = bytes


@dataclass(frozen=True, slots=True, eq=False)
class Requantize:
    """clip((wrap32(acc + bias) * multiplier rounded >> shift) + zero_point); arrays are int64 [channels].

    `table`: what the result goes through.
    """

    bias: Int64
    multiplier: Int64
    shift: Int64
    zero_point: int
    rounding: Rounding
    clip_lo: int
    clip_hi: int
    table: Table | None = None


@dataclass(frozen=True, slots=True)
class AddStage:
    """clip((((y - y_zero) * y_multiplier + (r - r_zero) * r_multiplier) rounded >> shift) + zero_point)."""

    y_multiplier: int
    r_multiplier: int
    shift: int
    y_zero: int
    r_zero: int
    zero_point: int
    rounding: Rounding
    clip_lo: int
    clip_hi: int
    table: Table | None = None


@dataclass(frozen=True, slots=True)
class MulStage:
    """clip(((y - y_zero) * multiplier * (r - r_zero) rounded >> shift) + zero_point), then `table`."""

    multiplier: int
    shift: int
    y_zero: int
    r_zero: int
    zero_point: int
    rounding: Rounding
    clip_lo: int
    clip_hi: int
    table: Table | None = None


@dataclass(frozen=True, slots=True)
class RowStage:
    """Numbers of a function of rows: all have `shift` and `zero_point`, softmax `multiplier`, norms `epsilon`, RMS norm
    `input_zero`."""

    shift: int
    zero_point: int
    multiplier: int = 0
    epsilon: int = 0
    input_zero: int = 0
