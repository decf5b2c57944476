"""The memory cells that an encoded instruction reads and writes: the checker's own reading of the instruction set.

In: decoded instruction fields and the content of the micro-op memory. Out: `Access` values, or an error.
It shares no code with `access`, which the emitter uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.config import (
    COF_RECORD_BYTES,
    EXPONENTIALS,
    ROW_QUARTERS,
    TABLE_RECORD_BYTES,
    UOP_BYTES,
    AccelConfig,
)
from relay_hw.accel.isa.program import Program
from relay_hw.accel.isa.spec import Dst, Form, GemmMode, Mem, Op, RowKind
from relay_hw.accel.isa.state import depth
from relay_hw.errors import TensorizeError

Cells = NDArray[np.int64]
Values = Mapping[str, int]
DRAM = "dram"
# Entries of a table: two of its 256 results in each.
_TABLE_ENTRIES = 128


@dataclass(frozen=True, slots=True)
class Access:
    """Cells of one memory: scratchpad entries, or granules of DRAM; each once, sorted."""

    memory: Mem | str
    cells: Cells
    write: bool

    @property
    def name(self) -> str:
        """Name of the memory in messages."""
        return self.memory.name.lower() if isinstance(self.memory, Mem) else self.memory


class UopMemory:
    """The micro-op memory while a program runs: its `words` change with each LOAD that fills it."""

    def __init__(self, program: Program, config: AccelConfig, words: Cells | None = None) -> None:
        """`words`: as they are before the first instruction, -1 where nothing was loaded."""
        self.words = np.full(config.uop_depth, -1, np.int64) if words is None else words.copy()
        self._granule = config.granule_bytes
        self._dram = np.zeros(program.window_bytes, np.uint8)
        for section in program.sections:
            if section.data is not None:
                self._dram[section.offset : section.end] = np.frombuffer(section.data, np.uint8)

    def run(self, op: Op, v: Values) -> None:
        """The next instruction."""
        if op is not Op.LOAD or v["mem"] != Mem.UOP:
            return
        size = v["z"] * self._granule
        rows = [
            self._dram[begin : begin + size]
            for y in range(v["y"])
            for x in range(v["x"])
            for begin in (v["dram"] + y * v["y_stride"] + x * v["x_stride"],)
        ]
        words = np.concatenate(rows).view("<u8").astype(np.int64)
        self.words[v["sram"] : v["sram"] + words.size] = words
        assert words.size * UOP_BYTES == size * v["y"] * v["x"]


def accesses(index: int, op: Op, v: Values, uops: Cells, config: AccelConfig) -> tuple[Access, ...]:
    """All cells of one instruction. `uops`: 64-bit words of the micro-op memory, -1 where nothing was loaded.

    Raises TensorizeError for cells outside a memory, unaligned transfers and micro-ops that were not loaded.
    """
    match op:
        case Op.LOAD:
            found = (_dram(index, v, False, config), _image(index, v, Mem(v["mem"]), True, config))
        case Op.GATHER:
            found = (_gather_rows(index, v, config), _gather_vectors(index, v, config))
        case Op.STORE:
            found = (_image(index, v, Mem.OUT, False, config), _dram(index, v, True, config))
        case Op.GEMM | Op.ALU:
            found = _compute(index, op, v, uops, config)
        case Op.REQUANT:
            found = _requant(index, v, config)
        case Op.ROW:
            found = _row(index, v, config)
        case Op.FINISH:
            found = ()
    for access in found:
        if isinstance(access.memory, Mem) and access.cells[-1] >= (limit := depth(config, access.memory)):
            raise TensorizeError(
                f"instruction {index}: {access.name} entry must be below {limit}, not {access.cells[-1]}"
            )
    return found


def entry_bytes(config: AccelConfig, mem: Mem) -> int:
    """Bytes of one entry, from the block sizes alone."""
    lanes_in, lanes_out = _entry_lanes(config), config.block_out
    return {
        Mem.INP: lanes_in,
        Mem.WGT: lanes_in * lanes_out,
        Mem.ACC: 4 * lanes_out,
        Mem.OUT: lanes_out,
        Mem.UOP: UOP_BYTES,
        Mem.PRM: 16 * lanes_out,
        Mem.TAB: TABLE_RECORD_BYTES,
        Mem.COF: lanes_out // ROW_QUARTERS * COF_RECORD_BYTES,
    }[mem]


def _entry_lanes(config: AccelConfig) -> int:
    """Bytes of an INP entry: half an operand where weights have 4 bits."""
    return config.block_in * config.wgt_bits // 8


def _dram(index: int, v: Values, write: bool, config: AccelConfig) -> Access:
    granule = config.granule_bytes
    for field in ("dram", "y_stride", "x_stride"):
        if v[field] % granule:
            raise TensorizeError(f"instruction {index}: {field} must be a multiple of {granule}, not {v[field]}")
    rows = np.arange(v["y"], dtype=np.int64)[:, None, None] * (v["y_stride"] // granule)
    runs = np.arange(v["x"], dtype=np.int64)[None, :, None] * (v["x_stride"] // granule)
    cells = v["dram"] // granule + rows + runs + np.arange(_run_granules(index, v, config), dtype=np.int64)
    return Access(DRAM, np.unique(cells), write)


def _run_granules(index: int, v: Values, config: AccelConfig) -> int:
    """Granules of a run in DRAM: of weights with factors more than in the scratchpad."""
    if v.get("mem") != Mem.WGT or not v.get("pitch"):
        return v["z"]
    block = config.block_in * config.wgt_bits // 8 * config.wgt_bits // 8
    if v["pitch"] != 1 or not v["expand"] or (v["y"], v["x"]) != (1, 1):
        raise TensorizeError(f"instruction {index}: weights with factors must be one run that becomes wider")
    return v["z"] + -(-v["z"] // block)


def _image(index: int, v: Values, mem: Mem, write: bool, config: AccelConfig) -> Access:
    pads = {key: v.get(key, 0) for key in ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1")}
    rows = v["y"] + pads["y_pad_0"] + pads["y_pad_1"]
    runs = v["x"] + pads["x_pad_0"] + pads["x_pad_1"]
    size, entry = rows * runs * v["z"] * config.granule_bytes, entry_bytes(config, mem)
    beat = config.axi_data_bits // 8
    if v.get("expand"):
        widened = 2 if mem is Mem.WGT else 4
        size, beat = widened * size, widened * beat
    if v["sram"] * entry % beat:
        raise TensorizeError(f"instruction {index}: sram must start on a beat of {beat} bytes, not at {v['sram']}")
    if v.get("pitch") and mem is not Mem.WGT:
        return Access(mem, _planes(index, v, rows * runs, mem, config), write)
    return Access(mem, v["sram"] + np.arange(-(-size // entry), dtype=np.int64), write)


def _line_entries(config: AccelConfig) -> int:
    """INP entries of one line."""
    lanes = _entry_lanes(config)
    return max(config.granule_bytes, lanes, config.block_out) // lanes


def _planes(index: int, v: Values, count: int, mem: Mem, config: AccelConfig) -> Cells:
    """INP entries of a LOAD of `count` runs with pitch: line k of run n is line 4 pitch k + n."""
    entries = _line_entries(config)
    run, line = v["z"] * config.granule_bytes, entries * _entry_lanes(config)
    if mem is not Mem.INP or run % line or v["sram"] % entries:
        raise TensorizeError(f"instruction {index}: planes must be whole lines of {line} bytes of inp, not {run}")
    planes = 4 * v["pitch"] * np.arange(run // line, dtype=np.int64)[:, None]
    lines = np.unique(planes + np.arange(count, dtype=np.int64))
    return (v["sram"] + entries * lines[:, None] + np.arange(entries, dtype=np.int64)).reshape(-1)


def _gather_rows(index: int, v: Values, config: AccelConfig) -> Access:
    granules = -(-v["row_bytes"] // config.granule_bytes)
    return _dram(index, {**v, "x": 1, "x_stride": 0, "z": granules}, False, config)


def _gather_vectors(index: int, v: Values, config: AccelConfig) -> Access:
    """Entries of which the instruction writes some byte."""
    lanes, beat = _entry_lanes(config), config.axi_data_bits // 8
    if v["sram"] * lanes % beat or v["pitch"] * lanes % beat:
        raise TensorizeError(f"instruction {index}: vectors must start on a beat of {beat} bytes, not at {v['sram']}")
    first, last = v["lane"] // lanes, (v["lane"] + v["run"] - 1) // lanes
    if last >= v["pitch"]:
        raise TensorizeError(f"instruction {index}: a window must end before entry {v['pitch']}, not in {last}")
    count = (v["y_pad_0"] + v["y"] + v["y_pad_1"]) * v["x"]
    vectors = v["sram"] + v["pitch"] * np.arange(count, dtype=np.int64)[:, None]
    return Access(Mem.INP, (vectors + np.arange(first, last + 1, dtype=np.int64)).reshape(-1), True)


def _sum(v: Values, name: str, base: str, uop: Cells) -> Cells:
    outer = (v["iter_out"], v.get(f"{name}_out", 0))
    inner = (v["iter_in"], v.get(f"{name}_in", 0))
    return v[base] + _offsets(outer, inner, uop.tobytes())


@lru_cache(maxsize=4096)
def _offsets(outer: tuple[int, int], inner: tuple[int, int], uops: bytes) -> Cells:
    """Cells of two loops, each so often and so far, around micro-ops: the same few patterns make up a program."""
    (rows, row), (columns, column) = outer, inner
    found = np.unique(np.frombuffer(uops, np.int64))
    for count, step in ((columns, column), (rows, row)):
        found = np.unique(np.arange(count, dtype=np.int64)[:, None] * step + found)
    found.flags.writeable = False
    return found


def _part_bytes(config: AccelConfig) -> int:
    """What GEMM's taps and max and REQUANT count INP in."""
    return min(_entry_lanes(config), config.block_out)


