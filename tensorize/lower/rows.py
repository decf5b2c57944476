"""Lowers softmax and norms to steps: LOAD widens rows into accumulators, ROW replaces them, REQUANT passes them.

In: a kernel and its tile. Out: steps. A row is a pixel's channels; what lies behind them in its last entry becomes the
zero point, what lies in entries behind that one is passed as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256

import numpy as np

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.slots import ROW_STAGES, row_round_slots
from relay_hw.accel.isa.spec import Dst, Form, Mem, Op, RowKind
from relay_hw.errors import TensorizeError
from relay_hw.tensorize.commands import Axis, Buffer, Command, Key, Ref, Step
from relay_hw.tensorize.kernel import RowKernel
from relay_hw.tensorize.layout import pixel_bytes, row_records
from relay_hw.tensorize.lower.common import LayerId, Part, Runs, looped, store_flat, transfer, widened
from relay_hw.tensorize.stages import Int64
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.choose import chunk_sizes
from relay_hw.tensorize.tiles.geometry import acc_unit, parts, run_cycles
from relay_hw.tensorize.tiles.sizes import RowTile
from relay_hw.tensorize.tiles.tile_cost import STEP_CYCLES, output_interval

INT8 = (-128, 127)


def choose_rows(kernel: RowKernel, config: Target) -> RowTile:
    """Rows a step: few, so that loads, rows, results and stores of several steps overlap. Raises TensorizeError."""
    entries, total = _entries(kernel, config), kernel.source.pixels
    room = min(config.acc_depth, config.out_depth)
    if entries > room:
        raise TensorizeError(f"a row must fit the {room} entries of configuration {config.name}, not need {entries}")
    fitting = [rows for rows in chunk_sizes(total) if rows_fit(kernel, rows, config)] or [1]
    return RowTile(min(fitting, key=lambda rows: (rows_cycles(kernel, rows, config), -rows)))


def _entries(kernel: RowKernel, config: AccelConfig) -> int:
    """Accumulator entries of a row as it lies in DRAM."""
    return pixel_bytes(kernel.source, config) // config.out_bytes


def rows_fit(kernel: RowKernel, rows: int, config: AccelConfig) -> bool:
    """Whether so many rows leave room for those of other steps."""
    return rows * _entries(kernel, config) <= min(acc_unit(config), config.out_depth // 2)


def rows_cycles(kernel: RowKernel, rows: int, config: Target) -> int:
    """Estimated time of steps of so many rows."""
    entries, total = _entries(kernel, config), kernel.source.pixels
    steps = -(-total // rows)
    moved = run_cycles(config, rows * entries * config.out_bytes, config.reads)
    passed = rows * entries * output_interval(config)
    unit = (total + steps * (ROW_STAGES - 1)) * row_round_slots(config, kernel.source.channels)
    return max(unit + STEP_CYCLES * steps, steps * passed, 2 * steps * moved) + 2 * moved + passed


def lower_rows(layer: LayerId, kernel: RowKernel, tile: RowTile, config: AccelConfig) -> tuple[Step, ...]:
    """Steps of a layer; its tensors: input, output."""
    data = row_records(kernel, config)
    entries = len(data) // config.cof_bytes
    name: Key = ("cof", sha256(data).hexdigest()[:16])
    if kernel.bound:
        loads = _bounded(layer.tensors[1:3], (*name, *layer.tensors[1]), entries, config)
        cof = Buffer((*name, *layer.tensors[1]), Mem.COF, entries + 1, loads=loads)
    else:
        cof = Buffer(name, Mem.COF, entries, data=data)
    return tuple(_step(layer, kernel, cof, chunk, config) for chunk in parts(kernel.source.pixels, tile.rows))


def _bounded(tensors: Sequence[Key], cof: Key, entries: int, config: AccelConfig) -> tuple[Command, ...]:
    """LOADs of the exponentials, a tensor of constants, and of what bounds columns behind them."""
    bound, table = tensors

    def load(tensor: Key, first: int, count: int) -> Command:
        values = transfer(config, Runs(1, 1, count * config.cof_bytes))
        return Command(Op.LOAD, {"mem": Mem.COF, **values}, {"dram": Ref(tensor), "sram": Ref(cof, first)})

    return load(table, 0, entries), load(bound, entries, 1)


def _step(layer: LayerId, kernel: RowKernel, cof: Buffer, chunk: Part, config: AccelConfig) -> Step:
    (begin, rows), number, tensors, entries = chunk, layer.number, layer.tensors, _entries(kernel, config)
    acc, out = ("acc", number, begin), ("out", number, begin)
    flat = (begin * entries, rows * entries)
    buffers = (widened(config, acc, flat, tensors[0]), cof, Buffer(out, Mem.OUT, rows * entries))
    commands = list(_rows(kernel, cof, Ref(acc), chunk, config))
    fields = {"form": Form.PASS, "dst": Dst.OUT, "clip_lo": INT8[0], "clip_hi": INT8[1]}
    refs = {"acc_base": Ref(acc), "dst_base": Ref(out)}
    commands += looped(Op.REQUANT, fields, refs, [Axis(rows * entries, {"acc": 1, "dst": 1})])
    commands.append(store_flat(config, flat, out, tensors[-1]))
    return Step(number, f"{layer.name} rows {begin}", buffers, tuple(commands))


def _rows(kernel: RowKernel, cof: Buffer, acc: Ref, chunk: Part, config: AccelConfig) -> Iterator[Command]:
    """ROW of each run of rows of which as many channels take part, or one more from row to row."""
    entries, stage = _entries(kernel, config), kernel.stage
    visible = kernel.visible[chunk[0] : chunk[0] + chunk[1]]
    for first, count, step in visible_runs(visible):
        values = {
            "kind": kernel.kind,
            "zero_point": stage.zero_point,
            "inp_zero": stage.input_zero,
            "rows": count,
            "columns": kernel.source.channels,
            "row_step": entries,
            "entry_step": 1,
            "visible": int(visible[first]) if kernel.kind is RowKind.SOFTMAX else 0,
            "visible_step": step,
            "bounded": int(bool(kernel.bound)),
            "shift": stage.shift,
            "epsilon_low": stage.epsilon & 0xFFFFFFFF,
            "epsilon_high": stage.epsilon >> 32,
            "multiplier": stage.multiplier,
        }
        yield Command(Op.ROW, values, {"acc_base": Ref(acc.key, first * entries), "cof_base": Ref(cof.key)})


def visible_runs(visible: Int64) -> Iterator[tuple[int, int, int]]:
    """(first, count, step) of the longest runs from the first row on, of steps 0 or 1."""
    first = 0
    while first < visible.size:
        steps = np.diff(visible[first:])
        step = int(steps.size > 0 and steps[0] == 1)
        count = 1 + int(np.argmin(np.append(steps == step, False)))
        yield first, count, step
        first += count
