"""Semantics against the naive oracle: random instructions on random scratchpads so small that indices collide."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accel.isa.loops
from accel.isa.config import AccelConfig, load_config
from accel.isa.errors import Fault
from accel.isa.program import complete, encode_instructions
from accel.isa.semantics import SEMANTICS
from accel.isa.spec import BY_OP, AluOp, Mem, Op
from accel.isa.state import AccelState
from tests.accel.isa.oracle import Oracle, OracleFault, Word

DEPTHS = dict(inp_depth=16, wgt_depth=8, acc_depth=16, acc_banks=2, out_depth=16, uop_depth=8, prm_depth=8)
SMALL = replace(load_config("tiny"), name="small", **DEPTHS)
ODD = replace(SMALL, name="odd", block_in=8, axi_data_bits=128, multiplier_bits=16)
CONFIGS = {"small": SMALL, "odd": ODD}
WINDOW = 2048

small = st.integers(0, 3)
base = st.integers(0, 5)
anything = st.integers(-(1 << 31), (1 << 31) - 1)
loops = {"iter_out": st.integers(1, 3), "iter_in": st.integers(1, 3)}
uops = {"uop_begin": st.integers(0, 2), "uop_end": st.integers(0, 6)}


def steps(*names: str) -> dict[str, st.SearchStrategy[int]]:
    return dict.fromkeys(names, st.one_of(small, st.just(0), st.integers(0xFFFE, 0xFFFF)))


STRATEGIES = {
    Op.GEMM: {
        "overwrite": st.integers(0, 1),
        **dict.fromkeys(("acc_base", "inp_base", "wgt_base"), base),
        **loops,
        **uops,
        **steps("acc_out", "acc_in", "inp_out", "inp_in", "wgt_out", "wgt_in"),
    },
    Op.ALU: {
        "alu_op": st.sampled_from([int(op) for op in AluOp]),
        "use_imm": st.integers(0, 1),
        "rounding": st.integers(0, 3),
        "imm": st.one_of(anything, st.integers(-40, 40)),
        **dict.fromkeys(("dst_base", "src_base"), base),
        **loops,
        **uops,
        **steps("dst_out", "dst_in", "src_out", "src_in"),
    },
    Op.REQUANT: {
        "form": st.integers(0, 2),
        "dst": st.integers(0, 1),
        "rounding": st.integers(0, 3),
        "zero_point": st.integers(-128, 127),
        "clip_lo": st.integers(-128, 0),
        "clip_hi": st.integers(-10, 127),
        **dict.fromkeys(("acc_base", "dst_base", "res_base", "prm_base"), base),
        **loops,
        **steps("acc_out", "acc_in", "dst_out", "dst_in"),
        "prm_out": small,
    },
}
transfer = {
    "mem": st.sampled_from([int(mem) for mem in Mem]),
    "sram": st.one_of(st.just(0), st.integers(0, 4)),
    "z": st.integers(1, 2),
    "y": st.integers(1, 3),
    "x": st.integers(1, 3),
    **dict.fromkeys(("dram", "y_stride", "x_stride"), st.one_of(st.integers(0, 5).map(lambda n: 16 * n), small)),
}
STRATEGIES[Op.STORE] = {**transfer, "mem": st.sampled_from([3, 3, 3, 0])}
STRATEGIES[Op.LOAD] = {
    **transfer,
    "dram": st.one_of(st.integers(0, 5).map(lambda n: 16 * n), st.just(WINDOW - 32), st.just(1 << 31)),
    "expand": st.sampled_from([0, 0, 1]),
    "pad_value": st.integers(-128, 127),
    **dict.fromkeys(("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1"), st.one_of(st.just(0), st.integers(0, 2))),
}
STRATEGIES[Op.GATHER] = {
    "dram": st.one_of(st.integers(0, 5).map(lambda n: 16 * n), small, st.just(WINDOW - 32), st.just(1 << 31)),
    "sram": st.one_of(st.just(0), st.integers(0, 4)),
    "pitch": st.sampled_from([1, 2, 2, 4, 6]),
    "x_step": st.one_of(st.integers(0, 6), st.just(255)),
    "y": st.integers(1, 3),
    "x": st.integers(1, 5),
    "y_stride": st.one_of(st.integers(0, 5).map(lambda n: 16 * n), small),
    "row_bytes": st.one_of(st.integers(1, 40), st.sampled_from([4096, 4097])),
    "left": st.one_of(st.integers(-20, 20), st.sampled_from([-(1 << 15), (1 << 15) - 1])),
    "run": st.integers(1, 20),
    "lane": st.integers(0, 12),
    "pad_value": st.integers(-128, 127),
    **dict.fromkeys(("y_pad_0", "y_pad_1"), st.one_of(st.just(0), st.integers(0, 2))),
}


def random_state(config: AccelConfig, seed: int) -> AccelState:
    rng = np.random.default_rng(seed)
    state = AccelState(config, rng.integers(0, 256, WINDOW, np.uint8))
    for scratch in state.scratch.values():
        scratch[:] = rng.integers(0, 256, scratch.size, np.uint8)
    # Half of the accumulator is small, as real sums are; micro-ops point into the small memories.
    state.acc[::2] = rng.integers(-200, 200, state.acc[::2].shape)
    uop = rng.integers(0, 4, (4, config.uop_depth))
    state.uop[:] = uop[0] | uop[1] << 16 | uop[2] << 32 | (uop[3] & 1) << 48
    # Shifts of every size, also beyond 62.
    state.prm[..., 2] &= rng.choice([-1, ~0xC0, ~0xF0], state.prm[..., 2].shape)
    return state


def compare(config: AccelConfig, op: Op, values: dict[str, int], seed: int) -> None:
    state = random_state(config, seed)
    oracle = Oracle(config, bytearray(state.dram.tobytes()))
    for mem, scratch in state.scratch.items():
        oracle.mem[int(mem)][:] = scratch.tobytes()
    word = Word(int.from_bytes(encode_instructions([(op, values)]), "little"))
    expected = None
    try:
        oracle.execute(7, word)
    except OracleFault as fault:
        expected = fault.name
    if expected is not None:
        with pytest.raises(Fault) as caught:
            SEMANTICS[op](state, complete(op, values), 7)
        assert (caught.value.code.name, caught.value.index) == (expected, 7)
        return
    SEMANTICS[op](state, complete(op, values), 7)
    for mem, scratch in state.scratch.items():
        assert scratch.tobytes() == bytes(oracle.mem[int(mem)]), mem.name
    assert state.dram.tobytes() == bytes(oracle.window)


@pytest.mark.parametrize("piece", [accel.isa.loops.PIECE_ISSUES, 5])
@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("op", STRATEGIES, ids=lambda op: op.name.lower())
def test_random_instruction_matches_the_oracle(
    op: Op, config: str, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accel.isa.loops, "PIECE_ISSUES", piece)

    @settings(max_examples=250, deadline=None, derandomize=True)
    @given(st.fixed_dictionaries(STRATEGIES[op]), st.integers(0, 1 << 16))
    def check(values: dict[str, int], seed: int) -> None:
        compare(CONFIGS[config], op, values, seed)

    check()


def test_every_instruction_has_one_meaning() -> None:
    assert set(SEMANTICS) == set(Op) == set(BY_OP)


def test_full_range_sums_are_exact_beyond_float32() -> None:
    config = load_config("default")
    state = AccelState(config, np.zeros(0, np.uint8))
    state.inp[:] = -128
    state.wgt[:] = -128
    state.uop[:] = np.arange(config.uop_depth, dtype=np.uint64) % 1024 << np.uint64(16)
    state.acc[:] = 2**31 - 1
    values = complete(Op.GEMM, {"uop_end": 2048, "iter_in": 2, "acc_in": 1})
    SEMANTICS[Op.GEMM](state, values, 0)
    expected = (2**31 - 1 + 2048 * 16 * 2**14 + 2**31) % 2**32 - 2**31
    assert (state.acc[:2] == expected).all()
    assert (state.acc[2:] == 2**31 - 1).all()


def test_huge_loops_stay_bounded_in_memory() -> None:
    config = load_config("default")
    state = AccelState(config, np.zeros(0, np.uint8))
    state.inp[:] = 1
    state.wgt[:] = 1
    values = complete(Op.GEMM, {"uop_end": 1, "iter_out": 270, "iter_in": 1024})
    SEMANTICS[Op.GEMM](state, values, 0)
    assert (state.acc[0] == 270 * 1024 * 16).all()


@pytest.mark.parametrize("op", [Op.LOAD, Op.STORE], ids=lambda op: op.name.lower())
def test_every_small_stride_pattern(op: Op) -> None:
    """Runs that overlap, touch, repeat and interleave: the last one written stays."""
    config = replace(SMALL, inp_depth=256, out_depth=256)
    mem = int(Mem.OUT if op is Op.STORE else Mem.INP)
    for y_stride, x_stride, y, x, z in product(range(6), range(6), (1, 3), (1, 2, 3), (1, 2)):
        values = {"mem": mem, "dram": 64, "y": y, "x": x, "z": z, "y_stride": 16 * y_stride, "x_stride": 16 * x_stride}
        compare(config, op, values, y_stride)
