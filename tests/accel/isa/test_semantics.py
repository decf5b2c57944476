"""Semantics against the naive oracle: random instructions on random scratchpads so small that indices collide."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relay_hw.accel.isa.loops
from relay_hw.accel.isa.alu import AluOp
from relay_hw.accel.isa.config import AccelConfig, load_config
from relay_hw.accel.isa.errors import Fault
from relay_hw.accel.isa.semantics import SEMANTICS
from relay_hw.accel.isa.spec import BY_OP, Mem, Op
from relay_hw.accel.isa.state import AccelState
from relay_hw.accel.isa.stream import complete, encode_instructions
from tests.accel.isa.oracle import Oracle, OracleFault, Word

DEPTHS = dict(inp_depth=32, wgt_depth=8, acc_depth=16, acc_banks=2, out_depth=16, uop_depth=8, prm_depth=8)
SMALL = replace(load_config("tiny"), name="small", **DEPTHS)
# Its bus is wider than an entry of coefficients.
ODD = replace(SMALL, name="odd", block_in=8, axi_data_bits=128, multiplier_bits=16, cof_depth=0)
# Output blocks of several entries; entries of several output blocks.
TALL = replace(SMALL, name="tall", block_out=16, inp_depth=64)
DEEP = replace(SMALL, name="deep", block_in=16)
# 4-bit weights, operands of two entries.
HALF = replace(SMALL, name="half", block_in=32, wgt_bits=4)
CONFIGS = {"small": SMALL, "odd": ODD, "tall": TALL, "deep": DEEP, "half": HALF}
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
        "mode": st.sampled_from([0, 1, 1, 2, 2, 2, 3]),
        "nibble": st.sampled_from([0, 0, 0, 1, 2]),
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
        "form": st.integers(0, 3),
        "still": st.integers(0, 1),
        "table": st.sampled_from([0, 0, 1, 2, 3]),
        "dst": st.integers(0, 2),
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
    "pitch": st.one_of(st.just(0), st.just(0), st.integers(1, 2)),
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


def mostly_legal(config: AccelConfig, op: Op, values: dict[str, int]) -> dict[str, int]:
    """Maxima take no weight index, halves of weights are of 4 bits, planes lie in INP, weights with factors in WGT."""
    if op is Op.GEMM and values["wgt_base"] != 5 and (config.wgt_bits == 8 or values["mode"] == 2):
        values = {**values, "nibble": 0}
    if op is Op.GEMM and values["mode"] == 2 and values["wgt_base"] != 5:
        return {**values, "wgt_base": 0, "wgt_out": 0, "wgt_in": 0}
    if op is Op.LOAD and values["pitch"] and values["mem"] == Mem.WGT and values["pad_value"] % 4:
        run = dict.fromkeys(("y", "x"), 1) | dict.fromkeys(("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1"), 0)
        wide = config.wgt_bytes // config.granule_bytes
        return {**values, **run, "expand": 1, "pitch": 1, "z": 1 + abs(values["pad_value"]) % (5 * max(1, wide))}
    if op is Op.LOAD and values["pitch"] and values["mem"] != Mem.WGT:
        return {**values, "mem": int(Mem.INP), "expand": 0, "sram": values["sram"] // 4 * 4}
    return values


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


@pytest.mark.parametrize("piece", [relay_hw.accel.isa.loops.PIECE_ISSUES, 5])
@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("op", STRATEGIES, ids=lambda op: op.name.lower())
def test_random_instruction_matches_the_oracle(
    op: Op, config: str, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay_hw.accel.isa.loops, "PIECE_ISSUES", piece)

    @settings(max_examples=250, deadline=None, derandomize=True)
    @given(st.fixed_dictionaries(STRATEGIES[op]), st.integers(0, 1 << 16))
    def check(values: dict[str, int], seed: int) -> None:
        compare(CONFIGS[config], op, mostly_legal(CONFIGS[config], op, values), seed)

    check()


def test_every_instruction_has_one_semantics() -> None:
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


def test_taps_sum_four_lines_channel_by_channel() -> None:
    """A hand-made case: channel c of four lines holds c, 10 + c, 20 + c, 30 + c."""
    config = load_config("default")
    state = AccelState(config, np.zeros(0, np.uint8))
    for line in range(4):
        state.inp[7 + line] = 10 * line + np.arange(16)
    state.wgt[3, :, 8:12] = (1, -1, 2, 3)
    state.uop[0] = 7 << 16 | 14 << 32 | 1 << 48
    state.uop[1] = 7 << 16 | 0b1001 << 32
    state.acc[0], state.acc[1] = 99, 15
    SEMANTICS[Op.GEMM](state, complete(Op.GEMM, {"mode": 1, "uop_end": 1, "overwrite": 1}), 0)
    assert state.acc[0].tolist() == [-10 + 40 + 90 + 5 * c for c in range(16)]
    values = {"mode": 2, "uop_begin": 1, "uop_end": 2, "acc_base": 1}
    SEMANTICS[Op.GEMM](state, complete(Op.GEMM, values), 0)
    assert state.acc[1].tolist() == [30 + c for c in range(16)]
    state.acc[1] = 33
    SEMANTICS[Op.GEMM](state, complete(Op.GEMM, values), 0)
    assert state.acc[1].tolist() == [max(33, 30 + c) for c in range(16)]


def test_planes_hold_neighbours_of_one_channel_block() -> None:
    """Two rows of two pixels of 32 channels, padded left: each block of 16 channels in six lines of a plane."""
    config = load_config("default")
    state = AccelState(config, np.arange(128, dtype=np.uint8))
    values = {"mem": Mem.INP, "sram": 4, "z": 2, "y": 2, "x": 2, "x_stride": 32, "y_stride": 64, "x_pad_0": 1}
    SEMANTICS[Op.LOAD](state, complete(Op.LOAD, {**values, "pitch": 2, "pad_value": -1}), 0)
    for plane in range(2):
        lines = state.inp[4 + 8 * plane : 10 + 8 * plane, 0].tolist()
        assert lines == [-1, 16 * plane, 32 + 16 * plane, -1, 64 + 16 * plane, 96 + 16 * plane]


@pytest.mark.parametrize(
    ("op", "values", "sentence"),
    [
        (Op.GEMM, {"mode": 2, "wgt_in": 1, "uop_end": 1}, "gemm.wgt_in must be 0 for max, not 1"),
        (Op.GEMM, {"mode": 2, "uop_begin": 1, "uop_end": 2}, "mask of taps must be from 1 to 15, not 0"),
        (Op.GEMM, {"mode": 1, "uop_end": 1, "inp_base": 1}, "inp entry must be a multiple of 2, not 1"),
        (Op.GEMM, {"mode": 1, "uop_end": 1, "inp_base": 4090}, "inp line 2048 is outside 2048"),
        (Op.LOAD, {"mem": 1, "pitch": 1}, "load.pitch must be 0 for these weights, not 1"),
        (Op.LOAD, {"mem": 1, "pitch": 2, "expand": 1}, "load.pitch must be 0 for these weights, not 2"),
        (Op.LOAD, {"mem": 1, "pitch": 1, "expand": 1, "y": 2}, "weights with factors must be one run without padding"),
        (Op.LOAD, {"mem": 2, "pitch": 1}, "load.pitch must be 0 for acc"),
        (Op.LOAD, {"sram": 1, "pitch": 1, "z": 1}, "sram must start on a bus beat|sram must start a line of 2 entries"),
        (Op.LOAD, {"sram": 4094, "pitch": 1, "z": 2}, "inp byte 32831 is outside 32768"),
        (Op.REQUANT, {"form": 2, "dst": 2, "dst_base": 3}, "inp entry must be a multiple of 2, not 3"),
        (Op.REQUANT, {"form": 2, "dst": 2, "dst_base": 4096}, "inp entry 4096 is outside 4096"),
    ],
)
def test_refusals_of_lines_and_planes(op: Op, values: dict[str, int], sentence: str) -> None:
    state = AccelState(replace(load_config("ecp5"), inp_depth=4096), np.zeros(64, np.uint8))
    state.uop[0] = 1 << 32
    with pytest.raises(Fault, match=sentence):
        SEMANTICS[op](state, complete(op, values), 0)


def test_pitch_needs_whole_lines() -> None:
    config = replace(load_config("tiny"), block_out=64, inp_depth=1024)
    state = AccelState(config, np.zeros(256, np.uint8))
    with pytest.raises(Fault, match="runs must be whole lines of 64 bytes with pitch, not 48"):
        SEMANTICS[Op.LOAD](state, complete(Op.LOAD, {"z": 3, "pitch": 1}), 0)


@pytest.mark.parametrize("op", [Op.LOAD, Op.STORE], ids=lambda op: op.name.lower())
def test_every_small_stride_pattern(op: Op) -> None:
    """Runs that overlap, touch, repeat and interleave: the last one written stays."""
    config = replace(SMALL, inp_depth=256, out_depth=256)
    mem = int(Mem.OUT if op is Op.STORE else Mem.INP)
    for y_stride, x_stride, y, x, z in product(range(6), range(6), (1, 3), (1, 2, 3), (1, 2)):
        values = {"mem": mem, "dram": 64, "y": y, "x": x, "z": z, "y_stride": 16 * y_stride, "x_stride": 16 * x_stride}
        compare(config, op, values, y_stride)
