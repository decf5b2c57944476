"""Shares micro-op sequences: each distinct one is kept once, inside a longer one where it occurs there.

In: steps whose commands carry their micro-ops. Out: the same steps with a constant buffer of micro-ops and references.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from relay_hw.accel.isa.config import UOP_BYTES, AccelConfig
from relay_hw.accel.isa.program import align
from relay_hw.accel.isa.records import encode_uops
from relay_hw.accel.isa.spec import Mem
from relay_hw.tensorize.commands import Buffer, Command, Key, Ref, Step, Uop

Sequence_ = tuple[Uop, ...]


@dataclass(frozen=True, slots=True)
class UopPool:
    """All micro-ops in memory order and the position of each distinct sequence."""

    uops: tuple[Uop, ...]
    position: dict[Sequence_, int]


def make_pool(sequences: Iterable[Sequence_]) -> UopPool:
    """Longest sequences first, so that those that occur inside another one take no room."""
    distinct = list(dict.fromkeys(sequences))
    order = sorted(range(len(distinct)), key=lambda i: (-len(distinct[i]), i))
    kept: list[Sequence_] = []
    inside: dict[Sequence_, tuple[Sequence_, int]] = {}
    for number in order:
        sequence = distinct[number]
        found = next(((other, at) for other in kept if (at := _find(other, sequence)) >= 0), None)
        if found is None:
            kept.append(sequence)
            found = (sequence, 0)
        inside[sequence] = found
    # Memory order is the order of first use, so that the first layers need only the first loads.
    uops: list[Uop] = []
    start: dict[Sequence_, int] = {}
    for sequence in distinct:
        host = inside[sequence][0]
        if host not in start:
            start[host] = len(uops)
            uops.extend(host)
    position = {sequence: start[host] + at for sequence, (host, at) in inside.items()}
    return UopPool(tuple(uops), position)


def _find(host: Sequence_, sequence: Sequence_) -> int:
    """First position of `sequence` in `host`, or -1."""
    first = sequence[0]
    for at in range(len(host) - len(sequence) + 1):
        if host[at] == first and host[at : at + len(sequence)] == sequence:
            return at
    return -1


def place_uops(steps: Sequence[Step], config: AccelConfig) -> tuple[Step, ...]:
    """Steps whose commands refer to buffers of micro-ops: one for the program if it fits, otherwise one a layer."""
    whole = make_pool(_sequences(steps))
    if not whole.uops:
        return tuple(steps)
    if len(whole.uops) <= config.uop_depth:
        buffer = _buffer(("uop",), whole, config)
        return tuple(_placed(step, buffer, whole) for step in steps)
    layers = sorted({step.layer for step in steps})
    pools = {layer: make_pool(_sequences(s for s in steps if s.layer == layer)) for layer in layers}
    buffers = {layer: _buffer(("uop", layer), pool, config) for layer, pool in pools.items() if pool.uops}
    return tuple(_placed(step, buffers.get(step.layer), pools[step.layer]) for step in steps)


def _sequences(steps: Iterable[Step]) -> list[Sequence_]:
    return [command.uops for step in steps for command in step.commands if command.uops]


def _placed(step: Step, buffer: Buffer | None, pool: UopPool) -> Step:
    if buffer is None or not any(command.uops for command in step.commands):
        return step
    commands = tuple(_refer(command, buffer.key, pool) if command.uops else command for command in step.commands)
    return replace(step, buffers=(*step.buffers, buffer), commands=commands)


def _refer(command: Command, key: Key, pool: UopPool) -> Command:
    begin = pool.position[command.uops]
    refs = {**command.refs, "uop_begin": Ref(key, begin), "uop_end": Ref(key, begin + len(command.uops))}
    return replace(command, refs=refs)


def _buffer(key: Key, pool: UopPool, config: AccelConfig) -> Buffer:
    columns = list(zip(*pool.uops, strict=True))
    data = encode_uops(*columns).tobytes()
    size = align(len(data), config.granule_bytes)
    return Buffer(key, Mem.UOP, size // UOP_BYTES, data=data + bytes(size - len(data)))
