"""A cached copy of a board's memory: bytes are sent over the link only where they differ from it.

In: bytes for places of the memory. Out: words over the link, and bytes that came back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.fpga.link import Link
from relay_hw.accel.fpga.soc_map import SocMap
from relay_hw.accel.isa.errors import AccelError, ProgramError
from relay_hw.accel.sim.device import Bytes
from relay_hw.support.progress import SILENT, Progress

_CHUNK_BYTES: Final = 4096
_SENDING: Final = "sending bytes"
# Every data pin high and low, alone among the others and beside them.
_PATTERN: Final = (0x0000FFFF, 0xFFFF0000, 0x55AA33CC, 0xAA55CC33, *(1 << bit for bit in range(32)))


class BoardMemory:
    """Bytes of a board's memory, by their offsets from its first one. Raises LinkError when the link is gone.

    `sleep` lets seconds pass, `confirm` reads any register, `progress` hears of long transfers.
    """

    def __init__(
        self,
        link: Link,
        soc: SocMap,
        sleep: Callable[[float], None],
        confirm: Callable[[], object],
        progress: Progress = SILENT,
    ) -> None:
        self._link = link
        self._soc = soc
        self._sleep = sleep
        self._confirm = confirm
        self._progress = progress
        # What is known to be there; -1 for bytes that the accelerator may have changed.
        self._known: NDArray[np.int16] = np.full(0, -1, np.int16)

    def prepare(self) -> None:
        """Tell the memory how to work, once after the board was configured, and see that it keeps what it gets."""
        setup = self._soc.setup
        if setup is None or self._link.read(setup.address, 1) == [setup.ready]:
            return
        for step in setup.steps:
            for address, word in step.writes:
                self._link.write(address, [word])
            self._sleep(step.pause_us / 1e6)
        base = self._soc.memory_base
        self._link.write(base, _PATTERN)
        found = self._link.read(base, len(_PATTERN))
        if found != list(_PATTERN):
            given, got = next((a, b) for a, b in zip(_PATTERN, found, strict=True) if a != b)
            raise AccelError(
                f"memory of {self._soc.board} must give back {given:#010x}, not {got:#010x}, after its setup"
            )

    def reach(self, end: int) -> None:
        """Extend the copy to byte `end`."""
        if self._known.size < end:
            self._known = np.concatenate([self._known, np.full(end - self._known.size, -1, np.int16)])

    def forget(self, begin: int, end: int) -> None:
        """Bytes [begin, end) may have changed."""
        self._known[begin:end] = -1

    def send(self, offset: int, data: Bytes) -> None:
        """Write the words from byte `offset` on that differ from the copy.

        An answer after each part but the last says that all before it has arrived: a link that is gone is noticed
        there, and no answer that comes later has long to wait.
        """
        begin, end = _word_bounds(offset, data.size)
        whole = self._whole_words(begin, end, offset, data)
        is_sent = False
        if whole.size > _CHUNK_BYTES:
            self._progress.started(_SENDING, whole.size)
        for at in range(0, whole.size, _CHUNK_BYTES):
            part = whole[at : at + _CHUNK_BYTES]
            known = self._known[begin + at : begin + at + part.size]
            if np.array_equal(known, part):
                continue
            if is_sent:
                self._confirm()
                self._progress.advanced(_SENDING, at)
            self._link.write(self._soc.memory_base + begin + at, part.view("<u4").tolist())
            known[:] = part
            is_sent = True

    def read(self, offset: int, size: int) -> Bytes:
        """Read `size` bytes from `offset` on into the copy and return them."""
        begin, end = _word_bounds(offset, size)
        found = self._receive(begin, end)
        self._known[begin:end] = found
        return found[offset - begin : offset - begin + size].copy()

    def poke(self, offset: int, data: Bytes) -> None:
        """Write whole words, whatever is known of them. Raises ProgramError outside the memory."""
        self._check_words(offset, data.size)
        self.prepare()
        self.forget(offset, offset + data.size)
        self._link.write(self._soc.memory_base + offset, data.view("<u4").tolist())

    def peek(self, offset: int, size: int) -> Bytes:
        """Whole words as they are there now. Raises ProgramError outside the memory."""
        self._check_words(offset, size)
        self.prepare()
        return self._receive(offset, offset + size)

    def _check_words(self, offset: int, size: int) -> None:
        most = self._soc.memory_bytes
        if offset % 4 or size % 4 or not 0 <= offset <= offset + size <= most:
            raise ProgramError(f"memory access must be words in [0, {most}), not [{offset}, {offset + size})")

    def _whole_words(self, begin: int, end: int, offset: int, data: Bytes) -> Bytes:
        """`data` with the bytes of its first and last word that are not its own, read from the board."""
        if (begin, end) == (offset, offset + data.size):
            return np.ascontiguousarray(data)
        whole = self._receive(begin, end)
        whole[offset - begin : offset - begin + data.size] = data
        return whole

    def _receive(self, begin: int, end: int) -> Bytes:
        """Bytes `begin` to `end`, whole words."""
        words = self._link.read(self._soc.memory_base + begin, (end - begin) // 4)
        return np.array(words, "<u4").view(np.uint8)


def _word_bounds(offset: int, size: int) -> tuple[int, int]:
    """The words around `size` bytes at `offset`, as bytes: first and one past the last."""
    return offset // 4 * 4, -(-(offset + size) // 4) * 4
