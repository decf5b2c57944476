"""The line to a board on Ethernet: packets as boards read them, lost and late ones, silence."""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw.accel.fpga.etherbone import EtherboneLink, open_etherbone
from relay_hw.accel.fpga.link import LinkError
from relay_hw.accel.fpga.open_link import open_link


class Board:
    """A board of plain words on the loopback; it drops or delays answers when told to."""

    def __init__(self) -> None:
        self.words: dict[int, int] = {}
        self.drop = 0
        self.stale: bytes | None = None
        self.most = 0
        self.line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.line.bind(("127.0.0.2", 0))
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    @property
    def address(self) -> str:
        return f"etherbone://127.0.0.2:{self.line.getsockname()[1]}"

    def stop(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
            line.sendto(b"", self.line.getsockname())
        self.thread.join()
        self.line.close()

    def _serve(self) -> None:
        while True:
            packet, peer = self.line.recvfrom(4096)
            if not packet:
                return
            # Answers go to the board's own port number.
            assert peer[1] == self.line.getsockname()[1]
            answer = self._answer(packet)
            if self.drop:
                self.drop -= 1
                self.stale = answer
                continue
            if self.stale is not None:
                self.line.sendto(self.stale, peer)
            self.line.sendto(answer, peer)

    def _answer(self, packet: bytes) -> bytes:
        magic, version, sizes = struct.unpack_from(">HBB", packet)
        assert (magic, version, sizes, packet[4:8]) == (0x4E6F, 0x10, 0x44, bytes(4))
        _, enable, writes, reads = struct.unpack_from(">BBBB", packet, 8)
        assert enable == 0x0F
        self.most = max(self.most, writes, reads)
        words = list(struct.unpack_from(f">{(len(packet) - 12) // 4}I", packet, 12))
        if writes:
            base, *data = words[: writes + 1]
            self.words |= {base + 4 * k: word for k, word in enumerate(data)}
            words = words[writes + 1 :]
        turn, *places = words
        assert len(places) == reads
        found = [self.words.get(place, 0) for place in places]
        return packet[:8] + struct.pack(f">BBBB{reads + 1}I", 0, 0x0F, reads, 0, turn, *found)


@pytest.fixture(scope="module")
def board() -> Iterator[Board]:
    board = Board()
    yield board
    board.stop()


@pytest.fixture(scope="module")
def link(board: Board) -> Iterator[EtherboneLink]:
    link = open_etherbone(board.address, 2)
    yield link
    link.close()


@settings(max_examples=30, deadline=None)
@given(
    words=st.lists(st.integers(0, (1 << 32) - 1), min_size=1, max_size=300),
    address=st.integers(0, (1 << 29)).map(lambda n: 4 * n),
)
def test_what_was_written_is_read(board: Board, link: EtherboneLink, words: list[int], address: int) -> None:
    link.write(address, words)
    assert link.read(address, len(words)) == words
    assert board.most <= 224


def test_a_lost_answer_of_a_read_is_asked_for_again() -> None:
    fresh = Board()
    link = open_etherbone(fresh.address, 0.2)
    link.write(16, [7])
    fresh.drop = 2
    assert link.read(16, 1) == [7]
    # What was late comes before the answer to another question, and is not taken for it.
    fresh.words[20] = 9
    assert link.read(20, 1) == [9]
    fresh.drop = 1
    message = r"link etherbone://127\.0\.0\.2:\d+ must answer in 0\.2 seconds; is the board connected\?"
    with pytest.raises(LinkError, match=message):
        link.write(24, [1])
    fresh.stop()
    with pytest.raises(LinkError, match=r"link etherbone://127\.0\.0\.2:\d+ must "):
        link.read(16, 1)
    link.close()


@pytest.mark.parametrize(
    "port", ["etherbone://127.0.0.2:x", "etherbone://127.0.0.2:99999", "etherbone://no.such.host."]
)
def test_an_address_that_is_none(port: str) -> None:
    with pytest.raises(LinkError, match=r"port etherbone://.* must be etherbone://host:port of a board: "):
        open_link(port, 0, 1)


def test_answers_that_are_none_do_not_keep_the_driver() -> None:
    """Somebody at the board's address who sends bytes by chance, and never stops."""
    rng = random.Random(3)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.bind(("127.0.0.2", 0))
        link = open_etherbone(f"etherbone://127.0.0.2:{line.getsockname()[1]}", 0.2)
        stop = threading.Event()

        def flood() -> None:
            _, peer = line.recvfrom(4096)
            while not stop.is_set():
                start = rng.choice((b"", b"\x4e\x6f\x10\x44", b"\x4e\x6f\x10\x44" + bytes(8)))
                line.sendto(start + rng.randbytes(rng.randrange(40)), peer)
                time.sleep(0.001)

        thread = threading.Thread(target=flood, daemon=True)
        thread.start()
        with pytest.raises(LinkError, match=r"must answer in 0\.2 seconds; is the board connected\?"):
            link.read(0, 2)
        stop.set()
        thread.join()
        link.close()
