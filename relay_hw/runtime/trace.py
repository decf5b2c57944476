"""When every instruction of a build ran: a timeline in Chrome's trace format, which Perfetto and chrome://tracing open.

In: an artefact. Out: JSON-able events; one microsecond of the viewer is one cycle. Times come from the exact simulator.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Any

from accel.isa.disasm import disassemble_instruction
from accel.isa.program import Program
from accel.isa.spec import Unit
from accel.sim.cycle import CycleDevice, Span
from accel.sim.memory import memory_model
from relay_hw.runtime.artifact import Artifact

Event = dict[str, Any]
# Rows of one unit: instructions in flight together lie on rows of their own.
_ROWS = 100


def timeline(artifact: Artifact, memory: str = "standard") -> dict[str, Any]:
    """Events of one launch of each region, one process a region. `memory`: name of a memory model."""
    device = CycleDevice(artifact.config, memory_model(memory), data=False)
    events: list[Event] = []
    for process, function in enumerate(artifact.manifest.accel):
        program = artifact.programs[function.name]
        device.load(program)
        device.launch()
        layers = _layers(artifact, function.name, program.count)
        events.append(_named("process_name", process, 0, function.name))
        events += _events(process, device.timing.spans, program, layers)
    return {"displayTimeUnit": "ns", "otherData": {"cycles_per_us": 1}, "traceEvents": events}


def _layers(artifact: Artifact, function: str, count: int) -> list[str]:
    """The layer of every instruction of a region."""
    names = [""] * count
    for row in artifact.manifest.layers:
        if row.function == function:
            for begin, end in row.ranges:
                names[begin:end] = [row.name] * (end - begin)
    return names


def _events(process: int, spans: Iterable[Span], program: Program, layers: list[str]) -> Iterator[Event]:
    instructions = program.instructions
    named: set[int] = set()
    by_unit: dict[Unit, list[Span]] = {}
    for span in spans:
        by_unit.setdefault(span.unit, []).append(span)
    for unit, of_unit in by_unit.items():
        for row, span in _rows(of_unit):
            thread = unit * _ROWS + row
            if thread not in named:
                named.add(thread)
                yield _named("thread_name", process, thread, unit.name if not row else f"{unit.name} {row + 1}")
            op, values = instructions[span.index]
            details = {"index": span.index, "layer": layers[span.index], "token_cycles": span.start - span.asked}
            details["instruction"] = disassemble_instruction(op, values)
            yield {
                "name": f"{layers[span.index]} {op.name.lower()}".strip(),
                "cat": op.name.lower(),
                "ph": "X",
                "ts": span.start,
                "dur": span.end - span.start,
                "pid": process,
                "tid": thread,
                "args": details,
            }


def _rows(spans: list[Span]) -> Iterator[tuple[int, Span]]:
    """Each span with the lowest row that is free when it starts."""
    free: list[int] = []
    busy: list[tuple[int, int]] = []  # end, row
    for span in sorted(spans, key=lambda s: (s.start, s.index)):
        while busy and busy[0][0] <= span.start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        row = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (span.end, row))
        yield row, span


def _named(kind: str, process: int, thread: int, name: str) -> Event:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
