"""The meaning: one function per instruction, from state to state, on whole numpy arrays.

Each raises `Fault` for what the hardware refuses: indices outside a scratchpad, DMA outside the window.
Source of the numbers contract: ISA.md, section "Arithmetic".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from accel.isa import arith
from accel.isa.errors import Fault, FaultCode
from accel.isa.spec import AluOp, Dst, Form, Mem, Op, Rounding
from accel.isa.state import AccelState, element_bytes

Values = dict[str, int]
Index = NDArray[np.int64]

# A gathered weight matrix of the general GEMM path stays under this many bytes.
_GATHER_BYTES = 1 << 24


def load(state: AccelState, v: Values, index: int) -> None:
    """DRAM to scratchpad with padding; see ISA.md, LOAD."""
    mem, expand = Mem(v["mem"]), v["expand"]
    if mem is Mem.OUT:
        raise Fault(FaultCode.ILLEGAL_FIELD, index, "load.mem must not be out")
    if expand and mem is not Mem.ACC:
        raise Fault(FaultCode.ILLEGAL_FIELD, index, f"load.expand must be 0 for {mem.name.lower()}")
    run = v["z"] * state.config.granule_bytes
    data = state.dram[_dram_index(state, v, index, run)].reshape(v["y"], v["x"], run)
    pads = ((v["y_pad_0"], v["y_pad_1"]), (v["x_pad_0"], v["x_pad_1"]), (0, 0))
    image = np.pad(data.view(np.int8), pads, constant_values=v["pad_value"]).reshape(-1)
    if expand:
        image = image.astype(np.int32)
    begin = _sram_begin(state, v, mem, index, image.nbytes, expand)
    state.scratch[mem][begin : begin + image.nbytes] = image.view(np.uint8)


def store(state: AccelState, v: Values, index: int) -> None:
    """Scratchpad OUT to DRAM; see ISA.md, STORE."""
    if v["mem"] != Mem.OUT:
        raise Fault(FaultCode.ILLEGAL_FIELD, index, "store.mem must be out")
    run = v["z"] * state.config.granule_bytes
    where = _dram_index(state, v, index, run)
    begin = _sram_begin(state, v, Mem.OUT, index, where.size, 0)
    state.dram[where] = state.scratch[Mem.OUT][begin : begin + where.size]


def gemm(state: AccelState, v: Values, index: int) -> None:
    """Tile multiply-accumulate with int32 wrap-around; see ISA.md, GEMM."""
    uops = _uops(state, v, index)
    dst, src, wgt = uops & 0xFFFF, (uops >> 16) & 0xFFFF, (uops >> 32) & 0xFFFF
    first = ((uops >> 48) & 1).astype(bool) & bool(v["overwrite"])
    acc_index = _indices(v, v["acc_base"], "acc_out", "acc_in", dst)
    inp_index = _indices(v, v["inp_base"], "inp_out", "inp_in", src)
    wgt_index = _indices(v, v["wgt_base"], "wgt_out", "wgt_in", wgt)
    _in_range(state.config.acc_depth, acc_index, Mem.ACC, index)
    _in_range(state.config.inp_depth, inp_index, Mem.INP, index)
    _in_range(state.config.wgt_depth, wgt_index, Mem.WGT, index)

    acc = state.acc
    if _is_dense(v, dst, first):
        acc_flat = acc_index[:, :, 0].reshape(-1)
        total = _dense_products(state, inp_index, wgt_index)
        if not first[0]:
            total = total + acc[acc_flat]
        acc[acc_flat] = total.astype(np.int64).astype(np.int32)
        return
    products = _general_products(state, inp_index.reshape(-1), wgt_index.reshape(-1))
    order = np.broadcast_to(first, acc_index.shape).reshape(-1)
    _accumulate(acc, acc_index.reshape(-1), products, order)


def alu(state: AccelState, v: Values, index: int) -> None:
    """Vector operation on the accumulator; micro-ops take effect one after the other; see ISA.md, ALU."""
    op, rounding = AluOp(v["alu_op"]), Rounding(v["rounding"])
    if op is AluOp.CLIP and not v["use_imm"]:
        raise Fault(FaultCode.ILLEGAL_FIELD, index, "alu.use_imm must be 1 for clip")
    uops = _uops(state, v, index)
    dst = _indices(v, v["dst_base"], "dst_out", "dst_in", uops & 0xFFFF).reshape(-1)
    src = _indices(v, v["src_base"], "src_out", "src_in", (uops >> 16) & 0xFFFF).reshape(-1)
    _in_range(state.config.acc_depth, dst, Mem.ACC, index)
    if not v["use_imm"]:
        _in_range(state.config.acc_depth, src, Mem.ACC, index)
    acc = state.acc
    for part in _independent_runs(dst, None if v["use_imm"] else src):
        a = acc[dst[part]].astype(np.int64)
        b = np.full_like(a, v["imm"]) if v["use_imm"] else acc[src[part]].astype(np.int64)
        acc[dst[part]] = arith.alu(op, a, b, rounding).astype(np.int32)


def requant(state: AccelState, v: Values, index: int) -> None:
    """The output stage; see ISA.md, REQUANT and "Arithmetic"."""
    form, dst_mem = Form(v["form"]), Dst(v["dst"])
    if form > Form.PASS:
        raise Fault(FaultCode.ILLEGAL_FIELD, index, f"requant.form must be at most {Form.PASS.value}, not {form}")
    outer = np.arange(v["iter_out"], dtype=np.int64)[:, None]
    inner = np.arange(v["iter_in"], dtype=np.int64)[None, :]
    step = outer * v["acc_out"] + inner * v["acc_in"]
    acc_index = (v["acc_base"] + step) & 0xFFFF
    res_index = (v["res_base"] + step) & 0xFFFF
    dst_index = (v["dst_base"] + outer * v["dst_out"] + inner * v["dst_in"]) & 0xFFFF
    prm_index = (v["prm_base"] + outer * v["prm_out"] + 0 * inner) & 0xFFFF
    _in_range(state.config.acc_depth, acc_index, Mem.ACC, index)
    if form is Form.ADD:
        _in_range(state.config.acc_depth, res_index, Mem.ACC, index)
    if form is not Form.PASS:
        _in_range(state.config.prm_depth, prm_index, Mem.PRM, index)
    depth, name = (state.config.out_depth, Mem.OUT) if dst_mem is Dst.OUT else (state.config.acc_depth, Mem.ACC)
    _in_range(depth, dst_index, name, index)
    parts = [slice(None)] * 2 if dst_mem is Dst.OUT else None
    if parts is None and _overlaps(dst_index, acc_index, res_index, form):
        for i in np.ndindex(dst_index.shape):
            lane = _requant_lanes(state, v, form, acc_index[i], res_index[i], prm_index[i])
            state.acc[dst_index[i]] = lane
        return
    lanes = _requant_lanes(state, v, form, acc_index, res_index, prm_index)
    if dst_mem is Dst.OUT:
        state.out[dst_index] = lanes.astype(np.int8)
    else:
        state.acc[dst_index] = lanes


def finish(state: AccelState, v: Values, index: int) -> None:
    """Nothing but the end of the program; see ISA.md, FINISH."""


SEMANTICS: dict[Op, Callable[[AccelState, Values, int], None]] = {
    Op.LOAD: load,
    Op.STORE: store,
    Op.GEMM: gemm,
    Op.ALU: alu,
    Op.REQUANT: requant,
    Op.FINISH: finish,
}


def _requant_lanes(
    state: AccelState, v: Values, form: Form, acc_index: Index, res_index: Index, prm_index: Index
) -> NDArray[np.int64]:
    y = state.acc[acc_index].astype(np.int64)
    if form is Form.PASS:
        return np.clip(arith.wrap32(y + v["zero_point"]), v["clip_lo"], v["clip_hi"])
    prm = state.prm[prm_index].astype(np.int64)
    mask = (np.int64(1) << (state.config.multiplier_bits + 1)) - 1
    bias, multiplier, word = prm[..., 0], prm[..., 1], prm[..., 2]
    shift = np.minimum(word & 0xFF, 62)
    multiplier = _sign(multiplier & mask, state.config.multiplier_bits + 1)
    rounding = Rounding(v["rounding"])
    if form is Form.SCALE:
        total = arith.wrap32(y + bias) * multiplier
    else:
        r = state.acc[res_index].astype(np.int64)
        y_zero, r_zero = _sign((word >> 8) & 0xFF, 8), _sign((word >> 16) & 0xFF, 8)
        other = _sign(bias & mask, state.config.multiplier_bits + 1)
        total = _sign((y - y_zero) & 0x1FF, 9) * multiplier + _sign((r - r_zero) & 0x1FF, 9) * other
    shifted = arith.round_shift(total, shift, rounding) + v["zero_point"]
    return np.clip(shifted, v["clip_lo"], v["clip_hi"])


def _sign(value: Index, bits: int) -> Index:
    """Interpret the low `bits` as two's complement."""
    return value - ((value >> (bits - 1)) & 1) * (np.int64(1) << bits)


