"""Helpers of all lowerings: transfers, loops as instruction fields, reload counts.

In: sizes in pixels and bytes. Out: `Command` values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import groupby, product
from types import MappingProxyType
from typing import Final

import numpy as np

from relay_hw.accel.isa.config import TABLE_RECORDS, TABLE_RESULTS, AccelConfig
from relay_hw.accel.isa.records import encode_tables
from relay_hw.accel.isa.spec import Dst, Form, Mem, Op
from relay_hw.tensorize.commands import (
    LOOP_LIMIT,
    Axis,
    Buffer,
    Command,
    InstructionLoops,
    Key,
    Ref,
    Step,
    Uop,
    fit_loops,
)
from relay_hw.tensorize.kernel import KernelSpec, Window, kernel_tables
from relay_hw.tensorize.layout import Records
from relay_hw.tensorize.stages import AddStage, MulStage, Requantize, Table
from relay_hw.tensorize.tiles.geometry import Grid, Source, bank_round, span_of

Part = tuple[int, int]
# References that no axis moves of its own accord.
_MOVES_WITH: Final[Mapping[str, str]] = MappingProxyType({"res": "acc"})


class Visits:
    """Keys of buffers that are loaded again when a step needs them after other steps needed another one."""

    def __init__(self) -> None:
        self._last: dict[str, Key] = {}
        self._count: dict[Key, int] = {}

    def key(self, role: str, key: Key, kept: bool = False) -> Key:
        """`key` with the number of its visit: the same as for the step before where that used it too.

        `kept`: the buffer stays until its last use, so that there is one visit only.
        """
        if kept:
            return (*key, 0)
        if self._last.get(role) != key:
            self._count[key] = self._count.get(key, -1) + 1
            self._last[role] = key
        return (*key, self._count[key])


@dataclass(frozen=True, slots=True)
class LayerId:
    """What names a layer's steps and buffers: its number and name in the region, keys of its inputs and its output.

    `part`: which one of the parts of the layer, where it is lowered in several.
    """

    number: int
    name: str
    tensors: tuple[Key, ...]
    part: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Runs:
    """Rows and columns of runs of bytes, with the bytes from one row and column to the next.

    `pads`: rows and columns of padding around them: top, left, bottom, right.
    """

    rows: int
    cols: int
    run_bytes: int
    row_stride: int = 0
    col_stride: int = 0
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Outputs:
    """A tile of results: (begin, count) of rows, columns and blocks of channels."""

    rows: Part
    cols: Part
    blocks: Part


@dataclass(frozen=True, slots=True)
class Under:
    """The input under outputs `rows` x `cols` ((begin, count) each) of a window, every row `pitch` pixels long."""

    source: Source
    window: Window
    rows: Part
    cols: Part
    pitch: int


def transfer(config: AccelConfig, runs: Runs) -> dict[str, int]:
    """Fields of a LOAD or STORE, runs merged where padding allows."""
    rows, cols, run_bytes = runs.rows, runs.cols, runs.run_bytes
    row_stride, col_stride = runs.row_stride, runs.col_stride
    top, left, bottom, right = runs.pads
    limit = LOOP_LIMIT * config.granule_bytes
    if not left and not right and (cols == 1 or col_stride == run_bytes) and cols * run_bytes <= limit:
        run_bytes, cols, col_stride = cols * run_bytes, 1, 0
        if not top and not bottom and (rows == 1 or row_stride == run_bytes) and rows * run_bytes <= limit:
            run_bytes, rows, row_stride = rows * run_bytes, 1, 0
    values = {
        "z": run_bytes // config.granule_bytes,
        "y": rows,
        "x": cols,
        "y_stride": row_stride if rows > 1 else 0,
        "x_stride": col_stride if cols > 1 else 0,
    }
    padding = {"y_pad_0": top, "y_pad_1": bottom, "x_pad_0": left, "x_pad_1": right}
    return values | {name: count for name, count in padding.items() if count}


def load_patch(config: AccelConfig, under: Under, channels: Part, tensor: Key) -> tuple[dict[str, int], dict[str, Ref]]:
    """LOAD fields of a patch of the input; `channels`: (first, count) bytes of each of its pixels."""
    source, window = under.source, under.window
    top, bottom = span_of(window, 0, *under.rows)
    left, right = span_of(window, 1, *under.cols)
    first_row, last_row = max(top, 0), min(bottom, source.height)
    first_col, last_col = max(left, 0), min(right, source.width)
    rows, cols = last_row - first_row, last_col - first_col
    pads = (first_row - top, first_col - left, bottom - last_row, left + under.pitch - last_col)
    values = transfer(config, Runs(rows, cols, channels[1], source.row_stride, source.col_stride, pads))
    begin = source.begin + first_row * source.row_stride + first_col * source.col_stride + channels[0]
    return values, {"dram": Ref(tensor, begin)}


def looped(
    op: Op,
    values: Mapping[str, int],
    refs: Mapping[str, Ref],
    axes: Sequence[Axis],
    lead: Axis | None = None,
    uops: tuple[Uop, ...] = (),
) -> tuple[Command, ...]:
    """Instructions for a nest. Axis steps named n drive fields n_out, n_in and the reference n_base."""
    return tuple(_instruction(op, values, refs, loops, uops) for loops in fit_loops(axes, lead))


def _instruction(
    op: Op,
    values: Mapping[str, int],
    refs: Mapping[str, Ref],
    loops: InstructionLoops,
    uops: tuple[Uop, ...],
) -> Command:
    fields = dict(values) | {"iter_out": loops.outer.count, "iter_in": loops.inner.count}
    for name, step in loops.outer.steps.items():
        fields[f"{name}_out"] = step
    for name, step in loops.inner.steps.items():
        fields[f"{name}_in"] = step
    moved: dict[str, Ref] = {}
    for field, ref in refs.items():
        name = field.removesuffix("_base")
        moved[field] = replace(ref, offset=ref.offset + loops.bases.get(_MOVES_WITH.get(name, name), 0))
    return Command(op, fields, moved, uops)


def table_refs(table: Table | None) -> dict[str, Ref]:
    """What a REQUANT refers to for its results to go through `table`."""
    return {} if table is None else {"table": Ref(_table_key(table))}


def with_tables(steps: Iterable[Step], kernel: KernelSpec) -> Iterator[Step]:
    """Steps with a buffer for each table that their commands refer to."""
    tables = {_table_key(table): table for table in kernel_tables(kernel)}
    for step in steps:
        used = dict.fromkeys(command.refs["table"].key for command in step.commands if "table" in command.refs)
        yield replace(step, buffers=(*step.buffers, *(_table_buffer(tables[key]) for key in used))) if used else step


def _table_buffer(table: Table) -> Buffer:
    records = encode_tables(np.frombuffer(table, np.int8).reshape(1, TABLE_RESULTS))
    return Buffer(_table_key(table), Mem.TAB, TABLE_RECORDS, data=records.tobytes())


def _table_key(table: Table) -> Key:
    """Equal tables are one buffer, whichever layers they belong to."""
    return ("tab", sha256(table).hexdigest()[:16])


def stage_fields(form: Form, stage: Requantize | AddStage | MulStage, dst: Dst = Dst.OUT) -> dict[str, int]:
    """REQUANT fields of an output stage."""
    return {
        "form": form,
        "dst": dst,
        "rounding": stage.rounding,
        "zero_point": stage.zero_point,
        "clip_lo": stage.clip_lo,
        "clip_hi": stage.clip_hi,
    }


def record_key(number: int, records: Records, blocks: Part) -> Key:
    """Key of the buffer of records that blocks of layer `number` need."""
    return ("prm", number, records.first(blocks[0]))


def record_buffer(key: Key, records: Records, blocks: Part) -> Buffer:
    """The records of `blocks`."""
    data = records.of(*blocks)
    return Buffer(key, Mem.PRM, len(data) // records.entry_bytes, data=data)


def scale_commands(
    records: Records, refs: Mapping[str, Ref], count: int, pixels: Sequence[Axis], dst: Dst = Dst.OUT, step: int = 1
) -> tuple[Command, ...]:
    """REQUANT of `count` blocks of each pixel. `refs`: acc_base, dst_base, prm_base; `step`: from block to block of
    the results.
    """
    stage = records.stage
    refs, fields = {**refs, **table_refs(stage.table)}, stage_fields(Form.SCALE, stage, dst)
    if records.shared:
        return looped(Op.REQUANT, fields, refs, [*pixels, Axis(count, {"acc": 1, "dst": step})])
    return looped(Op.REQUANT, fields, refs, pixels, Axis(count, {"acc": 1, "dst": step, "prm": 1}))


def pair_commands(
    stage: AddStage | MulStage, operands: tuple[Ref, Ref], out: Ref | None, prm: Ref, axes: Sequence[Axis]
) -> tuple[Command, ...]:
    """REQUANT of the entries that `axes` reach; without `out` the result takes the first operand's place."""
    form, dst = Form.ADD if isinstance(stage, AddStage) else Form.MUL, Dst.ACC if out is None else Dst.OUT
    refs = {"acc_base": operands[0], "res_base": operands[1], "dst_base": out or operands[0], "prm_base": prm}
    return looped(Op.REQUANT, stage_fields(form, stage, dst), refs | table_refs(stage.table), axes)


