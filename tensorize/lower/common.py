"""What the lowerings of all kinds of layers share: transfers, loops to instruction fields, reload counts.

In: sizes in pixels and bytes. Out: `Command` values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.spec import Dst, Form, Mem, Op
from relay_hw.tensorize.kernel import AddStage, Requantize, Window
from relay_hw.tensorize.nest import LOOP_LIMIT, Axis, Command, Key, Piece, Ref, Uop, fit_loops
from relay_hw.tensorize.tiles.geometry import Grid, Source, span_of


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


def transfer(
    config: AccelConfig,
    rows: int,
    cols: int,
    run_bytes: int,
    row_stride: int,
    col_stride: int,
    pads: tuple[int, int, int, int] = (0, 0, 0, 0),
) -> dict[str, int]:
    """Fields of a LOAD or STORE of rows x cols runs, merged where padding (top, left, bottom, right) allows."""
    top, left, bottom, right = pads
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


def load_patch(
    config: AccelConfig,
    source: Source,
    window: Window,
    rows: tuple[int, int],
    cols: tuple[int, int],
    pitch: int,
    channel_byte: int,
    run_bytes: int,
    tensor: Key,
) -> tuple[dict[str, int], dict[str, Ref]]:
    """LOAD fields of the input under outputs `rows` x `cols` ((begin, count) each), every row `pitch` pixels long."""
    top, bottom = span_of(window, 0, *rows)
    left, right = span_of(window, 1, *cols)
    first_row, last_row = max(top, 0), min(bottom, source.height)
    first_col, last_col = max(left, 0), min(right, source.width)
    pads = (first_row - top, first_col - left, bottom - last_row, left + pitch - last_col)
    values = transfer(
        config,
        last_row - first_row,
        last_col - first_col,
        run_bytes,
        source.row_stride,
        source.col_stride,
        pads,
    )
    begin = source.begin + first_row * source.row_stride + first_col * source.col_stride + channel_byte
    return values, {"dram": Ref(tensor, begin)}


def looped(
    op: Op,
    values: Mapping[str, int],
    refs: Mapping[str, Ref],
    axes: Sequence[Axis],
    lead: Axis | None = None,
    uops: tuple[Uop, ...] = (),
    follow: Mapping[str, str] | None = None,
) -> tuple[Command, ...]:
    """Instructions for a nest. Axis steps named n drive fields n_out, n_in and the reference n_base.

    `follow` names references that move with another one: {"res": "acc"}.
    """
    return tuple(_piece(op, values, refs, piece, uops, follow or {}) for piece in fit_loops(axes, lead))


def _piece(
    op: Op,
    values: Mapping[str, int],
    refs: Mapping[str, Ref],
    piece: Piece,
    uops: tuple[Uop, ...],
    follow: Mapping[str, str],
) -> Command:
    fields = dict(values) | {"iter_out": piece.outer.count, "iter_in": piece.inner.count}
    for name, step in piece.outer.steps.items():
        fields[f"{name}_out"] = step
    for name, step in piece.inner.steps.items():
        fields[f"{name}_in"] = step
    moved: dict[str, Ref] = {}
    for field, ref in refs.items():
        name = field.removesuffix("_base")
        moved[field] = replace(ref, offset=ref.offset + piece.bases.get(follow.get(name, name), 0))
    return Command(op, fields, moved, uops)


def scale_fields(stage: Requantize, dst: Dst) -> dict[str, int]:
    """REQUANT fields of a requantization."""
    return {
        "form": Form.SCALE,
        "dst": dst,
        "rounding": stage.rounding,
        "zero_point": stage.zero_point,
        "clip_lo": stage.clip_lo,
        "clip_hi": stage.clip_hi,
    }


def add_fields(stage: AddStage) -> dict[str, int]:
    """REQUANT fields of a residual add into OUT."""
    return {
        "form": Form.ADD,
        "dst": Dst.OUT,
        "rounding": stage.rounding,
        "zero_point": stage.zero_point,
        "clip_lo": stage.clip_lo,
        "clip_hi": stage.clip_hi,
    }


def add_commands(stage: AddStage, acc: Ref, res: Ref, out: Ref, prm: Ref, entries: int) -> tuple[Command, ...]:
    """REQUANT of `entries` consecutive entries of both operands."""
    refs = {"acc_base": acc, "res_base": res, "dst_base": out, "prm_base": prm}
    return looped(Op.REQUANT, add_fields(stage), refs, [Axis(entries, {"acc": 1, "dst": 1})], follow={"res": "acc"})


def store_tile(
    config: AccelConfig,
    rows: tuple[int, int],
    cols: tuple[int, int],
    blocks: tuple[int, int],
    grid: Grid,
    out: Key,
    tensor: Key,
) -> Command:
    """STORE of an output tile: (begin, count) of rows, columns and blocks."""
    values, begin = tile_transfer(config, rows, cols, blocks, grid)
    return Command(Op.STORE, {"mem": Mem.OUT, **values}, {"dram": Ref(tensor, begin), "sram": Ref(out)})


def tile_transfer(
    config: AccelConfig,
    rows: tuple[int, int],
    cols: tuple[int, int],
    blocks: tuple[int, int],
    grid: Grid,
) -> tuple[dict[str, int], int]:
    """Transfer fields and first byte of an unpadded tile of an image: what STORE writes and a residual LOAD reads."""
    run = blocks[1] * config.out_bytes
    values = transfer(config, rows[1], cols[1], run, grid.row_stride, grid.col_stride)
    begin = grid.begin + rows[0] * grid.row_stride + cols[0] * grid.col_stride
    return values, begin + blocks[0] * config.out_bytes
