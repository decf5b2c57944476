"""Keeps activations on chip: a step's results go straight into the patches of INP that later steps would load.

In: steps in which every activation goes through DRAM. Out: the same steps, where for chosen tensors

- each LOAD of a patch is left out, and its buffer is filled by the steps that compute the tensor,
- REQUANT writes to INP instead of OUT, cut into loops so that each vector lands where the LOAD would have put it: the
  way of a byte from OUT over DRAM to INP is followed through the fields of STORE and LOAD, so lowerings need not know,
  and any layout (rows with padding, planes, parts of a concatenation) can be a target,
- the border of a patch is written by REQUANT with both bounds at the padding's value,
- an operand that is loaded widened into ACC, such as the second one of a sum, may go to INP as well: GEMM's mode max,
  one tap, moves it from there to ACC,
- STORE goes, unless somebody still reads the tensor from DRAM or it is a result of the region.

A patch lives from its first write to its last use. Neighbouring tiles that share input rows each get them: a vector may
be written twice, which costs cycles of the output stage but never of the multipliers. What does not fit INP together
makes the emitter refuse; then fewer tensors are tried. The checker proves the order of units as for any program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.config import TAPS, AccelConfig
from relay_hw.accel.isa.spec import Dst, Form, GemmMode, Mem, Op
from relay_hw.tensorize.commands import Buffer, Command, Key, Ref, Step

Cells = NDArray[np.int64]
_NONE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Patch:
    """A buffer of INP that one tensor is loaded into: the part where each of its vectors begins, or -1; padded parts.

    `target`: the buffer of ACC that the patch is moved to, where there is one.
    """

    buffer: Buffer
    tensor: Key
    parts: Cells
    padding: Cells
    pad_value: int
    target: Buffer | None = None

    @property
    def replaces(self) -> Key:
        """Key of the buffer that was loaded."""
        return self.buffer.key if self.target is None else self.target.key


def patches(
    steps: Sequence[Step], tensor: Key, size: int, config: AccelConfig, moves: bool = False
) -> tuple[Patch, ...] | None:
    """Patches of INP that a tensor of `size` bytes is loaded into; None where one cannot be filled by REQUANT.

    `moves`: buffers of ACC as well.
    """
    found: dict[Key, Patch] = {}
    makers = [step for step in steps if any(c.op is Op.STORE and _touches(c, tensor) for c in step.commands)]
    # What one vector multiplies cannot be cut: it stays where it is for a whole inner loop.
    if any(c.values.get("still") for step in makers for c in step.commands):
        return None
    stores = [c for step in makers for c in step.commands if c.op is Op.STORE and _touches(c, tensor)]
    if not all(_whole_vectors(store, config) for store in stores):
        return None
    written = np.zeros(size // config.out_bytes, np.bool_)
    for store in stores:
        written[_store_cells(store, config)] = True
    for step in steps:
        for buffer in step.buffers:
            if buffer.key in found or not any(_touches(c, tensor) for c in buffer.loads):
                continue
            if buffer.mem is Mem.INP:
                patch = _patch(buffer, tensor, size, config)
            elif moves and buffer.mem is Mem.ACC and len(buffer.loads) == 1:
                patch = _moved_patch(buffer, tensor, size, config)
            else:
                continue
            if patch is None or not written[patch.parts >= 0].all():
                return None
            found[buffer.key] = patch
    return tuple(found.values())


def _touches(transfer: Command, tensor: Key) -> bool:
    return transfer.refs["dram"].key == tensor


def _whole_vectors(transfer: Command, config: AccelConfig) -> bool:
    """True where every run consists of whole output vectors."""
    v, begin = transfer.values, transfer.refs["dram"].offset
    sizes = (begin, v["z"] * config.granule_bytes, v.get("y_stride", 0), v.get("x_stride", 0))
    return all(size % config.out_bytes == 0 for size in sizes)


def _patch(buffer: Buffer, tensor: Key, size: int, config: AccelConfig) -> Patch | None:
    parts = np.full(size // config.out_bytes, _NONE, np.int64)
    padding: list[Cells] = []
    for load in buffer.loads:
        if load.op is not Op.LOAD or not _touches(load, tensor) or not _whole_vectors(load, config):
            return None
        address, part = _load_cells(load, config)
        inside = address >= 0
        if (parts[address[inside]] >= 0).any() or (part % config.block_parts).any():
            return None
        parts[address[inside]] = part[inside]
        padding.append(part[~inside])
    value = buffer.loads[0].values.get("pad_value", 0)
    return Patch(buffer, tensor, parts, np.sort(np.concatenate(padding)), value)


def _moved_patch(buffer: Buffer, tensor: Key, size: int, config: AccelConfig) -> Patch | None:
    """A patch in the order of the accumulator entries that it is moved to."""
    load = buffer.loads[0]
    if load.op is not Op.LOAD or load.refs["sram"].offset:
        return None
    inside = replace(load, values={name: value for name, value in load.values.items() if name != "expand"})
    entries = -(-_load_cells(inside, config)[0].size * config.block_parts // config.entry_parts)
    patch = _patch(Buffer(("via", *buffer.key), Mem.INP, entries, (inside,)), tensor, size, config)
    return None if patch is None else replace(patch, target=buffer)


def _load_cells(load: Command, config: AccelConfig) -> tuple[Cells, Cells]:
    """For each vector that a LOAD brings: its number in the tensor (-1 for padding) and its part of the buffer."""
    v = load.values
    run_bytes, vector = v["z"] * config.granule_bytes, config.out_bytes
    address = load.refs["dram"].offset + _addresses(v, run_bytes, vector)
    rows, cols = (np.arange(count) - before for count, before in _padded_extents(v))
    inside = ((rows >= 0) & (rows < v["y"]))[:, None] & ((cols >= 0) & (cols < v["x"]))
    address = np.where(inside[..., None], address // vector, _NONE)
    number = np.arange(rows.size * cols.size, dtype=np.int64)[:, None]
    begin = np.arange(0, run_bytes, vector, dtype=np.int64)
    if v.get("pitch"):
        line = TAPS * v["pitch"] * (begin // config.line_bytes) + number
        at = line * config.line_bytes + begin % config.line_bytes
    else:
        at = number * run_bytes + begin
    return address.reshape(-1), load.refs["sram"].offset * config.entry_parts + (at // config.part_bytes).reshape(-1)


def _store_cells(store: Command, config: AccelConfig) -> Cells:
    """For each vector that a STORE takes from OUT: its number in the tensor."""
    v = store.values
    address = store.refs["dram"].offset + _addresses(v, v["z"] * config.granule_bytes, config.out_bytes)
    return address.reshape(-1) // config.out_bytes


def _padded_extents(v: Mapping[str, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """(count, padding before) of rows and of runs in a row."""
    pads = [v.get(name, 0) for name in ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1")]
    return (v["y"] + pads[0] + pads[1], pads[0]), (v["x"] + pads[2] + pads[3], pads[2])


def _addresses(v: Mapping[str, int], run_bytes: int, vector: int) -> Cells:
    """DRAM offset of each vector of a transfer's image [rows, runs, vectors of a run]; padding's mean nothing."""
    (high, top), (wide, left) = _padded_extents(v)
    rows = (np.arange(high, dtype=np.int64) - top)[:, None, None] * v.get("y_stride", 0)
    runs = (np.arange(wide, dtype=np.int64) - left)[:, None] * v.get("x_stride", 0)
    return rows + runs + np.arange(0, run_bytes, vector, dtype=np.int64)


def forward_on_chip(
    steps: Sequence[Step], chosen: Mapping[Key, tuple[Patch, ...]], kept: frozenset[Key], config: AccelConfig
) -> tuple[Step, ...]:
    """Steps in which the tensors of `chosen` fill their patches; those of `kept` are stored as well."""
    filled = {patch.replaces: patch for found in chosen.values() for patch in found}
    bordered: set[Key] = set()
    moved: set[Key] = set()
    result: list[Step] = []
    for step in steps:
        step = _unloaded(step, filled, moved, config)
        for store in [c for c in step.commands if c.op is Op.STORE]:
            tensor = store.refs["dram"].key
            if tensor in chosen:
                step = _forwarded(step, store, chosen[tensor], tensor in kept, bordered, config)
        result.append(step)
    return tuple(result)


def _unloaded(step: Step, filled: Mapping[Key, Patch], moved: set[Key], config: AccelConfig) -> Step:
    """The step without the loads of patches; those for ACC are moved there by the first step that has them."""
    buffers: list[Buffer] = []
    commands: list[Command] = []
    for buffer in step.buffers:
        patch = filled.get(buffer.key)
        buffers.append(buffer if patch is None else replace(buffer, loads=()))
        if patch is not None and patch.target is not None and buffer.key not in moved:
            moved.add(buffer.key)
            buffers.append(replace(patch.buffer, loads=()))
            commands.append(_move(patch, config))
    return replace(step, buffers=tuple(buffers), commands=(*commands, *step.commands))


def _move(patch: Patch, config: AccelConfig) -> Command:
    """GEMM of one tap that widens a patch into ACC."""
    count = int((patch.parts >= 0).sum()) + patch.padding.size
    values = {"mode": GemmMode.MAX, "overwrite": 1, "iter_out": 1, "iter_in": count}
    values |= {"acc_in": 1, "inp_in": config.block_parts}
    assert patch.target is not None
    refs = {"acc_base": Ref(patch.target.key), "inp_base": Ref(patch.buffer.key, scale=config.entry_parts)}
    return Command(Op.GEMM, values, refs, ((0, 0, 1, 1),))


def _forwarded(
    step: Step, store: Command, targets: Iterable[Patch], kept: bool, bordered: set[Key], config: AccelConfig
) -> Step:
    """The step with what `store` brings to DRAM written to the patches."""
    out = store.refs["sram"].key
    size = next(b.entries for b in step.buffers if b.key == out)
    numbers = np.full(size, _NONE, np.int64)
    cells, begin = _store_cells(store, config), store.refs["sram"].offset
    numbers[begin : begin + cells.size] = cells
    buffers = list(step.buffers)
    commands: list[Command] = []
    for command in step.commands:
        if command is store and not kept:
            continue
        if command.op is not Op.REQUANT or command.refs["dst_base"].key != out:
            commands.append(command)
            continue
        if kept:
            commands.append(command)
        held = numbers[_grid(command, "dst") + command.refs["dst_base"].offset]
        for patch in targets:
            parts = np.where(held >= 0, patch.parts[held], _NONE)
            if (parts >= 0).any():
                commands += cut(command, parts, Ref(patch.buffer.key, scale=config.entry_parts))
                buffers.append(replace(patch.buffer, loads=()))
                if patch.buffer.key not in bordered:
                    bordered.add(patch.buffer.key)
                    commands += _border(patch, config, command.refs["acc_base"])
    unique = {b.key: b for b in buffers if kept or b.key != out}
    return replace(step, buffers=tuple(unique.values()), commands=tuple(commands))


def _grid(command: Command, name: str) -> Cells:
    """[iter_out, iter_in] offsets of an index of REQUANT."""
    v = command.values
    outer = np.arange(v["iter_out"], dtype=np.int64)[:, None] * v.get(f"{name}_out", 0)
    return outer + np.arange(v["iter_in"], dtype=np.int64) * v.get(f"{name}_in", 0)


def _border(patch: Patch, config: AccelConfig, acc: Ref) -> list[Command]:
    """Writes of the patch's padding. What the accumulator holds does not matter."""
    fields = {"form": Form.PASS, "dst": Dst.INP, "clip_lo": patch.pad_value, "clip_hi": patch.pad_value}
    still, target = np.zeros(patch.padding.size, np.int64), Ref(patch.buffer.key, scale=config.entry_parts)
    return [_piece(fields, {"acc_base": acc}, loop, target) for loop in loops(still, still, patch.padding)]


