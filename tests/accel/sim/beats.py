"""The beats on the bus that an instruction reads or writes, for memories that answer one of them badly."""

from __future__ import annotations

from typing_extensions import assert_never

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.loops import Values
from relay_hw.accel.isa.rules import gather_fetch_bytes, transfer_shape
from relay_hw.accel.isa.spec import Op


def beats_of(config: AccelConfig, op: Op, v: Values) -> set[int]:
    """Offsets of the beats that an instruction reads or writes in the window."""
    match op:
        case Op.LOAD | Op.STORE:
            run, runs = transfer_shape(config, v)[2], [(y, x) for y in range(v["y"]) for x in range(v["x"])]
        case Op.GATHER:
            run, runs = gather_fetch_bytes(config, v), [(y, 0) for y in range(v["y"])]
        case Op.GEMM | Op.ALU | Op.REQUANT | Op.ROW | Op.FINISH:
            return set()
        case _:
            assert_never(op)
    starts = [v["dram"] + y * v["y_stride"] + x * v.get("x_stride", 0) for y, x in runs]
    return {begin for start in starts for begin in range(start, start + run, config.bus_bytes)}
