"""What became of one input. In: an entry point and bytes. Out: a class, and what was said."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from random import Random
from typing import Final

from relay_hw.accel.isa.errors import AccelError
from relay_hw.errors import RelayHwError
from relay_hw.support import quote

# What readers may raise: the families of both rooms, as the command line catches them.
REFUSALS: Final = (RelayHwError, AccelError)
# A sentence may list what is allowed; more is a part of the input.
LONGEST_SENTENCE: Final = 10_000


class Outcome(Enum):
    """What becomes of an input; only the first three are right."""

    ACCEPTED = "accepted"
    # Accepted here, and refused by onnxruntime, or by numpy.
    ALONE = "alone"
    REFUSED = "refused"
    # An exception that is no refusal.
    INTERNAL = "internal"
    # A refusal without its place, of several lines, with characters that terminals obey, or too long to read.
    UNCLEAR = "unclear"
    # Another result than that of onnxruntime, of numpy, or of the same reader for what the writer makes of it.
    WRONG = "wrong"
    CRASH = "crash"
    SLOW = "slow"
    BIG = "big"

    @property
    def is_right(self) -> bool:
        """Whether a run may end with such an outcome."""
        return self in (Outcome.ACCEPTED, Outcome.ALONE, Outcome.REFUSED)


class Wrong(Exception):
    """A result that is not what it must be."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One way into the product.

    `make`: an input by chance. `take`: reads it, in a folder for itself, and checks the result; an outcome other than
    ACCEPTED where it says so. `place`: what a refusal must hold, so that people find what it means. `inputs`: of a
    whole run.
    """

    name: str
    inputs: int
    suffix: str
    make: Callable[[Random], bytes]
    take: Callable[[bytes, Path], Outcome | None]
    place: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One input's outcome, and what was said."""

    outcome: Outcome
    said: str = ""


def made(entry: Entry, seed: int, number: int) -> bytes:
    """Input `number` of a run: always the same."""
    return entry.make(Random(f"{entry.name} {seed} {number}"))


def judge(entry: Entry, data: bytes, folder: Path) -> Finding:
    """Let `entry` read `data`. Returns whatever happens, unless the process ends."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Finding(entry.take(data, folder) or Outcome.ACCEPTED)
    except Wrong as error:
        return Finding(Outcome.WRONG, str(error))
    except BaseException as error:
        return _failed(entry, error)


def _failed(entry: Entry, error: BaseException) -> Finding:
    said = f"{type(error).__name__}: {error}"
    if _wanted_memory(error):
        return Finding(Outcome.BIG, said)
    if not isinstance(error, REFUSALS):
        return Finding(Outcome.INTERNAL, f"{said} ({_where(error)})")
    sentence = str(error)
    if quote.line(sentence) != sentence:
        return Finding(Outcome.UNCLEAR, f"holds what terminals obey: {said!a}")
    if len(sentence) > LONGEST_SENTENCE:
        return Finding(Outcome.UNCLEAR, f"is {len(sentence)} characters long: {said[:200]}")
    if not re.search(entry.place, sentence):
        return Finding(Outcome.UNCLEAR, f"names no place: {said}")
    return Finding(Outcome.REFUSED, said)


def _wanted_memory(error: BaseException | None) -> bool:
    """Whether the error, or one behind it, is that memory was not enough."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, MemoryError):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _where(error: BaseException) -> str:
    """The last lines of the product that an exception came through."""
    places: list[str] = []
    trace = error.__traceback__
    while trace is not None:
        path = Path(trace.tb_frame.f_code.co_filename)
        places.append(f"{path.parent.name}/{path.name}:{trace.tb_lineno}")
        trace = trace.tb_next
    return " < ".join(reversed(places[-3:]))
