"""Disassembler: a `Program` to text that `asm` reads back to an equal program.

In: a Program, an instruction or a raw word. Out: text. Needs no configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from relay_hw.accel.isa.config import INSTRUCTION_BYTES, SEMAPHORES, UOP_BYTES, load_config
from relay_hw.accel.isa.errors import ConfigError, EncodeError
from relay_hw.accel.isa.fields import Field
from relay_hw.accel.isa.program import Program, Section, SectionKind
from relay_hw.accel.isa.records import decode_uops
from relay_hw.accel.isa.spec import BY_OP, UOP, Op, decode

_HEX_FIELDS = frozenset(("dram", "y_stride", "x_stride"))
_LINE_BYTES = 32


def disassemble(program: Program) -> str:
    """Text of a whole program; `assemble(disassemble(p)) == p`."""
    lines = [_config_line(program), f".window {program.window_bytes}"]
    for section in program.sections:
        lines += ["", *_section_lines(section)]
    if program.tensors or program.regions:
        lines.append("")
    for slot in program.tensors:
        shape = "x".join(map(str, slot.shape)) or "scalar"
        lines.append(f".tensor {slot.name} {slot.section} {slot.offset} {slot.dtype} {shape} {slot.layout.value}")
    lines += [f".region {region.name} {region.begin} {region.end}" for region in program.regions]
    return "\n".join(lines) + "\n"


def disassemble_instruction(op: Op, values: Mapping[str, int]) -> str:
    """One instruction; fields at their default are left out."""
    words = [BY_OP[op].name]
    for field in BY_OP[op].layout.fields:
        value = values.get(field.name, field.minimum or 0)
        if field.name != "opcode" and (value != (field.minimum or 0) or field.enum is not None):
            words.append(f"{field.name}={_value_text(field, value)}")
    return " ".join(words)


def disassemble_word(word: int) -> str:
    """One 256-bit word; `.word` with the reason where it is not legal."""
    try:
        row, values = decode(word)
    except EncodeError as error:
        return f".word {word:#066x} ; {error}"
    return disassemble_instruction(row.op, values)


def _config_line(program: Program) -> str:
    try:
        known = load_config(program.config).hash32 == program.config_hash
    except ConfigError:
        known = False
    if known and program.sizes:
        return f".config {program.config}"
    sizes = program.sizes or (("hash", f"{program.config_hash:#010x}"),)
    return " ".join([f".config {program.config}", *(f"{key}={size}" for key, size in sizes)])


def _value_text(field: Field, value: int) -> str:
    if field.name in ("wait", "set"):
        return ",".join(f"s{s}" for s in range(SEMAPHORES) if value >> s & 1)
    if field.enum is not None:
        return field.enum(value).name.lower()
    return hex(value) if field.name in _HEX_FIELDS else str(value)


def _section_lines(section: Section) -> Iterator[str]:
    data = section.data
    if section.kind is SectionKind.PROGRAM:
        yield f".section {section.name} {section.kind.value} {section.offset:#x}"
        yield from _words(data or b"")
        return
    yield f".section {section.name} {section.kind.value} {section.offset:#x} {section.size}"
    if data is None:
        return
    if section.kind is SectionKind.RESIDENT:
        yield from _words(data)
        return
    body = data.rstrip(b"\0")
    if section.kind is SectionKind.UOPS:
        yield from _uop_lines(data[: -(-len(body) // UOP_BYTES) * UOP_BYTES])
    else:
        yield from _hex_lines(body)
    if not body:
        yield ".data zero"


def _words(data: bytes) -> Iterator[str]:
    for begin in range(0, len(data), INSTRUCTION_BYTES):
        yield disassemble_word(int.from_bytes(data[begin : begin + INSTRUCTION_BYTES], "little"))


def _uop_lines(data: bytes) -> Iterator[str]:
    words = np.frombuffer(data[: len(data) // UOP_BYTES * UOP_BYTES], "<u8")
    if len(data) % UOP_BYTES or (words & np.uint64(UOP.reserved_mask)).any():
        yield from _hex_lines(data)
        return
    columns = decode_uops(np.frombuffer(data, np.uint8))
    for row in zip(*(columns[field.name].tolist() for field in UOP.fields), strict=True):
        pairs = (f"{field.name}={value}" for field, value in zip(UOP.fields, row, strict=True) if value)
        yield " ".join([".uop", *pairs])


def _hex_lines(data: bytes) -> Iterator[str]:
    zeros = 0
    for begin in range(0, len(data), _LINE_BYTES):
        line = data[begin : begin + _LINE_BYTES]
        if not any(line):
            zeros += len(line)
            continue
        if zeros:
            yield f".data zero size={zeros}"
            zeros = 0
        yield f".data hex {line.hex()}"