def _blocks(starts: Cells, config: AccelConfig) -> Cells:
    """INP entries of the output blocks of BLOCK_OUT bytes that begin at parts `starts`."""
    first = starts[:, None] * _part_bytes(config)
    return np.unique((first + np.arange(0, config.block_out, _part_bytes(config))) // _entry_lanes(config))


def _check_starts(index: int, parts: Cells, config: AccelConfig) -> None:
    if (parts * _part_bytes(config) % config.block_out).any():
        raise TensorizeError(f"instruction {index}: inp entry must be the first of an output block")


def _gemm_reads(index: int, v: Values, words: Cells, config: AccelConfig) -> tuple[Access, ...]:
    """What a GEMM reads of INP and WGT, by its mode."""
    src, wgt = words >> 16 & 0xFFFF, words >> 32 & 0xFFFF
    inp = _sum(v, "inp", "inp_base", src)
    if config.wgt_bits == 8 and v.get("nibble"):
        raise TensorizeError(f"instruction {index}: weights of 8 bits have no halves")
    line = max(config.granule_bytes, _entry_lanes(config), config.block_out) // _part_bytes(config)
    match GemmMode(v.get("mode", GemmMode.MATMUL)):
        case GemmMode.MATMUL:
            both = np.unique(np.concatenate([inp, inp + 1])) if config.wgt_bits == 4 else inp
            return Access(Mem.INP, both, False), Access(Mem.WGT, _sum(v, "wgt", "wgt_base", wgt), False)
        case GemmMode.ENTRY:
            return Access(Mem.INP, inp, False), Access(Mem.WGT, _sum(v, "wgt", "wgt_base", wgt), False)
        case GemmMode.TAPS:
            _check_starts(index, inp, config)
            lines = (inp[:, None] + line * np.arange(4, dtype=np.int64)).reshape(-1)
            groups = np.unique(_sum(v, "wgt", "wgt_base", wgt) // (config.block_in // 4))
            return Access(Mem.INP, _blocks(lines, config), False), Access(Mem.WGT, groups, False)
        case GemmMode.MAX:
            _check_starts(index, inp, config)
            if (wgt < 1).any() or (wgt > 15).any() or v["wgt_base"] or v["wgt_out"] or v["wgt_in"]:
                raise TensorizeError(
                    f"instruction {index}: the mask of taps must be from 1 to 15, without a weight index"
                )
            masked = [
                _sum(v, "inp", "inp_base", src[(wgt >> tap & 1) == 1]) + line * tap
                for tap in range(4)
                if (wgt >> tap & 1).any()
            ]
            return (Access(Mem.INP, _blocks(np.concatenate(masked), config), False),)


def _compute(index: int, op: Op, v: Values, uops: Cells, config: AccelConfig) -> tuple[Access, ...]:
    begin, end = v["uop_begin"], v["uop_end"]
    if not begin < end <= uops.size:
        raise TensorizeError(f"instruction {index}: micro-ops must lie in [0, {uops.size}), not [{begin}, {end})")
    words = uops[begin:end]
    if (words < 0).any():
        raise TensorizeError(f"instruction {index}: micro-op {begin + int((words < 0).argmax())} must be loaded before")
    dst, src = words & 0xFFFF, words >> 16 & 0xFFFF
    read = Access(Mem.UOP, np.arange(begin, end, dtype=np.int64), False)
    if op is Op.GEMM:
        acc = _sum(v, "acc", "acc_base", dst)
        fresh = dst[(words >> 48 & 1) == v["overwrite"]] if v["overwrite"] else dst[:0]
        kept = np.setdiff1d(acc, _sum(v, "acc", "acc_base", fresh)) if fresh.size else acc
        found = [
            read,
            *_gemm_reads(index, v, words, config),
            Access(Mem.ACC, acc, True),
        ]
        return (*found, Access(Mem.ACC, kept, False)) if kept.size else tuple(found)
    target = _sum(v, "dst", "dst_base", dst)
    found = [read, Access(Mem.ACC, target, True), Access(Mem.ACC, target, False)]
    if not v["use_imm"]:
        found.append(Access(Mem.ACC, _sum(v, "src", "src_base", src), False))
    return tuple(found)


def _requant(index: int, v: Values, config: AccelConfig) -> tuple[Access, ...]:
    zero = np.zeros(1, np.int64)
    target = {Dst.OUT: Mem.OUT, Dst.ACC: Mem.ACC, Dst.INP: Mem.INP}[Dst(v["dst"])]
    found = [Access(Mem.ACC, _sum(v, "acc", "acc_base", zero), False)]
    if v["form"] in (Form.ADD, Form.MUL):
        apart = {**v, "acc_out": 1, "acc_in": 0} if v["still"] else v
        found.append(Access(Mem.ACC, _sum(apart, "acc", "res_base", zero), False))
    if v["table"]:
        first = _TABLE_ENTRIES * (v["table"] - 1)
        found.append(Access(Mem.TAB, first + np.arange(_TABLE_ENTRIES, dtype=np.int64), False))
    if v["form"] != Form.PASS:
        steps = np.arange(v["iter_out"], dtype=np.int64) * v["prm_out"]
        found.append(Access(Mem.PRM, np.unique(v["prm_base"] + steps), False))
    written = _sum(v, "dst", "dst_base", zero)
    if target is Mem.INP:
        _check_starts(index, written, config)
    found.append(Access(target, _blocks(written, config) if target is Mem.INP else written, True))
    return tuple(found)


def _row(index: int, v: Values, config: AccelConfig) -> tuple[Access, ...]:
    entries = -(-v["columns"] // config.block_out)
    rows = np.arange(v["rows"], dtype=np.int64)[:, None] * v["row_step"]
    places = (v["acc_base"] + rows + np.arange(entries, dtype=np.int64) * v["entry_step"]).reshape(-1)
    cells = np.unique(places)
    if cells.size < places.size:
        raise TensorizeError(f"instruction {index}: rows must share no acc entry")
    count = EXPONENTIALS + v["bounded"] if v["kind"] == RowKind.SOFTMAX else ROW_QUARTERS * entries
    coefficients = v["cof_base"] + np.arange(count, dtype=np.int64)
    return Access(Mem.ACC, cells, False), Access(Mem.ACC, cells, True), Access(Mem.COF, coefficients, False)
