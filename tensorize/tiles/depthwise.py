"""Tiles of layers whose output blocks each read few input blocks: depthwise and grouped convolutions, pools.

In: kernels. Out: `DepthwiseShape`, the fastest tile by estimate, scratchpad entries. Depthwise convolutions
and pools take four neighbouring lines of INP a micro-op, channel by channel (modes taps and max of GEMM), from planes
of one channel block each; grouped ones multiply the blocks of the weight matrix that are not zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from relay_hw.accel.isa.config import TAPS, AccelConfig
from relay_hw.accel.isa.program import align
from relay_hw.accel.isa.spec import GemmMode
from relay_hw.errors import TensorizeError
from relay_hw.tensorize.kernel import ConvKernel, Image, PoolKernel, PoolKind, Window
from relay_hw.tensorize.layout import pixel_bytes
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.geometry import (
    Grid,
    Source,
    bank_round,
    granule_blocks,
    grid_of,
    skip_unread,
    source_of,
    span_of,
)
from relay_hw.tensorize.tiles.operands import WeightForm, operand_starts, weight_form
from relay_hw.tensorize.tiles.sizes import Entries, OutputTile
from relay_hw.tensorize.tiles.tile_cost import (
    STEP_CYCLES,
    Cost,
    output_interval,
    overlapped,
    patch_cycles,
    store_cycles,
)
from relay_hw.tensorize.tiles.tile_space import EXTENT_LIMIT, PAD_LIMIT, chunk_sizes

# Micro-ops of one step take at most one part in this many of their memory, where they can be shared by blocks.
_UOP_SHARE = 16
PITCH_LIMIT = (1 << 11) - 1
Part = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Slot:
    """One micro-op of a window: four lines from pixel (row, col) of it on, each with its kernel column or None."""

    kernel_row: int
    row: int
    col: int
    taps: tuple[int | None, ...]

    @property
    def mask(self) -> int:
        """Bit t for line t where it has a tap."""
        return sum(1 << t for t, tap in enumerate(self.taps) if tap is not None)


@dataclass(frozen=True, slots=True)
class DepthwiseShape:
    """The layer in blocks. `first`: for each output block the input block that it reads first, of `reads` in a row.

    `shared`: all output blocks have the same weights.
    """

    mode: GemmMode
    source: Source
    window: Window
    out_height: int
    out_width: int
    out_blocks: int
    out_grid: Grid
    in_blocks: int
    first: tuple[int, ...]
    reads: int
    slots: tuple[Slot, ...]
    shared: bool = False
    scaled: bool = True
    form: WeightForm = WeightForm.BYTES
    operand: int = 1

    @property
    def products(self) -> int:
        """Micro-ops that one accumulator entry takes in one pass."""
        return len(self.slots) or self.window.taps * len(operand_starts(self.reads, self.operand))

    @property
    def depth(self) -> int:
        """Micro-ops that one accumulator entry takes."""
        return self.products * self.form.passes


def depthwise_shape(kernel: ConvKernel | PoolKernel, config: Target) -> DepthwiseShape:
    """A convolution with groups, or a pool."""
    if isinstance(kernel, PoolKernel):
        mode = GemmMode.MAX if kernel.kind is PoolKind.MAX else GemmMode.TAPS
        return _lines_shape(kernel, mode, config)
    depthwise = kernel.weights.shape[3] == 1 and kernel.source.channels == kernel.target.channels
    if depthwise:
        return _lines_shape(kernel, GemmMode.TAPS, config)
    return _grouped_shape(kernel, config)


def _lines_shape(kernel: ConvKernel | PoolKernel, mode: GemmMode, config: Target) -> DepthwiseShape:
    image, window, pixel = kernel.source, kernel.window, pixel_bytes(kernel.source, config)
    height, width = image.height, image.width
    if window.kernel == (height, width) and not any(window.padding) and kernel.origin is None:
        # Neighbouring rows are neighbouring lines: one long row.
        height, width = 1, height * width
        window = Window((1, width))
    source = source_of(Image(height, width, image.channels), pixel, kernel.origin)
    source, window = skip_unread(source, window, kernel.target, config)
    blocks = pixel // config.block_out
    return DepthwiseShape(
        mode=mode,
        source=source,
        window=window,
        out_height=kernel.target.height,
        out_width=kernel.target.width,
        out_blocks=blocks,
        out_grid=grid_of(kernel.target, kernel.place, config),
        in_blocks=blocks,
        first=tuple(range(blocks)),
        reads=1,
        slots=_slots(window),
        shared=isinstance(kernel, PoolKernel),
        form=_form(kernel, mode, config),
        scaled=kernel.requantize is not None,
    )


def _form(kernel: ConvKernel | PoolKernel, mode: GemmMode, config: AccelConfig) -> WeightForm:
    """How weights are stored. Those of pools are ones."""
    if isinstance(kernel, ConvKernel):
        return weight_form(kernel.weights, config)
    return WeightForm.NARROW if config.wgt_bits == 4 and mode is GemmMode.TAPS else WeightForm.BYTES


def _grouped_shape(kernel: ConvKernel, config: Target) -> DepthwiseShape:
    pixel, image = pixel_bytes(kernel.source, config), kernel.source
    source = source_of(image, pixel, kernel.origin)
    source, window = skip_unread(source, kernel.window, kernel.target, config)
    out_blocks = pixel_bytes(kernel.target, config) // config.block_out
    in_blocks = -(-image.channels // config.inp_lanes)
    inputs, outputs = kernel.weights.shape[3], kernel.target.channels // kernel.groups
    spans: list[tuple[int, int]] = []
    for block in range(-(-kernel.target.channels // config.block_out)):
        last = min((block + 1) * config.block_out, kernel.target.channels) - 1
        begin, end = block * config.block_out // outputs * inputs, (last // outputs + 1) * inputs
        spans.append((begin // config.inp_lanes, -(-end // config.inp_lanes)))
    reads = max(end - begin for begin, end in spans)
    first = [min(begin, in_blocks - reads) for begin, _ in spans]
    first += first[-1:] * (out_blocks - len(first))
    return DepthwiseShape(
        mode=GemmMode.MATMUL,
        source=source,
        window=window,
        out_height=kernel.target.height,
        out_width=kernel.target.width,
        out_blocks=out_blocks,
        out_grid=grid_of(kernel.target, kernel.place, config),
        in_blocks=in_blocks,
        first=tuple(first),
        reads=reads,
        slots=(),
        form=weight_form(kernel.weights, config),
        operand=config.operand_entries,
    )


def _slots(window: Window) -> tuple[Slot, ...]:
    """Groups of four lines that cover each kernel row.

    Those of the last row end with the window, all others start with a tap: so none reads beyond the patch.
    """
    (height, width), (down, right) = window.kernel, window.dilation
    extent = window.extent[1]
    columns = {kx * right: kx for kx in range(width)}
    found: list[Slot] = []
    for ky in range(height):
        covered = -1
        for position in columns:
            if position <= covered:
                continue
            last = ky == height - 1 and (height > 1 or extent >= TAPS)
            begin = min(position, extent - TAPS) if last else position
            covered = begin + TAPS - 1
            taps = tuple(columns.get(begin + t) if begin + t >= position else None for t in range(TAPS))
            found.append(Slot(ky, ky * down, begin, taps))
    return tuple(found)


def depthwise_patch(shape: DepthwiseShape, rows: int, cols: int) -> tuple[int, int]:
    """Input rows and columns that are loaded for `rows` x `cols` outputs, padding included."""
    top, bottom = span_of(shape.window, 0, 0, rows)
    left, right = span_of(shape.window, 1, 0, cols)
    width = right - left
    if shape.mode is not GemmMode.MATMUL:
        # A micro-op reads four lines, whether or not all have a tap.
        extent = shape.window.extent[1]
        alone = shape.window.kernel[0] == 1 and extent < TAPS
        width = width + TAPS - extent if alone else max(width, TAPS)
    return bottom - top, width


def channel_bytes(shape: DepthwiseShape, blocks: Part, config: AccelConfig) -> Part:
    """(first, count) bytes of a pixel that output blocks (begin, count) read, in whole granules."""
    if shape.mode is not GemmMode.MATMUL:
        return blocks[0] * config.out_bytes, blocks[1] * config.out_bytes
    starts = shape.first[blocks[0] : blocks[0] + blocks[1]]
    step = granule_blocks(config, config.inp_lanes)
    begin = min(starts) // step * step
    return begin * config.inp_bytes, align(max(starts) + shape.reads - begin, step) * config.inp_bytes


def plane_lines(shape: DepthwiseShape, tile: OutputTile) -> int:
    """Lines from one plane to the next."""
    height, width = depthwise_patch(shape, tile.rows, tile.cols)
    return align(height * width, TAPS)


def depthwise_entries(shape: DepthwiseShape, tile: OutputTile, config: AccelConfig) -> Entries:
    """Scratchpad entries of the tile's largest step."""
    height, width = depthwise_patch(shape, tile.rows, tile.cols)
    parts = [(begin, min(tile.blocks, shape.out_blocks - begin)) for begin in range(0, shape.out_blocks, tile.blocks)]
    pixel = max(channel_bytes(shape, part, config)[1] for part in parts)
    outputs = tile.rows * tile.cols * tile.blocks
    if shape.mode is GemmMode.MATMUL:
        inp = height * width * (pixel // config.inp_bytes)
    else:
        planes = pixel // config.line_bytes
        inp = ((planes - 1) * plane_lines(shape, tile) + height * width) * config.line_entries
    return Entries(
        inp=inp,
        wgt=weight_entries(shape, tile.blocks, config),
        acc=bank_round(config, outputs),
        out=outputs,
        prm=tile.blocks if shape.scaled else 0,
        uops=shape.products if one_by_one(shape, tile.blocks, config) else tile.blocks * shape.products,
    )


def one_by_one(shape: DepthwiseShape, blocks: int, config: AccelConfig) -> bool:
    """True where each block of a step is an instruction: together they would take too much of the micro-op memory."""
    return shape.mode is GemmMode.MATMUL and blocks * shape.products > config.uop_depth // _UOP_SHARE


def weight_entries(shape: DepthwiseShape, blocks: int, config: AccelConfig) -> int:
    """Entries of WGT for `blocks` output blocks."""
    match shape.mode:
        case GemmMode.MATMUL | GemmMode.ENTRY:
            return blocks * shape.depth
        case GemmMode.TAPS:
            return -(-(1 if shape.shared else blocks) * shape.products // config.tap_groups) * shape.form.passes
        case GemmMode.MAX:
            return 0


def depthwise_cost(shape: DepthwiseShape, tile: OutputTile, config: Target) -> Cost:
    """Time of the layer under `tile`."""
    use = depthwise_entries(shape, tile, config)
    groups = -(-shape.out_blocks // tile.blocks)
    pixels = -(-shape.out_height // tile.rows) * -(-shape.out_width // tile.cols)
    tiles = groups * pixels
    run = channel_bytes(shape, (0, min(tile.blocks, shape.out_blocks)), config)[1]
    height, width = depthwise_patch(shape, tile.rows, tile.cols)
    patch = max(patch_cycles(config, shape.source, height, width, run), height * width * run // config.bus_bytes)
    stored = store_cycles(config, tile.rows, tile.cols, tile.blocks * config.out_bytes, shape.out_grid)
    outputs = shape.out_height * shape.out_width * shape.out_blocks
    compute, output = outputs * shape.depth, outputs * output_interval(config)
    weights = groups * shape.form.stored_bytes(use.wgt, config) // config.bus_bytes
    load, store = tiles * patch + weights, tiles * stored
    cycles = overlapped(compute + STEP_CYCLES * tiles, load, output, store)
    cycles += 2 * config.memory.latency + patch + output // tiles + stored
    if 2 * use.inp > config.inp_depth:
        cycles += load + tiles * config.memory.latency
    if 2 * use.acc > config.acc_depth:
        cycles += output
    if 2 * use.out > config.out_depth:
        cycles += store // 4
    return Cost(cycles, compute, load, output, store, tiles)


def depthwise_fits(shape: DepthwiseShape, tile: OutputTile, config: AccelConfig) -> bool:
    """True when every buffer of one step fits its scratchpad and every field its width."""
    use = depthwise_entries(shape, tile, config)
    width = depthwise_patch(shape, tile.rows, tile.cols)[1]
    return (
        use.inp <= config.inp_depth
        and use.wgt <= config.wgt_depth
        and use.acc <= config.acc_depth
        and use.out <= config.out_depth
        and use.prm <= min(config.prm_depth, PAD_LIMIT)
        and use.uops <= config.uop_depth // 2
        and plane_lines(shape, tile) <= TAPS * PITCH_LIMIT
        and max(shape.window.padding) <= PAD_LIMIT - TAPS
        and (tile.cols == shape.out_width or width <= PAD_LIMIT)
        and max(shape.source.height, shape.source.width) <= EXTENT_LIMIT
    )


def depthwise_tiles(shape: DepthwiseShape, config: AccelConfig) -> Iterator[OutputTile]:
    """All legal tiles."""
    # Planes hold whole lines.
    in_planes = shape.mode is not GemmMode.MATMUL
    step = config.line_bytes // config.out_bytes if in_planes else granule_blocks(config, config.block_out)
    for blocks in chunk_sizes(shape.out_blocks, step):
        for cols in chunk_sizes(shape.out_width):
            for rows in chunk_sizes(shape.out_height):
                tile = OutputTile(rows, cols, blocks)
                if depthwise_fits(shape, tile, config):
                    yield tile


def choose_depthwise(shape: DepthwiseShape, config: AccelConfig) -> OutputTile:
    """The legal tile with the smallest estimated time. Raises TensorizeError when none fits."""
    best = _cheapest(shape, config)
    if best is None:
        what = "pool" if shape.shared else "convolution with groups"
        raise TensorizeError(f"{what} must have a tile that fits configuration {config.name}, not {shape.window}")
    return best


@lru_cache(maxsize=256)
def _cheapest(shape: DepthwiseShape, config: Target) -> OutputTile | None:
    """What `choose_depthwise` chooses, or None. Equal layers are searched once."""
    best: tuple[tuple[int, ...], OutputTile] | None = None
    for tile in depthwise_tiles(shape, config):
        cost = depthwise_cost(shape, tile, config)
        rank = (cost.cycles, cost.steps, tile.rows, tile.cols, tile.blocks)
        if best is None or rank < best[0]:
            best = (rank, tile)
    return None if best is None else best[1]
