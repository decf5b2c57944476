"""Estimates a layer's cycles under a tile by closed forms, with the target's memory: the tile choice compares them.

In: shapes and tiles. Out: `Cost`: cycles of each unit if it never waited, and the layer's estimated time.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from relay_hw.accel.isa.config import INSTRUCTION_BYTES, UOP_BYTES, AccelConfig
from relay_hw.accel.isa.program import align
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.geometry import (
    ConvShape,
    Fold,
    Grid,
    PoolShape,
    Source,
    granule_blocks,
    parts,
    run_cycles,
)
from relay_hw.tensorize.tiles.sizes import (
    AddTile,
    ConvTile,
    ConvUse,
    Entries,
    PoolTile,
    conv_patch,
    pool_entries,
    pool_patch,
)

# Cycles that a step costs beside its work: fetching, decoding and draining its instructions.
STEP_CYCLES = 40
# Cycles that a turn of the loops costs beside its work.
TURN_CYCLES = 2
# Where the array and the bus are equally busy, they cost one part in this many.
TURN_LOSS = 30
# Cycles of the first instructions beside latencies, and of the last ones.
START_CYCLES, END_CYCLES = 30, 30
# A bus that is busy all the time costs one part in this many: loads cannot always be where they are needed.
BUS_LOSS = 10


class Constants(Enum):
    """Where a launch finds a layer's constants: SHARED stay in an order that does not depend on the tile."""

    LOADED = "loaded in the launch"
    STAY = "in the scratchpads"
    SHARED = "in the scratchpads, together with other programs"

    @property
    def stay(self) -> bool:
        """Whether a launch loads none of them."""
        return self is not Constants.LOADED


@dataclass(frozen=True, slots=True)
class Cost:
    """Estimated cycles; `cycles` is the whole layer, the others are units that never wait."""

    cycles: int
    compute: int
    load: int
    output: int
    store: int
    steps: int


def overlapped(compute: int, load: int, output: int, store: int) -> int:
    """Time of units that work side by side: the busiest one's, and more the fuller the bus is besides."""
    busiest = max(compute, load, output, store, 1)
    return busiest + load * load // (BUS_LOSS * busiest)


def output_interval(config: AccelConfig) -> int:
    """Cycles that the output stage takes for one vector."""
    return config.block_out // config.out_lanes


def patch_cycles(config: Target, source: Source, height: int, width: int, run_bytes: int) -> int:
    """Bus cycles to load `height` x `width` pixels (no more than the source has) of `run_bytes` each."""
    height, width = min(height, source.height), min(width, source.width)
    if run_bytes < source.pixel_bytes or not source.dense_rows:
        return height * width * run_cycles(config, run_bytes, config.reads)
    if width < source.width or source.row_stride != width * source.pixel_bytes:
        return height * run_cycles(config, width * run_bytes, config.reads)
    return run_cycles(config, height * width * run_bytes, config.reads)


