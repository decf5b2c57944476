"""The line to a board: words of its bus, read and written over bytes by the protocol of LiteX's UARTBone.

In: a serial port (`/dev/ttyUSB0`), a simulation (`socket://host:port`) or Ethernet (`etherbone://host`). Out: `Line`.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from relay_hw.accel.fpga.etherbone import PREFIX, open_etherbone
from relay_hw.accel.fpga.line import Line, LinkError

# On the line: a start bit, eight of data, a stop bit.
BITS_A_BYTE: Final = 10
# A command: its code, its count of words, and the bus's number of the first one.
HEAD: Final = struct.Struct(">BBI")
WRITE, READ = 1, 2
# Words of a command: its count is one byte. What is written must fit the buffers of the line's driver.
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


class Link:
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
        """Give the line back."""
        self._stream.close()

    def _send(self, data: bytes) -> None:
        try:
            self._stream.write(data)
        except (OSError, ValueError) as error:
            raise LinkError(f"line {self._name} must take data: {error}") from None

    def _receive(self, size: int) -> bytes:
        try:
            data = self._stream.read(size)
        except (OSError, ValueError) as error:
            raise LinkError(f"line {self._name} must give data: {error}") from None
        if len(data) != size:
            self._drain()
            answer = f"line {self._name} must give {size} bytes in time, not {len(data)}"
            raise LinkError(f"{answer}; is the board connected?")
        return data

    def _drain(self) -> None:
        """What comes late must not be taken for the next answer; a line that goes on and on is closed."""
        end = time.monotonic() + _DRAIN_SECONDS
        while self._stream.read(1):
            if time.monotonic() > end:
                self.close()
                return


def open_link(port: str, baud: int, seconds: float) -> Line:
    """Open a serial port, `socket://host:port` or `etherbone://host`; `seconds`: how long an answer may take.

    Raises LinkError.
    """
    if port.startswith(PREFIX):
        return open_etherbone(port, seconds)
    try:
        import serial
    except ImportError:
        raise LinkError("pyserial must be installed to reach a board: pip install 'relay-hw[fpga]'") from None
    module: Any = serial
    try:
        stream: Stream = module.serial_for_url(port, baudrate=baud, timeout=seconds, write_timeout=seconds)
    except (OSError, ValueError) as error:
        raise LinkError(f"port {port} must be a serial port or socket://host:port: {error}") from None
    hurry(stream)
    return Link(stream, port)


def hurry(stream: Stream) -> None:
    """Let a USB adapter hand on short answers at once, where it can: most wait 16 ms for more bytes."""
    ask = getattr(stream, "set_low_latency_mode", None)
    if ask is not None:
        # Ports that are no adapters, and systems other than Linux, say no in these ways: the line works as it is.
        with suppress(OSError, ValueError, NotImplementedError):
            ask(True)
