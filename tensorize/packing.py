"""Chooses which constants of several regions stay on a device together, and where: one problem over all memories.

In: plans of regions, how often an inference launches each. Out: drafts whose constants lie behind one another, and
whose loads leave those of all others alone. Regions with equal constants of a memory have them in the same place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from relay_hw.accel.isa.spec import Mem
from relay_hw.accel.isa.state import element_bytes
from relay_hw.tensorize.commands import Buffer, Packing
from relay_hw.tensorize.compile import Plan
from relay_hw.tensorize.emit.draft import Draft
from relay_hw.tensorize.schedule.resident import (
    WORTH,
    Stay,
    constant_buffers,
    constant_depths,
    entries_of,
    share_constants,
    total_entries,
)
from relay_hw.tensorize.target import Target

# Room for constants that are loaded in every launch, where not all fit: times the largest of them.
STREAMED = (1, 2, 3)

Kept = Mapping[str, Sequence[Buffer]]
# Bytes of a memory, and how they are stored.
_Run = tuple[tuple[Packing, ...], bytes]


@dataclass(frozen=True, slots=True)
class _Part:
    """Constants of a region in order of their use, and the cycles of an inference that they save for each byte."""

    name: str
    buffers: tuple[Buffer, ...]
    saved: float


def packings(plans: Mapping[str, Plan], launches: Mapping[str, int], target: Target) -> Iterator[dict[str, Draft]]:
    """Drafts of all regions that can take turns without loading again what stays.

    `launches`: of an inference, by region. What does not fit is loaded in every launch: what saves least for its size.
    """
    constants = {name: _constants(plan.alone) for name, plan in plans.items()}
    taken = _depths(_layout(constants, target))
    if all(taken[mem] <= depth for mem, depth in constant_depths(target).items()):
        yield from _drafts(plans, constants, target)
        return
    parts = [part for name, plan in plans.items() for part in _parts(name, plan, launches[name], target)]
    parts.sort(key=lambda part: -part.saved)
    tried: list[Kept] = []
    for times in STREAMED:
        kept = _filled(parts, constants, target, times)
        if any(kept.values()) and kept not in tried:
            tried.append(kept)
            yield from _drafts(plans, kept, target)


def _drafts(plans: Mapping[str, Plan], kept: Kept, target: Target) -> Iterator[dict[str, Draft]]:
    """Drafts that keep these constants, if all regions have one."""
    layout = _layout(kept, target)
    drafts = {name: _placed(plan, kept[name], layout) for name, plan in plans.items()}
    found = {name: draft for name, draft in drafts.items() if draft is not None}
    if len(found) == len(plans):
        yield found


def _constants(draft: Draft) -> tuple[Buffer, ...]:
    """Constant buffers of a draft, equal ones once, in order of their use."""
    return tuple(constant_buffers(share_constants(draft.schedule.steps)).values())


def _parts(name: str, plan: Plan, launches: int, target: Target) -> Iterator[_Part]:
    """What the first step needs, for which the array waits, and all the rest, of which much may be loaded in time."""
    plain, alone = plan.plain, plan.alone
    constants = _constants(alone)
    early = constant_buffers(share_constants(alone.schedule.steps)[:1])
    # What their loads take in front of all else bounds what they can save.
    most = _bytes(tuple(early.values()), target) // target.bus_bytes + len(early) * target.memory.latency
    first = plan.redraft(alone, Stay(frozenset(early))) if most > plain.cycles // WORTH else None
    cycles = plain.cycles if first is None else min(first.cycles, plain.cycles)
    rest = tuple(buffer for buffer in constants if buffer.key not in early)
    timed = [buffer for buffer in rest if buffer.key in alone.stay.keys]
    sizes = [_bytes(part, target) for part in (tuple(early.values()), timed)]
    saved = [plain.cycles - cycles, cycles - alone.cycles if timed else 0]
    if saved[1] * sizes[0] > saved[0] * sizes[1]:
        # The rest saves more for its size: then there is nothing to choose.
        sizes, saved, early, rest = [sum(sizes), 0], [sum(saved), 0], {b.key: b for b in constants}, ()
    for buffers, size, cycles in zip((tuple(early.values()), rest), sizes, saved, strict=True):
        if cycles > plain.cycles // WORTH:
            yield _Part(name, buffers, launches * cycles / size)


def _bytes(buffers: Sequence[Buffer], target: Target) -> int:
    return sum(entries_of(buffer, target) * element_bytes(target, buffer.mem) for buffer in buffers)


def _filled(parts: Sequence[_Part], constants: Kept, target: Target, times: int) -> dict[str, tuple[Buffer, ...]]:
    """What stays of each region: parts in this order, of each memory of a region as much as there is room for."""
    left = _left(constants, target, times)
    kept: dict[str, list[Buffer]] = {name: [] for name in constants}
    closed: set[tuple[str, Mem]] = set()
    for part in parts:
        for buffer in part.buffers:
            entries = entries_of(buffer, target)
            if entries > left[buffer.mem]:
                closed.add((part.name, buffer.mem))
            if (part.name, buffer.mem) not in closed:
                left[buffer.mem] -= entries
                kept[part.name].append(buffer)
    return {name: tuple(buffers) for name, buffers in kept.items()}


def _left(constants: Kept, target: Target, times: int) -> dict[Mem, int]:
    """Entries of each memory for what stays: all of them where all constants fit."""
    buffers = [buffer for own in constants.values() for buffer in own]
    wanted = total_entries(buffers, target)
    most = {mem: max((entries_of(b, target) for b in buffers if b.mem is mem), default=0) for mem in wanted}
    return {
        mem: depth if wanted[mem] <= depth else max(0, depth - times * most[mem])
        for mem, depth in constant_depths(target).items()
    }


def _layout(kept: Kept, target: Target) -> dict[Mem, dict[_Run, range]]:
    """The entries of each memory for what regions keep in it, equal runs once, one behind the other."""
    found: dict[Mem, dict[_Run, range]] = {}
    for mem in constant_depths(target):
        sizes = {_run(own, mem): total_entries(own, target)[mem] for own in kept.values()}
        ends = accumulate(sizes.values())
        found[mem] = {run: range(end - size, end) for (run, size), end in zip(sizes.items(), ends, strict=True)}
    return found


def _depths(layout: Mapping[Mem, Mapping[_Run, range]]) -> dict[Mem, int]:
    """Entries of each memory that are taken."""
    return {mem: max((places.stop for places in runs.values()), default=0) for mem, runs in layout.items()}


def _placed(plan: Plan, own: Sequence[Buffer], layout: Mapping[Mem, Mapping[_Run, range]]) -> Draft | None:
    """A region's draft between what stays of the others."""
    places, ends = {mem: runs[_run(own, mem)] for mem, runs in layout.items()}, _depths(layout)
    before = {mem: place.start for mem, place in places.items()}
    behind = {mem: ends[mem] - place.stop for mem, place in places.items()}
    stay = Stay(frozenset(buffer.key for buffer in own), before, behind)
    tops = (plan.alone,) if stay.keys else (plan.plain, plan.alone)
    tries = (plan.redraft(top, stay) for top in tops)
    return next((draft for draft in tries if draft is not None), None)


def _run(buffers: Sequence[Buffer], mem: Mem) -> _Run:
    """What lies in a memory where these buffers follow one another: whatever the buffers are that it is cut into."""
    own = [buffer for buffer in buffers if buffer.mem is mem]
    return tuple(dict.fromkeys(buffer.packing for buffer in own)), b"".join(buffer.data or b"" for buffer in own)
