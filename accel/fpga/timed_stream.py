"""A model of a board's serial link: when bytes have gone over it, while the board's driver runs unchanged.

In: what the link and the SoC take. Out: `TimedStream` for a `UartboneLink`; its clock says how long a board takes.
Nothing is computed: memory and counters but CYCLES read as zero, so that what a driver sends is all that matters.
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass

from relay_hw.accel.fpga.soc_map import SocMap
from relay_hw.accel.fpga.uartbone import BITS_A_BYTE, HEAD, READ, WRITE
from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.registers import REGISTER
from relay_hw.accel.isa.spec import DEVICE_MAGIC, ISA_VERSION
from relay_hw.accel.sim.registers import BUSY_BIT, DONE_BIT


@dataclass(frozen=True, slots=True)
class Exchanged:
    """Bytes that went over the link, each way."""

    to_board: int = 0
    from_board: int = 0


class TimedStream:
    """Takes commands and gives answers as a SoC's bridge does, and keeps the time.

    The link carries both ways at once. A command is carried out as its last byte arrives, a launch takes
    `launch_cycles` of the SoC's clock from there; set these before it.
    """

    def __init__(self, config: AccelConfig, soc: SocMap) -> None:
        self._byte_seconds = BITS_A_BYTE / soc.baud
        self._clock_hz = soc.clock_hz
        self._base = soc.registers_base
        known = {"MAGIC": DEVICE_MAGIC, "VERSION": ISA_VERSION, "CONFIG_HASH": config.hash32}
        self._registers = {REGISTER[name].offset: value for name, value in known.items()}
        self._answers: deque[tuple[float, bytes]] = deque()
        # When each direction of the link is free again, and the launch under way has ended.
        self._out_free = self._in_free = self._ends = 0.0
        self._now = 0.0
        self.launch_cycles = 0
        self.exchanged = Exchanged()

    def now(self) -> float:
        """Seconds since the link was made."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds

    def write(self, data: bytes, /) -> int:
        """Queue whole commands for the board: nobody waits for them."""
        self._out_free = max(self._out_free, self._now)
        self.exchanged = Exchanged(self.exchanged.to_board + len(data), self.exchanged.from_board)
        at = 0
        while at < len(data):
            code, count, word = HEAD.unpack_from(data, at)
            size = HEAD.size + (4 * count if code == WRITE else 0)
            at += size
            self._out_free += size * self._byte_seconds
            self._carry_out(code, count, 4 * word - self._base)
        return len(data)

    def read(self, size: int, /) -> bytes:
        """The next answers, when they have come."""
        found = b""
        while len(found) < size and self._answers:
            self._now, part = self._answers.popleft()
            found += part
        self.exchanged = Exchanged(self.exchanged.to_board, self.exchanged.from_board + len(found))
        return found

    def close(self) -> None:
        """See `Stream`."""

    def _carry_out(self, code: int, count: int, offset: int) -> None:
        """A command whose last byte arrives now; `offset`: bytes from the first register to what it is for."""
        if code == WRITE and offset == REGISTER["CONTROL"].offset:
            self._ends = self._out_free + self.launch_cycles / self._clock_hz
        if code == READ:
            self._in_free = max(self._in_free, self._out_free) + 4 * count * self._byte_seconds
            values = [self._register(offset + 4 * k) for k in range(count)]
            self._answers.append((self._in_free, struct.pack(f">{count}I", *values)))

    def _register(self, offset: int) -> int:
        if offset == REGISTER["STATUS"].offset:
            return BUSY_BIT if self._out_free < self._ends else DONE_BIT
        if offset == REGISTER["CYCLES"].offset:
            return self.launch_cycles
        return self._registers.get(offset, 0)
