"""One accelerator program: instructions, data and tensor names, laid out in the DRAM window.

In: instructions and sections from the tensorizer or the assembler. Out: bytes for devices and files.
The instructions are kept as the bytes of the program section, so there is one copy of the truth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.config import CONFIG_NAME, INSTRUCTION_BYTES, SIZES, AccelConfig, hash_of_sizes
from relay_hw.accel.isa.container import Container
from relay_hw.accel.isa.errors import AccelError, ProgramError
from relay_hw.accel.isa.spec import Op
from relay_hw.accel.isa.stream import Instr, decode_instructions, encode_instructions
from relay_hw.support import durable
from relay_hw.support.documents import parse_json
from relay_hw.support.names import one_of

# Sections start on a multiple of this in every configuration: no granule is larger.
SECTION_ALIGN = INSTRUCTION_BYTES
WINDOW_ALIGN = 4096
DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "float32", "float64", "bool")
WINDOW_LIMIT = 1 << 32


class SectionKind(Enum):
    """What a section holds. Sections without data are reserved space.

    PROGRAM: the instructions of every launch. RESIDENT: a second instruction stream, launched once before them, whose
    loads stay in the scratchpads.
    """

    PROGRAM = "program"
    UOPS = "uops"
    WEIGHTS = "weights"
    RESIDENT = "resident"
    CONSTANTS = "constants"
    INPUT = "input"
    OUTPUT = "output"
    SCRATCH = "scratch"


# Kinds of sections that hold instructions.
STREAMS = (SectionKind.PROGRAM, SectionKind.RESIDENT)


class TensorLayout(Enum):
    """Order of a tensor's elements in its section; see `relay_hw.accel.isa.tensors`."""

    FLAT = "flat"
    NHWC = "nhwc"
    ROWS = "rows"
    TILES = "tiles"


@dataclass(frozen=True, slots=True)
class Section:
    """A named range of the DRAM window.

    `size` bytes at byte `offset` of the window. `data` (all of it, or None) is written before the first launch.
    """

    name: str
    kind: SectionKind
    offset: int
    size: int
    data: bytes | None = None

    @property
    def end(self) -> int:
        """One past the last byte."""
        return self.offset + self.size


@dataclass(frozen=True, slots=True)
class TensorSlot:
    """A named tensor at byte `offset` inside section `section`; logical `shape`, numpy `dtype` name."""

    name: str
    section: str
    offset: int
    shape: tuple[int, ...]
    dtype: str
    layout: TensorLayout = TensorLayout.FLAT


@dataclass(frozen=True, slots=True)
class Region:
    """Instructions [begin, end) that belong together, such as one layer; for reports only."""

    name: str
    begin: int
    end: int


def code_place(sections: Sequence[Section], resident: int = 0) -> int:
    """Byte of the window at which the program begins: behind `sections` and `resident` instructions of their own."""
    end = align(max((section.end for section in sections), default=0), SECTION_ALIGN)
    return align(end + resident * INSTRUCTION_BYTES, SECTION_ALIGN)


