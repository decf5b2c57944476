"""What ROW does to terms: softmax or a norm of rows of accumulators, written over them.

In: memories, fields of the instruction, its index. Raises Failure for what no program may do.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from relay_hw.accel.isa.config import EXPONENTIALS, ROW_QUARTERS
from relay_hw.accel.isa.spec import Mem, RowKind
from relay_hw.tensorize.validate.memories import Failure, Memories, known
from relay_hw.tensorize.validate.terms import INT8, Numbers, Terms, function, key, norms, softmaxes

Values = Mapping[str, int]
_INDICES = 1 << 16
_BOUND_BYTES = 2


def row(state: Memories, v: Values, index: int) -> None:
    """Results of whole entries; elements behind a row's columns take part in no sum."""
    lanes, count = state.config.block_out, v["columns"]
    width = -(-count // lanes)
    first = v["acc_base"] + np.arange(v["rows"])[:, None] * v["row_step"]
    entries = (first + np.arange(width)[None, :] * v["entry_step"]) % _INDICES
    state.entries(Mem.ACC, entries, index)
    if np.unique(entries).size < entries.size:
        raise Failure(f"instruction {index} must have rows that share no entry of acc")
    elements = _low_bytes(state.acc[entries]).reshape(v["rows"], width * lanes)
    kind = RowKind(v["kind"])
    found = _softmax(state, v, elements, index) if kind is RowKind.SOFTMAX else _norm(state, v, elements, index)
    state.write_acc(entries, found.reshape(v["rows"], width, lanes))


def _low_bytes(sums: Terms) -> Terms:
    """The low eight bits as signed numbers: the sums themselves where they are such."""
    if sums.low.min() >= INT8[0] and sums.high.max() <= INT8[1]:
        return sums
    fits = (sums.low >= INT8[0]) & (sums.high <= INT8[1])
    return Terms(
        np.where(fits, sums.numbers, function(key("byte"), sums.numbers)),
        np.where(fits, sums.low, INT8[0]),
        np.where(fits, sums.high, INT8[1]),
    )


def _softmax(state: Memories, v: Values, elements: Terms, index: int) -> Terms:
    limit = np.minimum(v["visible"] + np.arange(v["rows"]) * v["visible_step"], v["columns"])
    counts = np.arange(elements.shape[1])[None, :] < limit[:, None]
    bound = _bound(state, v["cof_base"] + EXPONENTIALS, index) if v["bounded"] else None
    records = _records(state, v["cof_base"], EXPONENTIALS, index)
    table = records[:, :, 0] & 0xFFFF
    if (table != table[:, :1]).any():
        raise Failure(f"instruction {index} must have the same table of exponentials in all lanes")
    return softmaxes(elements, counts, table[:, 0], (v["multiplier"], v["shift"], v["zero_point"]), bound)


def _bound(state: Memories, entry: int, index: int) -> Terms:
    """The bytes of the number of columns that count at most."""
    state.entries(Mem.COF, np.array([entry]), index)
    begin = entry * state.config.cof_bytes
    return known(state.bytes[Mem.COF][begin : begin + _BOUND_BYTES])


def _norm(state: Memories, v: Values, elements: Terms, index: int) -> Terms:
    kind, columns = RowKind(v["kind"]), elements.shape[1]
    counts = np.broadcast_to(np.arange(columns)[None, :] < v["columns"], elements.shape)
    records = _records(state, v["cof_base"], ROW_QUARTERS * columns // state.config.block_out, index).reshape(
        columns, 2
    )
    epsilon = v["epsilon_low"] + (v["epsilon_high"] << 32)
    zero = v["inp_zero"] if kind is RowKind.RMS_NORM else 0
    numbers = (kind.name.lower(), v["shift"], epsilon, v["zero_point"], zero)
    gain = ((records[:, 0] & 0xFFFF) ^ 0x8000) - 0x8000
    return norms(elements, counts, (gain, records[:, 1]), numbers)


def _records(state: Memories, entry: int, count: int, index: int) -> Numbers:
    """int64 [entries, lanes, words] of coefficients."""
    size = state.config.cof_bytes
    state.entries(Mem.COF, np.array([entry, entry + count - 1]), index)
    data = state.constants(Mem.COF, entry * size, (entry + count) * size, index)
    return data.view("<i4").reshape(count, -1, 2).astype(np.int64)
