"""The interface of links to boards, and the error of one that does not answer. In: addresses and words. Out: words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from relay_hw.accel.isa.errors import AccelError


class LinkError(AccelError):
    """The link to the board is missing, or went silent."""


class Link(Protocol):
    """32-bit words on the bus of a board, by byte addresses that are multiples of 4. Both ways raise LinkError."""

    def write(self, address: int, words: Sequence[int]) -> None: ...
    def read(self, address: int, count: int) -> list[int]: ...
    def close(self) -> None: ...
