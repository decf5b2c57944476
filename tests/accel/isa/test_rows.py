"""ROW: against the naive oracle, against the operators of relay-hw, and the widths that hardware gives its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from relay_hw.accel.isa.config import EXPONENTIALS, AccelConfig, config_names, load_config
from relay_hw.accel.isa.errors import Fault
from relay_hw.accel.isa.records import encode_cof, encode_exponentials
from relay_hw.accel.isa.rules import check_instruction, row_coefficients, row_entries
from relay_hw.accel.isa.semantics import SEMANTICS
from relay_hw.accel.isa.slots import ROW_STAGES, instruction_slots
from relay_hw.accel.isa.spec import Mem, Op, RowKind
from relay_hw.accel.isa.state import AccelState
from relay_hw.accel.isa.stream import complete, encode_instructions
from relay_hw.op import rows as operators
from tests.accel.isa.oracle import Oracle, OracleFault, Word
from tests.accel.isa.oracle_rows import RowFields, Seen, norm_row, softmax_row

TINY = load_config("tiny")
# Lanes of one element, of two, of eight; a deeper memory of coefficients; banks of few entries.
CONFIGS: dict[str, AccelConfig] = {
    "tiny": replace(TINY, acc_depth=32, acc_banks=2),
    "eight": replace(TINY, block_out=8, acc_depth=64, acc_banks=4, cof_depth=512),
    "wide": replace(load_config("wide"), acc_depth=16, acc_banks=1),
}
LONGEST = 1 << 14
INT32 = (-(1 << 31), (1 << 31) - 1)

fields = {
    "kind": st.sampled_from([int(kind) for kind in RowKind]),
    "rows": st.integers(1, 4),
    "columns": st.one_of(st.integers(1, 20), st.integers(1, 100)),
    "acc_base": st.integers(0, 9),
    "cof_base": st.sampled_from([0, 0, 0, 0, 1, 200, 256]),
    "row_step": st.sampled_from([1, 2, 7, 8, 0xFFFF, 0xFFFE]),
    "entry_step": st.sampled_from([1, 1, 1, 2, 4, 0xFFFF]),
    "zero_point": st.integers(-128, 127),
    "inp_zero": st.integers(-128, 127),
    "visible": st.one_of(st.integers(0, 30), st.sampled_from([0xFFFF, 0xFFFE])),
    "visible_step": st.integers(0, 1),
    "bounded": st.integers(0, 1),
    "shift": st.one_of(st.integers(-15, 15), st.integers(0, 40), st.sampled_from([-64, 63, 41, 16])),
    "epsilon_low": st.one_of(st.just(0), st.integers(0, (1 << 32) - 1)),
    "epsilon_high": st.sampled_from([0, 0, 0, 1, 0xFFFF]),
    "multiplier": st.one_of(st.integers(0, 0xFFFF), st.sampled_from([1 << 15, 0xFFFF])),
}


def distinct(config: AccelConfig, v: dict[str, int]) -> dict[str, int]:
    """The fields with steps that use no entry twice: rows behind one another where those drawn do."""
    count = row_entries(config, v["columns"])
    places = {(r * v["row_step"] + e * v["entry_step"]) & 0xFFFF for r in range(v["rows"]) for e in range(count)}
    return v if len(places) == v["rows"] * count else {**v, "row_step": count, "entry_step": 1}


def random_state(config: AccelConfig, seed: int) -> AccelState:
    """Numbers of int8, wide and narrow ones, with other bits above them; gains that are anything, or small."""
    rng = np.random.default_rng(seed)
    state = AccelState(config, np.zeros(0, np.uint8))
    spread = int(rng.choice([1, 3, 40, 128]))
    state.acc[:] = rng.integers(-spread, spread, state.acc.shape)
    if seed % 2:
        state.acc[:] ^= rng.integers(*INT32, state.acc.shape).astype(np.int32) << 8
    state.scratch[Mem.COF][:] = rng.integers(0, 256, state.scratch[Mem.COF].size, np.uint8)
    if seed % 3 == 0:
        state.cof[:] &= np.uint64(0x00000FFF_00000FFF)
    return state


@pytest.mark.parametrize("name", CONFIGS)
def test_random_rows_match_the_oracle(name: str) -> None:
    config = CONFIGS[name]

    @settings(max_examples=400, deadline=None, derandomize=True)
    @given(st.fixed_dictionaries(fields), st.integers(0, 1 << 16))
    def check(drawn: dict[str, int], seed: int) -> None:
        values = distinct(config, drawn)
        if values["kind"] == RowKind.SOFTMAX and config.cof_depth == EXPONENTIALS and seed % 8:
            values = {**values, "cof_base": 0}
        state = random_state(config, seed)
        oracle = Oracle(config, bytearray())
        for mem, scratch in state.scratch.items():
            oracle.mem[int(mem)][:] = scratch.tobytes()
        word = Word(int.from_bytes(encode_instructions([(Op.ROW, values)]), "little"))
        try:
            oracle.execute(5, word)
        except OracleFault as fault:
            with pytest.raises(Fault) as caught:
                SEMANTICS[Op.ROW](state, complete(Op.ROW, values), 5)
            assert (caught.value.code.name, caught.value.index) == (fault.name, 5)
            return
        SEMANTICS[Op.ROW](state, complete(Op.ROW, values), 5)
        for mem, scratch in state.scratch.items():
            assert scratch.tobytes() == bytes(oracle.mem[int(mem)]), mem.name

    check()


def run(config: AccelConfig, data: NDArray[np.int8], cof: NDArray[np.uint8], values: dict[str, int]) -> Any:
    """int8 rows through ROW, one behind the other."""
    count = row_entries(config, data.shape[1])
    config = replace(config, acc_depth=max(config.acc_depth, 1 << (data.shape[0] * count - 1).bit_length()))
    state = AccelState(config, np.zeros(0, np.uint8))
    padded = np.zeros((data.shape[0], count * config.block_out), np.int32)
    padded[:, : data.shape[1]] = data
    state.acc[: data.shape[0] * count] = padded.reshape(-1, config.block_out)
    state.scratch[Mem.COF][: cof.size] = cof
    shape = {"rows": data.shape[0], "columns": data.shape[1], "row_step": count, "entry_step": 1}
    SEMANTICS[Op.ROW](state, complete(Op.ROW, {**shape, **values}), 0)
    results = state.acc[: data.shape[0] * count].reshape(data.shape[0], -1)[:, : data.shape[1]]
    assert (results.astype(np.int8) == results).all()
    return results.astype(np.int8)


def operator(op: Any, attrs: Any, *values: NDArray[Any]) -> Any:
    """A row operator of relay-hw by its numpy semantics."""
    return op.reference(attrs, values, None)


def drawn_rows(rng: np.random.Generator, count: int, columns: int) -> NDArray[np.int8]:
    """Rows of every spread; the first ones are the extremes."""
    spread = rng.choice([1, 2, 5, 30, 128], (count, 1))
    data = np.clip(rng.integers(-128, 128, (count, columns)) % spread + rng.integers(-128, 128, (count, 1)), -128, 127)
    data[0], data[1], data[2] = -128, 127, np.where(np.arange(columns) % 2, 127, -128)
    data[3, :] = 127
    data[3, 0] = -128
    return data.astype(np.int8)


def shapes(config: AccelConfig) -> Iterator[tuple[int, int]]:
    """(rows, columns), some 160,000 elements each time."""
    for columns in (1, 2, config.block_out, config.block_out + 1, 197, 1000):
        yield min(4000, 160_000 // columns), columns


@pytest.mark.parametrize("scale", [0.002, 0.05, 1.0])
def test_softmax_is_the_operator(scale: float) -> None:
    config, rng = load_config("default"), np.random.default_rng(7)
    table = operators.exponentials(scale).astype(np.uint16)
    for rows, columns in shapes(config):
        data = drawn_rows(rng, rows, columns)
        attrs = operators.FixedSoftmaxAttrs(int(rng.integers(1 << 15, 1 << 16)), int(rng.integers(-15, 16)), -128)
        values = {"multiplier": attrs.multiplier, "shift": attrs.shift, "zero_point": -128}
        for length in (0, 1, columns // 2, columns, 0xFFFF):
            wanted = operator(operators.SOFTMAX, attrs, data, table, np.array([length], np.int32))
            cof = encode_exponentials(table, config.row_lanes)
            assert (run(config, data, cof, {**values, "visible": length}) == wanted).all()
        square = data[:columns, :]
        causal = replace(attrs, causal=True)
        wanted = operator(operators.SOFTMAX, causal, square, table, np.array([columns], np.int32))
        first = columns - square.shape[0] + 1
        assert (run(config, square, cof, {**values, "visible": first, "visible_step": 1}) == wanted).all()


@pytest.mark.parametrize("kind", [RowKind.LAYER_NORM, RowKind.RMS_NORM])
def test_norms_are_the_operators(kind: RowKind) -> None:
    config, rng = load_config("default"), np.random.default_rng(8)
    for rows, columns in shapes(config):
        for shift, epsilon, gains in (
            (14, 0, 1 << 15),
            (0, 1, 3),
            (40, 1 << 20, 1 << 15),
            (17, (1 << 48) - 1, 1 << 15),
        ):
            data = drawn_rows(rng, rows, columns)
            gain = rng.integers(-gains, gains, columns).astype(np.int16)
            bias = rng.integers(-(gains << 12), gains << 12, columns).astype(np.int32)
            zero_point, inp_zero = (int(zero) for zero in rng.integers(-128, 128, 2))
            values = {"kind": kind, "shift": shift, "zero_point": zero_point, "inp_zero": inp_zero}
            values |= {"epsilon_low": epsilon & 0xFFFFFFFF, "epsilon_high": epsilon >> 32}
            if kind is RowKind.LAYER_NORM:
                layer = operators.FixedLayerNormAttrs(shift, epsilon, zero_point)
                wanted = operator(operators.LAYER_NORM, layer, data, gain, bias)
            else:
                root = operators.FixedRmsNormAttrs(shift, epsilon, zero_point, inp_zero)
                wanted = operator(operators.RMS_NORM, root, data, gain, bias)
            assert (run(config, data, encode_cof(gain, bias), values) == wanted).all()


def extreme_rows(columns: int) -> Iterator[list[int]]:
    """Rows whose sums, spreads and differences are as large and as small as they come."""
    yield [-128] * columns
    yield [127] * columns
    yield [127 if number % 2 else -128 for number in range(columns)]
    for at in {0, columns - 1}:
        for one, others in ((127, -128), (-128, 127), (1, 0)):
            yield [one if number == at else others for number in range(columns)]


def test_numbers_of_norms_fit_their_widths() -> None:
    """The widths of the unit: 32-bit sums, differences of 24 bits, a variance of 49, elements of 18."""
    seen = Seen()
    for columns in (1, 2, 3, 16, 17, 255, 1000, LONGEST):
        for row in extreme_rows(columns):
            # The lanes behind a row hold anything.
            row = [*row, *[-128, 127] * 8]
            gains, biases = [-(1 << 15)] * len(row), [INT32[0]] * len(row)
            for kind, zero in ((RowKind.LAYER_NORM, 0), (RowKind.RMS_NORM, -128), (RowKind.RMS_NORM, 127)):
                for epsilon in (0, (1 << 48) - 1):
                    norm_row(RowFields(kind, columns, 0, zero, 0, epsilon), row, gains, biases, seen)
    for name, low, bits in (
        ("s", -(1 << 21), 22), ("q", 0, 30), ("spread", 0, 44), ("v", 16, 49), ("m", 1 << 14, 16), ("r", 1 << 15, 16),
        ("drop", 0, 5), ("down", 5, 5),
    ):  # fmt: skip
        assert low <= seen.least[name] and seen.most[name].bit_length() <= bits, name
    for name, bits in (("difference", 24), ("whole", 18), ("root_product", 34), ("z", 18), ("scaled", 34)):
        top = 1 << bits - 1
        assert -top <= seen.least[name] and seen.most[name] < top, name
    # The widths are no larger than they must be.
    assert seen.most["v"].bit_length() == 49 and seen.most["q"].bit_length() == 30 and seen.most["m"] >= 1 << 15


def test_numbers_of_softmax_fit_their_widths() -> None:
    seen = Seen()
    for columns in (1, 2, 1000, (1 << 16) - 1):
        for entry in (0, 1, 4095, 4096, 0xF001, 0xFFFF, 0xF000):
            for shift, multiplier in ((15, 0xFFFF), (-15, 1), (0, 1 << 15)):
                f = RowFields(RowKind.SOFTMAX, columns, 0, 0, shift, 0, multiplier)
                softmax_row(f, [-128] * columns, [[entry] * 256], columns, seen)
    for name, bits in (("total", 43), ("inverse", 18), ("factor", 17), ("product", 29), ("down", 6)):
        assert seen.least[name] >= 0 and seen.most[name].bit_length() <= bits, name
    assert seen.most["total"].bit_length() == 43 and seen.most["factor"].bit_length() == 17


@pytest.mark.parametrize("name", [name for name in config_names() if load_config(name).cof_depth])
def test_no_norm_is_longer_than_its_widths_allow(name: str) -> None:
    config = load_config(name)
    most = config.cof_depth // 4 * config.block_out
    assert most <= LONGEST
    full = complete(Op.ROW, {"kind": RowKind.LAYER_NORM, "columns": most})
    check_instruction(config, Op.ROW, full, 0)
    assert row_coefficients(config, full) == config.cof_depth
    with pytest.raises(Fault, match=f"cof entry {config.cof_depth + 3} is outside {config.cof_depth}"):
        check_instruction(config, Op.ROW, {**full, "columns": most + 1}, 0)


@pytest.mark.parametrize(
    ("config", "values", "sentence"),
    [
        ("ecp5", {}, "instruction 3: ILLEGAL_OPCODE: row must be for a configuration with the row unit"),
        ("tiny", {"shift": 16}, "row.shift must be from -15 to 15 for softmax, not 16"),
        ("tiny", {"shift": -16}, "row.shift must be from -15 to 15 for softmax, not -16"),
        ("tiny", {"kind": 1, "shift": 41}, "row.shift must be from 0 to 40 for layer_norm, not 41"),
        ("tiny", {"kind": 2, "shift": -1}, "row.shift must be from 0 to 40 for rms_norm, not -1"),
        ("tiny", {"cof_base": 1}, "instruction 3: SRAM_RANGE: cof entry 256 is outside 256"),
        ("tiny", {"kind": 1, "cof_base": 253}, "cof entry 256 is outside 256"),
        ("tiny", {"acc_base": 1024}, "acc entry 1024 is outside 1024"),
        ("tiny", {"rows": 2, "row_step": 0x8000}, "acc entry 32768 is outside 1024"),
        ("tiny", {"columns": 5, "entry_step": 1024}, "acc entry 1024 is outside 1024"),
    ],
)
def test_refusals(config: str, values: dict[str, int], sentence: str) -> None:
    state = AccelState(load_config(config), np.zeros(0, np.uint8))
    with pytest.raises(Fault, match=sentence):
        SEMANTICS[Op.ROW](state, complete(Op.ROW, values), 3)


def test_slots_are_rounds_of_quarters() -> None:
    """As TIMING.md, section ROW, counts them."""
    config = load_config("default")
    for rows, columns, slots in ((1, 1, 4 * 48), (1, 128, 4 * 48), (1, 129, 4 * (36 + 16)), (9, 1000, 12 * (252 + 16))):
        values = complete(Op.ROW, {"rows": rows, "columns": columns})
        assert instruction_slots(config, Op.ROW, values) == slots
    assert ROW_STAGES == 4
