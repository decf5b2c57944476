"""The serial link to a board: words of its bus, read and written over bytes by the protocol of LiteX's UARTBone.

In: a stream of bytes. Out: `UartboneLink`, a `relay_hw.accel.fpga.link.Link`.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from typing import Final, Protocol

from relay_hw.accel.fpga.link import LinkError

# On the serial line: a start bit, eight of data, a stop bit.
BITS_A_BYTE: Final = 10
# A command: its code, its count of words, and the bus's number of the first one.
HEAD: Final = struct.Struct(">BBI")
WRITE, READ = 1, 2
# Words of a command: its count is one byte. What is written must fit the buffers of the serial port's driver.
_MOST_WORDS = 255
# Commands under way at a time: the board has room for 16 bytes of those that wait.
_WINDOW = 2
# For what is still on its way when an answer was due.
_DRAIN_SECONDS: Final = 5.0


class Stream(Protocol):
    """Bytes to and from the board, as pyserial gives them: reads end early when their time is over."""

    def write(self, data: bytes, /) -> int | None: ...
    def read(self, size: int, /) -> bytes: ...
    def close(self) -> None: ...


class UartboneLink:
    """32-bit words on the bus of a board. Raises LinkError when the board does not answer in time."""

    def __init__(self, stream: Stream, name: str) -> None:
        self._stream = stream
        self._name = name

    def write(self, address: int, words: Sequence[int]) -> None:
        """Write `words` from byte `address` on, a multiple of 4."""
        for begin in range(0, len(words), _MOST_WORDS):
            part = words[begin : begin + _MOST_WORDS]
            head = HEAD.pack(WRITE, len(part), address // 4 + begin)
            self._send(head + struct.pack(f">{len(part)}I", *part))

    def read(self, address: int, count: int) -> list[int]:
        """`count` words from byte `address` on, a multiple of 4."""
        parts = [(begin, min(_MOST_WORDS, count - begin)) for begin in range(0, count, _MOST_WORDS)]
        words: list[int] = []
        for first in range(0, len(parts), _WINDOW):
            group = parts[first : first + _WINDOW]
            self._send(b"".join(HEAD.pack(READ, size, address // 4 + begin) for begin, size in group))
            for _, size in group:
                words += struct.unpack(f">{size}I", self._receive(4 * size))
        return words

    def close(self) -> None:
        """Close the link."""
        self._stream.close()

    def _send(self, data: bytes) -> None:
        try:
            self._stream.write(data)
        except (OSError, ValueError) as error:
            raise LinkError(f"link {self._name} must take data: {error}") from None

    def _receive(self, size: int) -> bytes:
        try:
            data = self._stream.read(size)
        except (OSError, ValueError) as error:
            raise LinkError(f"link {self._name} must give data: {error}") from None
        if len(data) != size:
            self._drain()
            answer = f"link {self._name} must give {size} bytes in time, not {len(data)}"
            raise LinkError(f"{answer}; is the board connected?")
        return data

    def _drain(self) -> None:
        """What comes late must not be taken for the next answer; a link that goes on and on is closed."""
        end = time.monotonic() + _DRAIN_SECONDS
        while self._stream.read(1):
            if time.monotonic() > end:
                self.close()
                return
