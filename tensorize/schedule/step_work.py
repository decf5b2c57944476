"""Estimated cycles of commands and steps, and the tensor bytes that a step reads and writes.

In: steps before addresses. Out: `Work`, for ordering steps and loading ahead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relay_hw.accel.isa.slots import instruction_slots
from relay_hw.accel.isa.spec import Dst, Mem, Op
from relay_hw.tensorize.access import Space, touches
from relay_hw.tensorize.commands import Command, Key, Step, dram_granules, gather_cycles, image_beats
from relay_hw.tensorize.target import Target


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes [begin, end) of a tensor."""

    key: Key
    begin: int
    end: int

    def meets(self, other: ByteRange) -> bool:
        """True where both have a byte in common."""
        return self.key == other.key and self.begin < other.end and other.begin < self.end


@dataclass(frozen=True, slots=True)
class Work:
    """Estimated cycles of one step on each unit, and the tensor bytes that it reads and writes.

    `takes` and `gives`: patches of INP that other steps' results fill, and those that this step's results go to.
    """

    compute: int
    output: int
    load: int
    store: int
    reads: tuple[ByteRange, ...]
    writes: tuple[ByteRange, ...]
    takes: tuple[Key, ...] = ()
    gives: tuple[Key, ...] = ()
    row: int = 0


def work_of(step: Step, config: Target) -> Work:
    """Cycles and tensor ranges of a step; loads of constants are left out."""
    loads = [load for buffer in step.buffers for load in buffer.loads]
    cycles = {op: sum(command_cycles(c, config) for c in step.commands if c.op is op) for op in Op}
    gives = _chip_results(step)
    filled = [b.key for b in step.buffers if b.mem is Mem.INP and not b.loads and b.key not in gives]
    return Work(
        compute=cycles[Op.GEMM] + cycles[Op.ALU],
        output=cycles[Op.REQUANT],
        load=sum(command_cycles(load, config) for load in loads),
        store=cycles[Op.STORE],
        reads=_byte_ranges(loads, config),
        writes=_byte_ranges([c for c in step.commands if c.op is Op.STORE], config),
        takes=tuple(filled),
        gives=gives,
        row=cycles[Op.ROW],
    )


def _chip_results(step: Step) -> tuple[Key, ...]:
    into = [c.refs["dst_base"].key for c in step.commands if c.op is Op.REQUANT and c.values["dst"] == Dst.INP]
    return tuple(dict.fromkeys(into))


def command_cycles(command: Command, config: Target) -> int:
    """Cycles of a command whose unit never waits; a load of weights row by row waits for the memory's latency."""
    v = command.values
    match command.op:
        case Op.LOAD if v["mem"] == Mem.WGT:
            return max(image_beats(config, v), _short_runs(v, config))
        case Op.LOAD | Op.STORE:
            return image_beats(config, v)
        case Op.GATHER:
            return gather_cycles(config, v)
        case Op.GEMM | Op.ALU:
            return instruction_slots(config, command.op, v, _uops(command))
        case Op.REQUANT | Op.ROW | Op.FINISH:
            return instruction_slots(config, command.op, v)


def _short_runs(values: Mapping[str, int], config: Target) -> int:
    """Cycles in which the memory answers the bursts of a LOAD, as many at a time as there may be."""
    bursts = -(-dram_granules(config, values) * config.granule_bytes // (config.burst_beats * config.bus_bytes))
    return values["y"] * values["x"] * bursts * config.memory.latency // config.reads


def _uops(command: Command) -> int:
    if command.uops:
        return len(command.uops)
    return command.refs["uop_end"].offset - command.refs["uop_begin"].offset


def _byte_ranges(commands: Sequence[Command], config: Target) -> tuple[ByteRange, ...]:
    spans: list[ByteRange] = []
    for command in commands:
        ref = command.refs["dram"]
        for touch in touches(command, config):
            if touch.space is Space.DRAM:
                spans.append(ByteRange(ref.key, ref.offset + touch.begin, ref.offset + touch.end))
    return tuple(spans)
