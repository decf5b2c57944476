"""Encoding: identity on all legal words, refusal with the field's name of all others, and fixed positions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw.accel.isa.errors import EncodeError, FaultCode
from relay_hw.accel.isa.fields import Field, Layout
from relay_hw.accel.isa.registers import REGISTERS
from relay_hw.accel.isa.spec import BY_OP, INSTRUCTIONS, PRM, UOP, Op, decode, encode
from relay_hw.accel.isa.stream import complete, decode_instructions, encode_instructions

ROWS = pytest.mark.parametrize("op", list(Op), ids=lambda op: op.name.lower())


def legal(field: Field) -> st.SearchStrategy[int]:
    if field.enum is not None:
        return st.sampled_from([member.value for member in field.enum])
    return st.integers(field.low_value, field.high_value)


@ROWS
def test_encode_then_decode_is_identity(op: Op) -> None:
    fields = {field.name: legal(field) for field in BY_OP[op].layout.fields if field.name != "opcode"}

    @settings(max_examples=100, deadline=None, derandomize=True)
    @given(st.fixed_dictionaries(fields))
    def check(values: dict[str, int]) -> None:
        row, decoded = decode(encode(op, values))
        assert row.op is op
        assert decoded == {**values, "opcode": op}
        assert decode_instructions(encode_instructions([(op, values)])) == [(op, values)]

    check()


@ROWS
def test_decode_then_encode_is_identity_or_refused(op: Op) -> None:
    @settings(max_examples=200, deadline=None, derandomize=True)
    @given(st.integers(0, (1 << 248) - 1), st.booleans())
    def check(bits: int, clean: bool) -> None:
        word = bits << 8 | op
        if clean:
            word &= ~BY_OP[op].layout.reserved_mask
        try:
            _, values = decode(word)
        except EncodeError as error:
            assert error.code in (FaultCode.RESERVED_BITS, FaultCode.ILLEGAL_FIELD)
            assert not clean or error.code is FaultCode.ILLEGAL_FIELD
            return
        assert encode(op, values) == word

    check()


@ROWS
def test_every_field_refuses_what_does_not_fit(op: Op) -> None:
    for field in BY_OP[op].layout.fields[1:]:
        for value in (field.low_value - 1, field.high_value + 1):
            with pytest.raises(EncodeError, match=rf"{BY_OP[op].name}\.{field.name} = {value} does not fit"):
                encode(op, {**complete(op, {}), field.name: value})


@ROWS
def test_every_closed_set_refuses_other_values(op: Op) -> None:
    word = encode(op, complete(op, {}))
    for field in BY_OP[op].layout.fields[1:]:
        for value in range(1 << field.width) if field.enum is not None else ():
            mask = ((1 << field.width) - 1) << field.lo
            changed = word & ~mask | value << field.lo
            if value in [member.value for member in field.enum]:
                assert decode(changed)[1][field.name] == value
            else:
                with pytest.raises(EncodeError, match=f"{field.name} must be one of .*, not {value}"):
                    decode(changed)


@ROWS
def test_every_reserved_bit_is_refused(op: Op) -> None:
    layout = BY_OP[op].layout
    word = encode(op, complete(op, {}))
    reserved = [bit for bit in range(layout.width) if layout.reserved_mask >> bit & 1]
    covered = sum(field.width for field in layout.fields)
    assert len(reserved) == layout.width - covered
    for bit in reserved:
        with pytest.raises(EncodeError, match=f"{layout.name}: reserved bits must be 0") as caught:
            decode(word | 1 << bit)
        assert caught.value.code is FaultCode.RESERVED_BITS


def test_unknown_opcodes_are_refused() -> None:
    for opcode in set(range(256)) - {int(op) for op in Op}:
        with pytest.raises(EncodeError, match=f"opcode must be one of 1, 2, 3, 4, 5, 6, 7, 8, not {opcode}") as caught:
            decode(opcode)
        assert caught.value.code is FaultCode.ILLEGAL_OPCODE


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(EncodeError, match=r"load: unknown field\(s\) \['colour'\]"):
        encode(Op.LOAD, {"colour": 1, "z": 1, "y": 1, "x": 1})
    with pytest.raises(EncodeError, match="gemm: unknown field 'opcode'"):
        complete(Op.GEMM, {"opcode": 3})


def test_errors_of_a_sequence_name_the_instruction() -> None:
    with pytest.raises(EncodeError, match=r"instruction 1: gemm\.iter_in = 70000 does not fit"):
        encode_instructions([(Op.FINISH, {}), (Op.GEMM, {"iter_in": 70000})])
    with pytest.raises(EncodeError, match="instruction 1: opcode must be"):
        decode_instructions(encode_instructions([(Op.FINISH, {})]) + bytes(32))


@ROWS
def test_many_words_are_decoded_as_one_by_one(op: Op) -> None:
    layout = BY_OP[op].layout

    @settings(max_examples=100, deadline=None, derandomize=True)
    @given(st.lists(st.tuples(st.integers(0, (1 << 248) - 1), st.booleans()), min_size=1, max_size=3))
    def check(drawn: list[tuple[int, bool]]) -> None:
        numbers = [(bits << 8 | op) & ~(layout.reserved_mask if clean else 0) for bits, clean in drawn]
        data = b"".join(number.to_bytes(32, "little") for number in numbers)
        try:
            expected = [layout.decode(number) for number in numbers]
        except EncodeError:
            expected = None
        assert layout.decode_many(np.frombuffer(data, "<u4").reshape(-1, 8)) == expected

    check()


def test_the_first_wrong_instruction_is_named() -> None:
    good, bad = encode_instructions([(Op.GEMM, {"uop_end": 1})]), bytes([3, *[255] * 31])
    with pytest.raises(EncodeError, match="instruction 1: gemm: reserved bits must be 0"):
        decode_instructions(good + bad + bytes(32))


def test_a_layout_refuses_overlap_and_overflow() -> None:
    with pytest.raises(EncodeError, match=r"t\.b: bits 11:4 overlap another field"):
        Layout("t", 16, (Field("a", 0, 8, ""), Field("b", 4, 8, "")))
    with pytest.raises(EncodeError, match=r"t\.a: bit 16 does not fit 16 bits"):
        Layout("t", 16, (Field("a", 9, 8, ""),))


def test_common_fields_lie_at_the_same_place_everywhere() -> None:
    for name in ("opcode", "wait", "set"):
        rows = [row for row in INSTRUCTIONS if row.op is not Op.FINISH or name == "opcode"]
        assert len({(f.lo, f.width) for row in rows for f in row.layout.fields if f.name == name}) == 1


def test_encodings_that_programs_on_disk_rely_on() -> None:
    """Changing one of these needs a new ISA_VERSION."""
    gemm = {"mode": 2, "wait": 0x8001, "set": 2}
    gemm |= {
        "iter_out": 3,
        "iter_in": 4,
        "uop_end": 5,
        "acc_base": 6,
        "inp_base": 7,
    }
    assert f"{encode(Op.GEMM, gemm):064x}" == "0007000600000000000000000000000000050000000400030002800100000403"
    requant = {"form": 1, "dst": 2, "rounding": 2, "zero_point": -1, "iter_out": 1, "iter_in": 1, "clip_lo": -128}
    assert f"{encode(Op.REQUANT, requant):064x}" == "0000008000000000000000000000000000000000000100010000000000ff2905"
    load = {"mem": 2, "expand": 1, "pad_value": -3, "pitch": 0x401}
    load |= {
        "dram": 0x1230,
        "z": 1,
        "y": 2,
        "x": 3,
        "x_pad_1": 9,
    }
    assert f"{encode(Op.LOAD, load):064x}" == "09000000000000000000000000030002000100000000123000000000" + "803fb201"


def test_tables_are_consistent() -> None:
    offsets = [register.offset for register in REGISTERS]
    assert len(set(offsets)) == len(offsets)
    assert all(offset % 4 == 0 and offset < 0x1000 for offset in offsets)
    assert {register.access for register in REGISTERS} <= {"ro", "rw", "wo"}
    for layout in [row.layout for row in INSTRUCTIONS] + [UOP, PRM]:
        names = [field.name for field in layout.fields]
        assert len(set(names)) == len(names)
        assert all(field.doc for field in layout.fields)
