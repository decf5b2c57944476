"""The intermediate representation between tiles and instructions: steps of commands whose addresses are still symbols.

A `Step` is one tile of one layer. Its commands name buffers (ranges of a scratchpad), tensors and constants by key;
the emitter places them and fills in the numbers. Bases are the only fields that a key may stand in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.rules import dram_granules
from relay_hw.accel.isa.spec import Mem, Op

Key = tuple[str | int, ...]

# One micro-op before placement: (dst, src, wgt, first).
Uop = tuple[int, int, int, int]
LOOP_LIMIT = 0xFFFF


@dataclass(frozen=True, slots=True)
class Ref:
    """Address of `key` plus `offset`: entries of a scratchpad buffer, bytes of a tensor.

    With `scale` the address counts parts of entries, so many in each; `offset` does not, `part` does.
    """

    key: Key
    offset: int = 0
    scale: int = 1
    part: int = 0


@dataclass(frozen=True, slots=True)
class Command:
    """An instruction with symbols: `refs` are added to the field of the same name in `values`."""

    op: Op
    values: Mapping[str, int]
    refs: Mapping[str, Ref]
    uops: tuple[Uop, ...] = ()


class Packing(Enum):
    """How constant weights lie in DRAM: as in the scratchpad; in half the bits; so behind factors."""

    NONE = "none"
    HALF = "half"
    FACTORS = "factors"


@dataclass(frozen=True, slots=True)
class Buffer:
    """Space in a scratchpad that a step needs.

    `entries` of scratchpad `mem` that live from the first to the last step that names `key`.

    Filled by `loads` (commands whose `sram` refers to the key) or with constant `data`, or by the step's own commands.
    `packing`: how LOAD widens the data.
    """

    key: Key
    mem: Mem
    entries: int
    loads: tuple[Command, ...] = ()
    data: bytes | None = None
    packing: Packing = Packing.NONE


@dataclass(frozen=True, slots=True)
class Step:
    """One tile of layer number `layer`: the buffers it needs and its commands in program order."""

    layer: int
    label: str
    buffers: tuple[Buffer, ...]
    commands: tuple[Command, ...]


def tensor_key(index: int) -> Key:
    """Key of activation number `index` of the region."""
    return ("tensor", index)


@dataclass(frozen=True, slots=True)
class Axis:
    """One loop: `count` trips; each trip adds `steps[field]` to the index that field's base starts."""

    count: int
    steps: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class InstructionLoops:
    """One instruction's share of a loop nest: what to add to each base, and its two loops."""

    bases: dict[str, int]
    outer: Axis
    inner: Axis


ONCE = Axis(1, {})


def fit_loops(axes: Sequence[Axis], lead: Axis | None = None) -> tuple[InstructionLoops, ...]:
    """Cut a nest (outermost first) into instructions with two loops each.

    Neighbours that step like one longer loop are fused, the shortest remaining axes become separate instructions.
    `lead` comes before all `axes` and is never fused: it becomes the outer loop or separate instructions.
    """
    rest = _fuse([axis for axis in axes if axis.count > 1])
    if lead is not None and lead.count > 1:
        rest.insert(0, lead)
    peeled: list[Axis] = []
    while len(rest) > 2:
        shortest = min(range(len(rest)), key=lambda i: rest[i].count)
        peeled.append(rest.pop(shortest))
    if len(rest) == 2:
        outer, inner = rest
    elif rest and rest[0] is lead:
        outer, inner = rest[0], ONCE
    else:
        outer, inner = ONCE, rest[0] if rest else ONCE
    return tuple(InstructionLoops(bases, outer, inner) for bases in _offsets(peeled))


def _fuse(axes: Iterable[Axis]) -> list[Axis]:
    """Merge (a, b) into one axis where a's step is b's step times b's count, in every field."""
    fused: list[Axis] = []
    for axis in axes:
        if fused and _continues(fused[-1], axis):
            fused[-1] = Axis(fused[-1].count * axis.count, axis.steps)
        else:
            fused.append(axis)
    return fused


def _continues(outer: Axis, inner: Axis) -> bool:
    if outer.count * inner.count > LOOP_LIMIT:
        return False
    names = set(outer.steps) | set(inner.steps)
    return all(outer.steps.get(name, 0) == inner.steps.get(name, 0) * inner.count for name in names)


def _offsets(peeled: Sequence[Axis]) -> list[dict[str, int]]:
    result: list[dict[str, int]] = [{}]
    for axis in peeled:
        result = [
            {name: base.get(name, 0) + trip * axis.steps.get(name, 0) for name in set(base) | set(axis.steps)}
            for base in result
            for trip in range(axis.count)
        ]
    return result


def gather_beats(config: AccelConfig, values: Mapping[str, int]) -> tuple[int, int]:
    """Beats of one row of a GATHER from the bus, and those that it writes for one row of vectors."""
    fetched = -(-values["row_bytes"] // config.granule_bytes) * config.granule_bytes // config.bus_bytes
    windows = -(-(values["lane"] % config.bus_bytes + values["run"]) // config.bus_bytes)
    return fetched, values["x"] * windows


def gather_cycles(config: AccelConfig, values: Mapping[str, int]) -> int:
    """Cycles of a GATHER whose data arrive in time: a row is written while the next one arrives."""
    fetched, written = gather_beats(config, values)
    rows = values["y"] - 1
    return fetched + rows * max(fetched, written) + (1 + values["y_pad_0"] + values["y_pad_1"]) * written


def image_beats(config: AccelConfig, values: Mapping[str, int]) -> int:
    """Beats that a LOAD or STORE moves through its scratchpad's port, padding included: one cycle each."""
    rows = values.get("y_pad_0", 0) + values["y"] + values.get("y_pad_1", 0)
    runs = values.get("x_pad_0", 0) + values["x"] + values.get("x_pad_1", 0)
    return rows * runs * dram_granules(config, values) * (config.granule_bytes // config.bus_bytes)
