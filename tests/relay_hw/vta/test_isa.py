"""VTA's encoding, held against a second reader of the rules, and against words written by hand."""

from __future__ import annotations

import numpy as np
import pytest

from relay_hw.vta.geometry import Buffer, Geometry, load_geometry
from relay_hw.vta.isa import (
    Alu,
    AluOp,
    DecodeError,
    EncodeError,
    Finish,
    Flags,
    Gemm,
    Insn,
    Loops,
    Memory,
    Op,
    decode,
    decode_uops,
    encode,
    encode_uops,
    places,
    show,
    values_of,
)
from tests.relay_hw.vta.reader import read

COUNT = 10_000
CONFIGS = ("pynq", "pynq_4x8", "small")


def random_insn(rng: np.random.Generator, geometry: Geometry) -> Insn:
    """A legal instruction, every field at random, often at its ends."""

    def pick(low: int, high: int) -> int:
        return int((low, high, rng.integers(low, high + 1))[rng.integers(3)])

    def bits(count: int) -> int:
        return pick(0, (1 << count) - 1)

    flags = Flags(*(bool(bit) for bit in rng.integers(0, 2, 4)))
    uop, inp, wgt, acc = (geometry.log_depth(b) for b in (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC))
    op = Op(rng.integers(5))
    if op is Op.FINISH:
        return Finish(flags)
    if op in (Op.LOAD, Op.STORE):
        sizes = [bits(16) for _ in range(3)]
        return Memory(op, Buffer(rng.integers(6)), bits(16), bits(32), *sizes, *(bits(4) for _ in range(4)), flags)
    loops = Loops(bits(uop), bits(uop + 1), bits(14), bits(14), bits(acc), bits(acc), bits(inp), bits(inp))
    reset = bool(rng.integers(2))
    if op is Op.GEMM:
        return Gemm(loops, bits(wgt), bits(wgt), reset, flags)
    return Alu(loops, AluOp(rng.integers(5)), bool(rng.integers(2)), pick(-(1 << 15), (1 << 15) - 1), flags, reset)


@pytest.mark.parametrize("name", CONFIGS)
def test_random_instructions_read_the_same_elsewhere(name: str) -> None:
    geometry = load_geometry(name)
    rng = np.random.default_rng(34)
    program = [random_insn(rng, geometry) for _ in range(COUNT)]
    words = encode(program, geometry)
    assert list(decode(words, geometry)) == program
    widths = [geometry.log_depth(b) for b in (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC)]
    for insn, (low, high) in zip(program, words, strict=True):
        want = {key: int(value) for key, value in values_of(insn).items()} | {"op": insn.op.name}
        assert read(int(low), int(high), *widths) == want, show(insn)


def test_bits_of_the_default_configuration() -> None:
    """The places that are published for it."""
    geometry = load_geometry("pynq")
    found = {(op, p.field.name): (p.field.word, p.low, p.low + p.width - 1) for op in Op for p in places(op, geometry)}
    assert found[Op.LOAD, "memory_type"] == (0, 7, 9) and found[Op.STORE, "dram_base"] == (0, 26, 57)
    assert found[Op.LOAD, "x_stride"] == (1, 32, 47) and found[Op.LOAD, "x_pad_1"] == (1, 60, 63)
    assert found[Op.GEMM, "uop_bgn"] == (0, 8, 20) and found[Op.GEMM, "iter_in"] == (0, 49, 62)
    assert found[Op.GEMM, "src_factor_out"] == (1, 22, 32) and found[Op.GEMM, "wgt_factor_in"] == (1, 54, 63)
    assert found[Op.ALU, "alu_opcode"] == (1, 44, 46) and found[Op.ALU, "imm"] == (1, 48, 63)


def test_words_by_hand() -> None:
    geometry = load_geometry("pynq")
    load = Memory(Op.LOAD, Buffer.INP, 3, 0x100, 2, 5, 7, 1, 0, 0, 1, Flags(pop_next=True, push_next=True))
    assert [*map(int, encode([load], geometry)[0])] == [0x400000D50, 0x1001000700050002]
    alu = Alu(Loops(1, 2, 3, 4, 5, 6, 7, 8), AluOp.SHR, True, -1)
    low = 4 | 1 << 8 | 2 << 21 | 3 << 35 | 4 << 49
    high = 5 | 6 << 11 | 7 << 22 | 8 << 33 | 3 << 44 | 1 << 47 | 0xFFFF << 48
    assert [*map(int, encode([alu], geometry)[0])] == [low, high]
    assert encode_uops(np.array([[1, 2, 3]]), geometry).tolist() == [1 | 2 << 11 | 3 << 22]


@pytest.mark.parametrize("name", CONFIGS)
def test_micro_ops(name: str) -> None:
    geometry = load_geometry(name)
    depths = [geometry.depth(b) for b in (Buffer.ACC, Buffer.INP, Buffer.WGT)]
    uops = np.random.default_rng(1).integers(0, depths, (500, 3))
    np.testing.assert_array_equal(decode_uops(encode_uops(uops, geometry), geometry), uops)
    with pytest.raises(EncodeError, match=rf"inp of a micro-op must be in \[0, {depths[1] - 1}\], not {depths[1]}"):
        encode_uops(np.array([[0, depths[1], 0]]), geometry)


def test_what_cannot_be_encoded() -> None:
    pads = Memory(Op.LOAD, Buffer.INP, 0, 0, 1, 1, 1, 16)
    with pytest.raises(EncodeError, match=r"y_pad_0 of instruction 0, LOAD, must be in \[0, 15\], not 16"):
        encode([pads], load_geometry())
    alu = Alu(Loops(0, 1, 1, 1, 0, 0, 0, 0), AluOp.ADD, True, 1 << 15)
    with pytest.raises(EncodeError, match=r"imm of instruction 1, ALU, must be in \[-32768, 32767\], not 32768"):
        encode([Finish(), alu], load_geometry())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((5, 0), "the operation of instruction 0 must be from 0 to 4, not 5"),
        ((3 | 1 << 7, 0), "bits of instruction 0, FINISH, outside of its fields must be 0"),
        ((6 << 7, 0), "memory_type of instruction 0, LOAD, must be known, not 6"),
        ((4, 5 << 44), "alu_opcode of instruction 0, ALU, must be known, not 5"),
    ],
)
def test_what_cannot_be_decoded(words: tuple[int, int], message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        decode(np.array([words], np.uint64), load_geometry())


def test_text() -> None:
    gemm = Gemm(Loops(0, 4, 14, 14, 14, 1, 16, 1), 0, 0, True, Flags(pop_prev=True))
    assert show(gemm) == (
        "GEMM pop_prev reset=1 uop_end=4 iter_out=14 iter_in=14 dst_factor_out=14 dst_factor_in=1 "
        "src_factor_out=16 src_factor_in=1"
    )
    assert show(Alu(gemm.loops, AluOp.MIN, True, 127)).startswith("ALU MIN uop_end=4")
    assert show(Memory(Op.STORE, Buffer.OUT, 0, 1, 1, 2, 2)) == "STORE OUT dram_base=1 y_size=1 x_size=2 x_stride=2"
