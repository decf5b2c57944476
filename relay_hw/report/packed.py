"""Packs long columns of integers into text for a page: delta-coded varints, deflated, in base64.

In: columns. Out: text, and what a reader must know of each column. `data.js` reads them.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

# Bits of a byte that hold a number; the highest says that more bytes follow.
_BITS: Final = 7
_LEVEL: Final = 9


class Packer:
    """Collects columns; what `add` returns represents a column in the page's data."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, column: Sequence[int]) -> dict[str, Any]:
        """Add a column; returns its start, its length and whether it is delta-coded."""
        values = np.asarray(column, np.int64)
        plain, differences = _bytes(values), _bytes(np.diff(values, prepend=0))
        differ = len(differences) < len(plain)
        self._parts.append(differences if differ else plain)
        begin, self._size = self._size, self._size + len(self._parts[-1])
        return {"begin": begin, "count": len(values), "differ": differ}

    def text(self) -> str:
        """All columns, deflated (RFC 1950), in base64."""
        return base64.b64encode(zlib.compress(b"".join(self._parts), _LEVEL)).decode()


def _bytes(values: NDArray[np.int64]) -> bytes:
    """Zigzag varints: each number as 2n, or as -2n - 1 if negative, in groups of bits, lowest first."""
    rest = (values << 1) ^ (values >> 63)
    rest = rest.astype(np.uint64)
    counts = np.ones(len(rest), np.int64)
    for step in range(1, 10):
        counts += (rest >> np.uint64(_BITS * step)) > 0
    ends = np.cumsum(counts)
    found = np.zeros(int(ends[-1]) if len(ends) else 0, np.uint8)
    begins = ends - counts
    for step in range(int(counts.max(initial=0))):
        has = counts > step
        group = (rest[has] >> np.uint64(_BITS * step)) & np.uint64(0x7F)
        more = (counts[has] > step + 1).astype(np.uint64) << np.uint64(_BITS)
        found[begins[has] + step] = (group | more).astype(np.uint8)
    return found.tobytes()
