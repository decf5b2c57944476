"""Resident constants, which stay in the scratchpads between launches: which sets are worth trying, and their loads.

In: steps of a region. Out: sets of constant buffers, steps that share equal constants, LOAD commands of the stream that
is launched once before all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.spec import Mem, Op
from relay_hw.accel.isa.state import depth, element_bytes
from relay_hw.tensorize.commands import Buffer, Command, Key, Packing, Ref, Step
from relay_hw.tensorize.lower.common import Runs, transfer
from relay_hw.tensorize.schedule.constants import data_key, dram_entry, widening

# Quarters of the weight memory that the first layers may take where not all weights fit; the others stream through the
# rest.
QUARTERS = (2, 3)
# A set must save one cycle in this many: the first launch pays for it.
WORTH = 200


@dataclass(frozen=True, slots=True)
class Stay:
    """Constant buffers that keep their places between launches, and entries of each memory that other programs' have
    in front of them and behind them.
    """

    keys: frozenset[Key] = frozenset()
    before: Mapping[Mem, int] = field(default_factory=dict[Mem, int])
    behind: Mapping[Mem, int] = field(default_factory=dict[Mem, int])


ALONE = Stay()


def constant_buffers(steps: Sequence[Step]) -> dict[Key, Buffer]:
    """Every constant buffer by its key, in order of first use."""
    found: dict[Key, Buffer] = {}
    for step in steps:
        for buffer in step.buffers:
            if buffer.data is not None:
                found.setdefault(buffer.key, buffer)
    return found


def share_constants(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Steps in which equal constants are one buffer: time steps of a recurrent network use the same weights."""
    first: dict[tuple[Mem, Packing, bytes], Key] = {}
    same: dict[Key, Key] = {}
    for key, buffer in constant_buffers(steps).items():
        same[key] = first.setdefault((buffer.mem, buffer.packing, buffer.data or b""), key)
    if all(key == other for key, other in same.items()):
        return tuple(steps)
    return tuple(_renamed(step, same) for step in steps)


def _renamed(step: Step, same: Mapping[Key, Key]) -> Step:
    # Most steps name no constant twice, and a copy of each of their parts takes as long as lowering them.
    if all(same.get(b.key, b.key) == b.key for b in step.buffers):
        return step
    buffers = {b.key: b for b in (replace(b, key=same.get(b.key, b.key)) for b in step.buffers)}
    commands = tuple(
        replace(c, refs={name: replace(ref, key=same.get(ref.key, ref.key)) for name, ref in c.refs.items()})
        for c in step.commands
    )
    return replace(step, buffers=tuple(buffers.values()), commands=commands)


def resident_sets(steps: Sequence[Step], config: AccelConfig, few: bool) -> tuple[frozenset[Key], ...]:
    """Sets of constant buffers to try, the empty one first.

    Of each memory all constants where they fit it together; otherwise the weights that are needed first, up to a share
    of their memory. Long programs (not `few`) hide all loads but their first.
    """
    buffers = constant_buffers(steps)
    small = [b for mem in (Mem.UOP, Mem.PRM, Mem.TAB, Mem.COF) for b in _whole(buffers.values(), mem, config)]
    if _whole(buffers.values(), Mem.WGT, config):
        return (frozenset(), frozenset(b.key for b in [*small, *_whole(buffers.values(), Mem.WGT, config)]))
    if not few:
        return (frozenset(),)
    weights = [b for b in buffers.values() if b.mem is Mem.WGT]
    sets = [frozenset[Key]()]
    for share in QUARTERS:
        sizes = accumulate(entries_of(buffer, config) for buffer in weights)
        kept = [b for b, total in zip(weights, sizes, strict=True) if total <= config.wgt_depth * share // 4]
        sets.append(frozenset(b.key for b in [*small, *kept]))
    return tuple(dict.fromkeys(sets))


def _whole(buffers: Iterable[Buffer], mem: Mem, config: AccelConfig) -> list[Buffer]:
    """The constants of a memory, or none where they do not fit together."""
    own = [b for b in buffers if b.mem is mem]
    return own if fits(own, config) else []


def constant_depths(config: AccelConfig) -> dict[Mem, int]:
    """Entries of each scratchpad that holds constants."""
    return {mem: depth(config, mem) for mem in (Mem.WGT, Mem.UOP, Mem.PRM, Mem.TAB, Mem.COF)}


def fits(buffers: Iterable[Buffer], config: AccelConfig) -> bool:
    """True where all buffers fit their memories at the same time."""
    sums = total_entries(buffers, config)
    return all(sums[mem] <= most for mem, most in constant_depths(config).items())


def total_entries(buffers: Iterable[Buffer], config: AccelConfig) -> dict[Mem, int]:
    """Entries of each memory of constants that the buffers take together."""
    sums = dict.fromkeys(constant_depths(config), 0)
    for buffer in buffers:
        sums[buffer.mem] += entries_of(buffer, config)
    return sums


def entries_of(buffer: Buffer, config: AccelConfig) -> int:
    """Entries with the rest of the last bus beat."""
    step = max(1, config.bus_bytes // element_bytes(config, buffer.mem))
    return -(-buffer.entries // step) * step


def resident_loads(steps: Sequence[Step], resident: frozenset[Key], config: AccelConfig) -> tuple[Command, ...]:
    """One LOAD for each resident buffer; `sram` refers to the buffer, `dram` to its data."""
    loads: list[Command] = []
    for key, buffer in constant_buffers(steps).items():
        if key in resident:
            size = buffer.entries * dram_entry(buffer, config)
            refs = {"dram": Ref(data_key(key)), "sram": Ref(key)}
            values = {"mem": buffer.mem, **widening(buffer), **transfer(config, Runs(1, 1, size))}
            loads.append(Command(Op.LOAD, values, refs))
    return tuple(loads)