def entry_after_entry(count: int) -> list[Axis]:
    """The loop over consecutive accumulators and results."""
    return [Axis(count, {"acc": 1, "dst": 1})]


def widened(config: AccelConfig, key: Key, chunk: Part, tensor: Key) -> Buffer:
    """Accumulators with entries `chunk` (begin, count) of a tensor that is taken as flat bytes."""
    return Buffer(key, Mem.ACC, bank_round(config, chunk[1]), loads=(widening(config, Ref(key), chunk, tensor),))


def widening(config: AccelConfig, place: Ref, chunk: Part, tensor: Key) -> Command:
    """LOAD of entries `chunk` (begin, count) of a tensor that is taken as flat bytes to accumulators."""
    values, begin = _flat_transfer(config, chunk)
    return Command(Op.LOAD, {"mem": Mem.ACC, "expand": 1, **values}, {"dram": Ref(tensor, begin), "sram": place})


def store_flat(config: AccelConfig, chunk: Part, out: Key, tensor: Key) -> Command:
    """STORE of entries `chunk` (begin, count) of a tensor that is taken as flat bytes."""
    values, begin = _flat_transfer(config, chunk)
    return Command(Op.STORE, {"mem": Mem.OUT, **values}, {"dram": Ref(tensor, begin), "sram": Ref(out)})


