"""Programs: layout rules, container files (every byte matters), records, tensors."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw.accel.isa.asm import assemble, assemble_file
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.container import PREFIX_BYTES
from relay_hw.accel.isa.disasm import disassemble
from relay_hw.accel.isa.errors import EncodeError, ProgramError
from relay_hw.accel.isa.program import Program, Region, Section, SectionKind, TensorLayout, TensorSlot, WindowPlan
from relay_hw.accel.isa.records import decode_prm, decode_uops, encode_prm, encode_uops
from relay_hw.accel.isa.spec import Op
from relay_hw.accel.isa.stream import encode_instructions
from relay_hw.accel.isa.tensors import pack_tensor, slot_bytes, unpack_tensor
from tests.accel.isa.runner import PROGRAMS

TINY = load_config("tiny")
FINISH = [(Op.FINISH, {})]
DATA = Section("data", SectionKind.WEIGHTS, 0, 64, bytes(range(64)))
OUT = Section("out", SectionKind.OUTPUT, 64, 32)
SLOT = TensorSlot("y", "out", 0, (1, 1, 1, 10), "int8", TensorLayout.NHWC)


def program(regions: Sequence[Region] = (Region("conv1", 0, 1),), resident: Any = (), **changes: Any) -> Program:
    plan = WindowPlan(**{"sections": [DATA, OUT], "tensors": [SLOT], **changes})
    return Program.build(TINY, FINISH, plan, regions, resident)


def test_build_places_the_instructions_and_sizes_the_window() -> None:
    p = program()
    assert (p.code.offset, p.code.size, p.count, p.window_bytes) == (96, 32, 1, 4096)
    assert p.instructions == ((Op.FINISH, {}),)
    assert p.instruction_words().tolist() == [[6, 0, 0, 0, 0, 0, 0, 0]]
    assert p.tensor_offset("y") == 64
    assert program(program_offset=4096).window_bytes == 8192


def test_omitted_fields_take_their_smallest_legal_value() -> None:
    p = Program.build(TINY, [(Op.LOAD, {"z": 3}), *FINISH])
    values = p.instructions[0][1]
    assert (values["z"], values["y"], values["x"], values["dram"]) == (3, 1, 1, 0)


@pytest.mark.parametrize("path", PROGRAMS[::5], ids=lambda path: path.stem)
def test_containers_round_trip(path: Path) -> None:
    p = assemble_file(path)
    data = p.to_bytes()
    again = Program.from_bytes(data, load_config(p.config))
    assert again == p
    assert again.to_bytes() == data


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "p.bin"
    program().save(path)
    assert Program.load(path, TINY) == program()
    assert [entry.name for entry in tmp_path.iterdir()] == ["p.bin"]
    with pytest.raises(ProgramError, match=r"program file .*absent must be readable: No such file"):
        Program.load(tmp_path / "absent")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ProgramError, match=r"p\.bin: program content must match its SHA-256 hash; the file is damaged"):
        Program.load(path)


def test_a_failed_save_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        program().save(tmp_path / "absent" / "p.bin")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        program().save(tmp_path / "folder")
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


def test_every_truncation_and_every_flipped_bit_is_refused() -> None:
    data = program().to_bytes()
    for size in range(len(data)):
        with pytest.raises(ProgramError):
            Program.from_bytes(data[:size])
    for position in range(len(data)):
        for bit in (1, 0x80):
            broken = bytearray(data)
            broken[position] ^= bit
            with pytest.raises(ProgramError):
                Program.from_bytes(bytes(broken))
    with pytest.raises(ProgramError):
        Program.from_bytes(data + b"\0")


def test_sentences_of_other_files() -> None:
    data = program().to_bytes()
    with pytest.raises(ProgramError, match=f"program must be at least {PREFIX_BYTES} bytes, not 3"):
        Program.from_bytes(b"abc")
    with pytest.raises(ProgramError, match="program must start with b'RLHWPROG', not b'PROGRLHW'"):
        Program.from_bytes(b"PROGRLHW" + data[8:])
    with pytest.raises(ProgramError, match="program container version must be 2, not 9: make the program again"):
        Program.from_bytes(data[:8] + b"\x09\0\0\0" + data[12:])
    with pytest.raises(ProgramError, match="program instruction-set version must be 7, not 9"):
        Program.from_bytes(data[:12] + b"\x09\0\0\0" + data[16:])
    with pytest.raises(ProgramError, match=r"made for configuration default \(0x[0-9a-f]{8}\), not tiny \(0x"):
        Program.from_bytes(data, load_config("default"))
    header_bytes = int.from_bytes(data[20:24], "little")
    header, content = data[PREFIX_BYTES : PREFIX_BYTES + header_bytes], data[PREFIX_BYTES + header_bytes :]
    with pytest.raises(ProgramError, match=f"program data must be {len(content)} bytes, not {len(content) + 1}"):
        Program.from_bytes(rehashed(data, header, content + b"\0"))


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5000) | st.text(max_size=3) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "size"]), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.data())
def test_well_hashed_nonsense_is_refused_or_read(data: st.DataObject) -> None:
    """A header of any JSON, with a matching hash: never another error than ProgramError."""
    original = program().to_bytes()
    header_bytes = int.from_bytes(original[20:24], "little")
    header = json.loads(original[PREFIX_BYTES : PREFIX_BYTES + header_bytes])
    target = header
    for _ in range(data.draw(st.integers(0, 3))):
        keys = (
            list(target) if isinstance(target, dict) else list(range(len(target))) if isinstance(target, list) else []
        )
        if not keys:
            break
        key = data.draw(st.sampled_from(keys))
        if data.draw(st.booleans()) or not isinstance(target[key], (dict, list)):
            target[key] = data.draw(JUNK)
            break
        target = target[key]
    blob = rehashed(original, json.dumps(header).encode(), original[PREFIX_BYTES + header_bytes :])
    try:
        read = Program.from_bytes(blob)
    except ProgramError:
        return
    assert Program.from_bytes(read.to_bytes()) == read


def rehashed(original: bytes, header: bytes, payload: bytes) -> bytes:
    import hashlib

    numbers = original[8:20] + len(header).to_bytes(4, "little")
    return original[:8] + numbers + hashlib.sha256(numbers + header + payload).digest() + header + payload


@pytest.mark.parametrize(
    ("sections", "sentence"),
    [
        ([Section("a", SectionKind.INPUT, 16, 32)], "section a: offset must be a multiple of 32, not 16"),
        ([Section("a", SectionKind.INPUT, -32, 32)], "section a: offset must be a multiple of 32, not -32"),
        (
            [Section("a", SectionKind.INPUT, 0, 64), Section("b", SectionKind.INPUT, 32, 4)],
            "b must not overlap section a",
        ),
        ([Section("a", SectionKind.INPUT, 0, 4, b"abc")], "section a: data must be 4 bytes, not 3"),
        ([DATA, Section("data", SectionKind.INPUT, 64, 4)], "section name must be unique, not data twice"),
        ([Section("a b", SectionKind.INPUT, 0, 4)], "printable without spaces and semicolons, not 'a b'"),
        ([Section("", SectionKind.INPUT, 0, 4)], "printable without spaces and semicolons, not ''"),
        ([Section("p", SectionKind.PROGRAM, 0, 32, bytes(32))], "sections of kind program must be 1, not 2"),
        ([Section("a", SectionKind.INPUT, 0, 1 << 32)], "window_bytes must be a multiple of 32 below 4294967296"),
    ],
)
def test_sections_that_do_not_fit(sections: list[Section], sentence: str) -> None:
    with pytest.raises(ProgramError) as caught:
        Program.build(TINY, FINISH, WindowPlan(sections))
    assert sentence in str(caught.value)


def test_other_parts_that_do_not_fit() -> None:
    with pytest.raises(ProgramError, match="section out must end inside the window of 64, not at 96"):
        program(window_bytes=64, program_offset=0, sections=[OUT], regions=())
    with pytest.raises(ProgramError, match="section must be one of data, out, program, not nowhere"):
        program(tensors=[TensorSlot("t", "nowhere", 0, (1,), "int8")])
    with pytest.raises(ProgramError, match="tensor t: offset must be from 0 to 32, not 33"):
        program(tensors=[TensorSlot("t", "out", 33, (1,), "int8")])
    with pytest.raises(ProgramError, match=r"tensor t: extents must be at least 1, not \[4, 0\]"):
        program(tensors=[TensorSlot("t", "out", 0, (4, 0), "int8")])
    with pytest.raises(ProgramError, match=r"tensor t: dtype must be one of int8, .*, not object"):
        program(tensors=[TensorSlot("t", "out", 0, (4,), "object")])
    with pytest.raises(ProgramError, match=r"offsets, sizes and shapes must be integers, not 4\.0"):
        program(tensors=[TensorSlot("t", "out", 0, (4.0,), "int8")])  # pyright: ignore[reportArgumentType]
    with pytest.raises(ProgramError, match=r"region r must lie in \[0, 1\], not 0:2"):
        program(regions=[Region("r", 0, 2)])
    with pytest.raises(ProgramError, match="must hold whole instructions of 32 bytes"):
        Program.build(TINY, [])
    with pytest.raises(ProgramError, match="tensor must be one of y, not z"):
        program().tensor("z")


def test_micro_ops_round_trip() -> None:
    rng = np.random.default_rng(0)
    columns = {key: rng.integers(0, 1 << 16, 100) for key in ("dst", "src", "wgt")}
    columns["first"] = rng.integers(0, 2, 100)
    data = encode_uops(**columns)
    assert data.size == 800
    for key, column in decode_uops(data).items():
        assert column.tolist() == columns[key].tolist()
    assert encode_uops(1, 2, 3, 1).tobytes() == bytes([1, 0, 2, 0, 3, 0, 1, 0])


def test_parameters_round_trip() -> None:
    rng = np.random.default_rng(1)
    columns = {key: rng.integers(-(1 << 31), 1 << 31, (5, 4)) for key in ("bias", "multiplier")}
    columns["shift"] = rng.integers(0, 63, (5, 4))
    columns |= {key: rng.integers(-128, 128, (5, 4)) for key in ("y_zero", "r_zero")}
    data = encode_prm(**columns)
    assert data.size == 5 * TINY.prm_bytes
    for key, column in decode_prm(data).items():
        assert column.tolist() == columns[key].reshape(-1).tolist()
    record = encode_prm(-2, 3, 4, -5, 6).tobytes()
    assert record == b"\xfe\xff\xff\xff\x03\0\0\0\x04\xfb\x06" + bytes(5)


def test_records_refuse_what_does_not_fit() -> None:
    with pytest.raises(EncodeError, match=r"uop\.dst must be from 0 to 65535, not 65536"):
        encode_uops([0, 65536], 0)
    with pytest.raises(EncodeError, match=r"uop\.src must be from 0 to 65535, not -1"):
        encode_uops(0, -1)
    with pytest.raises(EncodeError, match=r"uop\.first must be from 0 to 1, not 2"):
        encode_uops(0, 0, 0, 2)
    with pytest.raises(EncodeError, match=r"uop\.wgt must be integers, not float64"):
        encode_uops(0, 0, 0.5)
    with pytest.raises(EncodeError, match=r"prm\.shift must be from 0 to 62, not 63"):
        encode_prm(0, 1, 63)
    with pytest.raises(EncodeError, match=r"prm\.multiplier must be from -65536 to 65535, not 65536"):
        encode_prm(0, 1 << 16, 0, multiplier_bits=16)
    with pytest.raises(EncodeError, match="uop records must be a multiple of 8 bytes, not 7"):
        decode_uops(np.zeros(7, np.uint8))


@pytest.mark.parametrize("config", ["tiny", "wide"])
@pytest.mark.parametrize("layout", [TensorLayout.FLAT, TensorLayout.NHWC])
@pytest.mark.parametrize("dtype", ["int8", "int32", "float32"])
def test_tensors_round_trip(config: str, layout: TensorLayout, dtype: str) -> None:
    c = load_config(config)
    slot = TensorSlot("t", "out", 0, (2, 3, 5, 19), dtype, layout)
    array = np.random.default_rng(2).integers(-100, 100, slot.shape).astype(dtype)
    data = pack_tensor(c, slot, array)
    channels = 19 if layout is TensorLayout.FLAT else 32
    assert data.size == slot_bytes(c, slot) == 2 * 3 * 5 * channels * array.itemsize
    assert (unpack_tensor(c, slot, data) == array).all()
    assert data.reshape(-1, channels * array.itemsize)[:, 19 * array.itemsize :].sum() == 0


@pytest.mark.parametrize("config", ["tiny", "wide"])
def test_rows_round_trip(config: str) -> None:
    c = load_config(config)
    slot = TensorSlot("t", "out", 0, (2, 4, 5, 3), "uint8", TensorLayout.ROWS)
    array = np.random.default_rng(2).integers(1, 255, slot.shape).astype(np.uint8)
    data = pack_tensor(c, slot, array)
    assert data.size == slot_bytes(c, slot) == 2 * 4 * c.granule_bytes
    assert (unpack_tensor(c, slot, data) == array).all()
    rows = data.reshape(8, -1)
    assert rows[:, :15].tobytes() == array.tobytes() and not rows[:, 15:].any()


@pytest.mark.parametrize("config", ["tiny", "ecp5", "wide"])
def test_tiles_lie_as_weights_do(config: str) -> None:
    c = load_config(config)
    lanes, block = c.block_out, c.block_in
    slot = TensorSlot("t", "in", 0, (2, 3 * lanes - 1, block + 3), "int8", TensorLayout.TILES)
    array = np.random.default_rng(2).integers(1, 127, slot.shape).astype(np.int8)
    data = pack_tensor(c, slot, array)
    assert data.size == slot_bytes(c, slot) == 2 * 3 * 2 * lanes * block
    assert (unpack_tensor(c, slot, data) == array).all()
    tiles = data.view(np.int8).reshape(2, 3, 2, lanes, block)
    assert (tiles[1, 1, 0] == array[1, lanes : 2 * lanes, :block]).all()
    assert (tiles[0, 2, 1, : lanes - 1, :3] == array[0, 2 * lanes :, block:]).all()
    assert np.count_nonzero(tiles) == array.size


@pytest.mark.parametrize("dtype, shape", [("int32", (1, 2, 3)), ("int8", (7,)), ("uint8", (2, 3))])
def test_tiles_are_of_two_axes(dtype: str, shape: tuple[int, ...]) -> None:
    slot = TensorSlot("t", "out", 0, shape, dtype, TensorLayout.TILES)
    with pytest.raises(ProgramError, match="tensor t: tiles must be two axes or more of int8, not "):
        slot_bytes(TINY, slot)


@pytest.mark.parametrize("dtype, shape", [("int32", (1, 2, 3)), ("int8", (7,))])
def test_rows_are_bytes_of_two_axes(dtype: str, shape: tuple[int, ...]) -> None:
    slot = TensorSlot("t", "out", 0, shape, dtype, TensorLayout.ROWS)
    with pytest.raises(ProgramError, match="tensor t: rows must be two axes or more of bytes, not "):
        slot_bytes(TINY, slot)


def test_tensors_refuse_other_shapes() -> None:
    with pytest.raises(ProgramError, match=r"tensor y must be int8\[1, 1, 1, 10\], not int8\[10\]"):
        pack_tensor(TINY, SLOT, np.zeros(10, np.int8))
    with pytest.raises(ProgramError, match=r"tensor y must be int8\[1, 1, 1, 10\], not float64\[1, 1, 1, 10\]"):
        pack_tensor(TINY, SLOT, np.zeros((1, 1, 1, 10)))
    with pytest.raises(ProgramError, match="tensor y must be 16 bytes, not 10"):
        unpack_tensor(TINY, SLOT, np.zeros(10, np.uint8))
    with pytest.raises(ProgramError, match="tensor s: shape must have a channel axis"):
        slot_bytes(TINY, TensorSlot("s", "out", 0, (), "int8", TensorLayout.NHWC))


def test_encoding_is_little_endian() -> None:
    assert encode_instructions([(Op.LOAD, {"dram": 0x01020304})])[8:12] == bytes([4, 3, 2, 1])


def test_resident_stream_stands_in_front_of_the_program() -> None:
    stays = [(Op.LOAD, {"mem": 1, "z": 2}), *FINISH]
    p = program(resident=stays)
    section = p.resident
    assert section is not None
    assert (section.offset, section.size, p.code.offset) == (96, 64, 160)
    assert p.stream(SectionKind.RESIDENT) is section
    assert p.stream(SectionKind.PROGRAM) is p.code
    assert section.data == encode_instructions(stays)
    again = Program.from_bytes(p.to_bytes(), TINY)
    assert again == p
    assert assemble(disassemble(p)) == p
    assert "load mem=wgt z=2" in disassemble(p)


def test_programs_without_a_resident_stream_say_so() -> None:
    p = program()
    assert p.resident is None
    for kind in (SectionKind.RESIDENT, SectionKind.WEIGHTS):
        with pytest.raises(ProgramError, match=f"stream must be one that the program has, not {kind.value}"):
            p.stream(kind)


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ([Section("r", SectionKind.RESIDENT, 0, 40, bytes(40))], "section r must hold whole instructions of 32 bytes"),
        ([Section("r", SectionKind.RESIDENT, 0, 32)], "section r must hold whole instructions of 32 bytes"),
        (
            [Section(n, SectionKind.RESIDENT, k * 32, 32, bytes(32)) for k, n in enumerate("ab")],
            "sections of kind resident must be at most 1, not 2",
        ),
    ],
)
def test_resident_streams_are_checked(sections: list[Section], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        Program.build(TINY, FINISH, WindowPlan(sections))


@pytest.mark.parametrize("name", ["", "-tiny", "tiny/..", "ti ny", "t" * 65, "tïny"])
def test_a_configuration_is_a_word_wherever_it_stands(name: str) -> None:
    """What assembly would refuse is not read from a container either."""
    sentence = "configuration name must be 1 to 64 letters, digits, '_', '.', '+' and '-', not "
    with pytest.raises(ProgramError, match=re.escape(sentence + repr(name))):
        replace(program(), config=name).to_bytes()
