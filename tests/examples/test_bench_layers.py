"""The layer benchmark: every cycle has one cause, the right one in programs made to have it; workloads are VTA's."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from accel.isa.config import AccelConfig, load_config
from accel.isa.errors import DeadlockError
from accel.isa.program import Instr, Program
from accel.isa.spec import Mem, Op
from accel.sim.cycle import CycleDevice
from accel.sim.memory import MemoryModel
from tests.accel.sim.timed_programs import timed_program

# Multiply-accumulates and cycles at 256 products a cycle, from VTA's table; C1 with its 3 channels.
TABLE = {
    "C1": (118_013_952, 460_992), "C2": (115_605_504, 451_584), "C3": (57_802_752, 225_792), "C4": (6_422_528, 25_088),
    "C5": (115_605_504, 451_584), "C6": (57_802_752, 225_792), "C7": (6_422_528, 25_088), "C8": (115_605_504, 451_584),
    "C9": (57_802_752, 225_792), "C10": (6_422_528, 25_088), "C11": (115_605_504, 451_584),
}  # fmt: skip


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    """The script as a module."""
    folder = str(Path(__file__).parents[2] / "scripts")
    sys.path.insert(0, folder)
    try:
        import bench_layers
    finally:
        sys.path.remove(folder)
    return bench_layers


@pytest.fixture(scope="module")
def config() -> AccelConfig:
    return load_config("default")


def test_the_workloads_are_those_of_the_table(bench: ModuleType, config: AccelConfig) -> None:
    costs = {work.name: bench.layer_cost(work.composite(config)) for work in bench.RESNET18}
    assert {name: (cost.macs, -(-cost.macs // 256)) for name, cost in costs.items()} == TABLE
    assert sum(work.count * TABLE[work.name][1] for work in bench.RESNET18 if work.name != "C1") == 6_623_232
    # C4 steps over three quarters of its input, and is bound by what it writes.
    assert costs["C4"].bytes_read == 200_704 // 4 + 64 * 128 + 4 * 128
    assert costs["C4"].roofline_cycles(config) == 25_088


class Run:
    """A program in time, with its account as one layer."""

    def __init__(
        self, bench: ModuleType, config: AccelConfig, program: Program, memory: MemoryModel | None = None
    ) -> None:
        device = CycleDevice(config, memory, data=False)
        device.load(program)
        stats = device.launch()
        assert stats.cycles is not None
        self.cycles, self.counters = stats.cycles, stats.counters
        # Owners in threes: layers interleave with units.
        self.instructions = program.instructions
        owners = [index // 3 for index in range(len(program.instructions))]
        self.accounts = bench.account(config, program.instructions, device.spans, self.cycles, owners)
        self.whole = bench.together(self.accounts.values())


def build(config: AccelConfig, *instructions: Instr) -> Program:
    return Program.build(config, [*instructions, (Op.FINISH, {})], window_bytes=1 << 18, program_offset=1 << 17)


def load(mem: Mem, granules: int, wait: int = 0, give: int = 0) -> Instr:
    return Op.LOAD, {"mem": mem, "z": granules, "y": 1, "x": 1, "wait": wait, "set": give}


def gemm(trips: int, wait: int = 0, give: int = 0) -> Instr:
    return Op.GEMM, {"iter_out": 1, "iter_in": trips, "uop_begin": 0, "uop_end": 1, "wait": wait, "set": give}


def requant(vectors: int, wait: int = 0, give: int = 0) -> Instr:
    return Op.REQUANT, {"iter_out": 1, "iter_in": vectors, "acc_base": 1024, "wait": wait, "set": give}


@pytest.mark.parametrize("name", ["default", "tiny"])
def test_every_cycle_of_random_programs_has_one_cause(bench: ModuleType, name: str) -> None:
    config, runs, gathers = load_config(name), 0, 0
    for seed in range(60):
        try:
            run = Run(bench, config, timed_program(config, seed), MemoryModel(latency=1 + 10 * (seed % 12)))
        except DeadlockError:
            continue
        runs += 1
        gathers += any(op is Op.GATHER for op, _ in run.instructions)
        whole = run.whole
        assert whole.total == run.cycles
        assert min(part for count in (whole.cycles, whole.fill, whole.loads) for part in [0, *count.values()]) >= 0
        assert whole.cycles["gemm"] == run.counters["GEMM_UOPS"]
        assert sum(whole.fill.values()) == whole.cycles["fill"]
        late = [count[cause] for count in (whole.cycles, whole.fill) for cause in ("bus", "latency", "unfold")]
        assert whole.loads.total() == sum(late)
        assert whole.queues.total() == whole.cycles["queue"] + whole.fill["queue"]
    assert runs > 40 and gathers > 10


def test_the_first_product_waits_for_fetch_latency_and_bus(bench: ModuleType, config: AccelConfig) -> None:
    run = Run(bench, config, build(config, load(Mem.INP, 10), load(Mem.WGT, 400, give=1), gemm(50, wait=1)))
    fill = run.whole.fill
    assert {cause for cause, cycles in run.whole.cycles.items() if cycles} == {"gemm", "fill", "drain"}
    assert run.whole.cycles["gemm"] == 50
    # 400 granules of two beats, ten more in front; 100 cycles of memory; instructions come after 100 more.
    assert 800 <= fill["bus"] <= 822
    assert 95 <= fill["latency"] <= 110
    assert 100 <= fill["fetch"] <= 125
    assert run.whole.loads["wgt"] > 780


def test_a_wait_for_the_output_stage_is_its(bench: ModuleType, config: AccelConfig) -> None:
    run = Run(bench, config, build(config, gemm(50, give=1), requant(300, wait=1, give=2), gemm(20, wait=2)))
    found = run.whole.cycles
    assert found["gemm"] == 70
    assert 300 <= found["output"] <= 312
    assert 5 <= found["pipeline"] <= 9
    assert found["bus"] == found["latency"] == found["queue"] == found["fetch"] == 0


def test_a_full_queue_is_told_from_a_late_load(bench: ModuleType, config: AccelConfig) -> None:
    """Loads that nothing waits for hold up a product behind them; with a deeper queue they do not."""
    program = build(config, gemm(50), *(load(Mem.WGT, 500) for _ in range(config.queue_depth + 4)), gemm(50))
    run = Run(bench, config, program)
    assert run.whole.cycles["queue"] > 2000
    assert set(run.whole.queues) == {"load"}
    assert run.whole.cycles["bus"] == 0
    deep = replace(config, queue_depth=64)
    free = Run(bench, deep, build(deep, *program.instructions[:-1]))
    assert free.whole.cycles["queue"] == 0
    # The same product waits when it needs the last load.
    *rest, last = program.instructions[:-2]
    needs = build(config, *rest, (last[0], {**last[1], "set": 1}), gemm(50, wait=1))
    run = Run(bench, config, needs)
    assert run.whole.cycles["bus"] > 10_000
    assert run.whole.cycles["queue"] == 0


def test_the_script_measures_layers_and_networks(
    bench: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bench.json"
    arguments = ["--layers", "C4", "--networks", "resnet8,ds_cnn", "--size", "24", "--output", str(path)]
    assert bench.main(arguments) == 0
    result = json.loads(path.read_text())
    (row,) = result["layers"]
    assert row["cycles"] == sum(row["causes"].values()) == row["counters"]["CYCLES"]
    assert row["causes"]["gemm"] == row["roofline_cycles"] == 25_088
    assert row["lanes"] == 0
    resnet8, ds_cnn = result["networks"]
    for network in (resnet8, ds_cnn):
        assert network["cycles"] == sum(network["causes"].values()) == sum(r["cycles"] for r in network["layers"])
        assert 0 < network["roofline"] < 1
    assert resnet8["regions"] == 1
    assert resnet8["device_macs"] == sum(layer["macs"] for layer in resnet8["layers"])
    assert {entry["operator"] for entry in resnet8["host"]} == {"qnn.quantize", "qnn.dequantize", "nn.softmax"}
    assert all(entry["reason"] for network in (resnet8, ds_cnn) for entry in network["host"])
    text = capsys.readouterr().out
    assert f"{row['cycles']:,}" in text
    assert "host: 1 x nn.softmax" in text


BAD = [
    (["--layers", "C12"], "name must be one of C1, C2,"),
    (["--layers", "none", "--networks", "alexnet"], "name must be one of resnet18,"),
    (["--config", "huge"], "configuration must be one of default,"),
]


@pytest.mark.parametrize(("arguments", "sentence"), BAD)
def test_bad_input(
    bench: ModuleType, arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert bench.main([*arguments, "--output", str(tmp_path / "x.json")]) == 2
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