@dataclass(frozen=True, slots=True)
class Loop:
    """Vectors of one REQUANT: first offsets of accumulator, parameter, destination; counts and steps, outer first."""

    acc: int
    prm: int
    dst: int
    counts: tuple[int, int]
    acc_steps: tuple[int, int]
    dst_steps: tuple[int, int]
    prm_step: int = 0


def cut(command: Command, parts: Cells, target: Ref) -> list[Command]:
    """REQUANTs into `target` for the vectors of `command` whose part is not -1."""
    v = command.values
    fields = {
        name: value for name, value in v.items() if not name.startswith(("iter_", "acc_", "dst", "prm_out", "res_"))
    }
    fields["dst"] = Dst.INP
    acc = _grid(command, "acc")
    prm = np.broadcast_to(_grid(command, "prm")[:, :1], parts.shape)
    whole = _affine(v, parts)
    found = [whole] if whole is not None else []
    if not found:
        inside = parts >= 0
        columns = acc[inside], prm[inside], parts[inside]
        found = _in_order(columns, np.arange(columns[0].size))
        if len(found) > np.unique(columns[1]).size:
            found = min(found, _in_order(columns, columns[2]), key=len)
    return [_piece(fields, command.refs, loop, target) for loop in found]


def _in_order(columns: tuple[Cells, Cells, Cells], rank: Cells) -> list[Loop]:
    """Loops of (accumulator, parameter, destination), of each parameter in order of `rank`."""
    order = np.lexsort((rank, columns[1]))
    acc, prm, dst = (column[order] for column in columns)
    return list(loops(acc, prm, dst))