def _flat_transfer(config: AccelConfig, chunk: Part) -> tuple[dict[str, int], int]:
    """Transfer fields and first byte of entries (begin, count) of a tensor that is taken as flat bytes."""
    begin, size = (entries * config.out_bytes for entries in chunk)
    return transfer(config, Runs(1, 1, size)), begin


def store_tile(config: AccelConfig, tile: Outputs, grid: Grid, out: Key, tensor: Key) -> Command:
    """STORE of a tile of results."""
    values, begin = tile_transfer(config, tile, grid)
    return Command(Op.STORE, {"mem": Mem.OUT, **values}, {"dram": Ref(tensor, begin), "sram": Ref(out)})


def store_planes(config: AccelConfig, tile: Outputs, grid: Grid, out: Key, tensor: Key) -> Iterator[Command]:
    """STOREs of a tile of results, [line][piece of a plane][pixel][block], to planes."""
    lines, pixels = grid.lines(tile.rows[1], tile.cols[1])
    begin = grid.begin + tile.rows[0] * grid.row_stride + tile.cols[0] * grid.col_stride
    for line, (first, count) in product(range(lines), _runs_of_planes(tile.blocks, grid)):
        if count % grid.plane_blocks:
            runs = Runs(1, pixels, count * config.out_bytes, 0, grid.col_stride)
        else:
            runs = Runs(count // grid.plane_blocks, 1, pixels * grid.col_stride, grid.plane_stride)
        plane, block = divmod(first, grid.plane_blocks)
        place = begin + line * grid.row_stride + plane * grid.plane_stride + block * config.out_bytes
        sram = Ref(out, (line * tile.blocks[1] + first - tile.blocks[0]) * pixels)
        yield Command(Op.STORE, {"mem": Mem.OUT, **transfer(config, runs)}, {"dram": Ref(tensor, place), "sram": sram})


def _runs_of_planes(blocks: Part, grid: Grid) -> Iterator[Part]:
    """Blocks of a tile that one STORE brings to their planes: a part of a plane, or several whole ones."""
    pieces = grid.pieces(*blocks)
    for whole, same in groupby(pieces, key=lambda piece: piece[1] == grid.plane_blocks):
        found = list(same)
        yield from [(found[0][0], sum(count for _, count in found))] if whole else found


def tile_transfer(config: AccelConfig, tile: Outputs, grid: Grid) -> tuple[dict[str, int], int]:
    """Transfer fields and first byte of an unpadded tile of an image: what STORE writes and a residual LOAD reads."""
    run = tile.blocks[1] * config.out_bytes
    values = transfer(config, Runs(tile.rows[1], tile.cols[1], run, grid.row_stride, grid.col_stride))
    begin = grid.begin + tile.rows[0] * grid.row_stride + tile.cols[0] * grid.col_stride
    return values, begin + tile.blocks[0] * config.out_bytes