def _overlaps(dst: Index, acc: Index, res: Index, form: Form) -> bool:
    """True when writing in place could be seen by a later vector of the same instruction."""
    in_place = np.array_equal(dst, acc) and np.unique(dst).size == dst.size
    if in_place and form is not Form.ADD:
        return False
    read = np.union1d(acc, res) if form is Form.ADD else acc
    if in_place:
        read = res
    return bool(np.intersect1d(dst, read).size) or np.unique(dst).size != dst.size


def _dram_index(state: AccelState, v: Values, index: int, run: int) -> Index:
    """Byte offsets [y * x * run] that the transfer touches. Raises Fault outside the window or unaligned."""
    granule = state.config.granule_bytes
    for key in ("dram", "y_stride", "x_stride"):
        if v[key] % granule:
            raise Fault(FaultCode.ILLEGAL_FIELD, index, f"{key} must be a multiple of {granule}, not {v[key]}")
    rows = np.arange(v["y"], dtype=np.int64)[:, None] * v["y_stride"]
    runs = np.arange(v["x"], dtype=np.int64)[None, :] * v["x_stride"]
    begins = (v["dram"] + rows + runs).reshape(-1)
    if begins.max() + run > state.dram.size:
        raise Fault(FaultCode.DRAM_RANGE, index, f"byte {begins.max() + run - 1} is outside {state.dram.size}")
    return (begins[:, None] + np.arange(run, dtype=np.int64)).reshape(-1)