def _affine(v: Mapping[str, int], parts: Cells) -> Loop | None:
    """The whole command with other steps, where all its vectors go to places that two loops reach."""
    outer = int(parts[1, 0] - parts[0, 0]) if parts.shape[0] > 1 else 0
    inner = int(parts[0, 1] - parts[0, 0]) if parts.shape[1] > 1 else 0
    rows = np.arange(parts.shape[0], dtype=np.int64)[:, None] * outer
    wanted = int(parts[0, 0]) + rows + np.arange(parts.shape[1], dtype=np.int64) * inner
    if min(outer, inner, int(parts.min())) < 0 or not np.array_equal(parts, wanted):
        return None
    acc = (v.get("acc_out", 0), v.get("acc_in", 0))
    counts = (parts.shape[0], parts.shape[1])
    return Loop(0, 0, int(parts[0, 0]), counts, acc, (outer, inner), v.get("prm_out", 0))


def loops(acc: Cells, prm: Cells, dst: Cells) -> Iterable[Loop]:
    """Vectors in order as pairs of loops: the longest run of equal steps, and as many such runs as follow evenly."""
    position = 0
    while position < acc.size:
        group = position + int(np.argmax(np.append(prm[position:] != prm[position], True)))
        a, d = acc[position:group], dst[position:group]
        inner = _even(a, d)
        trips = a.size // inner
        starts_a, starts_d = a[: trips * inner].reshape(trips, inner), d[: trips * inner].reshape(trips, inner)
        same_a = starts_a - starts_a[:, :1] == starts_a[0] - a[0]
        same_d = starts_d - starts_d[:, :1] == starts_d[0] - d[0]
        trips = int(np.argmin(np.append((same_a & same_d).all(axis=1), False)))
        outer = _even(starts_a[:trips, 0], starts_d[:trips, 0])
        yield Loop(
            acc=int(a[0]),
            prm=int(prm[position]),
            dst=int(d[0]),
            counts=(outer, inner),
            acc_steps=(_step(starts_a[:, 0], outer), _step(a, inner)),
            dst_steps=(_step(starts_d[:, 0], outer), _step(d, inner)),
        )
        position += outer * inner


