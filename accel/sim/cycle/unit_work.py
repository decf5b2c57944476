"""What each instruction asks of its unit, in beats and slots: the part of timing that no other instruction changes.

In: decoded fields and the configuration. Out: bursts of a transfer, padding around its beats, slots of a pipeline.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from relay_hw.accel.isa.alu import ALU_OPS, AluOp, Control
from relay_hw.accel.isa.config import SEMAPHORES, TAPS, AccelConfig
from relay_hw.accel.isa.rules import dram_granules, gather_fetch_bytes, row_entries
from relay_hw.accel.isa.slots import instruction_slots
from relay_hw.accel.isa.spec import BY_OP, Form, GemmMode, Mem, Op, RowKind, Unit

PAGE_BYTES = 4096
# Multiplications that the output stage makes for a lane of its result.
_FORM_PRODUCTS = {Form.SCALE: 1, Form.ADD: 2, Form.PASS: 0, Form.MUL: 2}
# And the row unit for an element: an exponential times its row's factor; of norms the square, the difference from the
# mean, the standardised element and the gain.
_ROW_PRODUCTS = {RowKind.SOFTMAX: 1, RowKind.LAYER_NORM: 4, RowKind.RMS_NORM: 4}


@dataclass(frozen=True, slots=True)
class Windows:
    """A GATHER's data side. `beats`: of one row from the bus; `reads`: of the row buffer for one row of vectors;
    `above` and `below`: reads for the rows of padding."""

    beats: int
    reads: int
    above: int
    below: int


@dataclass(frozen=True, slots=True)
class Work:
    """What one instruction asks of its unit.

    `bursts`: beats of each, `beats` in all, to or from `mem`; `places`: byte of the window at which
    each begins. `runs`: (padding beats, then data beats), in order; `tail`: padding behind them. `slots`: cycles in the
    first stage of COMPUTE, OUTPUT or ROW; `results`: micro-ops, vectors or rows; `products`: multiplications.
    """

    op: Op
    unit: Unit | None
    wait_mask: int = 0
    give_mask: int = 0
    bursts: tuple[int, ...] = ()
    runs: tuple[tuple[int, int], ...] = ()
    tail: int = 0
    slots: int = 0
    results: int = 0
    products: int = 0
    values: dict[str, int] | None = None
    windows: Windows | None = None
    mem: Mem | None = None
    beats: int = 0
    places: tuple[int, ...] = ()

    @property
    def waits(self) -> tuple[int, ...]:
        """Semaphores to take a token from."""
        return _bits(self.wait_mask)

    @property
    def gives(self) -> tuple[int, ...]:
        """Semaphores to give a token to."""
        return _bits(self.give_mask)


def work_of(config: AccelConfig, op: Op, v: dict[str, int]) -> Work:
    """The work of one legal instruction."""
    waits, gives = v.get("wait", 0), v.get("set", 0)
    unit = BY_OP[op].unit
    match op:
        case Op.LOAD:
            # The data side takes a beat of factors in a step, as one of weights.
            read = {**v, "z": dram_granules(config, v)}
            bursts, places = _bursts(config, read)
            runs, tail = _runs(config, read)
            beats = sum(bursts)
            return Work(op, unit, waits, gives, bursts, runs, tail, mem=Mem(v["mem"]), beats=beats, places=places)
        case Op.GATHER:
            fetched = gather_fetch_bytes(config, v)
            rows = {**v, "z": fetched // config.granule_bytes, "x": 1, "x_stride": 0}
            windows, (bursts, places) = _windows(config, v, fetched), _bursts(config, rows)
            beats = sum(bursts)
            return Work(op, unit, waits, gives, bursts, windows=windows, mem=Mem.INP, beats=beats, places=places)
        case Op.STORE:
            bursts, places = _bursts(config, v)
            return Work(op, unit, waits, gives, bursts, mem=Mem(v["mem"]), beats=sum(bursts), places=places)
        case Op.GEMM | Op.ALU:
            turn = v["uop_end"] - v["uop_begin"]
            uops, slots = v["iter_out"] * v["iter_in"] * turn, instruction_slots(config, op, v, turn)
            products = uops * _uop_products(config, op, v)
            return Work(op, unit, waits, gives, slots=slots, results=uops, products=products)
        case Op.REQUANT:
            vectors, slots = v["iter_out"] * v["iter_in"], instruction_slots(config, op, v)
            products = vectors * config.block_out * _FORM_PRODUCTS[Form(v["form"])]
            return Work(op, unit, waits, gives, slots=slots, results=vectors, products=products, values=v)
        case Op.ROW:
            elements = v["rows"] * row_entries(config, v["columns"]) * config.block_out
            products = elements * _ROW_PRODUCTS[RowKind(v["kind"])]
            slots = instruction_slots(config, op, v)
            return Work(op, unit, waits, gives, slots=slots, results=v["rows"], products=products)
        case Op.FINISH:
            return Work(op, unit)


@lru_cache(maxsize=4096)
def _bits(mask: int) -> tuple[int, ...]:
    return tuple(s for s in range(SEMAPHORES) if mask >> s & 1)


def _uop_products(config: AccelConfig, op: Op, v: dict[str, int]) -> int:
    """Multiplications of one micro-op."""
    if op is Op.GEMM:
        terms = {GemmMode.MATMUL: config.block_in, GemmMode.TAPS: TAPS, GemmMode.MAX: 0}
        terms[GemmMode.ENTRY] = config.inp_lanes
        return config.block_out * terms[GemmMode(v["mode"])]
    return config.block_out if ALU_OPS[AluOp(v["alu_op"])].has(Control.PRODUCT) else 0


def _bursts(config: AccelConfig, v: dict[str, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Beats of each burst, and the byte at which it begins; runs that follow one another in DRAM are merged."""
    bus = config.bus_bytes
    run = v["z"] * config.granule_bytes
    x, y = v["x"], v["y"]
    merge_x = x == 1 or v["x_stride"] == run
    merge_y = merge_x and (y == 1 or v["y_stride"] == run * x)
    if merge_x:
        run, x = run * x, 1
    if merge_y:
        run, y = run * y, 1
    bursts: list[int] = []
    places: list[int] = []
    for row in range(y):
        for column in range(x):
            begin = v["dram"] + row * v["y_stride"] + column * v["x_stride"]
            cut = _cut(bus, config.burst_beats, begin % PAGE_BYTES, run // bus)
            bursts += cut
            for beats in cut:
                places.append(begin)
                begin += beats * bus
    return tuple(bursts), tuple(places)


@lru_cache(maxsize=4096)
def _cut(bus: int, burst_beats: int, page_offset: int, beats: int) -> tuple[int, ...]:
    """Bursts of one run: at most `burst_beats`, ending at 4 KiB boundaries."""
    bursts: list[int] = []
    while beats:
        n = min(beats, burst_beats, (PAGE_BYTES - page_offset) // bus)
        bursts.append(n)
        beats -= n
        page_offset = (page_offset + n * bus) % PAGE_BYTES
    return tuple(bursts)


def _windows(config: AccelConfig, v: dict[str, int], fetched: int) -> Windows:
    reads = v["x"] * -(-(v["lane"] % config.bus_bytes + v["run"]) // config.bus_bytes)
    return Windows(fetched // config.bus_bytes, reads, v["y_pad_0"] * reads, v["y_pad_1"] * reads)


def _runs(config: AccelConfig, v: dict[str, int]) -> tuple[tuple[tuple[int, int], ...], int]:
    """Data beats with the padding beats in front of them, joined where there is none between; padding at the end."""
    run = v["z"] * config.granule_bytes // config.bus_bytes
    left, right = v["x_pad_0"] * run, v["x_pad_1"] * run
    data = v["x"] * run
    row = left + data + right
    above, below = v["y_pad_0"] * row, v["y_pad_1"] * row
    if not left and not right:
        return ((above, data * v["y"]),), below
    return ((above + left, data), *((right + left, data),) * (v["y"] - 1)), right + below