def _sram_begin(state: AccelState, v: Values, mem: Mem, index: int, size: int, expand: int) -> int:
    """First byte in the scratchpad. Raises Fault where the range or the beat alignment is illegal."""
    begin = v["sram"] * element_bytes(state.config, mem)
    beat = state.config.bus_bytes * (4 if expand else 1)
    if begin % beat:
        raise Fault(FaultCode.ILLEGAL_FIELD, index, f"sram must start on a bus beat, not at entry {v['sram']}")
    if begin + size > state.scratch[mem].size:
        raise Fault(FaultCode.SRAM_RANGE, index, f"{mem.name.lower()} byte {begin + size - 1} is outside")
    return begin


def _uops(state: AccelState, v: Values, index: int) -> Index:
    if not v["uop_begin"] < v["uop_end"] <= state.config.uop_depth:
        what = f"[{v['uop_begin']}, {v['uop_end']})"
        raise Fault(FaultCode.SRAM_RANGE, index, f"micro-ops {what} are not inside {state.config.uop_depth}")
    return state.uop[v["uop_begin"] : v["uop_end"]].astype(np.int64)


def _indices(v: Values, base: int, out_key: str, in_key: str, uop: Index) -> Index:
    """[iter_out, iter_in, micro-ops] entry indices, modulo 2**16 as the hardware adds them."""
    outer = np.arange(v["iter_out"], dtype=np.int64)[:, None, None] * v[out_key]
    inner = np.arange(v["iter_in"], dtype=np.int64)[None, :, None] * v[in_key]
    return (base + outer + inner + uop) & 0xFFFF


