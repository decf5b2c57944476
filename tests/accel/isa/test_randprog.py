"""Random programs: legal, the same for a seed, and the same bytes for every order of units; the oracle agrees."""

from __future__ import annotations

import pytest

from relay_hw.accel.isa.alu import AluOp
from relay_hw.accel.isa.config import config_names, load_config
from relay_hw.accel.isa.errors import Fault
from relay_hw.accel.isa.program import WindowPlan
from relay_hw.accel.isa.randprog import random_program
from relay_hw.accel.isa.spec import Mem, Op
from relay_hw.accel.sim.functional import FunctionalDevice
from tests.accel.isa.runner import check_run, oracle_run


@pytest.mark.parametrize("seed", range(12))
def test_functional_device_matches_the_oracle(seed: int) -> None:
    config = load_config("tiny")
    program = random_program(config, seed, 40)
    expected = oracle_run(program, config)
    assert expected.outcome == "done"
    for order in (None, 1, 2, 3):
        check_run(program, config, lambda c, o=order: FunctionalDevice(c, order_seed=o), expected)


@pytest.mark.parametrize("name", config_names())
def test_every_configuration(name: str) -> None:
    config = load_config(name)
    for seed in range(3):
        program = random_program(config, seed, 30)
        expected = oracle_run(program, config)
        assert expected.outcome == "done"
        check_run(program, config, FunctionalDevice, expected)
        check_run(program, config, lambda c: FunctionalDevice(c, order_seed=0), expected)


def test_programs_are_reproducible_and_different() -> None:
    config = load_config("default")
    assert random_program(config, 1, 20) == random_program(config, 1, 20)
    assert len({random_program(config, seed, 20).to_bytes() for seed in range(10)}) == 10


def test_programs_use_everything() -> None:
    config = load_config("tiny")
    seen = [instruction for seed in range(10) for instruction in random_program(config, seed, 100).instructions]
    assert {op for op, _ in seen} == set(Op)
    for op, keys in (
        (Op.LOAD, ("expand", "y_pad_0", "x_pad_1", "pad_value", "pitch", "wait", "set")),
        (Op.GEMM, ("mode", "overwrite", "acc_out", "inp_in", "wgt_in", "wgt_base", "wait", "set")),
        (Op.ALU, ("use_imm", "imm", "rounding", "src_in", "wait", "set")),
        (
            Op.REQUANT,
            (
                "form",
                "dst",
                "rounding",
                "zero_point",
                "prm_out",
                "res_base",
                "still",
                "table",
                "clip_hi",
                "wait",
                "set",
            ),
        ),
        (
            Op.ROW,
            (
                *(
                    "kind",
                    "rows",
                    "columns",
                    "acc_base",
                    "cof_base",
                    "row_step",
                    "entry_step",
                    "visible",
                    "visible_step",
                ),
                *("shift", "zero_point", "inp_zero", "epsilon_low", "epsilon_high", "multiplier", "wait", "set"),
            ),
        ),
        (Op.STORE, ("sram", "x_stride", "y_stride", "wait", "set")),
    ):
        for key in keys:
            assert len({values[key] for row, values in seen if row is op}) > 1, f"{op.name} {key}"
    assert len({values["alu_op"] for op, values in seen if op is Op.ALU}) == len(AluOp)
    assert len({values["mem"] for op, values in seen if op is Op.LOAD}) == 7
    assert len({values["mode"] for op, values in seen if op is Op.GEMM}) == 4
    assert len({values["dst"] for op, values in seen if op is Op.REQUANT}) == 3
    assert {values["mem"] for op, values in seen if op is Op.LOAD and values["expand"]} == {Mem.ACC, Mem.WGT}
    long = [row for seed in range(20) for row in random_program(load_config("default"), seed, 60).instructions]
    assert {values["bounded"] for op, values in long if op is Op.ROW} == {0, 1}
    halves = [row for seed in range(5) for row in random_program(load_config("w4"), seed, 60).instructions]
    assert len({values["nibble"] for op, values in halves if op is Op.GEMM}) == 3
    assert any(values["pitch"] and values["x_pad_0"] for op, values in seen if op is Op.LOAD)
    for name in ("ecp5", "w4"):
        config = load_config(name)
        loads = [v for seed in range(20) for op, v in random_program(config, seed, 60).instructions if op is Op.LOAD]
        factored = {v["z"] > config.factor_granules for v in loads if v["mem"] == Mem.WGT and v["pitch"]}
        assert factored == {False, True}, name


def test_results_depend_on_every_unit() -> None:
    """Without its tokens a random program gives other bytes in some order: the tokens matter, and orders are tried."""
    config = load_config("tiny")
    different = 0
    for seed in range(5):
        program = random_program(config, seed, 40)
        bare = [(op, {**values, "wait": 0, "set": 0} if op is not Op.FINISH else values)
                for op, values in program.instructions]  # fmt: skip
        sections = [section for section in program.sections if section is not program.code]
        racing = type(program).build(config, bare, WindowPlan(sections, window_bytes=program.window_bytes))
        outputs: set[bytes] = set()
        for order in range(4):
            device = FunctionalDevice(config, order_seed=order)
            device.load(racing)
            try:
                device.launch()
            except Fault as fault:
                outputs.add(str(fault).encode())
            else:
                outputs.add(device.read(0, racing.code.offset).tobytes())
        different += len(outputs) > 1
    assert different == 5
