"""The account of lost cycles: every cycle has one cause, the right one in programs made to have it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from relay_hw.accel.isa.config import AccelConfig, load_config
from relay_hw.accel.isa.errors import DeadlockError
from relay_hw.accel.isa.program import Program, WindowPlan
from relay_hw.accel.isa.spec import Dst, GemmMode, Mem, Op
from relay_hw.accel.isa.stream import Instr
from relay_hw.accel.sim.cycle import CycleDevice
from relay_hw.accel.sim.cycle.engine import COMPUTE_DEPTH
from relay_hw.accel.sim.cycle.losses import accounts, stretches, together
from relay_hw.accel.sim.dram_timing import MemoryModel
from tests.accel.sim.timed_programs import timed_program


@pytest.fixture(scope="module")
def config() -> AccelConfig:
    return load_config("default")


class Run:
    """A program in time, with its account as one layer."""

    def __init__(self, config: AccelConfig, program: Program, memory: MemoryModel | None = None) -> None:
        device = CycleDevice(config, memory, data=False)
        device.load(program)
        stats = device.launch()
        assert stats.cycles is not None
        self.cycles, self.counters = stats.cycles, stats.counters
        # Owners in threes: layers interleave with units.
        self.instructions = program.instructions
        owners = [index // 3 for index in range(len(program.instructions))]
        self.stretches = stretches(device.timing, owners)
        self.whole = together(accounts(self.stretches).values())


def build(config: AccelConfig, *instructions: Instr) -> Program:
    return Program.build(
        config, [*instructions, (Op.FINISH, {})], WindowPlan(window_bytes=1 << 18, program_offset=1 << 17)
    )


def uops(v: dict[str, int]) -> int:
    """Micro-ops that an instruction of COMPUTE issues."""
    return v["iter_out"] * v["iter_in"] * (v["uop_end"] - v["uop_begin"])


def load(mem: Mem, granules: int, wait: int = 0, give: int = 0) -> Instr:
    return Op.LOAD, {"mem": mem, "z": granules, "y": 1, "x": 1, "wait": wait, "set": give}


def gemm(trips: int, wait: int = 0, give: int = 0) -> Instr:
    return Op.GEMM, {"iter_out": 1, "iter_in": trips, "uop_begin": 0, "uop_end": 1, "wait": wait, "set": give}


def requant(vectors: int, wait: int = 0, give: int = 0) -> Instr:
    return Op.REQUANT, {"iter_out": 1, "iter_in": vectors, "acc_base": 1024, "wait": wait, "set": give}


@pytest.mark.parametrize("name", ["default", "tiny"])
def test_every_cycle_of_random_programs_has_one_cause(name: str) -> None:
    config, runs, gathers = load_config(name), 0, 0
    for seed in range(60):
        try:
            run = Run(config, timed_program(config, seed), MemoryModel(latency=1 + 10 * (seed % 12)))
        except DeadlockError:
            continue
        runs += 1
        gathers += any(op is Op.GATHER for op, _ in run.instructions)
        whole = run.whole
        assert run.stretches[0].begin == 0 and run.stretches[-1].end == run.cycles
        assert all(a.end == b.begin for a, b in itertools.pairwise(run.stretches))
        assert whole.total == run.cycles
        assert min(part for count in (whole.cycles, whole.fill, whole.loads) for part in [0, *count.values()]) >= 0
        maxima = sum(uops(v) for op, v in run.instructions if op is Op.GEMM and v["mode"] == GemmMode.MAX)
        assert whole.cycles["products"] == run.counters["GEMM_UOPS"] - maxima
        assert sum(whole.fill.values()) == whole.cycles["fill"]
        late = [count[cause] for count in (whole.cycles, whole.fill) for cause in ("bus", "latency", "unfold")]
        assert whole.loads.total() == sum(late)
        assert whole.queues.total() == whole.cycles["queue"] + whole.fill["queue"]
    assert runs > 40 and gathers > 10


def test_the_first_product_waits_for_fetch_latency_and_bus(config: AccelConfig) -> None:
    run = Run(config, build(config, load(Mem.INP, 10), load(Mem.WGT, 400, give=1), gemm(50, wait=1)))
    fill = run.whole.fill
    assert {cause for cause, cycles in run.whole.cycles.items() if cycles} == {"products", "fill", "drain"}
    assert run.whole.cycles["products"] == 50
    # 400 granules of two beats, ten more in front; 100 cycles of memory; instructions come after 100 more.
    assert 800 <= fill["bus"] <= 822
    assert 95 <= fill["latency"] <= 110
    assert 100 <= fill["fetch"] <= 125
    assert run.whole.loads["wgt"] > 780


def test_a_wait_for_the_output_stage_is_its(config: AccelConfig) -> None:
    run = Run(config, build(config, gemm(50, give=1), requant(300, wait=1, give=2), gemm(20, wait=2)))
    found = run.whole.cycles
    assert found["products"] == 70
    assert 300 <= found["output"] <= 312
    assert 5 <= found["pipeline"] <= COMPUTE_DEPTH + 1
    assert found["bus"] == found["latency"] == found["queue"] == found["fetch"] == 0


def test_a_wait_for_the_row_unit_is_its(config: AccelConfig) -> None:
    """The output stage waits for softmax, and products for the output stage."""
    rows = Op.ROW, {"rows": 2, "columns": 64, "acc_base": 1024, "row_step": 4, "entry_step": 1, "wait": 4, "set": 1}
    run = Run(config, build(config, gemm(50, give=4), rows, requant(30, wait=1, give=2), gemm(20, wait=2)))
    found = run.whole.cycles
    assert found["row"] == 5 * 48 + 5 and 30 <= found["output"] <= 40
    assert found["bus"] == found["latency"] == found["queue"] == found["fetch"] == 0
    assert run.counters["ROW_BUSY"] == 5 * 48 + 4


def test_a_load_that_gives_way_to_the_output_stage_is_its(config: AccelConfig) -> None:
    """A load into INP stands still while 300 results are written there."""
    results = Op.REQUANT, {"iter_out": 1, "iter_in": 300, "acc_base": 1024, "dst": Dst.INP, "dst_base": 64}
    late = build(config, results, load(Mem.INP, 10, give=1), gemm(20, wait=1))
    found = Run(config, late)
    assert found.counters["CYCLES"] > 300
    assert 180 <= found.whole.fill["output"] <= 300 and found.whole.fill["bus"] == 20
    elsewhere = build(config, results, load(Mem.WGT, 1, give=1), gemm(20, wait=1))
    assert Run(config, elsewhere).whole.fill["output"] == 0


def test_a_full_queue_is_told_from_a_late_load(config: AccelConfig) -> None:
    """Loads that nothing waits for hold up a product behind them; with a deeper queue they do not."""
    program = build(config, gemm(50), *(load(Mem.WGT, 500) for _ in range(config.queue_depth + 4)), gemm(50))
    run = Run(config, program)
    assert run.whole.cycles["queue"] > 2000
    assert set(run.whole.queues) == {"load"}
    assert run.whole.cycles["bus"] == 0
    deep = replace(config, queue_depth=64)
    free = Run(deep, build(deep, *program.instructions[:-1]))
    assert free.whole.cycles["queue"] == 0
    # The same product waits when it needs the last load.
    *rest, last = program.instructions[:-2]
    needs = build(config, *rest, (last[0], {**last[1], "set": 1}), gemm(50, wait=1))
    run = Run(config, needs)
    assert run.whole.cycles["bus"] > 10_000
    assert run.whole.cycles["queue"] == 0
