"""An upper bound on a program's cycles: a watchdog set to it never ends a sound launch.

In: instruction bytes, configuration, memory model. Out: cycles, generously rounded up.
"""

from __future__ import annotations

from relay_hw.accel.isa.alu import is_legal
from relay_hw.accel.isa.config import INSTRUCTION_BYTES, AccelConfig
from relay_hw.accel.isa.errors import EncodeError
from relay_hw.accel.isa.rules import dram_granules, gather_fetch_bytes, gather_rows
from relay_hw.accel.isa.slots import instruction_slots
from relay_hw.accel.isa.spec import Op, decode
from relay_hw.accel.sim.dram_timing import MemoryModel

# Cycles an instruction may spend outside its loops and bursts: decode, tokens, pipeline drain.
_OVERHEAD = 64
# Cycles that a vector of REQUANT may wait for the one before it, and a step of LOAD for a vector.
_HOLD = 8


def cycle_bound(config: AccelConfig, memory: MemoryModel, code: bytes) -> int:
    """Sum over the instructions as if nothing overlapped, every run its own burst. Illegal words count nothing."""
    total = 10_000
    for begin in range(0, len(code), INSTRUCTION_BYTES):
        total += _fetch(config, memory)
        try:
            row, v = decode(int.from_bytes(code[begin : begin + INSTRUCTION_BYTES], "little"))
        except EncodeError:
            continue
        total += _OVERHEAD + _work(config, memory, row.op, v)
    sdram = memory.sdram
    # Every refresh takes its cycles from the others.
    return total if sdram is None else total * sdram.refresh_every // (sdram.refresh_every - sdram.refresh) + 10_000


def _fetch(config: AccelConfig, memory: MemoryModel) -> int:
    beats = INSTRUCTION_BYTES // config.bus_bytes
    return _moved(config, memory, -(-beats // config.burst_beats), beats) + 5


def _moved(config: AccelConfig, memory: MemoryModel, bursts: int, beats: int) -> int:
    """Cycles of bursts with so many beats in all."""
    sdram = memory.sdram
    if sdram is None:
        return bursts * (memory.latency + 4) + beats * 2
    # As if every beat came to the chip after one of the other direction, in another row.
    row = 1 + sdram.rcd + sdram.rp + sdram.recovery + sdram.bank_switch
    beat = sdram.beat_cycles(config) + row + sdram.turn + sdram.write_to_read
    return bursts * (memory.latency + sdram.response + 4) + beats * 2 * beat


def _work(config: AccelConfig, memory: MemoryModel, op: Op, v: dict[str, int]) -> int:
    match op:
        case Op.LOAD | Op.STORE:
            beats = dram_granules(config, v) * config.granule_bytes // config.bus_bytes
            # A run of b beats needs one burst for every burst_beats of it, and two more for its ragged ends.
            bursts = v["y"] * v["x"] * (beats // config.burst_beats + 2)
            moved = _moved(config, memory, bursts, v["y"] * v["x"] * beats)
            return moved + (_padding(config, v) if op is Op.LOAD else 0)
        case Op.GATHER:
            beats = gather_fetch_bytes(config, v) // config.bus_bytes
            bursts = v["y"] * (beats // config.burst_beats + 2)
            windows = gather_rows(v) * v["x"] * (v["run"] // config.bus_bytes + 2)
            return _moved(config, memory, bursts, v["y"] * beats) + 2 * windows
        case Op.GEMM | Op.ALU:
            if op is Op.ALU and not is_legal(v["alu_op"], v["use_imm"]):
                return 0  # illegal: it never starts
            return instruction_slots(config, op, v, max(v["uop_end"] - v["uop_begin"], 0))
        case Op.REQUANT:
            return instruction_slots(config, op, v) + v["iter_out"] * v["iter_in"] * _HOLD
        case Op.ROW:
            return instruction_slots(config, op, v)
        case Op.FINISH:
            return 0


def _padding(config: AccelConfig, v: dict[str, int]) -> int:
    beats = v["z"] * config.granule_bytes // config.bus_bytes
    width = v["x_pad_0"] + v["x"] + v["x_pad_1"]
    rows = v["y_pad_0"] + v["y"] + v["y_pad_1"]
    return 2 * beats * width * rows
