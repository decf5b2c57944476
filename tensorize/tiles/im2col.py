"""Im2col for convolutions of few channels: GATHER unfolds rows of bytes into deep vectors for GEMM.

In: convolution kernels. Out: folded `ConvShape` values, their weights and GATHER fields. A vector holds the windows of
`rows` kernel rows; the rest of the kernel's height is reduced by micro-ops on vectors of other image rows, so that
outputs below each other share them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from relay_hw.accel.isa.config import ROW_BUFFER_BYTES, AccelConfig
from relay_hw.accel.isa.program import align
from relay_hw.errors import TensorizeError
from relay_hw.tensorize.kernel import ConvKernel, Int8, Window
from relay_hw.tensorize.layout import pixel_bytes, row_bytes
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.geometry import ConvShape, Fold, Source, conv_shape
from relay_hw.tensorize.tiles.operands import weight_form

# Widths of the fields of GATHER that a kernel can exceed.
_STEP_LIMIT = 255
_LEFT_LIMIT = (1 << 15) - 1
# Rows of padding above or below an image that one GATHER can write.
_PAD_LIMIT = 255

Part = tuple[int, int]


def folded_shapes(kernel: ConvKernel, config: Target) -> tuple[ConvShape, ...]:
    """Ways to execute the convolution on an input that lies as rows; none where GATHER cannot bring it."""
    window, image = kernel.window, kernel.source
    step, run = window.strides[1] * image.channels, window.kernel[1] * image.channels
    bounds = (
        window.dilation == (1, 1),
        kernel.groups == 1,
        image.channels < pixel_bytes(image, config),
        step <= _STEP_LIMIT,
        image.width * image.channels <= ROW_BUFFER_BYTES,
        (kernel.target.width - 1) * step + run <= _LEFT_LIMIT,
        max(window.padding) <= _PAD_LIMIT,
        max(image.height, image.width) <= 0xFFFF,
    )
    if not all(bounds):
        return ()
    shapes = [_folded(kernel, fold, config) for fold in _folds(kernel, config)]
    return tuple(shape for shape in shapes if vector_entries(shape, config) <= _STEP_LIMIT)


def _folds(kernel: ConvKernel, config: AccelConfig) -> Iterator[Fold]:
    """Vectors of more and more kernel rows, packed, or each row on a bus beat where that costs no more blocks."""
    height, down = kernel.window.kernel[0], kernel.window.strides[0]
    run = kernel.window.kernel[1] * kernel.source.channels
    for number in range(1, -(-height // down) + 1):
        rows = min(number * down, height)
        packed = -(-rows * run // config.inp_lanes)
        yield _fold(kernel, rows, number, run, config)
        wide = align(run, config.bus_bytes)
        if wide != run and -(-((rows - 1) * wide + run) // config.inp_lanes) == packed:
            yield _fold(kernel, rows, number, wide, config)


def _fold(kernel: ConvKernel, rows: int, number: int, pitch: int, config: AccelConfig) -> Fold:
    window, image = kernel.window, kernel.source
    return Fold(
        rows=rows,
        reach=number,
        pitch=pitch,
        run=window.kernel[1] * image.channels,
        height=window.kernel[0],
        x_step=window.strides[1] * image.channels,
        y_step=window.strides[0],
        left=window.padding[1] * image.channels,
        top=window.padding[0],
        pad_value=window.pad_value,
        image_rows=image.height,
        image_bytes=image.width * image.channels,
        row_stride=row_bytes(image, config),
    )


def _folded(kernel: ConvKernel, fold: Fold, config: Target) -> ConvShape:
    """The folded convolution: one tap wide, as many taps high as vectors are needed for the kernel's height."""
    height = -(-fold.height // fold.rows)
    blocks = -(-((fold.rows - 1) * fold.pitch + fold.run) // config.inp_lanes)
    window = Window((height, 1), dilation=(fold.reach, 1))
    vector = align(blocks * config.inp_bytes, config.granule_bytes)
    target = kernel.target
    rows = target.height + window.extent[0] - 1
    source = Source(rows, target.width, vector, target.width * vector, vector)
    # A vector's lanes are no entry's channels: weights may have no factors.
    form = weight_form(kernel.weights, config)
    return replace(conv_shape(kernel, config), source=source, window=window, in_blocks=blocks, fold=fold, form=form)


def vector_entries(shape: ConvShape, config: AccelConfig) -> int:
    """Entries from one vector to the next."""
    return shape.source.pixel_bytes // config.inp_bytes


def folded_weights(kernel: ConvKernel, shape: ConvShape, config: AccelConfig) -> Int8:
    """int8 [O, taps of the folded window, 1, lanes of a vector]; lanes that no window fills get zero."""
    fold = shape.fold
    assert fold is not None
    out = kernel.weights.shape[0]
    folded = np.zeros((out, shape.window.kernel[0], 1, shape.in_blocks * config.inp_lanes), np.int8)
    for row in range(fold.height):
        tap, part = divmod(row, fold.rows)
        begin = part * fold.pitch
        folded[:, tap, 0, begin : begin + fold.run] = kernel.weights[:, row].reshape(out, -1)
    return folded


def gather_fields(shape: ConvShape, rows: Part, cols: Part, pitch: int, config: AccelConfig) -> list[dict[str, int]]:
    """GATHER fields that bring the vectors under outputs `rows` x `cols`, `pitch` of them in each row.

    `dram` is relative to the tensor, `sram` is left out. One instruction for each kernel row of a vector.
    """
    fold = shape.fold
    assert fold is not None
    return [_gather(shape, part, rows, cols, pitch, config) for part in range(fold.rows)]


def _gather(shape: ConvShape, part: int, rows: Part, cols: Part, pitch: int, config: AccelConfig) -> dict[str, int]:
    fold = shape.fold
    assert fold is not None
    count = rows[1] + fold.reaches(part, config.inp_bytes)
    above, inside, below, first = _image_rows(fold, rows[0] * fold.y_step + part - fold.top, count)
    begin = cols[0] * fold.x_step - fold.left
    base = max(begin, 0) // config.granule_bytes * config.granule_bytes
    end = min(fold.image_bytes, begin + (pitch - 1) * fold.x_step + fold.run)
    return {
        "dram": first * fold.row_stride + base,
        "pitch": vector_entries(shape, config),
        "x_step": fold.x_step,
        "y": max(inside, 1),
        "x": pitch,
        "y_stride": fold.y_step * fold.row_stride if inside > 1 else 0,
        "row_bytes": end - base,
        # Windows far left of the row take padding only: a way to write rows of padding alone.
        "left": base - begin if inside else _LEFT_LIMIT,
        "run": fold.run,
        "lane": part * fold.pitch,
        "pad_value": fold.pad_value,
        "y_pad_0": above,
        "y_pad_1": below,
    }


def _image_rows(fold: Fold, begin: int, count: int) -> tuple[int, int, int, int]:
    """Of `count` rows from `begin` on: those above, inside and below the image, and the first inside."""
    numbers = range(begin, begin + count * fold.y_step, fold.y_step)
    inside = [row for row in numbers if 0 <= row < fold.image_rows]
    if not inside:
        return count - 1, 0, 0, 0
    above = (inside[0] - begin) // fold.y_step
    return above, len(inside), count - above - len(inside), inside[0]


def shapes_of(kernel: ConvKernel, config: Target) -> tuple[ConvShape, ...]:
    """Shapes that the kernel can be executed in, given how its input lies."""
    return folded_shapes(kernel, config) if kernel.rows else (conv_shape(kernel, config),)


def shape_under(kernel: ConvKernel, fold: Fold | None, config: Target) -> ConvShape:
    """The shape that a tile was chosen for. Raises TensorizeError when it is none of the kernel's."""
    for shape in shapes_of(kernel, config):
        if shape.fold == fold:
            return shape
    raise TensorizeError(f"convolution must be one of its shapes, not folded as {fold}")
