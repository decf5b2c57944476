"""Lays out the DRAM window: where constants, inputs, outputs, intermediate activations and the program lie.

In: sizes of tensors with their lives, constant bytes. Out: sections and byte offsets. Intermediate activations whose
lives do not meet share bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.program import SECTION_ALIGN, Section, SectionKind, align
from relay_hw.accel.isa.spec import Mem
from relay_hw.tensorize.commands import Key


@dataclass(frozen=True, slots=True)
class Life:
    """Bytes of an activation and the positions in the step order of its first write and last use."""

    size: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Placement:
    """Byte offset of every tensor inside its section, and the size of the section."""

    offsets: dict[Key, int]
    size: int


def burst_bytes(config: AccelConfig) -> int:
    """Bytes of the longest burst; what starts on a multiple of it needs no burst more than its length asks for."""
    return max(config.burst_beats * config.bus_bytes, SECTION_ALIGN)


def place_apart(sizes: Mapping[Key, int], config: AccelConfig) -> Placement:
    """Place tensors one behind the other."""
    offsets: dict[Key, int] = {}
    end = 0
    for key, size in sizes.items():
        offsets[key] = end
        end = align(end + size, burst_bytes(config))
    return Placement(offsets, end)


def place_shared(lives: Mapping[Key, Life], config: AccelConfig) -> Placement:
    """Place each tensor at the lowest address that is free for its life, big ones first."""
    placed: list[tuple[int, Life]] = []
    offsets: dict[Key, int] = {}
    for key, life in sorted(lives.items(), key=lambda item: (-item[1].size, item[0])):
        near = sorted(
            (offset, offset + align(other.size, burst_bytes(config)))
            for offset, other in placed
            if other.begin <= life.end and life.begin <= other.end
        )
        place = 0
        for begin, end in near:
            if place + life.size <= begin:
                break
            place = max(place, end)
        offsets[key] = place
        placed.append((place, life))
    size = max((offset + align(life.size, burst_bytes(config)) for offset, life in placed), default=0)
    return Placement(offsets, size)


@dataclass(slots=True)
class ConstantPool:
    """Bytes of one section of constants; equal constants are kept once."""

    config: AccelConfig
    data: bytearray = field(default_factory=bytearray)
    _known: dict[bytes, int] = field(default_factory=dict[bytes, int])

    def add(self, data: bytes) -> int:
        """Offset of `data` in the section."""
        if data not in self._known:
            start = align(len(self.data), burst_bytes(self.config))
            self.data.extend(bytes(start - len(self.data)))
            self.data.extend(data)
            self._known[data] = start
        return self._known[data]


SECTION_OF: dict[Mem, tuple[str, SectionKind]] = {
    Mem.UOP: ("uops", SectionKind.UOPS),
    Mem.WGT: ("weights", SectionKind.WEIGHTS),
    Mem.PRM: ("constants", SectionKind.CONSTANTS),
    Mem.TAB: ("tables", SectionKind.CONSTANTS),
    Mem.COF: ("coefficients", SectionKind.CONSTANTS),
}


@dataclass(frozen=True, slots=True)
class Window:
    """Sections in window order (the program comes behind them) and the absolute offset of each tensor and constant."""

    sections: tuple[Section, ...]
    tensors: dict[Key, int]
    constants: dict[Key, int]
    end: int


def plan_window(
    constants: Sequence[tuple[Key, Mem, bytes]],
    values: Mapping[Key, bytes],
    inputs: Mapping[Key, int],
    outputs: Mapping[Key, int],
    scratch: Mapping[Key, Life],
    config: AccelConfig,
) -> Window:
    """Lay out everything but the program. `values`: activations that are constant."""
    step = burst_bytes(config)
    pools = {mem: ConstantPool(config) for mem in SECTION_OF}
    found = [*constants, *((key, Mem.PRM, data) for key, data in values.items())]
    where = {key: (mem, pools[mem].add(data)) for key, mem, data in found}
    sections: list[Section] = []
    end = 0

    def add(name: str, kind: SectionKind, size: int, data: bytes | None) -> int:
        nonlocal end
        begin = end
        if size:
            sections.append(Section(name, kind, begin, size, data))
        end = align(begin + size, step)
        return begin

    bases = {mem: add(*SECTION_OF[mem], len(pool.data), bytes(pool.data)) for mem, pool in pools.items()}
    tensors: dict[Key, int] = {}
    for name, kind, placement in (
        ("input", SectionKind.INPUT, place_apart(inputs, config)),
        ("output", SectionKind.OUTPUT, place_apart(outputs, config)),
        ("scratch", SectionKind.SCRATCH, place_shared(scratch, config)),
    ):
        base = add(name, kind, placement.size, None)
        tensors |= {key: base + offset for key, offset in placement.offsets.items()}
    found = {key: bases[mem] + offset for key, (mem, offset) in where.items()}
    return Window(tuple(sections), tensors, found, end)
