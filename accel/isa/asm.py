"""Assembler: readable text to a `Program`. `disasm` is its inverse; ISA.md, section "Assembly", states the syntax.

In: text and the name that messages use for it. Out: a Program, or AsmError `file:line: X must be Y, not Z`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from relay_hw.accel.isa.config import SEMAPHORES, SIZES, AccelConfig, config_from_dict, config_names, load_config
from relay_hw.accel.isa.errors import AccelError, AsmError, ConfigError, EncodeError
from relay_hw.accel.isa.fields import Field, check_value
from relay_hw.accel.isa.program import (
    SECTION_ALIGN,
    WINDOW_ALIGN,
    Program,
    Region,
    Section,
    SectionKind,
    TensorLayout,
    TensorSlot,
    align,
)
from relay_hw.accel.isa.records import encode_cof, encode_prm, encode_uops
from relay_hw.accel.isa.spec import BY_NAME, INSTRUCTION_BYTES, Instruction
from relay_hw.accel.isa.stream import encode_instructions
from relay_hw.support import durable
from relay_hw.support.names import one_of

# Widths that `.data` takes lists of integers in.
DATA_BYTES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8}
# Of all sections with data together: a line of a few characters may ask for as much as the window.
MOST_DATA = 1 << 28
# Of the data that one line draws, some 50 million a second.
MOST_RANDOM = 1 << 26
# Random values are made so many at a time: each takes eight bytes while it is.
_CHUNK = 1 << 16
_U64 = (1 << 64) - 1
_DIRECTIVES = (".config", ".window", ".section", ".uop", ".prm", ".cof", ".data", ".tensor", ".region", ".word")


@dataclass(slots=True)
class _OpenSection:
    name: str
    kind: SectionKind
    offset: int
    size: int
    data: bytearray | None = None


@dataclass(slots=True)
class _Source:
    """What the lines read so far say."""

    config_name: str = ""
    config_hash: int = 0
    sizes: tuple[tuple[str, int], ...] = ()
    config: AccelConfig | None = None
    window_bytes: int | None = None
    sections: list[_OpenSection] = field(default_factory=list[_OpenSection])
    tensors: list[TensorSlot] = field(default_factory=list[TensorSlot])
    regions: list[Region] = field(default_factory=list[Region])
    code: bytearray = field(default_factory=bytearray)
    data_bytes: int = 0


class _Refusal(Exception):
    """A message without its place."""


def assemble(text: str, name: str = "<text>") -> Program:
    """Program of `text`. Raises AsmError whose message starts with `name:line:`."""
    source = _Source()
    number = 1
    try:
        for line in text.splitlines():
            words = line.split(";", 1)[0].split()
            if words:
                _read_line(source, words)
            number += 1
        return _finish(source)
    except (_Refusal, AccelError, ValueError) as error:
        raise AsmError(f"{name}:{number}: {error}") from None


def assemble_file(path: str | Path) -> Program:
    """Program of a text file. Raises AsmError."""
    try:
        text = durable.read_given_text(Path(path))
    except OSError as error:
        raise AsmError(f"{path}:0: file must be readable: {error.strerror}") from None
    except UnicodeDecodeError:
        raise AsmError(f"{path}:0: file must be UTF-8 text") from None
    return assemble(text, str(path))


def random_bytes(seed: int, size: int, low: int = -128, high: int = 127) -> bytes:
    """`size` int8 values from `low` to `high`; SplitMix64 of seed and position, equal everywhere."""
    start = np.uint64((seed * 0x632BE59BD9B4E019) & _U64)
    chunks = (_random_chunk(start, at, min(_CHUNK, size - at), low, high) for at in range(0, size, _CHUNK))
    return b"".join(chunks)


def _random_chunk(start: np.uint64, at: int, size: int, low: int, high: int) -> bytes:
    z = start + np.arange(at + 1, at + size + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = (z ^ (z >> np.uint64(31))) >> np.uint64(32)
    return (low + (z % np.uint64(high - low + 1)).astype(np.int64)).astype(np.int8).tobytes()


def _read_line(source: _Source, words: list[str]) -> None:
    head, rest = words[0], words[1:]
    if head in BY_NAME:
        _add_code(source, _instruction(BY_NAME[head], rest))
        return
    match head:
        case ".config":
            _read_config(source, rest)
        case ".window":
            source.window_bytes = _integer("window", _only(head, rest))
        case ".section":
            _read_section(source, rest)
        case ".uop":
            values = _integers(head, rest, {"dst": 0, "src": 0, "wgt": 0, "first": 0})
            _append(source, encode_uops(**values).tobytes())
        case ".prm":
            _append(source, _read_prm(source, rest))
        case ".cof":
            _append(source, _read_cof(source, rest))
        case ".data":
            _append(source, _read_data(source, rest))
        case ".tensor":
            source.tensors.append(_read_tensor(rest))
        case ".region":
            name, begin, end = _arguments(head, rest, ("name", "begin", "end"))
            source.regions.append(Region(name, _integer("begin", begin), _integer("end", end)))
        case ".word":
            word = _integer("word", _only(head, rest))
            if not 0 <= word < 1 << (8 * INSTRUCTION_BYTES):
                raise _Refusal(f"word must fit {8 * INSTRUCTION_BYTES} bits, not {word:#x}")
            _add_code(source, word.to_bytes(INSTRUCTION_BYTES, "little"))
        case _:
            raise _Refusal(one_of("statement", [*BY_NAME, *_DIRECTIVES], head))


def _instruction(row: Instruction, words: list[str]) -> bytes:
    fields = {f.name: f for f in row.layout.fields if f.name != "opcode"}
    values: dict[str, int] = {}
    for key, text in _pairs(words).items():
        if key not in fields:
            raise _Refusal(one_of(f"field of {row.name}", fields, key))
        values[key] = _field_value(fields[key], text)
        check_value(row.name, fields[key], values[key])
    try:
        return encode_instructions([(row.op, values)])
    except EncodeError as error:
        raise _Refusal(str(error).partition(": ")[2]) from None


def _field_value(row: Field, text: str) -> int:
    if row.name in ("wait", "set"):
        return _semaphores(row.name, text)
    if row.enum is None or text[0].isdigit() or text[0] == "-":
        return _integer(row.name, text)
    for member in row.enum:
        if member.name.lower() == text:
            return member.value
    raise _Refusal(one_of(row.name, [member.name.lower() for member in row.enum], text))


def _semaphores(key: str, text: str) -> int:
    mask = 0
    for part in text.split(","):
        number = int(part[1:]) if part[:1] == "s" and part[1:].isdecimal() else -1
        if not 0 <= number < SEMAPHORES:
            raise _Refusal(f"{key} must list semaphores s0 to s{SEMAPHORES - 1}, not {part}")
        mask |= 1 << number
    return mask


def _read_config(source: _Source, words: list[str]) -> None:
    if not words:
        raise _Refusal(".config must be followed by a name, and by a hash or sizes where it is not at hand")
    source.config_name = words[0]
    if len(words) == 2:
        source.config_hash = _integers(".config", words[1:], {"hash": 0})["hash"]
        return
    try:
        sizes = _integers(".config", words[1:], dict.fromkeys(SIZES, 0)) if words[1:] else {}
        source.config = config_from_dict(sizes, words[0]) if sizes else _named(words[0])
    except ConfigError as error:
        raise _Refusal(str(error)) from None
    source.config_name, source.config_hash = source.config.name, source.config.hash32
    source.sizes = tuple(source.config.sizes.items())


def _named(name: str) -> AccelConfig:
    """A configuration that comes with this package: a text must not make its reader open other files."""
    known = config_names()
    if name not in known:
        raise _Refusal(f".config without sizes must name one of {', '.join(known)}, not {name}")
    return load_config(name)


def _read_section(source: _Source, words: list[str]) -> None:
    if len(words) == 3 and words[1] == SectionKind.PROGRAM.value:
        words = [*words, "0"]
    name, kind_text, offset, size = _arguments(".section", words, ("name", "kind", "offset", "size"))
    kinds = [kind.value for kind in SectionKind]
    if kind_text not in kinds:
        raise _Refusal(one_of("section kind", kinds, kind_text))
    kind = SectionKind(kind_text)
    if kind is SectionKind.PROGRAM and any(section.kind is kind for section in source.sections):
        raise _Refusal("section of kind program must be declared once, not twice")
    source.sections.append(_OpenSection(name, kind, _integer("offset", offset), _integer("size", size)))


def _add_code(source: _Source, word: bytes) -> None:
    """Instructions behind a resident section belong to it, all others to the program."""
    if source.sections and source.sections[-1].kind is SectionKind.RESIDENT:
        _append(source, word)
    else:
        source.code += word


def _append(source: _Source, data: bytes) -> None:
    section = _current(source)
    assert section.data is not None
    section.data += data
    if len(section.data) > section.size:
        raise _Refusal(f"section {section.name} must hold at most {section.size} bytes, not {len(section.data)}")


def _current(source: _Source) -> _OpenSection:
    if not source.sections or source.sections[-1].kind is SectionKind.PROGRAM:
        raise _Refusal("data must follow a .section of another kind than program")
    section = source.sections[-1]
    if section.data is None:
        # What the text leaves out of a section is zeros.
        source.data_bytes += section.size
        if source.data_bytes > MOST_DATA:
            raise _Refusal(f"sections with data must take at most {MOST_DATA:,} bytes, not {source.data_bytes:,}")
        section.data = bytearray()
    return section


def _read_prm(source: _Source, words: list[str]) -> bytes:
    lanes = source.config.block_out if source.config else 1
    bits = source.config.multiplier_bits if source.config else 31
    defaults = {"bias": 0, "multiplier": 0, "shift": 0, "y_zero": 0, "r_zero": 0, "lanes": lanes}
    values = _integers(".prm", words, defaults)
    lanes = _lanes(values)
    return encode_prm(**values, multiplier_bits=bits).tobytes() * lanes


def _read_cof(source: _Source, words: list[str]) -> bytes:
    lanes = source.config.row_lanes if source.config else 0
    values = _integers(".cof", words, {"gain": 0, "bias": 0, "lanes": max(lanes, 1)})
    lanes = _lanes(values)
    return encode_cof(**values).tobytes() * lanes


def _lanes(values: dict[str, int]) -> int:
    """Take out how often a record is there."""
    lanes = values.pop("lanes")
    if not 1 <= lanes <= 1 << 16:
        raise _Refusal(f"lanes must be from 1 to {1 << 16}, not {lanes}")
    return lanes


def _read_data(source: _Source, words: list[str]) -> bytes:
    section = _current(source)
    room = section.size - len(section.data or b"")
    form, rest = (words[0], words[1:]) if words else ("", [])
    if form in DATA_BYTES:
        return b"".join(_element(text, DATA_BYTES[form]) for text in rest)
    match form:
        case "hex":
            digits = "".join(rest)
            try:
                return bytes.fromhex(digits)
            except ValueError:
                raise _Refusal(f"hex data must be pairs of hexadecimal digits, not {digits}") from None
        case "zero":
            return bytes(_size(_integers(".data zero", rest, {"size": room})["size"], room))
        case "random":
            values = _integers(".data random", rest, {"seed": 0, "size": room, "low": -128, "high": 127})
            low, high = values["low"], values["high"]
            if not -128 <= low <= high <= 127:
                raise _Refusal(f"low and high must be ordered and fit int8, not {low} and {high}")
            size = _size(values["size"], room)
            if size > MOST_RANDOM:
                raise _Refusal(f"random data must take at most {MOST_RANDOM:,} bytes, not {size:,}")
            return random_bytes(values["seed"], size, low, high)
        case _:
            known = ", ".join(["hex", "zero", "random", *DATA_BYTES])
            raise _Refusal(f".data must be followed by one of {known}, not {form or 'nothing'}")


def _size(size: int, room: int) -> int:
    if not 0 <= size <= room:
        raise _Refusal(f"size must be from 0 to the section's remaining {room} bytes, not {size}")
    return size


def _element(text: str, width: int) -> bytes:
    value = _integer("data", text.rstrip(","))
    bits = 8 * width
    if not -(1 << (bits - 1)) <= value < 1 << bits:
        raise _Refusal(f"data must fit {bits} bits, not {value}")
    return (value & ((1 << bits) - 1)).to_bytes(width, "little")


def _read_tensor(words: list[str]) -> TensorSlot:
    names = ("name", "section", "offset", "dtype", "shape", "layout")
    name, section, offset, dtype, shape, layout = _arguments(".tensor", words, names)
    layouts = [member.value for member in TensorLayout]
    if layout not in layouts:
        raise _Refusal(one_of("layout", layouts, layout))
    extents = () if shape == "scalar" else tuple(_integer("shape", extent) for extent in shape.split("x"))
    return TensorSlot(name, section, _integer("offset", offset), extents, dtype, TensorLayout(layout))


def _finish(source: _Source) -> Program:
    if not source.config_name:
        raise _Refusal("text must name its configuration with .config")
    end = max((section.offset + section.size for section in source.sections), default=0)
    if not any(section.kind is SectionKind.PROGRAM for section in source.sections):
        source.sections.append(_OpenSection("program", SectionKind.PROGRAM, align(end, SECTION_ALIGN), 0))
    sections: list[Section] = []
    for section in source.sections:
        data = None if section.data is None else bytes(section.data).ljust(section.size, b"\0")
        if section.kind is SectionKind.PROGRAM:
            section.size, data = len(source.code), bytes(source.code)
        sections.append(Section(section.name, section.kind, section.offset, section.size, data))
    window = source.window_bytes
    if window is None:
        window = align(max(section.end for section in sections), WINDOW_ALIGN)
    return Program(
        source.config_name,
        source.config_hash,
        window,
        tuple(sections),
        tuple(source.tensors),
        tuple(source.regions),
        source.sizes,
    )


def _pairs(words: list[str]) -> dict[str, str]:
    result: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key or not value:
            raise _Refusal(f"operand must be field=value, not {word}")
        if key in result:
            raise _Refusal(f"operand {key} must be given once, not twice")
        result[key] = value
    return result


def _integers(head: str, words: list[str], defaults: Mapping[str, int]) -> dict[str, int]:
    result = dict(defaults)
    for key, text in _pairs(words).items():
        if key not in result:
            raise _Refusal(one_of(f"operand of {head}", defaults, key))
        result[key] = _integer(key, text)
    return result


def _arguments(head: str, words: list[str], names: tuple[str, ...]) -> list[str]:
    if len(words) != len(names):
        raise _Refusal(f"{head} must be followed by {', '.join(names)}, not {' '.join(words) or 'nothing'}")
    return words


def _only(head: str, words: list[str]) -> str:
    return _arguments(head, words, ("a number",))[0]


def _integer(key: str, text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise _Refusal(f"{key} must be an integer, not {text}") from None
