"""The line to a board: commands as UARTBone reads them, answers, silence."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_hw.accel.fpga.link import LinkError
from relay_hw.accel.fpga.open_link import hurry, open_link
from relay_hw.accel.fpga.uartbone import UartboneLink


class Bus:
    """A board of plain words that understands the protocol; it may fall silent after some bytes."""

    def __init__(self, silent_after: int | None = None) -> None:
        self.words: dict[int, int] = {}
        self.waiting = b""
        self.answers = b""
        self.left = silent_after
        self.deepest = 0

    def write(self, data: bytes, /) -> int:
        self.waiting += data
        while self.waiting:
            code, count, address = struct.unpack(">BBI", self.waiting[:6])
            size = 6 + (4 * count if code == 1 else 0)
            if len(self.waiting) < size:
                break
            body, self.waiting = self.waiting[6:size], self.waiting[size:]
            if code == 1:
                self.words |= {address + k: word for k, word in enumerate(struct.unpack(f">{count}I", body))}
            else:
                self.answers += struct.pack(f">{count}I", *(self.words.get(address + k, 0) for k in range(count)))
                self.deepest = max(self.deepest, len(self.answers))
        return len(data)

    def read(self, size: int, /) -> bytes:
        count = size if self.left is None else min(size, self.left)
        data, self.answers = self.answers[:count], self.answers[count:]
        if self.left is not None:
            self.left -= len(data)
        return data

    def close(self) -> None: ...


@given(
    words=st.lists(st.integers(0, (1 << 32) - 1), min_size=1, max_size=700),
    address=st.integers(0, (1 << 29)).map(lambda n: 4 * n),
)
def test_what_was_written_is_read(words: list[int], address: int) -> None:
    bus = Bus()
    link = UartboneLink(bus, "test")
    link.write(address, words)
    assert bus.words == {address // 4 + k: word for k, word in enumerate(words)}
    assert link.read(address, len(words)) == words
    # The board can hold few commands that wait: answers of two are under way at most.
    assert bus.deepest <= 2 * 255 * 4


def test_a_silent_line_is_an_error_and_leaves_nothing_behind() -> None:
    bus = Bus(silent_after=6)
    link = UartboneLink(bus, "ttyX")
    with pytest.raises(LinkError, match=r"link ttyX must give 8 bytes in time, not 6; is the board connected\?"):
        link.read(0, 2)


class Trickle(Bus):
    """A board that answers a read with a byte, and never stops."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.is_closed = False

    def read(self, size: int, /) -> bytes:
        self.reads += 1
        return b"x"

    def close(self) -> None:
        self.is_closed = True


def test_a_line_that_goes_on_and_on_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10_000, 2))
    monkeypatch.setattr("relay_hw.accel.fpga.uartbone.time.monotonic", lambda: next(clock))
    board = Trickle()
    with pytest.raises(LinkError, match="link ttyX must give 8 bytes in time, not 1"):
        UartboneLink(board, "ttyX").read(0, 2)
    assert board.is_closed and board.reads < 10


def test_a_port_that_is_none() -> None:
    pytest.importorskip("serial", reason="pyserial (extra fpga) is not installed")
    with pytest.raises(LinkError, match=r"port /nowhere must be a serial port or socket://host:port: "):
        open_link("/nowhere", 1_000_000, 1)


class Adapter(Bus):
    """A USB adapter; `able`: whether its driver lets it hurry."""

    def __init__(self, able: bool) -> None:
        super().__init__()
        self.able, self.asked = able, False

    def set_low_latency_mode(self, is_low: bool) -> None:
        self.asked = is_low
        if not self.able:
            raise OSError("inappropriate ioctl for device")


@pytest.mark.parametrize("able", [True, False])
def test_an_adapter_is_asked_to_hurry(able: bool) -> None:
    adapter = Adapter(able)
    hurry(adapter)
    assert adapter.asked
    hurry(Bus())