def _in_range(depth: int, indices: Index, mem: Mem, index: int) -> None:
    highest = int(indices.max())
    if highest >= depth:
        raise Fault(FaultCode.SRAM_RANGE, index, f"{mem.name.lower()} entry {highest} is outside {depth}")


def _is_dense(v: Values, dst: Index, first: NDArray[np.bool_]) -> bool:
    """Every micro-op adds to the same entry, entries differ between trips, and only the first may overwrite."""
    if (dst != dst[0]).any() or first[1:].any() or v["wgt_out"] or v["wgt_in"]:
        return False
    outer = np.arange(v["iter_out"], dtype=np.int64)[:, None] * v["acc_out"]
    inner = np.arange(v["iter_in"], dtype=np.int64)[None, :] * v["acc_in"]
    entries = (outer + inner).reshape(-1) & 0xFFFF
    return bool(np.unique(entries).size == entries.size)


def _dense_products(state: AccelState, inp_index: Index, wgt_index: Index) -> NDArray[np.float64]:
    """[trips, block_out] sums over the micro-ops as one matrix product; float64 holds them exactly."""
    x = state.inp[inp_index].reshape(inp_index.shape[0] * inp_index.shape[1], -1)
    w = state.wgt[wgt_index[0, 0]].transpose(1, 0, 2).reshape(state.config.block_out, -1)
    exact = np.float32 if x.shape[1] << 14 <= 1 << 24 else np.float64
    return (x.astype(exact) @ w.T.astype(exact)).astype(np.float64)


def _general_products(state: AccelState, inp_index: Index, wgt_index: Index) -> NDArray[np.int64]:
    """[n, block_out] products of any sequence of tiles, gathered in bounded pieces."""
    result = np.empty((inp_index.size, state.config.block_out), np.int64)
    step = max(1, _GATHER_BYTES // (8 * state.config.wgt_bytes))
    for begin in range(0, inp_index.size, step):
        part = slice(begin, begin + step)
        x = state.inp[inp_index[part]].astype(np.float64)
        w = state.wgt[wgt_index[part]].astype(np.float64)
        result[part] = np.matmul(w, x[:, :, None])[:, :, 0].astype(np.int64)
    return result


def _accumulate(acc: NDArray[np.int32], where: Index, products: NDArray[np.int64], first: NDArray[np.bool_]) -> None:
    """Add products in order; an entry's last overwriting micro-op drops what came before it."""
    total = acc.astype(np.int64)
    keep = np.ones(where.size, bool)
    if first.any():
        position = np.arange(where.size)
        last = np.full(acc.shape[0], -1, np.int64)
        np.maximum.at(last, where[first], position[first])
        keep = position >= last[where]
        total[last >= 0] = 0
    np.add.at(total, where[keep], products[keep])
    touched = np.unique(where)
    acc[touched] = total[touched].astype(np.int32)


def _independent_runs(dst: Index, src: Index | None) -> list[slice]:
    """Cut a micro-op sequence so that inside each piece no entry is written twice or read after it was written."""
    runs: list[slice] = []
    begin = 0
    n = dst.size
    if np.unique(dst).size == n and (src is None or not np.intersect1d(dst, src).size):
        return [slice(0, n)]
    written: set[int] = set()
    sources = dst if src is None else src
    for i, (d, s) in enumerate(zip(dst.tolist(), sources.tolist(), strict=True)):
        if d in written or s in written:
            runs.append(slice(begin, i))
            begin, written = i, set()
        written.add(d)
    runs.append(slice(begin, n))
    return runs
