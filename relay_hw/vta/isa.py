"""VTA's instructions and micro-ops as tables, and what is derived from them: encoder, decoder, text.

In: records. Out: two 64-bit words for each instruction, a 32-bit one for each micro-op, and back. Widths of fields
depend on the geometry. Raises EncodeError for values that a field cannot hold, DecodeError for words that are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import RelayHwError
from relay_hw.vta.geometry import ITER_BITS, WORD_BITS, Buffer, Geometry

Words = NDArray[np.uint64]
Uops = NDArray[np.int64]


class EncodeError(RelayHwError):
    """A value that its field cannot hold."""


class DecodeError(RelayHwError):
    """Words that are no instruction."""


class Op(IntEnum):
    """Operation codes."""

    LOAD = 0
    STORE = 1
    GEMM = 2
    FINISH = 3
    ALU = 4


class AluOp(IntEnum):
    """Operations of the ALU; `SHR` by a negative amount shifts left."""

    MIN = 0
    MAX = 1
    ADD = 2
    SHR = 3
    MUL = 4


class Queue(IntEnum):
    """The three modules that execute instructions, each in program order, in the order of the pipeline."""

    LOAD = 0
    COMPUTE = 1
    STORE = 2


@dataclass(frozen=True, slots=True)
class Flags:
    """Tokens: whether an instruction waits for one of its neighbours before it begins, or gives one when it ends."""

    pop_prev: bool = False
    pop_next: bool = False
    push_prev: bool = False
    push_next: bool = False


NO_FLAGS: Final = Flags()


@dataclass(frozen=True, slots=True)
class Memory:
    """LOAD or STORE: `y_size` rows of `x_size` entries, `x_stride` entries of DRAM apart; LOAD puts zeros around."""

    op: Op
    memory_type: Buffer
    sram_base: int
    dram_base: int
    y_size: int
    x_size: int
    x_stride: int
    y_pad_0: int = 0
    y_pad_1: int = 0
    x_pad_0: int = 0
    x_pad_1: int = 0
    flags: Flags = NO_FLAGS

    @property
    def columns(self) -> int:
        """Entries of a row on the chip."""
        return self.x_pad_0 + self.x_size + self.x_pad_1 if self.op is Op.LOAD else self.x_size

    @property
    def rows(self) -> int:
        """Rows on the chip."""
        return self.y_pad_0 + self.y_size + self.y_pad_1 if self.op is Op.LOAD else self.y_size


@dataclass(frozen=True, slots=True)
class Loops:
    """Two loops around the micro-ops [uop_bgn, uop_end), and what their counters add to the indices."""

    uop_bgn: int
    uop_end: int
    iter_out: int
    iter_in: int
    dst_factor_out: int
    dst_factor_in: int
    src_factor_out: int
    src_factor_in: int


@dataclass(frozen=True, slots=True)
class Gemm:
    """Products of INP and WGT are added to ACC; with `reset`, ACC becomes 0."""

    loops: Loops
    wgt_factor_out: int = 0
    wgt_factor_in: int = 0
    reset: bool = False
    flags: Flags = NO_FLAGS
    op: Op = Op.GEMM


@dataclass(frozen=True, slots=True)
class Alu:
    """`acc[dst] = acc[dst] alu_opcode (imm if use_imm else acc[src])`."""

    loops: Loops
    alu_opcode: AluOp
    use_imm: bool = False
    imm: int = 0
    flags: Flags = NO_FLAGS
    reset: bool = False
    op: Op = Op.ALU


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of a program."""

    flags: Flags = NO_FLAGS
    op: Op = Op.FINISH


Insn = Memory | Gemm | Alu | Finish
_Any = TypeVar("_Any", bound=Insn)


class Width(IntEnum):
    """Widths that depend on the geometry, by negative numbers beside plain ones."""

    UOP = -1
    UOP_END = -2
    ACC = -3
    INP = -4
    WGT = -5


@dataclass(frozen=True, slots=True)
class Field:
    """`width` bits of word `word`, behind the field before it in that word."""

    name: str
    width: int
    word: int = 0
    signed: bool = False


