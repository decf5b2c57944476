"""Assembly: every sentence of refusal with its line, data directives, instruction text without a configuration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw.accel.isa.asm import MOST_DATA, assemble, assemble_file, random_bytes
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.disasm import disassemble, disassemble_instruction, disassemble_word
from relay_hw.accel.isa.errors import AsmError
from relay_hw.accel.isa.program import Program, Region, Section, SectionKind, TensorLayout, TensorSlot, WindowPlan
from relay_hw.accel.isa.randprog import random_program
from relay_hw.accel.isa.records import decode_prm
from relay_hw.accel.isa.spec import Op, encode
from relay_hw.accel.isa.stream import complete

HEAD = ".config tiny\n.section data weights 0x0 64\n"
TAIL = "\nfinish\n"


def data_of(statements: str) -> bytes:
    return assemble(HEAD + statements + TAIL).section("data").data or b""


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("lode z=1", "statement must be one of load, store, gemm, alu, requant, finish, gather, row, .config, "),
        (".data i8 1 2 300", "data must fit 8 bits, not 300"),
        (".data i8 one", "data must be an integer, not one"),
        (".data hex 0g", "hex data must be pairs of hexadecimal digits, not 0g"),
        (".data", ".data must be followed by one of hex, zero, random, i8, i16, i32, i64, not nothing"),
        (".data f32 1", ".data must be followed by one of hex, zero, random, i8, i16, i32, i64, not f32"),
        (".data zero size=65", "size must be from 0 to the section's remaining 64 bytes, not 65"),
        (".data random low=5 high=4", "low and high must be ordered and fit int8, not 5 and 4"),
        (
            ".section big weights 0 67108865\n.data random",
            "random data must take at most 67,108,864 bytes, ",
        ),
        (".data random seeds=5", "operand of .data random must be one of seed, size, low, high, not seeds"),
        (".data i64" + " 1" * 9, "section data must hold at most 64 bytes, not 72"),
        (".uop dst=65536", "uop.dst must be from 0 to 65535, not 65536"),
        (".uop dts=1", "operand of .uop must be one of dst, src, wgt, first, not dts"),
        (".prm shift=63", "prm.shift must be from 0 to 62, not 63"),
        (".prm lanes=0", "lanes must be from 1 to 65536, not 0"),
        (".cof lanes=65537", "lanes must be from 1 to 65536, not 65537"),
        (".cof gain=32768", "cof.gain must be from -32768 to 32767, not 32768"),
        (".cof shift=1", "operand of .cof must be one of gain, bias, lanes, not shift"),
        (".section a b 0 0", "section kind must be one of program, uops, weights, resident, constants, input, "),
        (".section a input 0", ".section must be followed by name, kind, offset, size, not a input 0"),
        (".section a input zero 0", "offset must be an integer, not zero"),
        (
            ".section p program 0x40\n.section q program 0x80",
            "section of kind program must be declared once, not twice",
        ),
        (".section p program 0x40\n.data i8 1", "data must follow a .section of another kind than program"),
        (".config nope", ".config without sizes must name one of default, ecp5, ecp5w4, ecp5x2, mini, tiny, "),
        (".config ../configs/tiny.json", ".config without sizes must name one of default, ecp5, "),
        (".config", ".config must be followed by a name, and by a hash or sizes where it is not at hand"),
        (".window wide", "window must be an integer, not wide"),
        (".window", ".window must be followed by a number, not nothing"),
        (".word -1", "word must fit 256 bits, not -0x1"),
        (".tensor t data 0 int8 1x2 nchw", "layout must be one of flat, nhwc, rows, tiles, not nchw"),
        (".tensor t data 0 int8 1xq flat", "shape must be an integer, not q"),
        (".tensor t data 0 int8", ".tensor must be followed by name, section, offset, dtype, shape, layout, not t "),
        (".region r 0", ".region must be followed by name, begin, end, not r 0"),
        ("load z", "operand must be field=value, not z"),
        ("load z=", "operand must be field=value, not z="),
        ("load z=1 z=2", "operand z must be given once, not twice"),
        ("load q=1", "field of load must be one of wait, set, mem, expand, pad_value, pitch, dram, "),
        ("load opcode=1", "field of load must be one of wait, "),
        ("load mem=dram", "mem must be one of inp, wgt, acc, out, uop, prm, tab, cof, not dram"),
        ("load mem=9", "load.mem must be one of inp=0, wgt=1, acc=2, out=3, uop=4, prm=5, tab=6, cof=7, not 9"),
        ("load z=0", "load.z = 0 does not fit 16 bits [1, 65535]"),
        ("gemm iter_in=65536", "gemm.iter_in = 65536 does not fit 16 bits [1, 65535]"),
        ("alu imm=0x80000000", "alu.imm = 2147483648 does not fit 32 bits [-2147483648, 2147483647]"),
        ("gemm wait=s16", "wait must list semaphores s0 to s15, not s16"),
        ("gemm set=3", "set must list semaphores s0 to s15, not 3"),
        ("gemm set=s1,,s2", "set must list semaphores s0 to s15, not "),
        ("finish wait=s1", "field of finish must be one of none, not wait"),
    ],
)
def test_refusals(line: str, sentence: str) -> None:
    with pytest.raises(AsmError) as caught:
        assemble(HEAD + line + TAIL, "x.asm")
    number = 3 + line.count("\n")
    assert str(caught.value).startswith(f"x.asm:{number}: ")
    assert sentence in str(caught.value)


def test_refusals_of_the_whole_text() -> None:
    with pytest.raises(AsmError, match=r"^x\.asm:3: text must name its configuration with \.config"):
        assemble("; nothing\nfinish\n", "x.asm")
    with pytest.raises(AsmError, match=r"^<text>:5: section data must not overlap section program"):
        assemble(".config tiny\n.section program program 0\nfinish\n.section data input 0 32")
    with pytest.raises(AsmError, match=r"tensor t: dtype must be one of int8, .*, not int9"):
        assemble(HEAD + ".tensor t data 0 int9 4 flat" + TAIL)


@pytest.mark.parametrize("line", [".data random", ".data zero", ".data i8 1", ".prm"])
def test_a_line_cannot_ask_for_all_memory(line: str) -> None:
    size = MOST_DATA + 32
    sentence = f"sections with data must take at most 268,435,456 bytes, not {size:,}$"
    with pytest.raises(AsmError, match=f"^<text>:3: {sentence}"):
        assemble(f".config tiny\n.section data input 0 {size}\n{line}\nfinish\n")
    first = ".config tiny\n.section a input 0 32\n.data i8 1\n"
    with pytest.raises(AsmError, match=f"^<text>:5: {sentence}"):
        assemble(f"{first}.section b input 32 {MOST_DATA}\n{line}\nfinish\n")
    # What holds no data takes no room.
    assert assemble(f".config tiny\n.section data input 0 {size}\nfinish\n").section("data").size == size


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "a.asm"
    with pytest.raises(AsmError, match=r"a\.asm:0: file must be readable: No such file"):
        assemble_file(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(AsmError, match=r"a\.asm:0: file must be UTF-8 text"):
        assemble_file(path)


def test_data() -> None:
    assert data_of(".data hex 01 0203\n.data i8 -1, 255 3").rstrip(b"\0") == bytes([1, 2, 3, 255, 255, 3])
    assert data_of(".data i16 -2 0x1234").rstrip(b"\0") == bytes([254, 255, 0x34, 0x12])
    assert data_of(".data i32 -2147483648\n.data i64 1")[:12] == bytes([0, 0, 0, 128, 1, 0, 0, 0, 0, 0, 0, 0])
    assert data_of(".data zero size=3\n.data i8 1").rstrip(b"\0") == bytes([0, 0, 0, 1])
    assert data_of(".data i8 1\n.data random seed=4")[1:] == random_bytes(4, 63)
    assert assemble(HEAD + TAIL).section("data").data is None
    prm = decode_prm(np.frombuffer(data_of(".prm bias=-7 multiplier=5 shift=3 r_zero=-1"), np.uint8))
    assert prm["bias"].tolist() == [-7] * 4
    assert prm["r_zero"].tolist() == [-1] * 4


def test_random_data_is_the_same_however_long() -> None:
    whole = random_bytes(9, 200_000, -3, 90)
    assert len(whole) == 200_000
    for size in (0, 1, 1 << 16, (1 << 16) + 1, 150_000):
        assert random_bytes(9, size, -3, 90) == whole[:size]


def test_random_data_is_what_the_manual_says() -> None:
    state = 5 * 0x632BE59BD9B4E019
    expected: list[int] = []
    for _ in range(100):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        z ^= z >> 31
        expected.append(-7 + (z >> 32) % 17)
    assert np.frombuffer(random_bytes(5, 100, -7, 9), np.int8).tolist() == expected
    assert {*np.frombuffer(random_bytes(1, 20000), np.int8).tolist()} == set(range(-128, 128))


def test_instruction_text() -> None:
    load = {"mem": 1, "dram": 0x1000, "z": 16, "x": 4, "x_stride": 256, "wait": 0x18, "set": 2}
    text = "load wait=s3,s4 set=s1 mem=wgt dram=0x1000 z=16 x=4 x_stride=0x100"
    assert disassemble_instruction(Op.LOAD, load) == text
    assert disassemble_word(encode(Op.LOAD, complete(Op.LOAD, load))) == text
    assert disassemble_word(9).startswith(".word 0x0000")
    assert "; opcode must be one of" in disassemble_word(9)
    program = assemble(f".config tiny\n{text} ; comment\nfinish")
    assert program.instructions[0] == (Op.LOAD, complete(Op.LOAD, load))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["tiny", "wide"])
def test_random_programs_round_trip(name: str, seed: int) -> None:
    program = random_program(load_config(name), seed, 30)
    text = disassemble(program)
    assert assemble(text) == program
    assert disassemble(assemble(text)) == text


def test_every_part_of_a_program_round_trips() -> None:
    config = load_config("tiny")
    sections = [
        Section("zero", SectionKind.CONSTANTS, 0, 64, bytes(64)),
        Section("gaps", SectionKind.CONSTANTS, 64, 128, b"\x01" + bytes(80) + b"\x02" + bytes(46)),
        Section("odd", SectionKind.UOPS, 192, 24, b"\xff" * 23 + b"\0"),
        Section("short", SectionKind.UOPS, 224, 20, b"\x01" * 6 + bytes(13) + b"\x05"),
        Section("empty", SectionKind.SCRATCH, 256, 0),
        Section("none", SectionKind.SCRATCH, 256, 32),
    ]
    tensors = [
        TensorSlot("a", "gaps", 8, (), "int32"),
        TensorSlot("b", "none", 0, (1, 2, 3, 4), "int8", TensorLayout.NHWC),
    ]
    regions = [Region("/conv/Conv:0", 0, 1), Region("/conv/Conv:0", 1, 1)]
    program = Program.build(
        config, [(Op.FINISH, {})], WindowPlan(sections, tensors, window_bytes=1 << 20, program_offset=512), regions
    )
    assert assemble(disassemble(program)) == program
    mine = replace(load_config("tiny"), name="mine", queue_depth=8)
    own = Program.build(mine, [(Op.FINISH, {})])
    assert f".config mine batch=1 block_in={mine.block_in} " in disassemble(own) and assemble(disassemble(own)) == own
    other = Program("mine", 0x1234, program.window_bytes, program.sections)
    assert ".config mine hash=0x00001234" in disassemble(other)
    assert assemble(disassemble(other)) == other


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.text(alphabet="load gemw=,.sx0123456789;-uprdatcfin\n", max_size=120))
def test_any_text_gives_a_program_or_an_asm_error(text: str) -> None:
    try:
        program = assemble(HEAD + text + TAIL)
    except AsmError:
        return
    assert assemble(disassemble(program)) == program
