"""The instruction set: one table of instructions, micro-ops and records; `registers.py` has the registers.

Everything else is derived from it: encoder, decoder, assembler, disassembler, Verilog header, ISA.md, random
programs. An instruction is 256 bits, eight little-endian 32-bit words. Field positions do not depend on the
configuration, so a program can be disassembled without one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from relay_hw.accel.isa.alu import AluOp
from relay_hw.accel.isa.config import INSTRUCTION_BYTES, SEMAPHORES
from relay_hw.accel.isa.errors import EncodeError, FaultCode
from relay_hw.accel.isa.fields import Field, Layout

ISA_VERSION = 7
DEVICE_MAGIC = 0x57484C52  # "RLHW" in memory order


class Op(IntEnum):
    """Operation codes."""

    LOAD = 1
    STORE = 2
    GEMM = 3
    ALU = 4
    REQUANT = 5
    FINISH = 6
    GATHER = 7
    ROW = 8


class Unit(IntEnum):
    """Execution units, each with a queue of its own; program order holds inside a unit and nowhere else."""

    LOAD = 0
    COMPUTE = 1
    OUTPUT = 2
    STORE = 3
    ROW = 4


class Mem(IntEnum):
    """Scratchpads."""

    INP = 0
    WGT = 1
    ACC = 2
    OUT = 3
    UOP = 4
    PRM = 5
    TAB = 6
    COF = 7


class Rounding(IntEnum):
    """What an arithmetic right shift does with the bits that it drops."""

    HALF_UP = 0
    HALF_EVEN = 1
    HALF_AWAY = 2
    FLOOR = 3


class GemmMode(IntEnum):
    """What GEMM does with an input: multiply a tile, or take four neighbouring lines channel by channel.

    ENTRY multiplies a tile by one entry of INP where MATMUL takes two neighbouring ones; else they are the same.
    """

    MATMUL = 0
    TAPS = 1
    MAX = 2
    ENTRY = 3


class Nibble(IntEnum):
    """What GEMM takes 4-bit weights for: weights of their own, or one half of 8-bit weights."""

    WHOLE = 0
    LOW = 1
    HIGH = 2


class Form(IntEnum):
    """What REQUANT computes for each lane."""

    SCALE = 0
    ADD = 1
    PASS = 2
    MUL = 3


# Forms with a second operand.
TWO_OPERANDS = frozenset({Form.ADD, Form.MUL})


class Dst(IntEnum):
    """Where REQUANT writes its int8 result."""

    OUT = 0
    ACC = 1
    INP = 2


class RowKind(IntEnum):
    """What ROW makes of a row."""

    SOFTMAX = 0
    LAYER_NORM = 1
    RMS_NORM = 2


@dataclass(frozen=True, slots=True)
class Instruction:
    """One row of the table: operation code, executing unit (None: the dispatcher itself), field layout."""

    op: Op
    unit: Unit | None
    layout: Layout
    doc: str

    @property
    def name(self) -> str:
        return self.op.name.lower()


def _w(word: int, bit: int = 0) -> int:
    return word * 32 + bit


_COMMON = (
    Field("opcode", _w(0), 8, "operation code", enum=Op),
    Field("wait", _w(1), SEMAPHORES, "semaphores to take one token from, all at once, before starting"),
    Field("set", _w(1, 16), SEMAPHORES, "semaphores to give one token to when the last effect is visible"),
)

_TRANSFER = (
    Field("dram", _w(2), 32, "byte offset from the window base; a multiple of the granule"),
    Field("sram", _w(3), 16, "first scratchpad entry; must start on a bus beat"),
    Field("z", _w(3, 16), 16, "granules of one run of consecutive bytes", minimum=1),
    Field("y", _w(4), 16, "rows", minimum=1),
    Field("x", _w(4, 16), 16, "runs in a row", minimum=1),
    Field("y_stride", _w(5), 32, "bytes from one row to the next; a multiple of the granule"),
    Field("x_stride", _w(6), 32, "bytes from one run to the next; a multiple of the granule"),
)

_LOOPS = (
    Field("iter_out", _w(2), 16, "trips of the outer loop", minimum=1),
    Field("iter_in", _w(2, 16), 16, "trips of the inner loop", minimum=1),
)

_UOPS = (
    Field("uop_begin", _w(3), 16, "first micro-op"),
    Field("uop_end", _w(3, 16), 16, "one past the last micro-op; greater than uop_begin"),
)

LOAD = Instruction(
    Op.LOAD,
    Unit.LOAD,
    Layout(
        "load",
        INSTRUCTION_BYTES * 8,
        _COMMON
        + (
            Field("mem", _w(0, 8), 4, "destination scratchpad (not out)", enum=Mem),
            Field(
                "expand",
                _w(0, 12),
                1,
                "acc: each byte of DRAM becomes an int32 lane; wgt: from half the bits",
            ),
            Field("pad_value", _w(0, 13), 8, "byte that padding stands for, before expand", signed=True),
            Field(
                "pitch",
                _w(0, 21),
                11,
                "inp: four-line steps from one line of a run to the next; 0: packed; expanded wgt: 1: factors lead",
            ),
        )
        + _TRANSFER
        + (
            Field("y_pad_0", _w(7), 8, "padding rows before"),
            Field("y_pad_1", _w(7, 8), 8, "padding rows after"),
            Field("x_pad_0", _w(7, 16), 8, "padding runs before each row"),
            Field("x_pad_1", _w(7, 24), 8, "padding runs after each row"),
        ),
    ),
    "Copies y rows of x runs of z granules from DRAM to consecutive scratchpad bytes, with padding around.",
)

STORE = Instruction(
    Op.STORE,
    Unit.STORE,
    Layout(
        "store",
        INSTRUCTION_BYTES * 8,
        _COMMON + (Field("mem", _w(0, 8), 4, "source scratchpad (only out)", enum=Mem),) + _TRANSFER,
    ),
    "Copies consecutive scratchpad bytes to y rows of x runs of z granules in DRAM.",
)

GEMM = Instruction(
    Op.GEMM,
    Unit.COMPUTE,
    Layout(
        "gemm",
        INSTRUCTION_BYTES * 8,
        _COMMON
        + (
            Field("overwrite", _w(0, 8), 1, "micro-ops marked `first` write the product instead of adding it"),
            Field("mode", _w(0, 9), 2, "product of a tile, sum of four taps, or maximum of them", enum=GemmMode),
            Field("nibble", _w(0, 11), 2, "4-bit weights: signed, low half, or high half of a weight", enum=Nibble),
            Field("wgt_base", _w(0, 16), 16, "added to every weight index"),
        )
        + _LOOPS
        + _UOPS
        + (
            Field("acc_out", _w(4), 16, "accumulator step of the outer loop"),
            Field("acc_in", _w(4, 16), 16, "accumulator step of the inner loop"),
            Field("inp_out", _w(5), 16, "input step of the outer loop"),
            Field("inp_in", _w(5, 16), 16, "input step of the inner loop"),
            Field("wgt_out", _w(6), 16, "weight step of the outer loop"),
            Field("wgt_in", _w(6, 16), 16, "weight step of the inner loop"),
            Field("acc_base", _w(7), 16, "added to every accumulator index"),
            Field("inp_base", _w(7, 16), 16, "added to every input index"),
        ),
    ),
    "acc[a] += inp[i] . wgt[w], or taps of four lines, for each micro-op in two nested loops; one micro-op a cycle.",
)

ALU = Instruction(
    Op.ALU,
    Unit.COMPUTE,
    Layout(
        "alu",
        INSTRUCTION_BYTES * 8,
        _COMMON
        + (
            Field("alu_op", _w(0, 8), 4, "operation", enum=AluOp),
            Field("use_imm", _w(0, 12), 1, "second operand is imm, not acc[src]"),
            Field("rounding", _w(0, 13), 2, "rounding of shr", enum=Rounding),
        )
        + _LOOPS
        + _UOPS
        + (
            Field("dst_out", _w(4), 16, "destination step of the outer loop"),
            Field("dst_in", _w(4, 16), 16, "destination step of the inner loop"),
            Field("src_out", _w(5), 16, "source step of the outer loop"),
            Field("src_in", _w(5, 16), 16, "source step of the inner loop"),
            Field("imm", _w(6), 32, "immediate operand; clip: low 16 bits upper bound, high 16 lower", signed=True),
            Field("dst_base", _w(7), 16, "added to every destination index"),
            Field("src_base", _w(7, 16), 16, "added to every source index"),
        ),
    ),
    "acc[d] = op(acc[d], acc[s] or imm) on int32 lanes for each micro-op in two nested loops.",
)

REQUANT = Instruction(
    Op.REQUANT,
    Unit.OUTPUT,
    Layout(
        "requant",
        INSTRUCTION_BYTES * 8,
        _COMMON
        + (
            Field("form", _w(0, 8), 2, "scale, add, pass or mul", enum=Form),
            Field("dst", _w(0, 10), 2, "write out, acc (int8 widened to int32), or inp", enum=Dst),
            Field("rounding", _w(0, 12), 2, "rounding of the shift", enum=Rounding),
            Field("still", _w(0, 14), 1, "the second operand stays in the inner loop and steps by one in the outer"),
            Field("zero_point", _w(0, 16), 8, "added after the shift", signed=True),
            Field("prm_out", _w(0, 24), 8, "parameter step of the outer loop"),
        )
        + _LOOPS
        + (
            Field("acc_base", _w(3), 16, "first accumulator entry (y)"),
            Field("dst_base", _w(3, 16), 16, "first destination entry"),
            Field("res_base", _w(4), 16, "add, mul: first accumulator entry of the second operand (r)"),
            Field("prm_base", _w(4, 16), 16, "first parameter entry"),
            Field("acc_out", _w(5), 16, "accumulator step of the outer loop, both operands"),
            Field("acc_in", _w(5, 16), 16, "accumulator step of the inner loop, both operands"),
            Field("dst_out", _w(6), 16, "destination step of the outer loop"),
            Field("dst_in", _w(6, 16), 16, "destination step of the inner loop"),
            Field("clip_lo", _w(7), 8, "lower bound of the result", signed=True),
            Field("clip_hi", _w(7, 8), 8, "upper bound of the result; at least clip_lo", signed=True),
            Field("table", _w(7, 16), 8, "0, or one more than the table that the result goes through"),
        ),
    ),
    "The output stage: bias, multiplier, rounding shift, zero point, clip; or residual add, product; and a table.",
)

FINISH = Instruction(
    Op.FINISH,
    None,
    Layout("finish", INSTRUCTION_BYTES * 8, _COMMON[:1]),
    "Waits until every unit is idle and every write is acknowledged, then sets STATUS.done. Last in a program.",
)

GATHER = Instruction(
    Op.GATHER,
    Unit.LOAD,
    Layout(
        "gather",
        INSTRUCTION_BYTES * 8,
        _COMMON
        + (
            Field("y_pad_0", _w(0, 8), 8, "rows of pad_value before"),
            Field("pad_value", _w(0, 16), 8, "byte outside the image", signed=True),
            Field("y_pad_1", _w(0, 24), 8, "rows of pad_value after"),
            Field("dram", _w(2), 32, "first row's byte offset from the window base; a multiple of the granule"),
            Field("sram", _w(3), 16, "inp entry of the first vector; must start on a bus beat"),
            Field("pitch", _w(3, 16), 8, "entries of a vector; whole bus beats", minimum=1),
            Field("x_step", _w(3, 24), 8, "bytes of the row from one vector's window to the next"),
            Field("y", _w(4), 16, "rows of the image", minimum=1),
            Field("x", _w(4, 16), 16, "vectors in a row", minimum=1),
            Field("y_stride", _w(5), 32, "bytes from one row to the next; a multiple of the granule"),
            Field("row_bytes", _w(6), 16, "bytes of a row inside the image; at most 4096", minimum=1),
            Field("left", _w(6, 16), 16, "bytes that the first window starts before the row", signed=True),
            Field("run", _w(7), 16, "bytes of a window; lane + run is at most the bytes of a vector", minimum=1),
            Field("lane", _w(7, 16), 16, "byte of a vector that the window's first byte goes to"),
        ),
    ),
    "Copies overlapping windows of y rows of bytes to inp, one part of a vector each: an image unfolded for GEMM.",
)

ROW = Instruction(
    Op.ROW,
    Unit.ROW,
    Layout(
        "row",
        INSTRUCTION_BYTES * 8,
        _COMMON
        + (
            Field("kind", _w(0, 8), 2, "softmax, layer norm or RMS norm", enum=RowKind),
            Field("zero_point", _w(0, 16), 8, "added last", signed=True),
            Field("inp_zero", _w(0, 24), 8, "rms_norm: taken off every element first", signed=True),
            Field("rows", _w(2), 16, "rows", minimum=1),
            Field("columns", _w(2, 16), 16, "elements of a row, the first ones of its entries", minimum=1),
            Field("acc_base", _w(3), 16, "first accumulator entry of the first row"),
            Field("cof_base", _w(3, 16), 16, "first entry of coefficients"),
            Field("row_step", _w(4), 16, "accumulator step from one row to the next"),
            Field("entry_step", _w(4, 16), 16, "accumulator step from one entry of a row to the next"),
            Field("visible", _w(5), 16, "softmax: columns that count in the first row"),
            Field("visible_step", _w(5, 16), 1, "softmax: each row counts one column more than the row before"),
            Field(
                "bounded", _w(5, 17), 1, "softmax: no more columns count than the entry behind 256 exponentials says"
            ),
            Field("shift", _w(5, 24), 7, "softmax: -15 to 15, norms: 0 to 40: last right shift", signed=True),
            Field("epsilon_low", _w(6), 32, "norms: low bits of what is added to the variance"),
            Field("epsilon_high", _w(7), 16, "norms: bits 47 to 32 of it"),
            Field("multiplier", _w(7, 16), 16, "softmax: times the inverse of the sum"),
        ),
    ),
    "Softmax or a norm of rows of int8 numbers in the accumulators, in place.",
)

INSTRUCTIONS: tuple[Instruction, ...] = (LOAD, STORE, GEMM, ALU, REQUANT, FINISH, GATHER, ROW)
BY_OP: dict[Op, Instruction] = {row.op: row for row in INSTRUCTIONS}
BY_NAME: dict[str, Instruction] = {row.name: row for row in INSTRUCTIONS}

UOP = Layout(
    "uop",
    64,
    (
        Field("dst", 0, 16, "accumulator index (GEMM, ALU)"),
        Field("src", 16, 16, "input index (GEMM), source accumulator index (ALU)"),
        Field("wgt", 32, 16, "weight index (GEMM), mask of taps (GEMM, mode max), 0 (ALU)"),
        Field("first", 48, 1, "GEMM with overwrite: this micro-op overwrites"),
    ),
)

# One lane of one parameter entry; an entry is BLOCK_OUT of these.
PRM = Layout(
    "prm",
    128,
    (
        Field("bias", 0, 32, "form scale: bias; form add: multiplier of r", signed=True),
        Field("multiplier", 32, 32, "form scale, mul: multiplier; form add: multiplier of y", signed=True),
        Field("shift", 64, 8, "right shift, 0 to 62"),
        Field("y_zero", 72, 8, "form add, mul: zero point of y", signed=True),
        Field("r_zero", 80, 8, "form add, mul: zero point of r", signed=True),
    ),
)


# Two results of a table; a table is 128 of these, the result for -128 first.
TAB = Layout(
    "tab",
    64,
    (
        Field("even", 0, 8, "result for an even number", signed=True),
        Field("odd", 8, 8, "result for the odd number behind it", signed=True),
    ),
)

# What ROW multiplies or looks up: of a column, or of a distance from a row's maximum.
COF = Layout(
    "cof",
    64,
    (
        Field(
            "gain",
            0,
            16,
            "norms: times the standardised element; softmax: an exponential, or a bound",
            signed=True,
        ),
        Field("bias", 32, 32, "norms: added to that product", signed=True),
    ),
)


def encode(op: Op, values: dict[str, int]) -> int:
    """One instruction as a 256-bit integer. Raises EncodeError naming the field."""
    return BY_OP[op].layout.encode({**values, "opcode": op})


def decode(word: int) -> tuple[Instruction, dict[str, int]]:
    """Instruction and field values of a 256-bit word. Raises EncodeError naming the field."""
    opcode = word & 0xFF
    if opcode not in Op._value2member_map_:
        known = ", ".join(str(member.value) for member in Op)
        raise EncodeError(f"opcode must be one of {known}, not {opcode}", FaultCode.ILLEGAL_OPCODE)
    row = BY_OP[Op(opcode)]
    return row, row.layout.decode(word)
