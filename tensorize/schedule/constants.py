"""Merges small constant buffers, and cuts each into loads with the step that first needs them.

In: steps in program order. Out: steps with merged buffers, constant bytes by key, `ConstantLoad` in order of first use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.program import align
from relay_hw.accel.isa.spec import Mem, Op
from relay_hw.accel.isa.state import element_bytes
from relay_hw.tensorize.access import Space, touches
from relay_hw.tensorize.commands import Buffer, Command, Key, Packing, Ref, Step, image_beats
from relay_hw.tensorize.lower.common import Runs, transfer

# Bus cycles of one load of constants: long enough for full bursts, short enough to go between loads of activations.
# Large buffers are cut into MAX_CHUNKS, so that programs stay short.
CHUNK_CYCLES = 256
MAX_CHUNKS = 16


@dataclass(frozen=True, slots=True, eq=False)
class ConstantLoad:
    """One LOAD of part of constant buffer `key`; `deadline` is the position of the first step that needs the part."""

    key: Key
    mem: Mem
    layer: int
    deadline: int
    cycles: int
    command: Command


def merge_parameters(steps: Sequence[Step], config: AccelConfig) -> tuple[Step, ...]:
    """All parameter records as one buffer that stays for the whole program, where they fit the memory together."""
    buffers = {b.key: b for step in steps for b in step.buffers if b.mem is Mem.PRM and b.data is not None}
    if len(buffers) < 2 or sum(buffer.entries for buffer in buffers.values()) > config.prm_depth:
        return tuple(steps)
    offsets: dict[Key, int] = {}
    data = b""
    for key, buffer in buffers.items():
        offsets[key] = len(data) // config.prm_bytes
        data += buffer.data or b""
    whole = Buffer(("prm",), Mem.PRM, len(data) // config.prm_bytes, data=data)
    return tuple(_moved(step, offsets, whole) for step in steps)


def _moved(step: Step, offsets: Mapping[Key, int], whole: Buffer) -> Step:
    rest = tuple(buffer for buffer in step.buffers if buffer.key not in offsets)
    if len(rest) == len(step.buffers):
        return step
    commands = tuple(
        replace(c, refs={n: _moved_ref(r, offsets, whole) for n, r in c.refs.items()}) for c in step.commands
    )
    return replace(step, buffers=(*rest, whole), commands=commands)


def _moved_ref(ref: Ref, offsets: Mapping[Key, int], whole: Buffer) -> Ref:
    return replace(ref, key=whole.key, offset=ref.offset + offsets[ref.key]) if ref.key in offsets else ref


def constant_data(steps: Sequence[Step]) -> tuple[tuple[Key, Mem, bytes], ...]:
    """Key, memory and bytes of every constant buffer, in order of first use."""
    found = {b.key: (b.key, b.mem, b.data) for step in steps for b in step.buffers if b.data is not None}
    return tuple(found.values())


def constant_loads(steps: Sequence[Step], config: AccelConfig) -> tuple[ConstantLoad, ...]:
    """Loads of all constants; their `dram` refers to the buffer's key with "data" in front. Steps in program order."""
    first: dict[Key, tuple[Buffer, int, int]] = {}
    needs: dict[Key, list[tuple[int, int, int]]] = {}
    for at, step in enumerate(steps):
        for buffer in step.buffers:
            if buffer.data is not None:
                first.setdefault(buffer.key, (buffer, step.layer, at))
        for key, begin, end in _uses(step, config):
            needs.setdefault(key, []).append((begin, end, at))
    loads = [load for key, found in first.items() for load in _pieces(*found, needs.get(key, []), config)]
    return tuple(sorted(loads, key=lambda load: load.deadline))


def data_key(key: Key) -> Key:
    """Key of a constant buffer's bytes in DRAM."""
    return ("data", *key)


def widening(buffer: Buffer) -> dict[str, int]:
    """Fields of a LOAD of packed weights."""
    match buffer.packing:
        case Packing.NONE:
            return {}
        case Packing.HALF:
            return {"expand": 1}
        case Packing.FACTORS:
            return {"expand": 1, "pitch": 1}


def dram_entry(buffer: Buffer, config: AccelConfig) -> int:
    """Bytes of DRAM of an entry, without factors."""
    return element_bytes(config, buffer.mem) // (1 if buffer.packing is Packing.NONE else 2)


def _uses(step: Step, config: AccelConfig) -> list[tuple[Key, int, int]]:
    spaces = (Space.UOP, Space.WGT, Space.PRM, Space.TAB, Space.COF)
    return [
        (command.refs[t.field].key, command.refs[t.field].offset + t.begin, command.refs[t.field].offset + t.end)
        for command in step.commands
        for t in touches(command, config)
        if t.space in spaces
    ]


def _pieces(
    buffer: Buffer, layer: int, begin_at: int, needs: Sequence[tuple[int, int, int]], config: AccelConfig
) -> list[ConstantLoad]:
    """Loads of one buffer, each as long as what is needed at the same time but short."""
    entry = dram_entry(buffer, config)
    step = max(1, config.granule_bytes // entry)
    # Granules of factors, and of weights behind each.
    behind = config.factor_granules * config.granule_bytes if buffer.packing is Packing.FACTORS else 0
    step = max(step, behind // entry)
    cycles = max(CHUNK_CYCLES, buffer.entries * entry // config.bus_bytes // MAX_CHUNKS)
    length = max(step, align(cycles * config.bus_bytes // entry, step))
    chunks: list[ConstantLoad] = []
    for begin in range(0, buffer.entries, length):
        end = min(begin + length, buffer.entries)
        deadline = min((at for low, high, at in needs if low < end and begin < high), default=begin_at)
        size = (end - begin) * entry
        values = {"mem": buffer.mem, **widening(buffer), **transfer(config, Runs(1, 1, size))}
        place = begin * entry + (begin * entry // behind * config.granule_bytes if behind else 0)
        refs = {"dram": Ref(data_key(buffer.key), place), "sram": Ref(buffer.key, begin)}
        command = Command(Op.LOAD, values, refs)
        cycles = image_beats(config, values)
        chunks.append(ConstantLoad(buffer.key, buffer.mem, layer, deadline, cycles, command))
    return chunks
