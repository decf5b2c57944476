"""Lowers products of two activations, and transposes, to steps: one operand is loaded as the weights of GEMM.

In: a kernel and its tile. Out: steps. A row of a weight tile is as long as a granule, so that LOAD brings it alone;
inputs of a region that are nothing but such operands lie in DRAM as tiles, which one run of LOAD brings.
Where rows end inside a block of channels, what lies behind them is anything: the left operand's last block goes through
a product with the identity that has zeros there, to a place of its own in INP.
Transposing multiplies the identity by the matrix: row n of the result is what lane n of each weight row holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.spec import Dst, Form, Mem, Op
from relay_hw.errors import TensorizeError
from relay_hw.tensorize.commands import Axis, Buffer, Command, Key, Ref, Step, Uop
from relay_hw.tensorize.kernel import Image, Origin, ProductKernel, SwapKernel
from relay_hw.tensorize.layout import Records, pixel_bytes, requantize_records
from relay_hw.tensorize.lower.common import (
    LayerId,
    Outputs,
    Part,
    Runs,
    looped,
    record_buffer,
    record_key,
    scale_commands,
    store_planes,
    store_tile,
    transfer,
)
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.choose import PAD_LIMIT, chunk_sizes
from relay_hw.tensorize.tiles.geometry import Grid, Source, bank_round, parts, run_cycles, source_of
from relay_hw.tensorize.tiles.sizes import OutputTile
from relay_hw.tensorize.tiles.tile_cost import STEP_CYCLES, output_interval

INT8 = (-128, 127)
# Tiles that take one cycle in so many more are taken for their fewer steps.
NEARLY = 32


def choose_product(kernel: ProductKernel | SwapKernel, config: Target) -> OutputTile:
    """`rows` (or columns before they are swapped) and blocks of weights at a time: as many blocks as fit; of a product
    so few rows that its loads, sums, results and stores overlap. Raises TensorizeError.
    """
    height, width = _extents(kernel, config)
    for blocks in chunk_sizes(width):
        fitting = [rows for rows in chunk_sizes(height) if product_fits(kernel, rows, blocks, config)]
        if fitting and isinstance(kernel, ProductKernel):
            cycles = {rows: product_cycles(kernel, rows, blocks, config) for rows in fitting}
            least = min(cycles.values())
            return OutputTile(max(rows for rows in fitting if cycles[rows] <= least + least // NEARLY), 1, blocks)
        if fitting:
            return OutputTile(fitting[0], 1, blocks)
    raise TensorizeError(f"product must have a tile that fits configuration {config.name}, not {kernel.target}")


def product_cycles(kernel: ProductKernel, rows: int, blocks: int, config: Target) -> int:
    """Estimated time of steps of so many rows: of the busiest unit, and what nothing overlaps at both ends."""
    height, width = _extents(kernel, config)
    depth, pixel = _depth(kernel, config), pixel_bytes(kernel.left, config)
    steps = kernel.target.height * -(-height // rows) * -(-width // blocks)
    weights = blocks * depth * config.block_out * config.granule_bytes // config.bus_bytes
    load = run_cycles(config, rows * pixel, config.reads)
    compute = rows * blocks * depth + STEP_CYCLES
    output = rows * blocks * output_interval(config)
    store = run_cycles(config, rows * blocks * config.out_bytes, config.writes)
    loads = load * steps + weights * kernel.target.height * -(-width // blocks)
    return max(compute * steps, loads, output * steps, store * steps) + weights + load + output + store


def _extents(kernel: ProductKernel | SwapKernel, config: AccelConfig) -> tuple[int, int]:
    """Rows and blocks that tiles cut: of the left operand and the result; blocks of the result's rows and columns."""
    blocks = -(-kernel.target.channels // config.block_out)
    if isinstance(kernel, ProductKernel):
        return kernel.target.width, blocks
    return -(-kernel.target.width // config.block_in), blocks


def product_fits(kernel: ProductKernel | SwapKernel, rows: int, blocks: int, config: AccelConfig) -> bool:
    swap = isinstance(kernel, SwapKernel)
    depth = 1 if swap else _depth(kernel, config)
    weights = blocks * (rows if swap else depth)
    masks = 0 if swap else int(_ends_inside(kernel, config))
    results = blocks * (rows * config.block_in if swap else rows)
    return (
        2 * weights + masks <= config.wgt_depth
        and 2 * rows * (depth + masks) <= config.inp_depth
        and 2 * (results + masks * rows) <= config.acc_depth
        and 2 * results <= config.out_depth
        and 2 * blocks <= min(config.prm_depth, PAD_LIMIT)
        and depth <= config.uop_depth // 2
    )


def _depth(kernel: ProductKernel, config: AccelConfig) -> int:
    """Blocks of a row."""
    return -(-kernel.left.channels // config.block_in)


def _lying(image: Image, at: Origin | None, config: AccelConfig) -> Source:
    """Where the rows of heads lie."""
    return source_of(image, pixel_bytes(image, config), at)


def _ends_inside(kernel: ProductKernel, config: AccelConfig) -> bool:
    return kernel.left.channels % config.block_in != 0


def lower_product(layer: LayerId, kernel: ProductKernel, tile: OutputTile, config: AccelConfig) -> tuple[Step, ...]:
    """Steps of a layer; its tensors: left operand, right operand, result."""
    height, width = _extents(kernel, config)
    records = requantize_records(kernel.requantize, width, config)
    places = product(range(kernel.target.height), parts(width, tile.blocks), parts(height, tile.rows))
    return tuple(_product(layer, kernel, records, place, config) for place in places)


def _product(
    layer: LayerId, kernel: ProductKernel, records: Records, place: tuple[int, Part, Part], config: AccelConfig
) -> Step:
    (head, blocks, rows), number, tensors = place, layer.number, layer.tensors
    depth = _depth(kernel, config)
    count = rows[1] * blocks[1]
    inp, wgt, acc, out, prm = (
        ("inp", number, head, rows[0], blocks[0]),
        ("wgt", number, head, blocks[0]),
        ("acc", number, head, rows[0], blocks[0]),
        ("out", number, head, rows[0], blocks[0]),
        record_key(number, records, blocks),
    )
    left = _lying(kernel.left, kernel.origins[0], config)
    first = left.begin + head * left.row_stride + rows[0] * left.col_stride
    values = transfer(config, _left_runs(left, rows[1], config))
    load = Command(Op.LOAD, {"mem": Mem.INP, **values}, {"dram": Ref(tensors[0], first), "sram": Ref(inp)})
    weights = tuple(_weights(kernel, head, blocks, wgt, tensors[1:-1], config))
    buffers = (
        Buffer(inp, Mem.INP, rows[1] * depth, loads=(load,)),
        Buffer(wgt, Mem.WGT, blocks[1] * depth, loads=weights),
        Buffer(acc, Mem.ACC, bank_round(config, count)),
        record_buffer(prm, records, blocks),
        Buffer(out, Mem.OUT, count),
    )
    commands: list[Command] = []
    if _ends_inside(kernel, config):
        masked = _masked(kernel, inp, number, rows[1], config)
        buffers, commands = (*buffers, *masked[0]), list(masked[1])
    commands += _sums(kernel, (acc, inp, wgt), (rows[1], blocks[1]), config)
    pixels = Axis(rows[1], {"acc": blocks[1], "dst": blocks[1]})
    refs = {"acc_base": Ref(acc), "dst_base": Ref(out), "prm_base": Ref(prm)}
    commands += scale_commands(records, refs, blocks[1], [pixels])
    result = _lying(kernel.target, kernel.place, config)
    begin = result.begin + head * result.row_stride + rows[0] * result.col_stride + blocks[0] * config.out_bytes
    values = transfer(config, Runs(rows[1], 1, blocks[1] * config.out_bytes, result.col_stride))
    commands.append(Command(Op.STORE, {"mem": Mem.OUT, **values}, {"dram": Ref(tensors[-1], begin), "sram": Ref(out)}))
    return Step(number, f"{layer.name} head {head} rows {rows[0]} blocks {blocks[0]}", buffers, tuple(commands))


def _sums(
    kernel: ProductKernel, keys: tuple[Key, Key, Key], sizes: tuple[int, int], config: AccelConfig
) -> Iterator[Command]:
    """GEMM of whole blocks, and of a last one that is masked. `keys`: acc, inp, wgt; `sizes`: rows, blocks."""
    (acc, inp, wgt), (rows, blocks), depth = keys, sizes, _depth(kernel, config)
    whole = depth - int(_ends_inside(kernel, config))
    row_step, block_step = _left_steps(kernel, rows, config)
    refs = {"acc_base": Ref(acc), "inp_base": Ref(inp), "wgt_base": Ref(wgt)}
    lead = Axis(blocks, {"acc": 1, "wgt": depth})
    if whole:
        uops: tuple[Uop, ...] = tuple((0, k * block_step, k, int(k == 0)) for k in range(whole))
        axes = [lead, Axis(rows, {"acc": blocks, "inp": row_step})]
        yield from looped(Op.GEMM, {"overwrite": 1}, refs, axes, uops=uops)
    if whole < depth:
        refs |= {"inp_base": Ref(("masked", *inp)), "wgt_base": Ref(wgt, whole)}
        axes = [lead, Axis(rows, {"acc": blocks, "inp": 1})]
        yield from looped(Op.GEMM, {"overwrite": int(not whole)}, refs, axes, uops=((0, 0, 0, 1),))


def _left_runs(left: Source, rows: int, config: AccelConfig) -> Runs:
    """LOAD's way over rows of the left operand: row by row, or block by block where they lie as planes."""
    if left.block_stride:
        return Runs(left.pixel_bytes // config.inp_bytes, 1, rows * config.inp_bytes, left.block_stride)
    return Runs(rows, 1, left.pixel_bytes, left.col_stride)


def _left_steps(kernel: ProductKernel, rows: int, config: AccelConfig) -> tuple[int, int]:
    """Entries of INP from one row of the left operand to the next, and from one block of channels."""
    origin = kernel.origins[0]
    return (1, rows) if origin is not None and origin.block_stride else (_depth(kernel, config), 1)


def _masked(
    kernel: ProductKernel, inp: Key, number: int, rows: int, config: AccelConfig
) -> tuple[tuple[Buffer, ...], tuple[Command, ...]]:
    """The last entry of each row, zero behind its last channel: buffers and commands."""
    real, last = kernel.left.channels % config.block_in, _depth(kernel, config) - 1
    row_step, block_step = _left_steps(kernel, rows, config)
    tile = np.diag(np.arange(config.block_in) < real).astype(np.int8)
    mask, acc = Buffer(("mask", number), Mem.WGT, 1, data=tile.tobytes()), ("acc", *inp)
    target = Buffer(("masked", *inp), Mem.INP, rows)
    refs = {"acc_base": Ref(acc), "inp_base": Ref(inp, last * block_step), "wgt_base": Ref(mask.key)}
    over = Axis(rows, {"acc": 1, "inp": row_step})
    commands = looped(Op.GEMM, {"overwrite": 1}, refs, [over], uops=((0, 0, 0, 1),))
    fields = {"form": Form.PASS, "dst": Dst.INP, "clip_lo": INT8[0], "clip_hi": INT8[1]}
    refs = {"acc_base": Ref(acc), "dst_base": Ref(target.key, scale=config.entry_parts)}
    back = Axis(rows, {"acc": 1, "dst": config.entry_parts})
    commands += looped(Op.REQUANT, fields, refs, [back])
    return (mask, Buffer(acc, Mem.ACC, bank_round(config, rows)), target), commands


def _weights(
    kernel: ProductKernel, head: int, blocks: Part, wgt: Key, tensors: Sequence[Key], config: AccelConfig
) -> Iterator[Command]:
    """Rows of the right operand and of what follows its channels as weight tiles: for each block all of channels."""
    right, depth = kernel.right, _depth(kernel, config)
    own = -(-right.channels // config.block_in)
    together = blocks[1] if own == depth else 1
    for number in range(0, blocks[1], together):
        first, place = blocks[0] + number, Ref(wgt, number * depth)
        if kernel.tiled:
            yield _tiles_in_order(kernel, (head, first, together), tensors[0], place, config)
        else:
            for block in range(together):
                at = Ref(wgt, (number + block) * depth)
                yield _rows_of_tiles(right, kernel.origins[1], (head, first + block), tensors[0], at, config)
        if kernel.rest:
            yield _rows_of_tiles(kernel.rest, None, (head, first), tensors[1], Ref(wgt, number * depth + own), config)


def _tiles_in_order(
    kernel: ProductKernel, place: tuple[int, int, int], tensor: Key, wgt: Ref, config: AccelConfig
) -> Command:
    """Blocks of rows that lie as tiles. `place`: head, first block, how many."""
    head, first, count = place
    row_bytes = -(-kernel.right.channels // config.block_in) * config.wgt_bytes
    heads = head * -(-kernel.right.width // config.block_out)
    values = transfer(config, Runs(1, 1, count * row_bytes))
    return Command(Op.LOAD, {"mem": Mem.WGT, **values}, {"dram": Ref(tensor, (heads + first) * row_bytes), "sram": wgt})


def _rows_of_tiles(
    image: Image, origin: Origin | None, place: tuple[int, int], tensor: Key, wgt: Ref, config: AccelConfig
) -> Command:
    """A block of rows that lie as pixels, all their blocks of channels. `place`: head, block."""
    (head, block), lying = place, _lying(image, origin, config)
    row = block * config.block_out
    real = min(config.block_out, image.width - row)
    begin = lying.begin + head * lying.row_stride + row * lying.col_stride
    depth = -(-image.channels // config.block_in)
    runs = Runs(depth, real, config.granule_bytes, lying.block_stride or config.inp_bytes, lying.col_stride)
    return _tiles(runs, Ref(tensor, begin), wgt, config)


def _tiles(runs: Runs, dram: Ref, sram: Ref, config: AccelConfig) -> Command:
    """LOAD of weight tiles, a row of `runs` each; lanes beyond its columns are 0."""
    if runs.cols == config.block_out:
        return Command(Op.LOAD, {"mem": Mem.WGT, **transfer(config, runs)}, {"dram": dram, "sram": sram})
    values = {
        "z": runs.run_bytes // config.granule_bytes,
        "y": runs.rows,
        "x": runs.cols,
        "y_stride": runs.row_stride if runs.rows > 1 else 0,
        "x_stride": runs.col_stride if runs.cols > 1 else 0,
        "x_pad_1": config.block_out - runs.cols,
        "pad_value": 0,
    }
    return Command(Op.LOAD, {"mem": Mem.WGT, **values}, {"dram": dram, "sram": sram})


def lower_swap(layer: LayerId, kernel: SwapKernel, tile: OutputTile, config: AccelConfig) -> tuple[Step, ...]:
    """Steps of a layer; its tensors: matrix, identity, result."""
    height, width = _extents(kernel, config)
    places = product(range(kernel.target.height), parts(width, tile.blocks), parts(height, tile.rows))
    return tuple(_swap(layer, kernel, place, config) for place in places)


def _swap(layer: LayerId, kernel: SwapKernel, place: tuple[int, Part, Part], config: AccelConfig) -> Step:
    """`rows`: blocks of BLOCK_IN rows of the result; `blocks`: of its columns."""
    (head, blocks, rows), number, tensors = place, layer.number, layer.tensors
    lanes, block = config.block_out, config.block_in
    inp: Key = ("inp", number)
    wgt, acc, out = ((role, number, head, rows[0], blocks[0]) for role in ("wgt", "acc", "out"))
    first = rows[0] * block
    real = min(rows[1] * block, kernel.target.width - first)
    block_stride = kernel.block_stride or config.inp_bytes
    loads: list[Command] = []
    for k in range(blocks[1]):
        row = (blocks[0] + k) * lanes
        count = min(lanes, kernel.target.channels - row)
        begin = kernel.begins[head] + row * kernel.row_stride + rows[0] * block_stride
        dram, sram = Ref(tensors[0], begin), Ref(wgt, k * rows[1])
        runs = Runs(rows[1], count, config.granule_bytes, block_stride, kernel.row_stride)
        loads.append(_tiles(runs, dram, sram, config))
    identity = Command(
        Op.LOAD,
        {"mem": Mem.INP, **transfer(config, Runs(1, 1, block * config.inp_bytes))},
        {"dram": Ref(tensors[1]), "sram": Ref(inp)},
    )
    entries = rows[1] * block * blocks[1]
    buffers = (
        Buffer(inp, Mem.INP, block, loads=(identity,)),
        Buffer(wgt, Mem.WGT, blocks[1] * rows[1], loads=tuple(loads)),
        Buffer(acc, Mem.ACC, bank_round(config, entries)),
        Buffer(out, Mem.OUT, real * blocks[1]),
    )
    uops: tuple[Uop, ...] = tuple((j * blocks[1], j, 0, 1) for j in range(block))
    axes = [
        Axis(blocks[1], {"acc": 1, "wgt": rows[1]}),
        Axis(rows[1], {"acc": block * blocks[1], "wgt": 1}),
    ]
    refs = {"acc_base": Ref(acc), "inp_base": Ref(inp), "wgt_base": Ref(wgt)}
    commands = list(looped(Op.GEMM, {"overwrite": 1}, refs, axes, uops=uops))
    fields = {"form": Form.PASS, "dst": Dst.OUT, "clip_lo": INT8[0], "clip_hi": INT8[1]}
    refs = {"acc_base": Ref(acc), "dst_base": Ref(out)}
    grid, tile = _swap_grid(kernel, config), Outputs((head, 1), (first, real), blocks)
    if grid.plane_blocks:
        axes = [Axis(real, {"acc": blocks[1], "dst": 1}), Axis(blocks[1], {"acc": 1, "dst": real})]
        commands += looped(Op.REQUANT, fields, refs, axes)
        commands += store_planes(config, tile, grid, out, tensors[-1])
    else:
        commands += looped(Op.REQUANT, fields, refs, [Axis(real * blocks[1], {"acc": 1, "dst": 1})])
        commands.append(store_tile(config, tile, grid, out, tensors[-1]))
    return Step(number, f"{layer.name} head {head} rows {first} blocks {blocks[0]}", buffers, tuple(commands))


def _swap_grid(kernel: SwapKernel, config: AccelConfig) -> Grid:
    """Where the result's rows lie."""
    lying = _lying(kernel.target, kernel.place, config)
    return Grid(lying.begin, lying.row_stride, lying.col_stride, int(lying.block_stride > 0), lying.block_stride)
