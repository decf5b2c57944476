"""Legality of instructions: rules between fields, alignment, and scratchpad ranges known before they run.

In: a decoded instruction. Out: nothing, or the `Fault` that the dispatcher raises. Ranges that depend on micro-ops or
loops, and the DRAM window, are found while an instruction runs.
"""

from __future__ import annotations

from relay_hw.accel.isa.alu import AluOp, is_legal
from relay_hw.accel.isa.config import EXPONENTIALS, ROW_BUFFER_BYTES, ROW_QUARTERS, TAPS, AccelConfig
from relay_hw.accel.isa.errors import Fault, FaultCode
from relay_hw.accel.isa.loops import Values
from relay_hw.accel.isa.spec import GemmMode, Mem, Nibble, Op, RowKind
from relay_hw.accel.isa.state import element_bytes, scratch_bytes


def check_instruction(config: AccelConfig, op: Op, v: Values, index: int) -> None:
    """Raise Fault where a well-formed word must not run. ILLEGAL_FIELD comes before SRAM_RANGE."""
    match op:
        case Op.LOAD:
            _check_load_target(config, v, index)
            _check_transfer(config, v, index)
        case Op.STORE:
            if v["mem"] != Mem.OUT:
                raise Fault(FaultCode.ILLEGAL_FIELD, index, "store.mem must be out")
            _check_transfer(config, v, index)
        case Op.GEMM:
            _check_gemm(config, v, index)
            _check_uops(config, v, index)
        case Op.ALU:
            if not is_legal(v["alu_op"], v["use_imm"]):
                what = f"alu.use_imm must be 1 for {AluOp(v['alu_op']).name.lower()}"
                raise Fault(FaultCode.ILLEGAL_FIELD, index, what)
            _check_uops(config, v, index)
        case Op.REQUANT:
            if v["clip_lo"] > v["clip_hi"]:
                what = f"requant.clip_hi must be at least clip_lo {v['clip_lo']}, not {v['clip_hi']}"
                raise Fault(FaultCode.ILLEGAL_FIELD, index, what)
            if v["table"] > config.tables:
                what = f"requant.table must be at most {config.tables}, not {v['table']}"
                raise Fault(FaultCode.ILLEGAL_FIELD, index, what)
        case Op.GATHER:
            _check_gather(config, v, index)
        case Op.ROW:
            _check_row(config, v, index)
        case Op.FINISH:
            pass


def transfer_begin(config: AccelConfig, v: Values) -> int:
    """First scratchpad byte that LOAD or STORE touches."""
    return v["sram"] * element_bytes(config, Mem(v["mem"]))


def load_widening(v: Values) -> int:
    """Scratchpad bytes for each byte of DRAM."""
    if not v.get("expand"):
        return 1
    return 2 if v["mem"] == Mem.WGT else 4


def has_factors(v: Values) -> bool:
    """True for a LOAD of weights whose rows are multiplied while they become wider."""
    return bool(v.get("pitch")) and v["mem"] == Mem.WGT