def _even(a: Cells, d: Cells) -> int:
    """How many values from the first on have equal steps in both, none of them downwards."""
    if a.size > 1 and (a[1] < a[0] or d[1] < d[0]):
        return 1
    if a.size < 3:
        return a.size
    same = (np.diff(a) == a[1] - a[0]) & (np.diff(d) == d[1] - d[0])
    return 1 + int(np.argmin(np.append(same, False)))


def _step(values: Cells, count: int) -> int:
    return int(values[1] - values[0]) if count > 1 else 0


def _piece(fields: Mapping[str, int], refs: Mapping[str, Ref], loop: Loop, target: Ref) -> Command:
    values = dict(fields) | {"iter_out": loop.counts[0], "iter_in": loop.counts[1]}
    for name, steps in (("acc", loop.acc_steps), ("dst", loop.dst_steps)):
        values |= {f"{name}_out": steps[0], f"{name}_in": steps[1]}
    # A table serves every part of the loop.
    moves = {"acc_base": loop.acc, "res_base": loop.acc, "prm_base": loop.prm, "table": 0}
    moved = {name: replace(ref, offset=ref.offset + moves[name]) for name, ref in refs.items() if name != "dst_base"}
    if "prm_base" in moved:
        values["prm_out"] = loop.prm_step
    return Command(Op.REQUANT, values, {**moved, "dst_base": replace(target, part=loop.dst)})
