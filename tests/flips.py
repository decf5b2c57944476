"""Files with one bit changed, cut, empty, or exchanged for one another: what disks, copies and people do to them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

# In the suite, and in `make test-flips`.
COUNTS = pytest.mark.parametrize("count", [10, pytest.param(1000, marks=pytest.mark.long)])


def spoiled(files: Sequence[Path], count: int) -> Iterator[str]:
    """Spoil one of `files` after the other, single bits at `count` places of all their bytes first; each is put back
    when the next one is asked for. Yields what was done."""
    draw, contents = random.Random(7), {path: path.read_bytes() for path in files}
    for _ in range(count):
        # Short files as often as long ones: a bit of a seal weighs as much as one of a library.
        path = draw.choice([path for path in files if contents[path]])
        changed = bytearray(contents[path])
        bit = draw.randrange(8 * len(changed))
        changed[bit // 8] ^= 1 << bit % 8
        yield from _with({path: bytes(changed)}, contents, f"{path.name}: bit {bit}")
    for path in files:
        yield from _with({path: contents[path][:-1]}, contents, f"{path.name}: cut by a byte")
        yield from _with({path: contents[path][: len(contents[path]) // 2]}, contents, f"{path.name}: cut in half")
        yield from _with({path: b""}, contents, f"{path.name}: empty")
        yield from _with({path: contents[path] + b"\0"}, contents, f"{path.name}: a byte more")
    for one, other in pairwise(files):
        if contents[one] != contents[other]:
            swapped = {one: contents[other], other: contents[one]}
            yield from _with(swapped, contents, f"{one.name} for {other.name}")


def _with(changes: dict[Path, bytes], contents: dict[Path, bytes], what: str) -> Iterator[str]:
    for path, data in changes.items():
        path.write_bytes(data)
    try:
        yield what
    finally:
        for path in changes:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents[path])