def _gather_cycles(config: Target, fold: Fold, tile: ConvTile) -> int:
    """Cycles to gather a patch: of each row the arrival or the windows, whichever takes longer."""
    begin = (tile.cols - 1) * fold.x_step + fold.run
    fetched = run_cycles(config, align(min(fold.image_bytes, begin), config.granule_bytes), config.reads)
    total = 0
    for part in range(fold.rows):
        rows = tile.rows + fold.reaches(part, config.inp_bytes)
        offset = part * fold.pitch % config.bus_bytes
        written = tile.cols * -(-(offset + fold.run) // config.bus_bytes)
        total += fetched + (rows - 1) * max(fetched, written) + written
    return total


def store_cycles(config: Target, rows: int, cols: int, run_bytes: int, grid: Grid) -> int:
    """Bus cycles to store a tile of `rows` x `cols` pixels of `run_bytes` each."""
    if grid.plane_blocks:
        lines, pixels = grid.lines(rows, cols)
        cycles = 0
        for _, count in grid.pieces(0, run_bytes // config.out_bytes):
            # Pixels of a whole plane follow each other.
            run, runs = (pixels * count, 1) if count == grid.plane_blocks else (count, pixels)
            cycles += runs * run_cycles(config, run * config.out_bytes, config.writes)
        return lines * cycles
    if run_bytes != grid.col_stride:
        return rows * cols * run_cycles(config, run_bytes, config.writes)
    if cols * run_bytes != grid.row_stride:
        return rows * run_cycles(config, cols * run_bytes, config.writes)
    return run_cycles(config, rows * cols * run_bytes, config.writes)


def conv_cost(
    shape: ConvShape, tile: ConvTile, use: ConvUse, config: Target, constants: Constants = Constants.LOADED
) -> Cost:
    """Time of a convolution under `tile`: the array waits for the first step's loads, then the slowest unit counts.

    The loops have four kinds of turns: the first tile of pixels loads weights, the first groups load input, and what
    is kept is not loaded again.
    """
    entries, trips, kept = use.entries, use.trips, use.kept
    patch, stored = _conv_patch_cycles(shape, tile, config), _conv_stored(shape, tile, config)
    chunk = 0 if constants.stay else run_cycles(config, shape.form.stored_bytes(entries.wgt, config), config.reads)
    inputs, weights = trips.chunks * patch, trips.chunks * trips.steps * chunk // trips.sets
    again_inp = 0 if kept.inp or (trips.chunks == 1 and (trips.pixels == 1 or not tile.weights_outer)) else inputs
    alone = trips.chunks * trips.steps == trips.sets and (tile.weights_outer or trips.sets == 1)
    again_wgt = 0 if kept.wgt or alone else weights
    turns, groups = trips.pixels * trips.sets, trips.pixels * trips.groups
    outputs = shape.out_height * shape.out_width * shape.out_blocks
    compute = outputs * sum(shape.depth(count) for _, count in parts(shape.in_blocks, tile.in_blocks))
    work = compute // turns + TURN_CYCLES
    results = _Results(shape, tile, entries, work // trips.chunks, outputs // groups, config)
    fetched = INSTRUCTION_BYTES // config.bus_bytes * (2 * trips.chunks * trips.steps // trips.sets + 4)
    residual = groups * stored // turns if shape.residual else 0
    first = patch + chunk
    cycles = load = 0
    for count, inp, wgt, early in (
        (1, inputs, weights, first),
        (trips.pixels - 1, inputs, again_wgt, 0),
        (trips.sets - 1, again_inp, weights, 0),
        ((trips.pixels - 1) * (trips.sets - 1), again_inp, again_wgt, 0),
    ):
        bus = inp + wgt + residual + fetched
        load += count * bus
        cycles += count * (_turn(work, bus - early, results.output, results.store) + results.wait)
        # What has no second buffer cannot overlap.
        if inp and 2 * entries.inp > config.inp_depth:
            cycles += count * (inp + trips.chunks * config.memory.latency)
        if wgt and 2 * entries.wgt > config.wgt_depth:
            cycles += count * (wgt + trips.chunks * config.memory.latency)
    steps = turns * trips.chunks * trips.steps // trips.sets
    # The last step waits for the last load, and the first one for all that it needs.
    cycles = max(cycles + first, load + compute // steps)
    cycles += (
        3 * config.memory.latency
        + START_CYCLES
        + (0 if constants.stay else entries.uops * UOP_BYTES // config.bus_bytes)
        + END_CYCLES
        + results.drain
    )
    output = outputs * output_interval(config) * (3 if shape.residual else 1)
    return Cost(cycles, compute, load, output, groups * stored, steps)


def _turn(work: int, bus: int, output: int, store: int) -> int:
    """Time of a turn whose units work side by side; two that are equally busy disturb each other."""
    busiest = max(work, bus, output, store, 1)
    return busiest + min(work, bus) * min(work, bus) // (TURN_LOSS * busiest)


class _Results:
    """Times of the output stage and of stores in one turn of the loops, in which `live` groups are finished.

    `wait`: cycles that the array stands still for accumulators; `drain`: cycles behind the last product.
    """

    def __init__(
        self,
        shape: ConvShape,
        tile: ConvTile,
        entries: Entries,
        last: int,
        vectors: int,
        config: Target,
    ) -> None:
        """`last`: cycles of the last chunk of the sum, for all live groups; `vectors`: of one group."""
        live, stored = tile.live, _conv_stored(shape, tile, config)
        output = vectors * output_interval(config) * (3 if shape.residual else 1)
        gap = last // live
        single = 2 * entries.out > config.out_depth
        self.output = live * (output + stored + config.memory.latency if single else output)
        self.store = live * stored
        spare = (config.acc_depth - live * entries.acc - entries.res) // entries.acc
        self.wait = max(0, output + 2 * END_CYCLES - (live - 1 + spare) * gap)
        late = (live - 1) * gap
        self.drain = max(output + stored, output + self.store - late, self.output + stored - late)


def _conv_patch_cycles(shape: ConvShape, tile: ConvTile, config: Target) -> int:
    """Bus cycles of one chunk of the sum's input."""
    if shape.fold is not None:
        return _gather_cycles(config, shape.fold, tile)
    in_step = granule_blocks(config, config.inp_lanes)
    run = -(-tile.in_blocks // in_step) * in_step * config.inp_bytes
    return patch_cycles(config, shape.source, *conv_patch(shape, tile.rows, tile.cols), run)


def _conv_stored(shape: ConvShape, tile: ConvTile, config: Target) -> int:
    """Bus cycles to store the results of one group."""
    run = tile.out_blocks * config.out_bytes
    return store_cycles(config, tile.rows, tile.cols, run, shape.out_grid)


def pool_cost(shape: PoolShape, tile: PoolTile, config: Target) -> Cost:
    """Time of a pool under `tile`."""
    use = pool_entries(shape, tile, config)
    tiles = -(-shape.out_height // tile.rows) * -(-shape.out_width // tile.cols) * -(-shape.blocks // tile.blocks)
    run = tile.blocks * config.out_bytes
    patch = patch_cycles(config, shape.source, *pool_patch(shape, tile.rows, tile.cols), run)
    stored = store_cycles(config, tile.rows, tile.cols, run, shape.out_grid)
    outputs = shape.out_height * shape.out_width * shape.blocks
    compute = 2 * outputs * (shape.window.taps - 1)
    output = outputs * output_interval(config)
    load, store = tiles * patch, tiles * stored
    cycles = overlapped(compute + STEP_CYCLES * tiles, load, output, store)
    cycles += 2 * config.memory.latency + patch + compute // tiles + output // tiles + stored
    if 2 * use.acc > config.acc_depth:
        cycles += load + output
    elif 3 * use.acc > config.acc_depth:
        cycles += output
    return Cost(cycles, compute, load, output, store, tiles)


def add_cost(entries: int, tile: AddTile, config: Target, pairs: int = 1) -> Cost:
    """Time of sums and products, so many `pairs`, of `entries` accumulator entries an operand."""
    steps, operands = -(-entries // tile.entries), pairs + 1
    part = run_cycles(config, tile.entries * config.out_bytes, config.reads)
    output = 2 * pairs * entries * output_interval(config)
    load, store = operands * steps * part, steps * part
    ends = 2 * config.memory.latency + (operands + 1) * part + output // steps
    cycles = max(load, output, store) + STEP_CYCLES * steps + ends
    if 2 * operands * tile.entries > config.acc_depth:
        cycles += output
    return Cost(cycles, 0, load, output, store, steps)
