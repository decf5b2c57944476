"""Affine index arithmetic shared by the instruction semantics: two nested loops around a list of micro-ops.

In: field values and micro-op indices. Out: entry indices, range checks, and pieces of bounded size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.errors import Fault, FaultCode
from relay_hw.accel.isa.spec import Mem

Values: TypeAlias = Mapping[str, int]
Index: TypeAlias = NDArray[np.int64]

# Entry indices are added modulo this, as the hardware's 16-bit adders do.
INDEX_MASK = 0xFFFF
# Trips times micro-ops that are computed at once; longer instructions are cut, which changes no result.
PIECE_ISSUES = 1 << 18


def indices(v: Values, base: str, outer: str, inner: str, uop: Index) -> Index:
    """[iter_out, iter_in, *uop.shape] entry indices: base + trips times steps + micro-op, modulo 2**16."""
    rows = np.arange(v["iter_out"], dtype=np.int64) * v[outer]
    columns = np.arange(v["iter_in"], dtype=np.int64) * v[inner]
    trips = (v[base] + rows[:, None] + columns[None, :]).reshape(v["iter_out"], v["iter_in"], *(1,) * uop.ndim)
    return (trips + uop) & INDEX_MASK


def with_second_steps(v: Values) -> Values:
    """Field values of REQUANT and the steps of its second operand in both loops, `res_out` and `res_in`."""
    still = v.get("still", 0)
    return {**v, "res_out": 1 if still else v["acc_out"], "res_in": 0 if still else v["acc_in"]}


def check_range(depth: int, entries: Index, mem: Mem, index: int, word: str = "entry") -> None:
    """Raise Fault unless every entry, or what `word` says, lies below `depth`."""
    highest = int(entries.max())
    if highest >= depth:
        raise Fault(FaultCode.SRAM_RANGE, index, f"{mem.name.lower()} {word} {highest} is outside {depth}")


def check_parts(config: AccelConfig, parts: Index, index: int) -> None:
    """Raise Fault unless an output block may begin at every part of INP."""
    wrong = parts % config.block_parts
    if wrong.any():
        part = int(parts[wrong != 0].reshape(-1)[0])
        what = f"inp {part_word(config)} must be a multiple of {config.block_parts}, not {part}"
        raise Fault(FaultCode.SRAM_RANGE, index, what)


def check_inp_parts(config: AccelConfig, parts: Index, index: int) -> None:
    """Raise Fault unless every part lies in INP."""
    check_range(config.inp_parts, parts, Mem.INP, index, part_word(config))


def part_word(config: AccelConfig) -> str:
    """What parts of INP are called in messages: entries, where an entry has no more than one."""
    return "entry" if config.entry_parts == 1 else "part"


def all_distinct(entries: Index) -> bool:
    """True when no entry (below 2**16) occurs twice."""
    flat = entries.reshape(-1)
    if flat.size > INDEX_MASK + 1:
        return False
    position = np.arange(flat.size, dtype=np.int64)
    owner = np.empty(INDEX_MASK + 1, np.int64)
    owner[flat] = position
    return bool((owner[flat] == position).all())


def independent(group: Index, written: Index, *read: Index) -> bool:
    """True when each entry is written by one group only, and read by no other group than the one that writes it.

    `group` numbers the owner of each element of `written` and of the `read` arrays, all of one shape.
    """
    owner = np.full(INDEX_MASK + 1, -1, np.int64)
    owner[written] = group
    if (owner[written] != group).any():
        return False
    for entries in read:
        source = owner[entries]
        if ((source != group) & (source >= 0)).any():
            return False
    return True


def pieces(v: Values, issues: int, steps: tuple[tuple[str, str, str], ...]) -> Iterator[Values]:
    """Cut the two loops, in order, so that trips times `issues` stays bounded.

    `steps` names (base, outer step, inner step) of every index; an empty name stands for a step of 0.
    """
    inner = max(1, min(v["iter_in"], PIECE_ISSUES // issues))
    outer = max(1, min(v["iter_out"], PIECE_ISSUES // (issues * inner))) if inner == v["iter_in"] else 1
    if inner == v["iter_in"] and outer == v["iter_out"]:
        yield v
        return
    for o in range(0, v["iter_out"], outer):
        for i in range(0, v["iter_in"], inner):
            piece = {**v, "iter_out": min(outer, v["iter_out"] - o), "iter_in": min(inner, v["iter_in"] - i)}
            for base, outer_step, inner_step in steps:
                step = o * v[outer_step] + (i * v[inner_step] if inner_step else 0)
                piece[base] = (v[base] + step) & INDEX_MASK
            yield piece
