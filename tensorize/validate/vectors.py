"""What ALU and REQUANT do to terms: operations on whole vectors of accumulators.

In: memories, fields of the instruction, its index. Raises Failure for what no program may do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from typing_extensions import assert_never

from relay_hw.accel.isa.alu import AluOp
from relay_hw.accel.isa.config import TABLE_RECORD_BYTES, TABLE_RECORDS
from relay_hw.accel.isa.spec import Dst, Form, Mem, Rounding
from relay_hw.tensorize.validate.loops import Issues, alike, issues, looped, remaining
from relay_hw.tensorize.validate.memories import Failure, Memories, Vectors
from relay_hw.tensorize.validate.products import write_maxima
from relay_hw.tensorize.validate.terms import (
    INT8,
    PRIME,
    Numbers,
    Stage,
    Terms,
    added,
    clipped,
    constants,
    function,
    key,
    looked_up,
    magnitude,
    multiplied,
    plus,
    scaled,
    times,
    wrapped,
)

Values = Mapping[str, int]
_RECORD = 4


def alu(state: Memories, v: Values, index: int) -> None:
    """acc[dst] = op(acc[dst], acc[src] or imm) for each micro-op."""
    op, use_imm = AluOp(v["alu_op"]), bool(v["use_imm"])
    found = issues(state, v, ("dst", "" if use_imm else "src", ""), index)
    state.entries(Mem.ACC, found.dst, index)
    if not use_imm:
        state.entries(Mem.ACC, found.src, index)
        if op in (AluOp.ADD, AluOp.MAX) and _reads_first(found) and not _maxima_among(state, found.src):
            for group in alike(remaining(found)):
                _joined(state, op, group)
            return
    for part in _apart(found, use_imm):
        second = constants(np.full((1, 1), v["imm"])) if use_imm else state.acc[part.src]
        _combined(state, op, v, part, second)


def _reads_first(found: Issues) -> bool:
    """Whether every source is read before it is written."""
    position = np.arange(found.dst.size)
    written = np.full(int(max(found.dst.max(), found.src.max())) + 1, found.dst.size)
    np.minimum.at(written, found.dst, position)
    return bool((written[found.src] >= position).all())


def _maxima_among(state: Memories, entries: Numbers) -> bool:
    return bool(state.maxima) and any(entry in state.maxima for entry in np.unique(entries).tolist())


def _joined(state: Memories, op: AluOp, group: Issues) -> None:
    """Sums or maxima of a destination and all of its sources [destinations, micro-ops]."""
    sources = state.acc[group.src]
    dst = group.dst[:, 0]
    if op is AluOp.MAX:
        write_maxima(state, dst, sources.transpose(1, 0, 2), np.zeros(dst.size, np.bool_))
        return
    total = Terms(sources.numbers.sum(axis=1) % PRIME, sources.low.sum(axis=1), sources.high.sum(axis=1))
    reach = state.reach[dst] + magnitude(sources).sum(axis=1)
    state.write_acc(dst, wrapped(plus(state.acc[dst], total)), reach)


def _apart(found: Issues, use_imm: bool) -> Iterator[Issues]:
    """Micro-ops that do not see one another together, else one by one."""
    if np.unique(found.dst).size == found.dst.size and (use_imm or _reads_first(found)):
        yield found
        return
    for at in range(found.dst.size):
        yield found[np.array([at])]


def _combined(state: Memories, op: AluOp, v: Values, part: Issues, second: Terms) -> None:
    first = state.acc[part.dst]
    if op is AluOp.MAX:
        members = state.maxima.get(int(part.src[0])) if not v["use_imm"] and part.dst.size == 1 else None
        given = Terms(*(np.broadcast_to(one, first.shape)[None] for one in (second.numbers, second.low, second.high)))
        given = given if members is None else members[:, None]
        write_maxima(state, part.dst, given, np.zeros(part.dst.size, np.bool_))
        return
    state.write_acc(part.dst, wrapped(_operation(op, v, first, second)))


def _operation(op: AluOp, v: Values, a: Terms, b: Terms) -> Terms:
    match op:
        case AluOp.MOV:
            return plus(b, constants(np.zeros(a.shape, np.int64)))
        case AluOp.ADD:
            return plus(a, b)
        case AluOp.MUL:
            return multiplied(a, b)
        case AluOp.MIN:
            pair = np.minimum(a.numbers, b.numbers), np.maximum(a.numbers, b.numbers)
            numbers = np.where(pair[0] == pair[1], pair[0], function(key("minimum"), *pair))
            return Terms(numbers, np.minimum(a.low, b.low), np.minimum(a.high, b.high))
        case AluOp.SHR:
            numbers = function(key("shift", Rounding(v["rounding"]).name), b.numbers, a.numbers)
            return Terms(numbers, np.minimum(a.low, 0), np.maximum(a.high, 0))
        case AluOp.CLIP:
            high, low = (((v["imm"] >> at & 0xFFFF) ^ 0x8000) - 0x8000 for at in (0, 16))
            return clipped(a, (low, high))
        case AluOp.MAX:
            raise AssertionError("maxima keep their members")
        case _:
            assert_never(op)


def requant(state: Memories, v: Values, index: int) -> None:
    """The output stage: accumulators to int8, to OUT, to INP or back."""
    config = state.config
    one = np.zeros(1, np.int64)
    y = looped(v, ("acc_base", "acc_out", "acc_in"), one).reshape(-1)
    steps = {**v, "res_out": 1, "res_in": 0} if v["still"] else {**v, "res_out": v["acc_out"], "res_in": v["acc_in"]}
    r = looped(steps, ("res_base", "res_out", "res_in"), one).reshape(-1)
    dst = looped(v, ("dst_base", "dst_out", "dst_in"), one).reshape(-1)
    prm = looped(v, ("prm_base", "prm_out", ""), one).reshape(-1)
    form, target = Form(v["form"]), Dst(v["dst"])
    state.entries(Mem.ACC, y, index)
    if form in (Form.ADD, Form.MUL):
        state.entries(Mem.ACC, r, index)
    compute = _form(state, v, form, index)
    match target:
        case Dst.OUT | Dst.INP:
            part = config.out_bytes if target is Dst.OUT else config.part_bytes
            if target is Dst.INP and (dst % config.block_parts).any():
                raise Failure(f"instruction {index} must write parts of inp at multiples of {config.block_parts}")
            memory = state.bytes[Mem.OUT if target is Dst.OUT else Mem.INP]
            places = dst[:, None] * part + np.arange(config.block_out)
            state.inside(places, memory.shape[0], f"byte of {target.name.lower()}", index)
            memory.put(places, compute(y, r, prm))
        case Dst.ACC:
            state.entries(Mem.ACC, dst, index)
            _to_acc(state, form, (y, r, dst, prm), compute)
        case _:
            assert_never(target)


def _to_acc(
    state: Memories,
    form: Form,
    places: tuple[Numbers, Numbers, Numbers, Numbers],
    compute: Callable[[Numbers, Numbers, Numbers], Terms],
) -> None:
    """Vectors one after the other, where a later one may read what an earlier one wrote."""
    y, r, dst, prm = places
    seen = Issues(dst, y, r, dst)
    second = Issues(dst, r if form in (Form.ADD, Form.MUL) else y, r, dst)
    if _reads_first(seen) and _reads_first(second):
        state.write_acc(dst, compute(y, r, prm))
        return
    for at in range(dst.size):
        one = slice(at, at + 1)
        state.write_acc(dst[one], compute(y[one], r[one], prm[one]))


def _form(state: Memories, v: Values, form: Form, index: int) -> Callable[[Numbers, Numbers, Numbers], Terms]:
    """The output stage as a function of the entries of both operands and of the parameters."""
    bounds = (v["clip_lo"], v["clip_hi"])
    stage = Stage(Rounding(v["rounding"]).name.lower(), v["zero_point"], bounds)

    def compute(y: Numbers, r: Numbers, prm: Numbers) -> Terms:
        first, reach = state.acc[y], state.reach[y]

        def told(totals: Terms, reach: Numbers, results: Terms) -> Terms:
            if v["table"]:
                results = looked_up(results, _table(state, v["table"] - 1, index))
            state.watch(index, Vectors(first, totals, int(reach.max()), results))
            return results

        if form is Form.PASS:
            totals = plus(first, constants(np.full((1, 1), v["zero_point"])))
            # Where both bounds are one number the sum does not matter.
            return told(totals, reach * (bounds[0] < bounds[1]), clipped(wrapped(totals), bounds))
        records = _records(state, prm, index)
        bias, multiplier = records[..., 0], _signed(records[..., 1], state.config.multiplier_bits + 1)
        shift, y_zero, r_zero = (records[..., 2] >> at for at in (0, 8, 16))
        shift = np.minimum(shift & 0xFF, 62)
        match form:
            case Form.SCALE:
                totals = plus(first, constants(bias))
                return told(totals, reach + np.abs(bias), scaled(totals, multiplier, shift, stage))
            case Form.ADD:
                second = _byte(state.acc[r], _signed(r_zero, 8))
                other = times(second, _signed(bias, state.config.multiplier_bits + 1))
                totals = plus(times(_byte(first, _signed(y_zero, 8)), multiplier), other)
                return told(totals, np.maximum(reach, state.reach[r]), added(totals, shift, stage))
            case Form.MUL:
                sides = (_byte(first, _signed(y_zero, 8)), _byte(state.acc[r], _signed(r_zero, 8)))
                totals = multiplied(wrapped(times(sides[0], multiplier)), sides[1])
                return told(totals, np.maximum(reach, state.reach[r]), added(totals, shift, stage))
            case _:
                assert_never(form)

    return compute


def _table(state: Memories, number: int, index: int) -> Numbers:
    """int8 [256] results of a table, for -128 first: two in each record."""
    state.inside(np.array([number]), state.config.tables, "table", index)
    size = TABLE_RECORDS * TABLE_RECORD_BYTES
    records = state.constants(Mem.TAB, number * size, (number + 1) * size, index)
    return np.ascontiguousarray(records.reshape(TABLE_RECORDS, TABLE_RECORD_BYTES)[:, :2]).reshape(-1)


def _byte(sums: Terms, zero: Numbers) -> Terms:
    """The low nine bits of a sum less a zero point: the difference itself where the sum is a byte."""
    difference = plus(sums, constants(-zero))
    is_byte = (sums.low >= INT8[0]) & (sums.high <= INT8[1])
    cut = function(key("nine bits"), difference.numbers)
    return Terms(
        np.where(is_byte, difference.numbers, cut),
        np.where(is_byte, difference.low, -256),
        np.where(is_byte, difference.high, 255),
    )


def _records(state: Memories, entries: Numbers, index: int) -> Numbers:
    """int64 [vectors, lanes, words] parameter records."""
    state.entries(Mem.PRM, entries, index)
    size = state.config.prm_bytes
    used, where = np.unique(entries, return_inverse=True)
    data = np.stack([state.constants(Mem.PRM, at * size, (at + 1) * size, index) for at in used.tolist()])
    words = data.view("<i4").reshape(used.size, state.config.block_out, _RECORD)
    return words.astype(np.int64)[where.reshape(-1)]


def _signed(values: Numbers, bits: int) -> Numbers:
    """The low bits as a signed number."""
    sign = 1 << (bits - 1)
    return ((values & ((1 << bits) - 1)) ^ sign) - sign
