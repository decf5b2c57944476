"""What LOAD, STORE and GATHER do to terms: the symbolic machine's own reading of the transfers.

In: memories, fields of an instruction, its index. It shares no code with the semantics of `accel.isa`, nor with the
emitter. Raises Failure for what no program may do.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from relay_hw.accel.isa.config import TAPS, AccelConfig
from relay_hw.accel.isa.spec import Mem
from relay_hw.tensorize.validate.memories import Failure, Memories, constant_bytes
from relay_hw.tensorize.validate.terms import PRIME, Numbers, Terms, constants, function, key

Values = Mapping[str, int]


def load(state: Memories, v: Values, index: int) -> None:
    """Rows of runs of granules, padding around, to a scratchpad; wider, multiplied or in planes where fields say so."""
    mem = Mem(v["mem"])
    if mem is Mem.WGT and v["pitch"]:
        _write_bytes(state, mem, v["sram"], _multiplied(state, v, index), index)
        return
    image = _image(state, v, index)
    match mem:
        case Mem.ACC:
            _load_acc(state, v, image, index)
        case Mem.INP if v["pitch"]:
            _load_planes(state, v, image, index)
        case Mem.WGT if v["expand"]:
            bits = state.config.wgt_bits
            _write_bytes(state, mem, v["sram"], _joined(_fields(_only_constants(image, index), bits // 2), bits), index)
        case Mem.INP | Mem.WGT | Mem.UOP | Mem.PRM | Mem.TAB | Mem.COF:
            _write_bytes(state, mem, v["sram"], image.reshape(-1), index)
        case Mem.OUT:
            raise Failure(f"instruction {index} must not load out")


def store(state: Memories, v: Values, index: int) -> None:
    """Consecutive bytes of OUT to rows of runs of granules, in order."""
    run = v["z"] * state.config.granule_bytes
    places = _rows(v["dram"], (v["y"], v["y_stride"]), (v["x"], v["x_stride"]), run)
    begin = v["sram"] * state.config.out_bytes
    source = begin + np.arange(places.size).reshape(places.shape)
    out = state.bytes[Mem.OUT]
    state.inside(source, out.shape[0], "byte of out", index)
    state.inside(places, state.dram.shape[0], "byte of the window", index)
    state.dram.put(places.reshape(-1), out[source.reshape(-1)])


def gather(state: Memories, v: Values, index: int) -> None:
    """Windows of rows of bytes to parts of vectors of INP."""
    config = state.config
    row = np.arange(v["y_pad_0"] + v["y"] + v["y_pad_1"])[:, None, None]
    vector = np.arange(v["x"])[None, :, None]
    byte = np.arange(v["run"])[None, None, :]
    column = vector * v["x_step"] - v["left"] + byte
    line = row - v["y_pad_0"]
    inside = (line >= 0) & (line < v["y"]) & (column >= 0) & (column < v["row_bytes"])
    places = np.where(inside, v["dram"] + line * v["y_stride"] + column, 0)
    found, pad = state.fetch(places, index), constant_bytes(v["pad_value"], inside.shape)
    windows = Terms(
        np.where(inside, found.numbers, pad.numbers),
        np.where(inside, found.low, pad.low),
        np.where(inside, found.high, pad.high),
    )
    target = (v["sram"] + (row * v["x"] + vector) * v["pitch"]) * config.inp_bytes + v["lane"] + byte
    inp = state.bytes[Mem.INP]
    inp.put(state.inside(target, inp.shape[0], "byte of inp", index), windows)


def _rows(begin: int, rows: tuple[int, int], runs: tuple[int, int], size: int) -> Numbers:
    """[rows, runs, size] addresses; rows and runs are (count, stride)."""
    row = begin + np.arange(rows[0], dtype=np.int64)[:, None, None] * rows[1]
    return row + np.arange(runs[0], dtype=np.int64)[None, :, None] * runs[1] + np.arange(size, dtype=np.int64)


def _image(state: Memories, v: Values, index: int) -> Terms:
    """[rows, runs, bytes] with padding."""
    run = v["z"] * state.config.granule_bytes
    found = state.fetch(_rows(v["dram"], (v["y"], v["y_stride"]), (v["x"], v["x_stride"]), run), index)
    pads = (v["y_pad_0"], v["y_pad_1"], v["x_pad_0"], v["x_pad_1"])
    if not any(pads):
        return found
    image = constant_bytes(v["pad_value"], (pads[0] + v["y"] + pads[1], pads[2] + v["x"] + pads[3], run))
    image.put((slice(pads[0], pads[0] + v["y"]), slice(pads[2], pads[2] + v["x"])), found)
    return image


def _write_bytes(state: Memories, mem: Mem, entry: int, data: Terms, index: int) -> None:
    target = state.bytes[mem]
    begin = entry * _entry_bytes(state.config, mem)
    state.inside(np.array([begin, begin + data.shape[0] - 1]), target.shape[0], f"byte of {mem.name.lower()}", index)
    target.put(slice(begin, begin + data.shape[0]), data)


def _entry_bytes(config: AccelConfig, mem: Mem) -> int:
    sizes = {
        Mem.INP: config.inp_bytes,
        Mem.WGT: config.wgt_bytes,
        Mem.OUT: config.out_bytes,
        Mem.UOP: 8,
        Mem.PRM: config.prm_bytes,
        Mem.TAB: 8,
        Mem.COF: config.cof_bytes,
    }
    return sizes[mem]


def _load_acc(state: Memories, v: Values, image: Terms, index: int) -> None:
    flat = image.reshape(-1)
    if v["expand"]:
        sums = Terms(flat.numbers.astype(np.int64), flat.low.astype(np.int64), flat.high.astype(np.int64))
    else:
        # A word is little-endian: its bytes, of which the highest has the sign.
        words = flat.reshape(-1, 4)
        if (words.low == words.high).all():
            sums = constants(np.ascontiguousarray(words.low).view("<i4")[:, 0])
        else:
            parts = function(key("word"), *(words.numbers[:, byte] for byte in range(4)))
            sums = Terms(parts, np.full(parts.shape, -(1 << 31)), np.full(parts.shape, (1 << 31) - 1))
    state.write_lanes(v["sram"] * state.config.block_out, sums, index)


def _load_planes(state: Memories, v: Values, image: Terms, index: int) -> None:
    """Line k of run n goes 4 pitch k + n lines behind the first one."""
    line = state.config.line_bytes
    lines = image.reshape(-1, image.shape[2] // line, line)
    run, plane = np.arange(lines.shape[0])[:, None, None], np.arange(lines.shape[1])[None, :, None]
    begin = v["sram"] * state.config.inp_bytes
    places = begin + (TAPS * v["pitch"] * plane + run) * line + np.arange(line)
    inp = state.bytes[Mem.INP]
    state.inside(places, inp.shape[0], "byte of inp", index)
    inp.put(places.reshape(-1), lines.reshape(-1))


def _only_constants(image: Terms, index: int) -> Numbers:
    if (image.low != image.high).any():
        raise Failure(f"instruction {index} must make weights wider that are constants of the program")
    return np.ascontiguousarray(image.low).reshape(-1)


def _fields(data: Numbers, bits: int, signed: bool = True) -> Numbers:
    """int64 numbers of `bits` bits each that bytes hold, those in low bits first."""
    word = data.view(np.uint8).astype(np.int64)[:, None] >> np.arange(0, 8, bits)
    numbers = word & ((1 << bits) - 1)
    return (numbers - ((numbers >> (bits - 1) & 1) << bits if signed else 0)).reshape(-1)


def _joined(numbers: Numbers, bits: int) -> Terms:
    """Bytes that hold the low `bits` bits of each number, the first one in the low bits."""
    groups = (numbers & ((1 << bits) - 1)).reshape(-1, 8 // bits) << np.arange(0, 8, bits)
    values = groups.sum(axis=1).astype(np.uint8).view(np.int8)
    return Terms(values.astype(np.int32) % np.int32(PRIME), values, values)


def _multiplied(state: Memories, v: Values, index: int) -> Terms:
    """Weights behind granules of factors: every `block` granules of weights have one in front of them."""
    config, bits = state.config, state.config.wgt_bits
    block = config.inp_lanes * bits // 8
    count = v["z"] + -(-v["z"] // block)
    found = state.fetch(_rows(v["dram"], (1, 0), (1, 0), count * config.granule_bytes), index)
    granules = _only_constants(found, index).reshape(count, -1)
    is_factor = np.arange(count) % (block + 1) == 0
    weights = _fields(granules[~is_factor].reshape(-1), bits // 2)
    factors = 1 + _fields(granules[is_factor].reshape(-1), 4, signed=False)
    whole = weights * np.repeat(factors, config.inp_lanes)[: weights.size]
    return _joined(whole, bits)