@dataclass(frozen=True, slots=True)
class WindowPlan:
    """What lies in the window besides the instructions. Sizes that are None are the smallest that fit: the program lies
    behind `sections`, and the window ends behind all."""

    sections: Sequence[Section] = ()
    tensors: Sequence[TensorSlot] = ()
    window_bytes: int | None = None
    program_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """A whole program for one configuration. Exactly one section is of kind program, at most one of kind resident.

    `sizes`: of the configuration, by name; none where only their hash is known. Raises ProgramError.
    """

    config: str
    config_hash: int
    window_bytes: int
    sections: tuple[Section, ...]
    tensors: tuple[TensorSlot, ...] = ()
    regions: tuple[Region, ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        _check(self)

    @classmethod
    def build(
        cls,
        config: AccelConfig,
        instructions: Iterable[tuple[Op, Mapping[str, int]]],
        window: WindowPlan | None = None,
        regions: Iterable[Region] = (),
        resident: Iterable[tuple[Op, Mapping[str, int]]] = (),
    ) -> Program:
        """Encode `instructions` into a program section of a window.

        `resident`: instructions of the second stream, which comes in front of the program; none for no such stream.
        Fields that an instruction leaves out take their smallest legal count, or 0. Raises EncodeError, ProgramError.
        """
        data, stays = encode_instructions(instructions), encode_instructions(resident)
        plan = window or WindowPlan()
        others, offset = tuple(plan.sections), plan.program_offset
        if offset is None:
            offset = code_place(others, len(stays) // INSTRUCTION_BYTES)
        if stays:
            begin = code_place(others)
            others += (Section("resident", SectionKind.RESIDENT, begin, len(stays), stays),)
        end = max((section.end for section in others), default=0)
        code = Section("program", SectionKind.PROGRAM, offset, len(data), data)
        size = align(max(end, code.end), WINDOW_ALIGN) if plan.window_bytes is None else plan.window_bytes
        sizes = tuple(config.sizes.items())
        return cls(config.name, config.hash32, size, others + (code,), tuple(plan.tensors), tuple(regions), sizes)

    @property
    def code(self) -> Section:
        """The section that holds the instructions."""
        return next(section for section in self.sections if section.kind is SectionKind.PROGRAM)

    @property
    def resident(self) -> Section | None:
        """The section of the stream that is launched once, before all launches of the program; None without one."""
        return next((section for section in self.sections if section.kind is SectionKind.RESIDENT), None)

    def stream(self, kind: SectionKind) -> Section:
        """The instructions of kind PROGRAM or RESIDENT. Raises ProgramError where there are none."""
        found = next((section for section in self.sections if section.kind is kind), None)
        if kind not in STREAMS or found is None:
            raise ProgramError(f"stream must be one that the program has, not {kind.value}")
        return found

    @property
    def count(self) -> int:
        """Number of instructions."""
        return self.code.size // INSTRUCTION_BYTES

    @property
    def instructions(self) -> tuple[Instr, ...]:
        """Decoded instructions with all fields but the opcode. Raises EncodeError for a word that is not legal."""
        return tuple(decode_instructions(self.code.data or b""))

    def instruction_words(self) -> NDArray[np.uint32]:
        """uint32 [count, 8], least significant word first."""
        return np.frombuffer(self.code.data or b"", "<u4").reshape(-1, INSTRUCTION_BYTES // 4)

    def section(self, name: str) -> Section:
        """Section by name. Raises ProgramError."""
        for section in self.sections:
            if section.name == name:
                return section
        raise ProgramError(one_of("section", [section.name for section in self.sections], name))

    def tensor(self, name: str) -> TensorSlot:
        """Tensor by name. Raises ProgramError."""
        for tensor in self.tensors:
            if tensor.name == name:
                return tensor
        raise ProgramError(one_of("tensor", [tensor.name for tensor in self.tensors], name))

    def tensor_offset(self, name: str) -> int:
        """Byte offset of a tensor in the window. Raises ProgramError."""
        slot = self.tensor(name)
        return self.section(slot.section).offset + slot.offset

    def check_config(self, config: AccelConfig) -> None:
        """Raise ProgramError, which names the first size that is another one, unless the program is for `config`."""
        others = [(key, size) for key, size in self.sizes if config.sizes[key] != size]
        if others or self.config_hash != config.hash32:
            sizes = "".join(f": {key} must be {config.sizes[key]}, not {size}" for key, size in others[:1])
            raise ProgramError(
                f"program must be made for configuration {config.name} ({config.hash32:#010x}), "
                f"not {self.config} ({self.config_hash:#010x}){sizes}"
            )

    def to_bytes(self) -> bytes:
        """The container; the same program gives the same bytes."""
        data = b"".join(section.data for section in self.sections if section.data is not None)
        return Container.of(self.config_hash, _header(self), data).to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes, config: AccelConfig | None = None) -> Program:
        """Read a container; with `config`, for that configuration only. Raises ProgramError."""
        program = _from_container(Container.from_bytes(data))
        if config is not None:
            program.check_config(config)
        return program

    def save(self, path: str | Path) -> None:
        """Write the container, whole or not at all. Raises OSError."""
        durable.write_file(Path(path), self.to_bytes())

    @classmethod
    def load(cls, path: str | Path, config: AccelConfig | None = None) -> Program:
        """Read a container file. Raises ProgramError that names the file."""
        try:
            data = durable.read_given(Path(path))
        except OSError as error:
            raise ProgramError(f"program file {path} must be readable: {error.strerror}") from None
        try:
            return cls.from_bytes(data, config)
        except ProgramError as error:
            raise ProgramError(f"{path}: {error}") from None


def align(value: int, step: int) -> int:
    """The smallest multiple of `step` that is at least `value`."""
    return -(-value // step) * step


def _check(program: Program) -> None:
    numbers = [n for s in program.sections for n in (s.offset, s.size)] + [program.window_bytes, program.config_hash]
    numbers += [n for t in program.tensors for n in (t.offset, *t.shape)]
    numbers += [n for r in program.regions for n in (r.begin, r.end)]
    for number in numbers:
        if type(number) is not int:
            raise ProgramError(f"offsets, sizes and shapes must be integers, not {number!r}")
    codes = [section for section in program.sections if section.kind is SectionKind.PROGRAM]
    if len(codes) != 1:
        raise ProgramError(f"sections of kind program must be 1, not {len(codes)}")
    streams = [section for section in program.sections if section.kind in STREAMS]
    if len(streams) > 2:
        raise ProgramError(f"sections of kind resident must be at most 1, not {len(streams) - 1}")
    for code in streams:
        if code.data is None or not code.size or code.size % INSTRUCTION_BYTES:
            raise ProgramError(f"section {code.name} must hold whole instructions of {INSTRUCTION_BYTES} bytes")
    if not 0 < program.window_bytes < WINDOW_LIMIT or program.window_bytes % SECTION_ALIGN:
        raise ProgramError(
            f"window_bytes must be a multiple of {SECTION_ALIGN} below {WINDOW_LIMIT}, not {program.window_bytes}"
        )
    if program.sizes and (
        tuple(key for key, _ in program.sizes) != SIZES or hash_of_sizes(dict(program.sizes)) != program.config_hash
    ):
        raise ProgramError(f"sizes must be those of hash {program.config_hash:#010x}, not {dict(program.sizes)}")
    _check_sections(program)
    sizes = {section.name: section.size for section in program.sections}
    for slot in program.tensors:
        size = sizes[slot.section] if slot.section in sizes else program.section(slot.section).size
        if not 0 <= slot.offset <= size:
            raise ProgramError(f"tensor {slot.name}: offset must be from 0 to {size}, not {slot.offset}")
        if min(slot.shape, default=1) < 1:
            raise ProgramError(f"tensor {slot.name}: extents must be at least 1, not {list(slot.shape)}")
        if slot.dtype not in DTYPES:
            raise ProgramError(one_of(f"tensor {slot.name}: dtype", DTYPES, slot.dtype))
    for region in program.regions:
        if not 0 <= region.begin <= region.end <= program.count:
            raise ProgramError(
                f"region {region.name} must lie in [0, {program.count}], not {region.begin}:{region.end}"
            )
    _check_names("section", [section.name for section in program.sections])
    _check_names("tensor", [tensor.name for tensor in program.tensors])
    for region in program.regions:
        _check_names("region", [region.name])
    if not CONFIG_NAME.fullmatch(program.config):
        raise ProgramError(
            f"configuration name must be 1 to 64 letters, digits, '_', '.', '+' and '-', not {program.config!r}"
        )


def _check_names(what: str, names: list[str]) -> None:
    """Names are unique, and words that assembly text can hold."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ProgramError(f"{what} name must be unique, not {name} twice")
        if not name.isprintable() or name.split() != [name] or ";" in name:
            raise ProgramError(f"{what} name must be printable without spaces and semicolons, not {name!r}")
        seen.add(name)


def _check_sections(program: Program) -> None:
    previous: Section | None = None
    for section in sorted(program.sections, key=lambda s: (s.offset, s.size)):
        name = f"section {section.name}"
        if section.offset < 0 or section.offset % SECTION_ALIGN:
            raise ProgramError(f"{name}: offset must be a multiple of {SECTION_ALIGN}, not {section.offset}")
        if section.size < 0 or section.end > program.window_bytes:
            raise ProgramError(f"{name} must end inside the window of {program.window_bytes}, not at {section.end}")
        if section.data is not None and len(section.data) != section.size:
            raise ProgramError(f"{name}: data must be {section.size} bytes, not {len(section.data)}")
        if previous is not None and section.size and section.offset < previous.end:
            raise ProgramError(f"{name} must not overlap section {previous.name}")
        previous = section if section.size else previous


def _header(program: Program) -> dict[str, object]:
    return {
        "config": program.config,
        "sizes": dict(program.sizes),
        "window_bytes": program.window_bytes,
        "sections": [
            {"name": s.name, "kind": s.kind.value, "offset": s.offset, "size": s.size, "stored": s.data is not None}
            for s in program.sections
        ],
        "tensors": [
            {
                "name": t.name,
                "section": t.section,
                "offset": t.offset,
                "shape": list(t.shape),
                "dtype": t.dtype,
                "layout": t.layout.value,
            }
            for t in program.tensors
        ],
        "regions": [{"name": r.name, "begin": r.begin, "end": r.end} for r in program.regions],
    }


def _from_container(container: Container) -> Program:
    try:
        header: dict[str, Any] = parse_json(container.header)
        sections: list[Section] = []
        position = 0
        for row in header["sections"]:
            data = None
            if row["stored"]:
                data = container.data[position : position + row["size"]]
                position += row["size"]
            sections.append(Section(row["name"], SectionKind(row["kind"]), row["offset"], row["size"], data))
        tensors = tuple(
            TensorSlot(t["name"], t["section"], t["offset"], tuple(t["shape"]), t["dtype"], TensorLayout(t["layout"]))
            for t in header["tensors"]
        )
        regions = tuple(Region(r["name"], r["begin"], r["end"]) for r in header["regions"])
        if position != len(container.data):
            raise ProgramError(f"program data must be {position} bytes, not {len(container.data)}")
        sizes = tuple((key, header["sizes"][key]) for key in SIZES if header["sizes"])
        code, window = container.config_hash, header["window_bytes"]
        return Program(header["config"], code, window, tuple(sections), tensors, regions, sizes)
    except AccelError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ProgramError(f"program header must describe sections and tensors; it is damaged ({error!r})") from None