_HEAD: Final = (Field("op", 3), *(Field(name, 1) for name in ("pop_prev", "pop_next", "push_prev", "push_next")))
_MEMORY: Final = (
    Field("memory_type", 3),
    Field("sram_base", 16),
    Field("dram_base", 32),
    *(Field(name, 16, 1) for name in ("y_size", "x_size", "x_stride")),
    *(Field(name, 4, 1) for name in ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1")),
)
_LOOPS: Final = (
    Field("reset", 1),
    Field("uop_bgn", Width.UOP),
    Field("uop_end", Width.UOP_END),
    Field("iter_out", ITER_BITS),
    Field("iter_in", ITER_BITS),
    Field("dst_factor_out", Width.ACC, 1),
    Field("dst_factor_in", Width.ACC, 1),
    Field("src_factor_out", Width.INP, 1),
    Field("src_factor_in", Width.INP, 1),
)
_GEMM: Final = (*_LOOPS, Field("wgt_factor_out", Width.WGT, 1), Field("wgt_factor_in", Width.WGT, 1))
_ALU: Final = (*_LOOPS, Field("alu_opcode", 3, 1), Field("use_imm", 1, 1), Field("imm", 16, 1, signed=True))
# The instruction set: what follows holds for every geometry.
TABLE: Final[Mapping[Op, tuple[Field, ...]]] = {
    Op.LOAD: (*_HEAD, *_MEMORY),
    Op.STORE: (*_HEAD, *_MEMORY),
    Op.GEMM: (*_HEAD, *_GEMM),
    Op.ALU: (*_HEAD, *_ALU),
    Op.FINISH: _HEAD,
}
_LOOP_NAMES: Final = tuple(field.name for field in fields(Loops))
_FLAG_NAMES: Final = tuple(field.name for field in fields(Flags))
_WIDTH_OF: Final[Mapping[int, Callable[[Geometry], int]]] = {
    Width.UOP: lambda g: g.log_depth(Buffer.UOP),
    Width.UOP_END: lambda g: g.log_depth(Buffer.UOP) + 1,
    Width.ACC: lambda g: g.log_depth(Buffer.ACC),
    Width.INP: lambda g: g.log_depth(Buffer.INP),
    Width.WGT: lambda g: g.log_depth(Buffer.WGT),
}
# Fields of a micro-op: index of ACC, of INP or for ALU of a second entry of ACC, and of WGT.
UOP_FIELDS: Final = (("acc", Width.ACC), ("inp", Width.INP), ("wgt", Width.WGT))


@dataclass(frozen=True, slots=True)
class Place:
    """A field with its bits in one geometry."""

    field: Field
    low: int
    width: int

    @property
    def least(self) -> int:
        """The smallest value."""
        return -(1 << (self.width - 1)) if self.field.signed else 0

    @property
    def most(self) -> int:
        """The largest value."""
        return (1 << (self.width - self.field.signed)) - 1


def places(op: Op, geometry: Geometry) -> Iterator[Place]:
    """The fields of an instruction, each behind the one before it in its word."""
    ends = [0, 0]
    for field in TABLE[op]:
        width = _WIDTH_OF[field.width](geometry) if field.width < 0 else field.width
        yield Place(field, ends[field.word], width)
        ends[field.word] += width
    assert max(ends) <= WORD_BITS, f"{op.name} must fit into its words"


def values_of(insn: Insn) -> dict[str, int]:
    """The value of every field, by name."""
    given = {name: int(getattr(insn.flags, name)) for name in _FLAG_NAMES}
    if isinstance(insn, Gemm | Alu):
        given |= {name: getattr(insn.loops, name) for name in _LOOP_NAMES}
    return {field.name: given.get(field.name, _own(insn, field.name)) for field in TABLE[insn.op]}


def _own(insn: Insn, name: str) -> int:
    return int(getattr(insn, name, 0))


def encode(program: Sequence[Insn], geometry: Geometry) -> Words:
    """Two little-endian 64-bit words for each instruction. Raises EncodeError."""
    found = np.zeros((len(program), 2), np.uint64)
    known = {op: tuple(places(op, geometry)) for op in Op}
    for number, insn in enumerate(program):
        words, values = [0, 0], values_of(insn)
        for place in known[insn.op]:
            value = values[place.field.name]
            if not place.least <= value <= place.most:
                limits = f"[{place.least}, {place.most}]"
                name = place.field.name
                raise EncodeError(f"{name} of instruction {number}, {insn.op.name}, must be in {limits}, not {value}")
            words[place.field.word] |= (value & (1 << place.width) - 1) << place.low
        found[number] = words
    return found


def decode(words: Words, geometry: Geometry) -> tuple[Insn, ...]:
    """Inverse of `encode`. Raises DecodeError for unknown codes, and for bits outside of all fields."""
    known = {op: tuple(places(op, geometry)) for op in Op}
    return tuple(_decode(number, [int(low), int(high)], known) for number, (low, high) in enumerate(words))


def _decode(number: int, words: list[int], known: Mapping[Op, tuple[Place, ...]]) -> Insn:
    code = words[0] & 7
    if code not in {*Op}:
        raise DecodeError(f"the operation of instruction {number} must be from 0 to 4, not {code}")
    op, values, rest = Op(code), dict[str, int](), list(words)
    for place in known[op]:
        value = words[place.field.word] >> place.low & (1 << place.width) - 1
        rest[place.field.word] &= ~((1 << place.width) - 1 << place.low)
        values[place.field.name] = value - (1 << place.width) if value > place.most else value
    if any(rest):
        raise DecodeError(f"bits of instruction {number}, {op.name}, outside of its fields must be 0")
    return _made(op, values, number)


def _made(op: Op, values: Mapping[str, int], number: int) -> Insn:
    flags = Flags(*(bool(values[name]) for name in _FLAG_NAMES))
    own: dict[str, Any] = {k: v for k, v in values.items() if k not in (*_FLAG_NAMES, *_LOOP_NAMES)} | {"op": op}
    for name, kind in (("memory_type", Buffer), ("alu_opcode", AluOp), ("reset", bool), ("use_imm", bool)):
        if name in own:
            try:
                own[name] = kind(own[name])
            except ValueError:
                raise DecodeError(
                    f"{name} of instruction {number}, {op.name}, must be known, not {own[name]}"
                ) from None
    if op is Op.FINISH:
        return Finish(flags)
    if op in (Op.LOAD, Op.STORE):
        return Memory(**own, flags=flags)
    loops = Loops(*(values[name] for name in _LOOP_NAMES))
    return Gemm(loops, **own, flags=flags) if op is Op.GEMM else Alu(loops, **own, flags=flags)


def encode_uops(uops: Uops, geometry: Geometry) -> NDArray[np.uint32]:
    """32-bit words of micro-ops, rows of indices into ACC, INP (ALU: ACC) and WGT. Raises EncodeError."""
    total, low = np.zeros(len(uops), np.int64), 0
    for column, (name, width) in enumerate(UOP_FIELDS):
        bits = _WIDTH_OF[width](geometry)
        values = uops[:, column]
        if len(values) and not 0 <= values.min() <= values.max() < 1 << bits:
            worst = values.min() if values.min() < 0 else values.max()
            raise EncodeError(f"{name} of a micro-op must be in [0, {(1 << bits) - 1}], not {worst}")
        total |= values << low
        low += bits
    return total.astype(np.uint32)


def decode_uops(words: NDArray[np.uint32], geometry: Geometry) -> Uops:
    """Inverse of `encode_uops`."""
    columns: list[NDArray[np.int64]] = []
    rest = words.astype(np.int64)
    for _, width in UOP_FIELDS:
        bits = _WIDTH_OF[width](geometry)
        columns.append(rest & (1 << bits) - 1)
        rest = rest >> bits
    return np.stack(columns, axis=1)


def queue_of(insn: Insn) -> Queue:
    """The module that executes an instruction."""
    if insn.op is Op.STORE:
        return Queue.STORE
    if isinstance(insn, Memory) and insn.memory_type in (Buffer.INP, Buffer.WGT):
        return Queue.LOAD
    return Queue.COMPUTE


def with_flags(insn: _Any, **flags: bool) -> _Any:
    """The instruction with some flags set."""
    return replace(insn, flags=replace(insn.flags, **flags))


def show(insn: Insn) -> str:
    """One line: the operation, its flags, and each field that is not 0."""
    values = {name: value for name, value in values_of(insn).items() if value and name != "op"}
    flags = [name for name in _FLAG_NAMES if values.pop(name, 0)]
    words = [insn.op.name, *flags]
    if isinstance(insn, Memory):
        words.append(insn.memory_type.name)
    if isinstance(insn, Alu):
        words.append(insn.alu_opcode.name)
    hidden = ("memory_type", "alu_opcode")
    return " ".join([*words, *(f"{name}={value}" for name, value in values.items() if name not in hidden)])
