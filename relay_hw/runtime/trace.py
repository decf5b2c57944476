"""Writes when every instruction of a build ran in Chrome's trace format, for Perfetto and chrome://tracing.

In: an artefact. Out: JSON-able events; one microsecond of the viewer is one cycle. Times come from the exact simulator.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import Any

from relay_hw.accel.isa.disasm import disassemble_instruction
from relay_hw.accel.isa.spec import Unit
from relay_hw.accel.isa.stream import Instr, decode_instructions
from relay_hw.accel.sim.cycle import InstructionTime, Timing
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.profile import time_regions
from relay_hw.runtime.region_run import RegionRun

Event = dict[str, Any]
# Rows of one unit: instructions in flight together lie on rows of their own. The array's row stands above them.
_ARRAY, _ROWS = 1, 100


def timeline(artifact: Artifact, memory: str | None = None) -> dict[str, Any]:
    """Events of one launch of each region, one trace process per region, and of its launch that loads resident weights.

    `memory`: name of a memory model; the build's own where none is given.
    """
    events: list[Event] = []
    for number, run in enumerate(time_regions(artifact, memory or artifact.manifest.memory_model)):
        process = 2 * number
        layers = [artifact.manifest.layers[owner].name if owner >= 0 else "" for owner in run.owners]
        events.append(named("process_name", process, 0, run.function))
        events += _array_events(process, run, artifact)
        events += _unit_events(process, run.timing, run.program.instructions, layers)
        if run.resident is not None and run.program.resident is not None:
            loads = decode_instructions(run.program.resident.data or b"")
            events.append(named("process_name", process + 1, 0, f"{run.function}, once for resident weights"))
            events += _unit_events(process + 1, run.resident, loads, ["resident"] * len(loads))
    return {"displayTimeUnit": "ns", "otherData": {"cycles_per_us": 1}, "traceEvents": events}


def _array_events(process: int, run: RegionRun, artifact: Artifact) -> Iterator[Event]:
    """The row above the units: what the array did, or why it waited, and for which layer."""
    thread = _ARRAY
    yield named("thread_name", process, thread, "array")
    for stretch in run.stretches:
        layer = artifact.manifest.layers[stretch.owner].name if stretch.owner >= 0 else ""
        cause = f"{stretch.cause} {stretch.what}".strip()
        details: dict[str, Any] = {"layer": layer, "fill": stretch.fill}
        yield box((process, thread), cause, "array", (stretch.begin, stretch.end), details)


def _unit_events(process: int, timing: Timing, instructions: Sequence[Instr], layers: Sequence[str]) -> Iterator[Event]:
    for unit in Unit:
        rows = 0
        for row, span in _rows(timing.of(unit)):
            thread = _ROWS * (unit + 1) + row
            if row >= rows:
                rows = row + 1
                yield named("thread_name", process, thread, unit.name if not row else f"{unit.name} {row + 1}")
            op, values = instructions[span.index]
            details = {"index": span.index, "layer": layers[span.index], "token_cycles": span.start - span.asked}
            details["instruction"] = disassemble_instruction(op, values)
            name = f"{layers[span.index]} {op.name.lower()}".strip()
            yield box((process, thread), name, op.name.lower(), (span.start, span.end), details)


def box(row: tuple[int, int], name: str, kind: str, time: tuple[float, float], details: dict[str, Any]) -> Event:
    """A stretch of `time` [begin, end), the viewer's microseconds, in a `row`, which is a thread of a process."""
    place = {"pid": row[0], "tid": row[1], "ts": time[0], "dur": time[1] - time[0]}
    return {"name": name, "cat": kind, "ph": "X", **place, "args": details}


def _rows(spans: list[InstructionTime]) -> Iterator[tuple[int, InstructionTime]]:
    """Each span with the lowest row that is free when it starts."""
    free: list[int] = []
    busy: list[tuple[int, int]] = []  # end, row
    for span in sorted(spans, key=lambda s: (s.start, s.index)):
        while busy and busy[0][0] <= span.start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        row = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (span.end, row))
        yield row, span


def named(kind: str, process: int, thread: int, name: str) -> Event:
    """The name of a process or of a thread."""
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