def dram_granules(config: AccelConfig, v: Values) -> int:
    """Granules of a run of LOAD or STORE in DRAM, those of factors included. Of what is illegal any number does."""
    block = config.factor_granules if has_factors(v) else 0
    return v["z"] + (-(-v["z"] // block) if block else 0)


def transfer_shape(config: AccelConfig, v: Values) -> tuple[int, int, int]:
    """Rows and runs of the scratchpad image, padding included, and DRAM bytes of one run, without factors."""
    rows = v.get("y_pad_0", 0) + v["y"] + v.get("y_pad_1", 0)
    runs = v.get("x_pad_0", 0) + v["x"] + v.get("x_pad_1", 0)
    return rows, runs, v["z"] * config.granule_bytes


def dram_extent(config: AccelConfig, op: Op, v: Values) -> int:
    """Bytes of the window from the first to the last one that a transfer touches, what lies between included."""
    match op:
        case Op.LOAD | Op.STORE:
            run = (v["x"] - 1) * v["x_stride"] + dram_granules(config, v) * config.granule_bytes
        case Op.GATHER:
            run = gather_fetch_bytes(config, v)
        case Op.GEMM | Op.ALU | Op.REQUANT | Op.FINISH | Op.ROW:
            return 0
    return (v["y"] - 1) * v["y_stride"] + run


def plane_lines(config: AccelConfig, v: Values) -> tuple[int, int]:
    """Of a LOAD with pitch: runs (lines of a plane, padding included) and lines of a run (planes)."""
    rows, runs, run = transfer_shape(config, v)
    return rows * runs, run // config.line_bytes


def gather_fetch_bytes(config: AccelConfig, v: Values) -> int:
    """DRAM bytes that GATHER reads of each row: whole granules."""
    return -(-v["row_bytes"] // config.granule_bytes) * config.granule_bytes


def gather_rows(v: Values) -> int:
    """Rows of vectors that GATHER writes, padding included."""
    return v["y_pad_0"] + v["y"] + v["y_pad_1"]


def row_entries(config: AccelConfig, columns: int) -> int:
    """Accumulator entries of a row of so many elements."""
    return -(-columns // config.block_out)


def row_coefficients(config: AccelConfig, v: Values) -> int:
    """Entries of COF that ROW reads: a softmax looks up all exponentials, and a bound behind them; a norm has a record
    for each column."""
    if v["kind"] == RowKind.SOFTMAX:
        return EXPONENTIALS + v.get("bounded", 0)
    return ROW_QUARTERS * row_entries(config, v["columns"])


def check_opcode(config: AccelConfig, opcode: int, index: int) -> None:
    """Raise Fault where there is no such unit, whatever else the word says."""
    if opcode == Op.ROW and not config.cof_depth:
        raise Fault(FaultCode.ILLEGAL_OPCODE, index, "row must be for a configuration with the row unit")


def _check_row(config: AccelConfig, v: Values, index: int) -> None:
    check_opcode(config, Op.ROW, index)
    low, high = (-15, 15) if v["kind"] == RowKind.SOFTMAX else (0, 40)
    if not low <= v["shift"] <= high:
        kind = RowKind(v["kind"]).name.lower()
        what = f"row.shift must be from {low} to {high} for {kind}, not {v['shift']}"
        raise Fault(FaultCode.ILLEGAL_FIELD, index, what)
    end = v["cof_base"] + row_coefficients(config, v)
    if end > config.cof_depth:
        raise Fault(FaultCode.SRAM_RANGE, index, f"cof entry {end - 1} is outside {config.cof_depth}")


def _check_gather(config: AccelConfig, v: Values, index: int) -> None:
    granule, bus = config.granule_bytes, config.bus_bytes
    for key in ("dram", "y_stride"):
        if v[key] % granule:
            raise Fault(FaultCode.ILLEGAL_FIELD, index, f"{key} must be a multiple of {granule}, not {v[key]}")
    if v["row_bytes"] > ROW_BUFFER_BYTES:
        what = f"gather.row_bytes must be at most {ROW_BUFFER_BYTES}, not {v['row_bytes']}"
        raise Fault(FaultCode.ILLEGAL_FIELD, index, what)
    vector = v["pitch"] * config.inp_bytes
    if v["sram"] * config.inp_bytes % bus or vector % bus:
        what = f"sram and pitch must be whole bus beats, not entries {v['sram']} and {v['pitch']}"
        raise Fault(FaultCode.ILLEGAL_FIELD, index, what)
    if v["lane"] + v["run"] > vector:
        what = f"gather.lane + run must be at most {vector}, not {v['lane'] + v['run']}"
        raise Fault(FaultCode.ILLEGAL_FIELD, index, what)
    end = v["sram"] + gather_rows(v) * v["x"] * v["pitch"]
    if end > config.inp_depth:
        raise Fault(FaultCode.SRAM_RANGE, index, f"inp entry {end - 1} is outside {config.inp_depth}")


def _check_load_target(config: AccelConfig, v: Values, index: int) -> None:
    mem = Mem(v["mem"])
    if mem is Mem.OUT:
        raise Fault(FaultCode.ILLEGAL_FIELD, index, "load.mem must not be out")
    if v["expand"] and mem not in (Mem.ACC, Mem.WGT):
        raise Fault(FaultCode.ILLEGAL_FIELD, index, f"load.expand must be 0 for {mem.name.lower()}")
    if not v["pitch"]:
        return
    if has_factors(v):
        _check_factors(config, v, index)
        return
    if mem is not Mem.INP:
        raise Fault(FaultCode.ILLEGAL_FIELD, index, f"load.pitch must be 0 for {mem.name.lower()}")
    run, line = v["z"] * config.granule_bytes, config.line_bytes
    if run % line:
        raise Fault(FaultCode.ILLEGAL_FIELD, index, f"runs must be whole lines of {line} bytes with pitch, not {run}")
    if v["sram"] % config.line_entries:
        what = f"sram must start a line of {config.line_entries} entries with pitch, not at entry {v['sram']}"
        raise Fault(FaultCode.ILLEGAL_FIELD, index, what)


def _check_factors(config: AccelConfig, v: Values, index: int) -> None:
    if not v["expand"] or v["pitch"] != 1 or not config.factor_granules:
        raise Fault(FaultCode.ILLEGAL_FIELD, index, f"load.pitch must be 0 for these weights, not {v['pitch']}")
    pads = sum(v[key] for key in ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1"))
    if (v["y"], v["x"], pads) != (1, 1, 0):
        raise Fault(FaultCode.ILLEGAL_FIELD, index, "weights with factors must be one run without padding")


def _check_transfer(config: AccelConfig, v: Values, index: int) -> None:
    granule, widen = config.granule_bytes, load_widening(v)
    for key in ("dram", "y_stride", "x_stride"):
        if v[key] % granule:
            raise Fault(FaultCode.ILLEGAL_FIELD, index, f"{key} must be a multiple of {granule}, not {v[key]}")
    begin = transfer_begin(config, v)
    if begin % (config.bus_bytes * widen):
        raise Fault(FaultCode.ILLEGAL_FIELD, index, f"sram must start on a bus beat, not at entry {v['sram']}")
    rows, runs, run = transfer_shape(config, v)
    end, mem = begin + rows * runs * run * widen, Mem(v["mem"])
    if v.get("pitch") and not has_factors(v):
        lines, planes = plane_lines(config, v)
        end = begin + (TAPS * v["pitch"] * (planes - 1) + lines) * config.line_bytes
    if end > scratch_bytes(config, mem):
        what = f"{mem.name.lower()} byte {end - 1} is outside {scratch_bytes(config, mem)}"
        raise Fault(FaultCode.SRAM_RANGE, index, what)


def _check_gemm(config: AccelConfig, v: Values, index: int) -> None:
    is_max = v["mode"] == GemmMode.MAX
    bad = [key for key in ("wgt_base", "wgt_out", "wgt_in", "nibble") if is_max and v[key]]
    if bad:
        raise Fault(FaultCode.ILLEGAL_FIELD, index, f"gemm.{bad[0]} must be 0 for max, not {v[bad[0]]}")
    if v["nibble"] > Nibble.HIGH or (v["nibble"] and config.wgt_bits != 4):
        what = f"gemm.nibble must be whole for weights of {config.wgt_bits} bits, not {v['nibble']}"
        raise Fault(FaultCode.ILLEGAL_FIELD, index, what)


def _check_uops(config: AccelConfig, v: Values, index: int) -> None:
    if not v["uop_begin"] < v["uop_end"] <= config.uop_depth:
        what = f"micro-ops [{v['uop_begin']}, {v['uop_end']}) must be some of {config.uop_depth}"
        raise Fault(FaultCode.SRAM_RANGE, index, what)
