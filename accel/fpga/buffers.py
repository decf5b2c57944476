"""Double buffering of a program's inputs and outputs: while it works on one set, the host reads and fills the other.

In: a program. Out: `Buffers`: where inputs and outputs lie, and the instructions that work there. A second set lies
behind the program's window; only instructions, inputs and outputs are there twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.errors import EncodeError
from relay_hw.accel.isa.program import SECTION_ALIGN, Program, Section, SectionKind, align
from relay_hw.accel.isa.rules import dram_extent
from relay_hw.accel.isa.stream import decode_instructions, encode_instructions

_EXCHANGED = (SectionKind.INPUT, SectionKind.OUTPUT)


@dataclass(frozen=True, slots=True)
class Move:
    """Bytes [begin, end) of the window lie `by` bytes further on."""

    begin: int
    end: int
    by: int


@dataclass(frozen=True, slots=True)
class Buffers:
    """One set of a program's inputs and outputs, and the instructions that work on it.

    `code`: instructions, which are in the window already where `moves` is empty; `data`: sections with what a
    program's inputs hold before anybody writes them.
    """

    code: Section
    moves: tuple[Move, ...] = ()
    data: tuple[Section, ...] = ()

    @property
    def sections(self) -> tuple[Section, ...]:
        """Sections that the host writes before the first launch on these buffers."""
        return (self.code, *self.data)

    def place(self, offset: int) -> int:
        """Where a byte of the program's own inputs and outputs lies in this set."""
        return offset + next((move.by for move in self.moves if move.begin <= offset < move.end), 0)


def end_of_buffers(program: Program) -> int:
    """One past the last byte of the window and the second set behind it."""
    return _second_code(program) + program.code.size


def second_buffers(config: AccelConfig, program: Program) -> Buffers | None:
    """Make a second set; None where transfers of the program do not keep inputs and outputs apart from all else."""
    moves = tuple(_moves(program))
    try:
        instructions = decode_instructions(program.code.data or b"")
    except EncodeError:
        return None
    for op, values in instructions:
        extent = dram_extent(config, op, values)
        if not extent:
            continue
        begin, end = values["dram"], values["dram"] + extent
        met = [move for move in moves if begin < move.end and move.begin < end]
        if not met:
            continue
        if not (met[0].begin <= begin and end <= met[0].end):
            return None
        values["dram"] += met[0].by
    code = encode_instructions(instructions)
    stream = Section("second", SectionKind.PROGRAM, _second_code(program), len(code), code)
    own = Buffers(stream, moves)
    held = [section for section in program.sections if section.kind in _EXCHANGED and section.data is not None]
    return replace(own, data=tuple(replace(section, offset=own.place(section.offset)) for section in held))


def _moves(program: Program) -> Iterator[Move]:
    """The second set's inputs and outputs, one behind the other."""
    begin = align(program.window_bytes, SECTION_ALIGN)
    for section in program.sections:
        if section.kind in _EXCHANGED:
            yield Move(section.offset, section.end, begin - section.offset)
            begin = align(begin + section.size, SECTION_ALIGN)


def _second_code(program: Program) -> int:
    last = max((move.end + move.by for move in _moves(program)), default=program.window_bytes)
    return align(last, SECTION_ALIGN)
