"""Mutants of a compiled program: one mistake each that a scheduler might make, drawn from the instruction tables.

In: a segment and a random generator. Out: `Mutant`. Encoded words are changed, so that what no encoder would write is
tried, too. The fields are those of `accel/isa/spec.py`: a new instruction has mutants at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from random import Random

from typing_extensions import assert_never

from relay_hw.accel.isa.config import INSTRUCTION_BYTES, SEMAPHORES
from relay_hw.accel.isa.fields import Field, Layout
from relay_hw.accel.isa.program import STREAMS, Program, SectionKind
from relay_hw.accel.isa.spec import BY_OP, INSTRUCTIONS, PRM, UOP, Mem, Op, Unit
from relay_hw.accel.isa.stream import Instr, decode_instructions
from relay_hw.tensorize import Segment

# Changes of a number; multiples of it and single bits are tried as well.
STEPS = (1, -1, 2, -2, 3, 4, -4, 8, -8, 16, -16, 32, 64, -64)
# Loops of so many trips are no faster to judge than to run.
MOST_TRIPS = 300
_TRIPS = ("iter_out", "iter_in")
# Instructions of a queue between the two that are swapped, or that a token moves over.
_FAR = 4
_TOKENS = ("wait", "set")


class Kind(Enum):
    """What is wrong."""

    FIELD = "a field has another value"
    RECORD = "a field of a micro-op or parameter record has another value"
    TOKEN_LOST = "a token is not given, not taken, or neither"
    TOKEN_MOVED = "a token is given or taken by another instruction of the queue"
    TOKEN_DOUBLED = "a token is given or taken by another instruction of the queue as well"
    TOKEN_RENAMED = "a token is given to or taken from another semaphore"
    SWAPPED = "two instructions of a queue have changed places"
    SWAPPED_WORK = "two instructions of a queue have changed places, but not their tokens"
    REPEATED = "an instruction does what another one of its kind does"
    REORDERED = "two neighbours of different queues have changed places"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A segment with a mistake. `field`: the layout and the field that were changed, where it is one."""

    kind: Kind
    what: str
    segment: Segment
    field: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class _Stream:
    """One of a program's streams: its words, and what they decode to."""

    kind: SectionKind
    words: tuple[bytes, ...]
    body: Sequence[Instr]


def targets() -> Iterator[tuple[Layout, Field]]:
    """Every field of every instruction and record."""
    for layout in (*(row.layout for row in INSTRUCTIONS), UOP, PRM):
        yield from ((layout, field) for field in layout.fields)


def mutant(kind: Kind, segment: Segment, rng: Random) -> Mutant | None:
    """A mutant of this kind; None where the draw found no place for it. Fields come from `field_mutant`."""
    streams = _streams(segment.program)
    stream = rng.choices(streams, [len(one.words) for one in streams])[0]
    match kind:
        case Kind.FIELD | Kind.RECORD:
            layout, field = rng.choice(list(targets()))
            return field_mutant(segment, layout, field, rng)
        case Kind.TOKEN_LOST | Kind.TOKEN_MOVED | Kind.TOKEN_DOUBLED | Kind.TOKEN_RENAMED:
            return _token_mutant(kind, segment, stream, rng)
        case Kind.SWAPPED | Kind.SWAPPED_WORK | Kind.REPEATED | Kind.REORDERED:
            return _order_mutant(kind, segment, stream, rng)
        case _:
            assert_never(kind)


def field_mutant(segment: Segment, layout: Layout, field: Field, rng: Random) -> Mutant | None:
    """The segment with another value of this field in some word of this layout; None where it has no such word."""
    if layout in (UOP, PRM):
        return _record_mutant(segment, layout, field, rng)
    places = [
        (stream, index)
        for stream in _streams(segment.program)
        for index, (op, _) in enumerate(stream.body)
        if BY_OP[op].layout is layout
    ]
    if not places:
        return None
    stream, index = rng.choice(places)
    word, text = _changed(stream.words[index], field, rng)
    what = f"{stream.kind.value} {index} ({layout.name}): {field.name} {text}"
    words = _with(stream.words, {index: word})
    return Mutant(Kind.FIELD, what, _rewritten(segment, stream, words), (layout.name, field.name))


