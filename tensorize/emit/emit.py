"""Turns ordered steps into instructions: places buffers, loads constants ahead of their use, fills in addresses.

In: steps in program order and the DRAM window. Out: `Emitted`: instructions without tokens, the ranges they touch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from relay_hw.accel.isa.config import TABLE_RECORDS, AccelConfig
from relay_hw.accel.isa.spec import Op
from relay_hw.tensorize.access import touches
from relay_hw.tensorize.commands import Key
from relay_hw.tensorize.emit.loading import Loader, Manner, Written
from relay_hw.tensorize.emit.tokens import Range
from relay_hw.tensorize.schedule.ordered import Ordered
from relay_hw.tensorize.schedule.prefetch import load_windows
from relay_hw.tensorize.schedule.resident import ALONE, Stay
from relay_hw.tensorize.target import Target


@dataclass(frozen=True, slots=True)
class Line:
    """One instruction before tokens, its layer, the absolute ranges it touches, the step that it is written with."""

    op: Op
    values: dict[str, int]
    layer: int
    ranges: tuple[Range, ...]
    step: int = 0


@dataclass(frozen=True, slots=True)
class Emitted:
    """The program, and the loads of constants that are there before it starts."""

    lines: tuple[Line, ...]
    resident: tuple[Line, ...]


def emit(order: Ordered, tensors: Mapping[Key, int], config: Target, manner: Manner, stay: Stay = ALONE) -> Emitted:
    """Instructions of the steps. `tensors`: addresses in DRAM; `stay`: constants that keep their places.

    Raises NoRoomError.
    """
    streamed = [load for load in order.constants if load.key not in stay.keys]
    windows = load_windows(order.flow.work, order.starts, streamed, manner.margin or 0)
    loader = Loader(order, list(zip(streamed, windows, strict=True)), config, manner)
    resident, placed = loader.settle(stay), loader.run()
    addresses = {**placed.places, **tensors}
    return Emitted(
        tuple(_line(one, addresses, config) for one in placed.written),
        tuple(_line(one, addresses, config) for one in resident),
    )


def _line(written: Written, addresses: Mapping[Key, int], config: AccelConfig) -> Line:
    command, values = written.command, dict(written.command.values)
    # Ranges are relative to whole entries, fields may count parts of them.
    entries = values.copy()
    for name, ref in command.refs.items():
        entries[name] = addresses[ref.key] + ref.offset
        values[name] = entries[name] * ref.scale + ref.part
    if "table" in command.refs:
        # REQUANT counts tables, and 0 is none.
        values["table"] = entries["table"] // TABLE_RECORDS + 1
    ranges = tuple(
        Range(t.space, entries[t.field] + t.begin, entries[t.field] + t.end, t.write) for t in touches(command, config)
    )
    return Line(command.op, values, written.layer, ranges, written.step)
