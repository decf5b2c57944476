"""Hoists commands of the multipliers over the output stage's of the step before, where no dependence forbids it.

In: lines in program order. Out: the same lines in another order that means the same. The dispatcher is in order: many
REQUANTs of a step would fill their queue while the next step's GEMM, which waits for none of them, stands behind.
"""

from __future__ import annotations

from collections.abc import Sequence

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.spec import BY_OP, Unit
from relay_hw.tensorize.access import Space
from relay_hw.tensorize.emit.emit import Line


def hoist(lines: Sequence[Line], config: AccelConfig) -> tuple[Line, ...]:
    """Each COMPUTE line in front of OUTPUT lines of the step before its own, unless they touch the same entries."""
    result: list[Line] = []
    for line in lines:
        place = len(result)
        if BY_OP[line.op].unit is Unit.COMPUTE:
            at = place
            while at and _may_pass(line, result[at - 1], config):
                at -= 1
                if BY_OP[result[at].op].unit is Unit.OUTPUT:
                    place = at
        result.insert(place, line)
    return tuple(result)


def _may_pass(line: Line, before: Line, config: AccelConfig) -> bool:
    unit = BY_OP[before.op].unit
    if unit is Unit.COMPUTE or (unit in (Unit.OUTPUT, Unit.ROW) and before.step < line.step - 1):
        return False
    for one in line.ranges:
        for other in before.ranges:
            if one.space is not other.space:
                continue
            if one.space is Space.ACC:
                # A bank belongs to one unit at a time.
                depth = config.acc_bank_depth
                if one.begin // depth <= (other.end - 1) // depth and other.begin // depth <= (one.end - 1) // depth:
                    return False
            elif (one.write or other.write) and one.begin < other.end and other.begin < one.end:
                return False
    return True