def _record_mutant(segment: Segment, layout: Layout, field: Field, rng: Random) -> Mutant | None:
    """Records lie where LOADs take them from."""
    size, mem = layout.width // 8, Mem.UOP if layout is UOP else Mem.PRM
    granule = 8 if layout is UOP else 16
    loads = [
        values
        for stream in _streams(segment.program)
        for op, values in stream.body
        if op is Op.LOAD and values["mem"] == mem
    ]
    if not loads:
        return None
    values = rng.choice(loads)
    # Granules are no smaller than records, and records no larger than granules of 16 bytes.
    place = values["dram"] + granule * rng.randrange(values["z"] * 16 // granule)
    section = next(one for one in segment.program.sections if one.offset <= place < one.end)
    if section.data is None or place + size > section.end:
        return None
    begin = place - section.offset
    word, text = _changed(section.data[begin : begin + size], field, rng)
    data = section.data[:begin] + word + section.data[begin + size :]
    what = f"byte {place} ({layout.name}): {field.name} {text}"
    changed = _with_section(segment, section.kind, section.name, data)
    return Mutant(Kind.RECORD, what, changed, (layout.name, field.name))


def _changed(word: bytes, field: Field, rng: Random) -> tuple[bytes, str]:
    """Another value in the place of a field, and what it was and is."""
    number, mask = int.from_bytes(word, "little"), (1 << field.width) - 1
    old = number >> field.lo & mask
    new = next(value for value in iter(lambda: _value(old, field, rng) & mask, None) if value != old)
    number ^= (old ^ new) << field.lo
    return number.to_bytes(len(word), "little"), f"{old} -> {new}"


def _value(old: int, field: Field, rng: Random) -> int:
    if field.enum is not None or field.width <= 2:
        return rng.randrange(1 << min(field.width, 4))
    if field.name in _TOKENS:
        return old ^ 1 << rng.randrange(SEMAPHORES)
    if field.name in _TRIPS:
        return min(max(1, rng.choice([old + rng.choice(STEPS), 2 * old, old // 2])), MOST_TRIPS)
    return rng.choice(
        [old + rng.choice(STEPS), old + rng.choice(STEPS), 2 * old, 0, old ^ 1 << rng.randrange(field.width)]
    )


def _token_mutant(kind: Kind, segment: Segment, stream: _Stream, rng: Random) -> Mutant | None:
    """The n-th token of a semaphore with something wrong where it is given, where it is taken, or at both ends."""
    tokens = list(_pairs(stream.body))
    if not tokens:
        return None
    semaphore, ends = rng.choice(tokens)
    names = rng.choice([_TOKENS, ("wait",), ("set",)])
    other = rng.randrange(SEMAPHORES)
    words = dict(enumerate(stream.words))
    told: list[str] = []
    for name in names:
        index = ends[name]
        place = _neighbour(stream.body, index, rng)
        if kind in (Kind.TOKEN_MOVED, Kind.TOKEN_DOUBLED) and place is None:
            return None
        if kind is not Kind.TOKEN_DOUBLED:
            words[index] = _token(words[index], stream.body[index][0], name, semaphore, False)
        if kind is Kind.TOKEN_RENAMED:
            words[index] = _token(words[index], stream.body[index][0], name, other, True)
        if kind in (Kind.TOKEN_MOVED, Kind.TOKEN_DOUBLED) and place is not None:
            words[place] = _token(words[place], stream.body[place][0], name, semaphore, True)
        told.append(f"{name} of {index}" + (f" at {place}" if place is not None else ""))
    found = tuple(words[index] for index in range(len(words)))
    what = f"{stream.kind.value}: semaphore {semaphore}, {' and '.join(told)}: {kind.value}"
    return None if found == stream.words else Mutant(kind, what, _rewritten(segment, stream, found))


def _pairs(body: Sequence[Instr]) -> Iterator[tuple[int, dict[str, int]]]:
    """Each semaphore's tokens: who gives and who takes the n-th one."""
    for semaphore in range(SEMAPHORES):
        takes, gives = (
            [index for index, (_, values) in enumerate(body) if values.get(name, 0) >> semaphore & 1]
            for name in _TOKENS
        )
        for take, give in zip(takes, gives, strict=True):
            yield semaphore, {"wait": take, "set": give}


def _token(word: bytes, op: Op, name: str, semaphore: int, there: bool) -> bytes:
    (field,) = (field for field in BY_OP[op].layout.fields if field.name == name)
    bit = 1 << field.lo + semaphore
    number = int.from_bytes(word, "little")
    return (number | bit if there else number & ~bit).to_bytes(len(word), "little")


def _order_mutant(kind: Kind, segment: Segment, stream: _Stream, rng: Random) -> Mutant | None:
    first = rng.randrange(len(stream.words) - 1)
    second = first + 1 if kind is Kind.REORDERED else _neighbour(stream.body, first, rng)
    if second is None or second >= len(stream.words) - 1:
        return None
    units = [_unit(stream.body[index][0]) for index in (first, second)]
    if (kind is Kind.REORDERED) == (units[0] is units[1]):
        return None
    one, other = stream.words[first], stream.words[second]
    if kind is Kind.REPEATED and stream.body[first][0] is not stream.body[second][0]:
        return None
    if kind in (Kind.SWAPPED_WORK, Kind.REPEATED):
        one, other = _with_tokens(one, other), _with_tokens(other, one)
    changed = {first: other} if kind is Kind.REPEATED else {first: other, second: one}
    words = _with(stream.words, changed)
    what = f"{stream.kind.value}: {first} and {second}: {kind.value}"
    return None if words == stream.words else Mutant(kind, what, _rewritten(segment, stream, words))


def _with_tokens(word: bytes, tokens: bytes) -> bytes:
    """A word with the tokens of another one: they lie in the same place in every instruction."""
    return word[:4] + tokens[4:8] + word[8:]


def _neighbour(body: Sequence[Instr], index: int, rng: Random) -> int | None:
    """An instruction of the same queue, not far away."""
    own = _unit(body[index][0])
    queue = [at for at, (op, _) in enumerate(body) if _unit(op) is own]
    at = queue.index(index)
    near = [one for one in queue[max(0, at - _FAR) : at + _FAR + 1] if one != index]
    return rng.choice(near) if near else None


def _unit(op: Op) -> Unit | None:
    return BY_OP[op].unit


def _streams(program: Program) -> list[_Stream]:
    found: list[_Stream] = []
    for section in program.sections:
        if section.kind in STREAMS and section.data is not None:
            data = section.data
            words = tuple(data[at : at + INSTRUCTION_BYTES] for at in range(0, len(data), INSTRUCTION_BYTES))
            found.append(_Stream(section.kind, words, decode_instructions(data)))
    return found


def _with(words: Sequence[bytes], changed: dict[int, bytes]) -> tuple[bytes, ...]:
    return tuple(changed.get(index, word) for index, word in enumerate(words))


def _rewritten(segment: Segment, stream: _Stream, words: Sequence[bytes]) -> Segment:
    (name,) = (section.name for section in segment.program.sections if section.kind is stream.kind)
    return _with_section(segment, stream.kind, name, b"".join(words))


def _with_section(segment: Segment, kind: SectionKind, name: str, data: bytes) -> Segment:
    sections = tuple(
        replace(section, data=data) if (section.kind, section.name) == (kind, name) else section
        for section in segment.program.sections
    )
    return replace(segment, program=replace(segment.program, sections=sections))
