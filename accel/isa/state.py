"""Architectural state of the accelerator: what an instruction can read and write."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.config import (
    ROW_QUARTERS,
    SEMAPHORES,
    TABLE_RECORD_BYTES,
    TABLE_RESULTS,
    UOP_BYTES,
    AccelConfig,
)
from relay_hw.accel.isa.spec import Mem


@dataclass(slots=True)
class AccelState:
    """Scratchpads and the DRAM window as flat little-endian bytes, exposed as typed views.

    inp: int8 [inp_depth, inp_lanes]; wgt: int8 [wgt_depth, block_out, bytes of block_in weights];
    acc: int32 [acc_depth, block_out]; out: int8 [out_depth, block_out]; uop: uint64 [uop_depth];
    prm: int32 [prm_depth, block_out, 4]; tab: int8 [tables, 256], a copy; cof: uint64 [cof_depth, block_out / 4].
    Scratchpads keep their content between launches; semaphores start every launch at zero.
    """

    config: AccelConfig
    dram: NDArray[np.uint8]
    scratch: dict[Mem, NDArray[np.uint8]] = field(init=False)
    semaphores: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.scratch = {mem: np.zeros(scratch_bytes(self.config, mem), np.uint8) for mem in Mem}
        self.semaphores = np.zeros(SEMAPHORES, np.int64)

    @property
    def inp(self) -> NDArray[np.int8]:
        return self.scratch[Mem.INP].view(np.int8).reshape(-1, self.config.inp_lanes)

    @property
    def inp_blocks(self) -> NDArray[np.int8]:
        """INP as output blocks: int8 [inp_parts / block_parts, block_out]."""
        return self.scratch[Mem.INP].view(np.int8).reshape(-1, self.config.block_out)

    @property
    def wgt(self) -> NDArray[np.int8]:
        return self.scratch[Mem.WGT].view(np.int8).reshape(self.config.wgt_depth, self.config.block_out, -1)

    @property
    def acc(self) -> NDArray[np.int32]:
        return self.scratch[Mem.ACC].view(np.int32).reshape(-1, self.config.block_out)

    @property
    def out(self) -> NDArray[np.int8]:
        return self.scratch[Mem.OUT].view(np.int8).reshape(-1, self.config.block_out)

    @property
    def uop(self) -> NDArray[np.uint64]:
        return self.scratch[Mem.UOP].view(np.uint64)

    @property
    def prm(self) -> NDArray[np.int32]:
        return self.scratch[Mem.PRM].view(np.int32).reshape(-1, self.config.block_out, 4)

    @property
    def tab(self) -> NDArray[np.int8]:
        """Tables: the result of number n is at n + 128."""
        records = self.scratch[Mem.TAB].view(np.int8).reshape(-1, TABLE_RECORD_BYTES)
        return records[:, :2].reshape(-1, TABLE_RESULTS)

    @property
    def cof(self) -> NDArray[np.uint64]:
        return self.scratch[Mem.COF].view(np.uint64).reshape(-1, self.config.block_out // ROW_QUARTERS)


def element_bytes(config: AccelConfig, mem: Mem) -> int:
    """Bytes of one entry of a scratchpad."""
    match mem:
        case Mem.INP:
            return config.inp_bytes
        case Mem.WGT:
            return config.wgt_bytes
        case Mem.ACC:
            return config.acc_bytes
        case Mem.OUT:
            return config.out_bytes
        case Mem.UOP:
            return UOP_BYTES
        case Mem.PRM:
            return config.prm_bytes
        case Mem.TAB:
            return TABLE_RECORD_BYTES
        case Mem.COF:
            return config.cof_bytes


def depth(config: AccelConfig, mem: Mem) -> int:
    """Entries of a scratchpad."""
    match mem:
        case Mem.INP:
            return config.inp_depth
        case Mem.WGT:
            return config.wgt_depth
        case Mem.ACC:
            return config.acc_depth
        case Mem.OUT:
            return config.out_depth
        case Mem.UOP:
            return config.uop_depth
        case Mem.PRM:
            return config.prm_depth
        case Mem.TAB:
            return config.tab_depth
        case Mem.COF:
            return config.cof_depth


def scratch_bytes(config: AccelConfig, mem: Mem) -> int:
    """Bytes of a scratchpad."""
    return depth(config, mem) * element_bytes(config, mem)
