"""The link to a board on Ethernet: words of its bus, read and written by Etherbone over UDP as the board speaks it.

In: `etherbone://host:port`. Out: `EtherboneLink`, which answers to what `relay_hw.accel.fpga.link.Link` asks.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Sequence
from typing import Final

from relay_hw.accel.fpga.link import LinkError

PREFIX: Final = "etherbone://"
PORT: Final = 1234
# One packet is under way at a time, and it must fit the board's memory for a frame: 255 words with heads and check.
_MOST_WORDS: Final = 224
_ATTEMPTS: Final = 3
# Magic word, version 1, addresses and data of four bytes.
_HEAD: Final = struct.pack(">HBB4x", 0x4E6F, 0x10, 0x44)
_RECORD: Final = struct.Struct(">BBBB")
_NO_FLAGS, _ALL_BYTES = 0x00, 0x0F
_LARGEST_PACKET: Final = 2048


class EtherboneLink:
    """32-bit words on the bus of a board. Raises LinkError when the board does not answer in time."""

    def __init__(self, endpoint: socket.socket, name: str, seconds: float) -> None:
        self._socket = endpoint
        self._name = name
        self._seconds = seconds
        self._turn = 0

    def write(self, address: int, words: Sequence[int]) -> None:
        """Write `words` from byte `address` on, a multiple of 4; each packet is confirmed by a read of its own."""
        for begin in range(0, len(words), _MOST_WORDS):
            part = words[begin : begin + _MOST_WORDS]
            at = address + 4 * begin
            self._ask(struct.pack(f">{len(part) + 1}I", at, *part), len(part), [at], attempts=1)

    def read(self, address: int, count: int) -> list[int]:
        """`count` words from byte `address` on, a multiple of 4."""
        words: list[int] = []
        for begin in range(0, count, _MOST_WORDS):
            size = min(_MOST_WORDS, count - begin)
            words += self._ask(b"", 0, [address + 4 * (begin + k) for k in range(size)], _ATTEMPTS)
        return words

    def close(self) -> None:
        """Close the link."""
        self._socket.close()

    def _ask(self, writes: bytes, write_count: int, reads: Sequence[int], attempts: int) -> list[int]:
        """Send one packet, wait for the words it asks for. What was only read may be asked again."""
        for _ in range(attempts):
            # The answer repeats a number of ours: what comes late is not taken for another's answer.
            self._turn = (self._turn + 4) & 0xFFFF_FFFC
            record = _RECORD.pack(_NO_FLAGS, _ALL_BYTES, write_count, len(reads))
            packet = _HEAD + record + writes + struct.pack(f">{len(reads) + 1}I", self._turn, *reads)
            words = self._exchange(packet, len(reads))
            if words is not None:
                return words
        raise LinkError(f"link {self._name} must answer in {self._seconds:g} seconds; is the board connected?")

    def _exchange(self, packet: bytes, count: int) -> list[int] | None:
        # Whatever else comes meanwhile.
        end = time.monotonic() + self._seconds
        try:
            self._socket.send(packet)
            while time.monotonic() < end:
                words = self._words_of(self._socket.recv(_LARGEST_PACKET), count)
                if words is not None:
                    return words
            return None
        except TimeoutError:
            return None
        except OSError as error:
            raise LinkError(f"link {self._name} must take data: {error}") from None

    def _words_of(self, answer: bytes, count: int) -> list[int] | None:
        """Words of the answer to the last packet; None for anything else."""
        begin = len(_HEAD) + _RECORD.size
        if len(answer) < begin + 4 * (count + 1) or answer[:4] != _HEAD[:4]:
            return None
        turn, *words = struct.unpack_from(f">{count + 1}I", answer, begin)
        return words if turn == self._turn else None


def open_etherbone(address: str, seconds: float) -> EtherboneLink:
    """Open `etherbone://host` or `etherbone://host:port`; `seconds`: how long an answer may take. Raises LinkError."""
    host, _, port = address.removeprefix(PREFIX).partition(":")
    endpoint = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        number = int(port or PORT)
        endpoint.settimeout(seconds)
        endpoint.connect((host, number))
        # Boards answer to their own port number.
        here = endpoint.getsockname()[0]
        endpoint.close()
        endpoint = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        endpoint.settimeout(seconds)
        endpoint.bind((here, number))
        endpoint.connect((host, number))
    except (OSError, ValueError, OverflowError) as error:
        endpoint.close()
        raise LinkError(f"port {address} must be {PREFIX}host:port of a board: {error}") from None
    return EtherboneLink(endpoint, address, seconds)
