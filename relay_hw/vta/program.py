"""A program of VTA: instructions, sections of DRAM that they name, and the tensors at its border.

In: what lowering wrote. Out: a file; or an image of memory with addresses filled in, for sections that lie where
somebody says. Addresses inside of instructions count from the begin of their section until then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import ArtifactError
from relay_hw.support.documents import DocumentError, parse_json, read_record
from relay_hw.vta.geometry import Geometry
from relay_hw.vta.isa import Words
from relay_hw.vta.kernel import Shape

MAGIC: Final = b"VTAPROG1"
# Pages of its memory manager.
PAGE: Final = 4096
_NOWHERE: Final = -1


@dataclass(frozen=True, slots=True)
class Section:
    """A part of DRAM: `entry_bytes` is what its addresses count in; `constant` if the program brings what is in it."""

    name: str
    size: int
    entry_bytes: int
    constant: bool


@dataclass(frozen=True, slots=True)
class ProgramPort:
    """A tensor at the border of a region, and the section where it lies, packed from `dims`."""

    name: str
    shape: tuple[int, ...]
    dims: Shape
    section: int


@dataclass(frozen=True, slots=True)
class LayerCode:
    """Instructions [begin, end) of a layer, its tile in words, and micro-ops that it executes."""

    begin: int
    end: int
    tile: str
    uops: int


@dataclass(frozen=True, slots=True)
class Head:
    """All of a program but arrays."""

    geometry: Geometry
    sections: tuple[Section, ...]
    inputs: tuple[ProgramPort, ...]
    outputs: tuple[ProgramPort, ...]
    layers: tuple[LayerCode, ...]
    instructions: int


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """`words`: instructions; `used`: for each the number of the section that its address counts from, or -1;
    `data`: bytes of constant sections by their number."""

    head: Head
    words: Words
    used: NDArray[np.int32]
    data: Mapping[int, bytes] = field(default_factory=dict[int, bytes])

    @property
    def inputs(self) -> tuple[ProgramPort, ...]:
        """Tensors that it reads."""
        return self.head.inputs

    @property
    def outputs(self) -> tuple[ProgramPort, ...]:
        """Tensors that it writes."""
        return self.head.outputs

    def to_bytes(self) -> bytes:
        """The program as a file: its head as JSON, then words, section numbers and data."""
        head = json.dumps(asdict(self.head)).encode()
        parts = [self.words.astype("<u8").tobytes(), self.used.astype("<i4").tobytes()]
        parts += [self.data[k] for k, section in enumerate(self.head.sections) if section.constant]
        return b"".join([MAGIC, len(head).to_bytes(8, "little"), head, *parts])

    def addresses(self, base: int) -> tuple[int, ...]:
        """Sections one behind the other from `base` on, each on a page of its own; the last number is the end."""
        found = [base]
        for section in self.head.sections:
            found.append(-(-(found[-1] + section.size) // PAGE) * PAGE)
        return tuple(found)

    def placed(self, addresses: tuple[int, ...]) -> Words:
        """Words whose DRAM addresses are physical ones, in entries."""
        words = self.words.copy()
        for number, section in enumerate(self.head.sections):
            first, rest = divmod(addresses[number], section.entry_bytes)
            assert not rest, "a page begins with an entry"
            words[self.used == number, 0] += np.uint64(first << 26)
        return words

    def image(self, addresses: tuple[int, ...]) -> NDArray[np.uint8]:
        """Memory from the first address to the last one, with all constants in it."""
        memory = np.zeros(addresses[-1] - addresses[0], np.uint8)
        for number, data in self.data.items():
            begin = addresses[number] - addresses[0]
            memory[begin : begin + len(data)] = np.frombuffer(data, np.uint8)
        return memory


def read_program(data: bytes) -> Program:
    """Inverse of `Program.to_bytes`. Raises ArtifactError for what is no program."""
    size = int.from_bytes(data[8:16], "little")
    if data[:8] != MAGIC or size > len(data):
        raise ArtifactError("a program of VTA must begin with its mark and its head")
    try:
        head = _head(parse_json(data[16 : 16 + size]))
    except (DocumentError, KeyError, TypeError, ValueError) as error:
        raise ArtifactError(f"the head of a program of VTA must be readable: {error}") from None
    sizes = [16 * head.instructions, 4 * head.instructions]
    sizes += [section.size for section in head.sections if section.constant]
    if sum(sizes) != len(data) - 16 - size:
        raise ArtifactError(f"a program of VTA must have {sum(sizes):,} bytes behind its head")
    ends = np.cumsum([16 + size, *sizes])
    parts = [data[begin:end] for begin, end in pairwise(ends)]
    words, used = np.frombuffer(parts[0], "<u8").reshape(-1, 2), np.frombuffer(parts[1], "<i4")
    if len(used) and not _NOWHERE <= used.min() <= used.max() < len(head.sections):
        raise ArtifactError("instructions of a program of VTA must name sections that it has")
    constants = [number for number, section in enumerate(head.sections) if section.constant]
    return Program(head, words, used, dict(zip(constants, parts[2:], strict=True)))


def _head(document: Any) -> Head:
    head = read_record(Head, document, "head")
    if any(section.size < 0 or section.entry_bytes < 1 or PAGE % section.entry_bytes for section in head.sections):
        raise ValueError("sections must have sizes")
    if any(not 0 <= port.section < len(head.sections) for port in (*head.inputs, *head.outputs)):
        raise ValueError("ports must lie in sections")
    return head


def with_words(program: Program, words: Words) -> Program:
    """The program with other words."""
    return replace(program, words=words)
