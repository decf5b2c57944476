"""Instructions as bytes and back: 32 bytes each, as `accel/isa/spec.py` lays out their fields.

In: operations with the values of their fields. Out: the bytes of a program's section, or the fields that bytes hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from relay_hw.accel.isa.config import INSTRUCTION_BYTES
from relay_hw.accel.isa.errors import EncodeError
from relay_hw.accel.isa.spec import BY_OP, INSTRUCTIONS, Op, decode

Instr = tuple[Op, dict[str, int]]

# Of each instruction's fields the value where none is given.
SMALLEST = {row.op: {f.name: f.minimum or 0 for f in row.layout.fields if f.name != "opcode"} for row in INSTRUCTIONS}


def complete(op: Op, values: Mapping[str, int]) -> dict[str, int]:
    """All fields of an instruction but its opcode: those given, else the smallest legal count or 0."""
    result = SMALLEST[op].copy()
    for key, value in values.items():
        if key not in result:
            raise EncodeError(f"{BY_OP[op].name}: unknown field {key!r}")
        result[key] = int(value)
    return result


def encode_instructions(instructions: Iterable[tuple[Op, Mapping[str, int]]]) -> bytes:
    """32 bytes each, little-endian. Raises EncodeError that names index and field."""
    words = bytearray()
    for index, (op, values) in enumerate(instructions):
        try:
            word = BY_OP[op].layout.encode({**complete(op, values), "opcode": op})
        except EncodeError as error:
            raise EncodeError(f"instruction {index}: {error}", error.code) from None
        words += word.to_bytes(INSTRUCTION_BYTES, "little")
    return bytes(words)


def decode_instructions(data: bytes) -> list[Instr]:
    """Inverse of `encode_instructions`. Raises EncodeError that names index and field."""
    words = np.frombuffer(data, "<u4").reshape(-1, INSTRUCTION_BYTES // 4)
    codes = words[:, 0] & 0xFF
    result: list[Instr | None] = [None] * len(words)
    for row in INSTRUCTIONS:
        places = np.flatnonzero(codes == row.op)
        values = row.layout.decode_many(words[places])
        for place, v in zip(places.tolist(), values or (), strict=False):
            del v["opcode"]
            result[place] = (row.op, v)
    # One by one in order where something is wrong, so that the first such instruction is named.
    return [item or _decode(data, index) for index, item in enumerate(result)]


def _decode(data: bytes, index: int) -> Instr:
    begin = index * INSTRUCTION_BYTES
    try:
        row, values = decode(int.from_bytes(data[begin : begin + INSTRUCTION_BYTES], "little"))
    except EncodeError as error:
        raise EncodeError(f"instruction {index}: {error}", error.code) from None
    del values["opcode"]
    return row.op, values
