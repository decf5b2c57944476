"""Makes the timeline of a launch for reports: instructions, causes, contents of scratchpads and DRAM over time.

In: a launch as it was timed. Out: a `Picture`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.program import Program
from relay_hw.accel.isa.spec import INSTRUCTIONS, Mem, Unit
from relay_hw.accel.isa.state import depth, element_bytes
from relay_hw.accel.sim.cycle import Timing
from relay_hw.accel.sim.cycle.losses import Stretch
from relay_hw.report import PARTS, ROWS, Instructions, Kind, Pad, Picture, Section, Spent, Transfer
from relay_hw.runtime.region_run import RegionRun
from relay_hw.tensorize.emit.occupancy import RESIDENT, Lives, occupancy

THOUSANDTHS: Final = 1000
_OPS: Final = {row.op: number for number, row in enumerate(INSTRUCTIONS)}
_EMPTY: Final = -2
# A layer's bytes of one section are drawn as at most that many ranges; nearest ones are merged.
_MAX_TRANSFERS: Final = 24

Ints = NDArray[np.int64]


def picture_of(run: RegionRun, useful: Sequence[int]) -> Picture:
    """The picture of one launch; `useful`: as `Picture` has it."""
    program, timing, owners, resident = run.program, run.timing, run.owners, run.resident
    return Picture(
        function=run.function,
        cycles=timing.cycles,
        launches=run.turns.launches,
        parts=_parts(timing.cycles),
        instructions=_instructions(timing, owners),
        spent=_spent(run.stretches),
        useful=tuple(useful),
        pads=tuple(_pads(program, timing, owners)),
        window_bytes=program.window_bytes,
        sections=tuple(Section(s.name, s.kind.value, s.offset, s.size) for s in program.sections),
        transfers=(*_transfers(program, timing, owners), *(_transfers(program, resident, ()) if resident else ())),
    )


def _parts(cycles: int) -> int:
    """Into how many parts of equal length the time is cut."""
    return min(PARTS, cycles)


def _instructions(timing: Timing, owners: Sequence[int]) -> Instructions:
    spans, works = timing.spans, timing.works
    return Instructions(
        ops=tuple(_OPS[works[span.index].op] for span in spans),
        asked=tuple(span.asked for span in spans),
        starts=tuple(span.start for span in spans),
        ends=tuple(span.end for span in spans),
        layers=tuple(owners[span.index] for span in spans),
        takes=tuple(works[span.index].wait_mask for span in spans),
        gives=tuple(works[span.index].give_mask for span in spans),
    )


def _spent(stretches: Sequence[Stretch]) -> Spent:
    kinds: dict[Kind, int] = {}
    which = [kinds.setdefault(Kind(one.cause, one.what, one.fill), len(kinds)) for one in stretches]
    lengths = tuple(one.cycles for one in stretches)
    return Spent(tuple(kinds), lengths, tuple(one.owner for one in stretches), tuple(which))


def _pads(program: Program, timing: Timing, owners: Sequence[int]) -> Iterator[Pad]:
    """Contents of every scratchpad. A value lives from the start of its write to the end of its last use.

    What was loaded before the launch stays through it, and counts for the layer that uses it last.
    """
    config, cycles = timing.config, timing.cycles
    # RESIDENT and NOBODY are negative and index the entries after the last instruction.
    layer = np.asarray([*owners[: len(timing.spans)], -1, -1], np.int64)
    starts = np.asarray([span.start for span in timing.spans], np.int64)
    ends = np.asarray([*(span.end for span in timing.spans), 0, 0], np.int64)
    for mem, lives in occupancy(program, config).items():
        writer, last = lives[:, 2], lives[:, 3]
        stays = writer == RESIDENT
        begin = np.where(stays, 0, starts[writer])
        end = np.where(stays, cycles, ends[last] + 1)
        times = np.stack([begin, np.minimum(end, cycles)], axis=1)
        yield _pad(mem, config, lives, times, np.where(stays, layer[last], layer[writer]), cycles)


def _pad(mem: Mem, config: AccelConfig, lives: Lives, times: Ints, layer: Ints, cycles: int) -> Pad:
    entries = depth(config, mem)
    used = _used(lives[:, 1] - lives[:, 0], times, cycles, _parts(cycles)) / entries
    rows, begins, lengths, layers = _runs(_raster(lives, times, layer, entries, cycles))
    return Pad(
        name=mem.name.lower(),
        entries=entries,
        entry_bytes=element_bytes(config, mem),
        used=tuple(np.round(THOUSANDTHS * used).astype(int).tolist()),
        rows=rows,
        begins=begins,
        lengths=lengths,
        layers=layers,
    )


def _used(counts: Ints, times: Ints, cycles: int, parts: int) -> NDArray[np.float64]:
    """The mean number of live entries in each time slice."""
    when = np.concatenate([[0], times[:, 0], times[:, 1], [cycles]])
    change = np.concatenate([[0], counts, -counts, [0]])
    order = np.argsort(when, kind="stable")
    when, held = when[order], np.cumsum(change[order])
    total = np.concatenate([[0], np.cumsum(held[:-1] * np.diff(when))])
    edges = np.linspace(0, cycles, parts + 1)
    return np.diff(np.interp(edges, when, total)) / np.diff(edges)


def _raster(lives: Lives, times: Ints, layer: Ints, entries: int, cycles: int) -> NDArray[np.int32]:
    """int32 [rows, parts]: the layer that occupies a slice of the entries in a time slice; later layers win."""
    rows, parts = min(ROWS, entries), _parts(cycles)
    image = np.full((rows, parts), _EMPTY, np.int32)
    boxes = np.stack(
        [
            lives[:, 0] * rows // entries,
            -(-lives[:, 1] * rows // entries),
            times[:, 0] * parts // cycles,
            np.maximum(-(-times[:, 1] * parts // cycles), times[:, 0] * parts // cycles + 1),
            layer,
        ],
        axis=1,
    )
    if len(boxes):
        keep = np.unique(boxes, axis=0)
        for top, bottom, left, right, owner in keep[np.argsort(keep[:, 2], kind="stable")].tolist():
            image[top:bottom, left:right] = owner
    return image


def _runs(image: NDArray[np.int32]) -> tuple[tuple[int, ...], ...]:
    """Runs of equal non-empty cells in each row: rows, first parts, lengths, layers."""
    found: list[tuple[int, int, int, int]] = []
    for number, row in enumerate(image):
        cuts = [0, *(np.flatnonzero(np.diff(row)) + 1).tolist(), len(row)]
        for begin, end in pairwise(cuts):
            if end > begin and row[begin] != _EMPTY:
                found.append((number, begin, end - begin, int(row[begin])))
    columns = tuple(zip(*found, strict=True)) or ((), (), (), ())
    return tuple(tuple(column) for column in columns)


def _transfers(program: Program, timing: Timing, owners: Sequence[int]) -> Iterator[Transfer]:
    """What each layer loads and stores, section by section; without `owners` none does."""
    offsets = np.asarray([section.offset for section in program.sections])
    order = np.argsort(offsets)
    found: defaultdict[tuple[int, int, bool], list[tuple[int, int, int, int]]] = defaultdict(list)
    bus = timing.config.bus_bytes
    for span in timing.spans:
        work = timing.works[span.index]
        for place, beats in zip(work.places, work.bursts, strict=True):
            section = int(order[np.searchsorted(offsets[order], place, side="right") - 1])
            key = (section, owners[span.index] if owners else -1, span.unit is Unit.STORE)
            found[key].append((place, place + beats * bus, span.start, span.end))
    for (section, layer, is_written), parts in sorted(found.items()):
        for begin, end, first, last in _joined(parts):
            yield Transfer(section, layer, begin, end, is_written, first, last)


def _joined(parts: Sequence[tuple[int, int, int, int]]) -> Iterator[tuple[int, int, int, int]]:
    """Merge adjacent ranges; if there are too many, also those with the smallest gaps."""
    rows = np.asarray(sorted(parts), np.int64)
    reach = np.maximum.accumulate(rows[:, 1])
    gaps = rows[1:, 0] - reach[:-1]
    widest = np.sort(gaps[gaps > 0])[::-1][: _MAX_TRANSFERS - 1]
    least = int(widest[-1]) if len(widest) else 1
    cuts = [0, *(np.flatnonzero(gaps >= max(least, 1)) + 1).tolist()[: _MAX_TRANSFERS - 1], len(rows)]
    for begin, end in pairwise(cuts):
        part = rows[begin:end]
        yield int(part[0, 0]), int(part[:, 1].max()), int(part[:, 2].min()), int(part[:, 3].max())
