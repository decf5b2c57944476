"""Converts kernels to the units of one configuration: blocks, scratchpad entries and bytes instead of channels.

In: a kernel and a configuration. Out: `ConvShape` and `PoolShape`, which tiling, cost and lowering share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.program import align
from relay_hw.tensorize.kernel import ConvKernel, Image, Int8, Origin, Place, PoolKernel, Window
from relay_hw.tensorize.layout import pixel_bytes
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.operands import WeightForm, operand_starts, weight_form


@dataclass(frozen=True, slots=True)
class Source:
    """How LOAD walks the input activation: pixels that the window can meet, and the bytes between them.

    `begin`: bytes before the first pixel; `block_stride`: from one block of channels to the next, where they do not
    follow each other.
    """

    height: int
    width: int
    pixel_bytes: int
    row_stride: int
    col_stride: int
    begin: int = 0
    block_stride: int = 0

    @property
    def dense_rows(self) -> bool:
        """True where the pixels of a row are consecutive bytes."""
        return self.col_stride == self.pixel_bytes


@dataclass(frozen=True, slots=True)
class Grid:
    """Where the pixels of a layer's result lie: bytes of the first, and from one row and column to the next.

    `plane_blocks`: blocks of channels in a plane, `plane_stride`: bytes from one plane to the next; 0 where all
    channels of a pixel lie together.
    """

    begin: int
    row_stride: int
    col_stride: int
    plane_blocks: int = 0
    plane_stride: int = 0

    def pieces(self, begin: int, count: int) -> Iterator[tuple[int, int]]:
        """Blocks of channels of a tile cut where planes end: (first block, how many)."""
        first = begin
        while first < begin + count:
            last = min(first - first % self.plane_blocks + self.plane_blocks, begin + count)
            yield first, last - first
            first = last

    def lines(self, rows: int, cols: int) -> tuple[int, int]:
        """Lines of consecutive pixels in a tile, and pixels of each."""
        return (1, rows * cols) if rows == 1 or self.row_stride == cols * self.col_stride else (rows, cols)


@dataclass(frozen=True, slots=True)
class Fold:
    """How vectors are gathered from rows of bytes: each holds a window of `run` bytes of each of `rows` kernel rows,
    `pitch` apart.

    Vector row p begins at image row p * y_step - top; the next `rows` of the kernel's `height` rows are found `reach`
    vector rows below. `image_bytes`: of a row; `row_stride`: from one row to the next.
    """

    rows: int
    reach: int
    pitch: int
    run: int
    height: int
    x_step: int
    y_step: int
    left: int
    top: int
    pad_value: int
    image_rows: int
    image_bytes: int
    row_stride: int

    def reaches(self, part: int, block: int) -> int:
        """Vector rows below an output that its kernel row `part` of a vector is gathered for.

        The last taps of the kernel may not need it; it is left out there where other windows meet all its entries of
        `block` bytes, so that no entry is read that was never written.
        """
        whole, needed = ((self.height - 1 - i) // self.rows for i in (0, part))
        if needed < whole:
            full = [i for i in range(part) if (self.height - 1 - i) // self.rows == whole]
            met = {entry for i in full for entry in self.entries(i, block)}
            needed = needed if met.issuperset(self.entries(part, block)) else whole
        return needed * self.reach

    def entries(self, part: int, block: int) -> range:
        """Entries of `block` bytes that the window of kernel row `part` meets in a vector."""
        begin = part * self.pitch
        return range(begin // block, (begin + self.run - 1) // block + 1)


@dataclass(frozen=True, slots=True)
class ConvShape:
    """A convolution in blocks. `in_blocks` and `out_blocks` count blocks of channels of one pixel.

    in_blocks: entries of INP that hold real channels; out_blocks: all that a stored pixel has, so that every byte is
    written.
    """

    source: Source
    window: Window
    in_blocks: int
    out_height: int
    out_width: int
    out_blocks: int
    out_pixel_bytes: int
    out_grid: Grid
    residual: bool
    fold: Fold | None = None
    form: WeightForm = WeightForm.BYTES
    # Entries of INP that one product takes.
    operand: int = 1

    def runs(self, in_blocks: int) -> tuple[int, int]:
        """Runs that `in_blocks` of a window are cut into operands by, and entries of each."""
        (height, width), (_, right) = self.window.kernel, self.window.dilation
        together = self.operand > 1 and (right == 1 or width == 1)
        return (height, width * in_blocks) if together else (height * width, in_blocks)

    def products(self, in_blocks: int) -> int:
        """Operands that cover `in_blocks` of a window."""
        runs, entries = self.runs(in_blocks)
        return runs * len(operand_starts(entries, self.operand))

    def depth(self, in_blocks: int) -> int:
        """Products of tiles that one accumulator entry adds up for `in_blocks`; as many entries of WGT."""
        return self.products(in_blocks) * self.form.passes


@dataclass(frozen=True, slots=True)
class PoolShape:
    """A pool in blocks of accumulator entries."""

    source: Source
    window: Window
    out_height: int
    out_width: int
    blocks: int
    out_pixel_bytes: int
    out_grid: Grid


def conv_shape(kernel: ConvKernel, config: Target) -> ConvShape:
    """The convolution as it is executed: a dense layer over an image becomes 1x1 over one long pixel."""
    window, image = kernel.window, kernel.source
    pixel = pixel_bytes(image, config)
    if merges_pixels(kernel, config):
        pixel *= image.pixels
        image, window = Image(1, 1, pixel), Window((1, 1))
    source = source_of(image, pixel, kernel.origin)
    source, window = skip_unread(source, window, kernel.target, config)
    out_pixel = pixel_bytes(kernel.target, config)
    return ConvShape(
        source=source,
        window=window,
        in_blocks=-(-image.channels // config.inp_lanes),
        out_height=kernel.target.height,
        out_width=kernel.target.width,
        out_blocks=out_pixel // config.block_out,
        out_pixel_bytes=out_pixel,
        out_grid=grid_of(kernel.target, kernel.place, config),
        residual=kernel.residual is not None,
        form=weight_form(kernel.weights, config, rows=True),
        operand=config.operand_entries,
    )


def merges_pixels(kernel: ConvKernel, config: AccelConfig) -> bool:
    """True where the input's bytes are read as one pixel.

    Not where that adds blocks that hold padding only, as long as the micro-ops of the window fit.
    """
    blocks = -(-kernel.source.channels // config.inp_lanes)
    whole = blocks * config.inp_lanes == pixel_bytes(kernel.source, config)
    return kernel.flat and kernel.origin is None and (whole or kernel.window.taps * blocks > config.uop_depth // 4)


def conv_weights(kernel: ConvKernel, config: AccelConfig) -> Int8:
    """int8 [O, KH, KW, I] in the form that `conv_shape` executes."""
    if not merges_pixels(kernel, config):
        return kernel.weights
    out, height, width, channels = kernel.weights.shape
    padded = np.zeros((out, height, width, pixel_bytes(kernel.source, config)), np.int8)
    padded[..., :channels] = kernel.weights
    return padded.reshape(out, 1, 1, -1)


def pool_shape(kernel: PoolKernel, config: Target) -> PoolShape:
    """The pool in blocks."""
    pixel = pixel_bytes(kernel.source, config)
    source = source_of(kernel.source, pixel, kernel.origin)
    source, window = skip_unread(source, kernel.window, kernel.target, config)
    target, blocks = kernel.target, pixel // config.block_out
    return PoolShape(source, window, target.height, target.width, blocks, pixel, grid_of(target, kernel.place, config))


def source_of(image: Image, pixel: int, origin: Origin | None) -> Source:
    """The pixels of `image`, `pixel` bytes each: in the order of rows, or as a part of another image."""
    if origin is None:
        origin = Origin(0, image.width * pixel, pixel)
    return Source(
        image.height, image.width, pixel, origin.row_stride, origin.col_stride, origin.begin, origin.block_stride
    )


def grid_of(target: Image, place: Place | None, config: AccelConfig) -> Grid:
    """Where the pixels of `target` lie: in the order of rows, or as a part of another image."""
    if place is None:
        place = Place(target, (0, 0), (1, 1))
    pixel, plane = pixel_bytes(place.image, config), 0
    begin = place.channel
    if place.plane_blocks:
        pixel = place.plane_blocks * config.out_bytes
        plane = place.image.pixels * pixel
        begin = place.channel // pixel * plane + place.channel % pixel
    row = place.image.width * pixel
    begin += place.first[0] * row + place.first[1] * pixel
    return Grid(begin, place.step[0] * row, place.step[1] * pixel, place.plane_blocks, plane)


def skip_unread(source: Source, window: Window, target: Image, config: Target) -> tuple[Source, Window]:
    """Windows of one pixel that step over rows or columns: load only the pixels that are met."""
    (kernel_h, kernel_w), (stride_h, stride_w) = window.kernel, window.strides
    if window.padding != (0, 0, 0, 0):
        return source, window
    if kernel_h == 1 and stride_h > 1:
        source = replace(source, height=target.height, row_stride=source.row_stride * stride_h)
        window = replace(window, strides=(1, window.strides[1]))
    single = run_cycles(config, source.pixel_bytes, config.reads)
    if kernel_w == 1 and stride_w > 1 and single <= stride_w * source.pixel_bytes // config.bus_bytes:
        source = replace(source, width=target.width, col_stride=source.col_stride * stride_w)
        window = replace(window, strides=(window.strides[0], 1))
    return source, window


def run_cycles(config: Target, run_bytes: int, outstanding: int) -> int:
    """Bus cycles of one run of consecutive bytes among many: its data, or latency over bursts in flight."""
    bursts = -(-run_bytes // (config.burst_beats * config.bus_bytes))
    return max(run_bytes // config.bus_bytes, bursts * config.memory.latency // outstanding)


def granule_blocks(config: AccelConfig, block: int) -> int:
    """Blocks of `block` channels in one granule, at least 1: channel tiles start and end on these."""
    return max(1, config.granule_bytes // block)


def acc_unit(config: AccelConfig) -> int:
    """Entries that accumulator buffers are cut to: a bank, so that units meet in few, or less where banks are few."""
    return min(config.acc_bank_depth, config.acc_depth // 4)


def bank_round(config: AccelConfig, entries: int) -> int:
    """Accumulator entries of the whole units that hold `entries`."""
    return align(entries, acc_unit(config))


def span_of(window: Window, axis: int, begin: int, count: int) -> tuple[int, int]:
    """[first, one past last) input row (axis 0) or column (axis 1) under `count` outputs from `begin`, with padding."""
    stride, before = window.strides[axis], window.padding[axis]
    first = begin * stride - before
    return first, first + (count - 1) * stride + window.extent[axis]


def parts(total: int, size: int) -> tuple[tuple[int, int], ...]:
    """(begin, count) chunks of `size` that cover `total`; the last may be shorter."""
    return tuple((begin, min(size, total - begin)) for begin in range(0, total, size))
