"""Timing of the AXI port in front of an SDRAM: reads and writes share one chip, with banks, rows and refreshes.

In: bursts as the core's registers take them, the cycles of read beats. Out: when each read beat can be sampled, when
each write is answered. Beats get the chip one at a time, decided in the order of their cycles: see `Chip.time`.
Between the core and the controller each channel of addresses has a register that holds what the other side is not ready
for. Read data have one too, behind a register that they all pass.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.sim.cycle.channels import FIRST_BEAT, NEVER, Chunk
from relay_hw.accel.sim.dram_timing import MemoryModel, Sdram

_READ, _WRITE = 0, 1
_CLOSED = -1
# Cycles from the one in which a read beat leaves the controller to the first one in which it can be sampled.
_ARRIVAL = 1


class SdramReads:
    """AR register and R data in order: `ReadChannel` whose beats are finished one by one. The chip takes beats of one
    burst at a time; the next one is accepted when the last of them is chosen."""

    def __init__(self, config: AccelConfig, sdram: Sdram, latency: int) -> None:
        self.line: deque[Chunk] = deque()
        self._outstanding = config.read_outstanding
        self._bus_bytes = config.bus_bytes
        self._room = sdram.read_room(config)
        # cycles of a beat with the chip; from the first of them to that in which it can leave the controller
        self._cycles = sdram.beat_cycles(config)
        self._latency = self._cycles + latency
        # cycle of the last beat of each burst that ended; cycles in which the controller accepted its last burst, in
        # which the AR register handed its last one over; first cycle of the next beat
        self._ends: list[int] = []
        self._handed = 0
        self._free = 0
        self._beat = 0
        # the same before the last beat was sampled
        self._beat_before = 0
        # cycle of the first handshake of all, NEVER before it is known
        self.first = NEVER
        # bursts that were taken and not accepted: (cycle, place, beats, whether fetch's); the accepted one
        self._waiting: deque[tuple[int, int, int, bool]] = deque()
        self._burst: tuple[int, int, bool] | None = None
        self._served = 0
        # first cycle in which the next one can be accepted; bursts that were taken
        self._slot = 0
        self._taken = 0
        # beats that had the chip, that left the controller, that were sampled; cycles in which the next ones can leave,
        # in which the last ones did; beats to be sampled of each burst
        self._sent = 0
        self._gone = 0
        self._sampled = 0
        self._ready: deque[int] = deque()
        self._leaves: deque[int] = deque([-1], maxlen=self._room)
        self._left: deque[int] = deque()

    def take(self, cycle: int, place: int, beats: int, fetch: bool) -> None:
        """Take a burst of `beats` at byte `place` of the window in `cycle`."""
        self._taken += 1
        self._left.append(beats)
        if not self._waiting:
            self._free = max(cycle, self._handed) + 1
        self._waiting.append((cycle, place, beats, fetch))
        self._accept()

    def address(self, cycle: int) -> int:
        """The cycle in which the next chunk of `line` is sampled at the earliest, which gave `cycle`."""
        return max(cycle, self._beat)

    def finish(self, last: int, beats: int = 1) -> None:
        """Of that chunk `beats` are sampled, the last one in cycle `last`, those before it as they had the chip."""
        for cycle in range(last - (beats - 1) * self._cycles, last + 1, self._cycles):
            self._beat_before, self._beat = self._beat, cycle + 1
            self._sampled += 1
            self._leave()
        self._left[0] -= beats
        if not self._left[0]:
            self._left.popleft()
            self._ends.append(last)

    @property
    def free(self) -> int:
        """First cycle in which the AR register may take the next burst, NEVER while that is not known."""
        if len(self._waiting) > 1:
            return NEVER
        behind = self._taken - self._outstanding
        if behind < 0:
            return self._free
        return max(self._free, self._ends[behind] + 1) if behind < len(self._ends) else NEVER

    @property
    def ready(self) -> int:
        """First cycle in which the next beat may have the chip, NEVER while that is not known."""
        if self._burst is None:
            return NEVER
        behind = self._sent - self._room
        if behind < 0:
            return self._handed + 1
        if behind >= self._gone:
            return NEVER
        return max(self._handed, self._leaves[behind - self._gone]) + 1

    @property
    def place(self) -> int:
        """Of that beat."""
        assert self._burst is not None
        return self._burst[0] + self._served * self._bus_bytes

    def behind(self, most: int, decided: int, after: int, issued: int) -> tuple[int, int, int]:
        """How many of the burst's beats, `most` at most, come right behind the next one, as they have room by then. It
        has the chip from `issued` on, was decided in `decided`, and the first behind it can be in `after`; with the
        number the last two for the last of them."""
        assert self._burst is not None
        most = min(most, self._burst[1] - self._served - 1)
        left, count = self._sent + 1 - self._room - self._gone, 0
        while count < most and left < 0 and (left < -self._gone or self._leaves[left] < after):
            count, left = count + 1, left + 1
            decided, after = after, max(issued + count * self._cycles, after + 1)
        return count, decided, after

    def serve(self, decided: int, issued: int, beats: int) -> bool:
        """The next `beats` have the chip one behind the other from `issued` on, the last one as was decided in
        `decided`. True when the burst goes on."""
        assert self._burst is not None
        _, total, fetch = self._burst
        ready = issued + self._latency
        self._ready.extend(range(ready, ready + beats * self._cycles, self._cycles))
        self.line.append((ready + _ARRIVAL, beats, fetch, self._cycles))
        self._sent += beats
        self._leave()
        self._served += beats
        if self._served < total:
            return True
        self._burst = None
        self._slot = decided + 1
        self._accept()
        return False

    def _leave(self) -> None:
        """Beats leave the controller: one has a place where the one but one before it has been sampled."""
        gone, sampled = self._gone, self._sampled
        while gone < self._sent and gone < sampled + 2:
            place = self._beat if gone > sampled else self._beat_before
            self._leaves.append(max(self._ready.popleft(), self._leaves[-1] + 1, place))
            gone += 1
        self._gone = gone

    def _accept(self) -> None:
        if self._burst is None and self._waiting:
            cycle, place, beats, fetch = self._waiting.popleft()
            self._handed = max(cycle + 1, self._slot)
            self._burst, self._served = (place, beats, fetch), 0
            if self._waiting:
                self._free = max(self._waiting[0][0], self._handed) + 1
            if self.first == NEVER:
                self.first = self._handed


@dataclass(slots=True)
class _Store:
    """Bursts of a STORE that were not taken: first cycle in which the next one may be, (place, beats) of each."""

    earliest: int
    bursts: deque[tuple[int, int]]


class SdramWrites:
    """AW register, W data in order and B responses: `WriteChannel` as far as it is known. One burst is accepted at a
    time; the next one is when the last beat of it is chosen."""

    def __init__(self, config: AccelConfig, sdram: Sdram) -> None:
        self._outstanding = config.write_outstanding
        self._bus_bytes = config.bus_bytes
        self._room = sdram.write_room(config)
        self._response = sdram.beat_cycles(config) + sdram.response
        # cycle of the last response of each STORE that ended; the one behind that in which the last burst of all was
        # taken
        self.ended: list[int] = []
        self.ready = 0
        self._stores: deque[_Store] = deque()
        self._responses: list[int] = []
        # bursts that were taken; those that were not accepted: (cycle, place, beats, last of its STORE); the one that
        # was
        self._taken = 0
        self._waiting: deque[tuple[int, int, int, bool]] = deque()
        self._burst: tuple[int, int, bool] | None = None
        # its beats that had the chip; cycles in which the controller accepted it, in which the AW register handed its
        # last burst over; first cycle in which the next one can be accepted
        self._served = 0
        self._handed = 0
        self._free = 0
        self._slot = 0
        # bursts that were taken whose beats are not all sampled: first cycle on the bus, beats left
        self._data: deque[tuple[int, int]] = deque()
        # cycles in which the beats that the chip has not had are sampled; first cycle on the bus of the next one
        self._beats: deque[int] = deque()
        self._next = 0
        # all beats: those that were sampled, that had the chip; decisions of the last of these
        self._all_sampled = 0
        self._all_served = 0
        self._decided: deque[int] = deque(maxlen=self._room)

    def store(self, earliest: int, places: Iterable[int], bursts: Iterable[int]) -> None:
        """Write bursts at bytes `places` of the window, the first of which may be taken in cycle `earliest`."""
        self._stores.append(_Store(earliest, deque(zip(places, bursts, strict=True))))
        self.ready = NEVER
        self._progress()

    @property
    def ready_beat(self) -> int:
        """First cycle in which the next beat may have the chip, NEVER while that is not known."""
        if self._burst is None or not self._beats:
            return NEVER
        return max(self._beats[0], self._handed) + 1

    @property
    def place(self) -> int:
        """Of that beat."""
        assert self._burst is not None
        return self._burst[0] + self._served * self._bus_bytes

    def serve(self, decided: int, issued: int) -> bool:
        """It has the chip from `issued` on, as was decided in `decided`. True when its burst goes on."""
        assert self._burst is not None
        _, beats, last = self._burst
        self._beats.popleft()
        self._decided.append(decided)
        self._all_served += 1
        self._served += 1
        goes_on = self._served < beats
        if not goes_on:
            response = issued + self._response
            if self._responses:
                response = max(response, self._responses[-1] + 1)
            self._responses.append(response)
            if last:
                self.ended.append(response)
            self._burst = None
            self._slot = decided + 1
            self._progress()
        self._sample()
        return goes_on

    def _progress(self) -> None:
        """Take and accept as far as is known."""
        while True:
            if self._burst is None and self._waiting:
                self._accept()
            elif not self._stores or len(self._waiting) > 1 or not self._take():
                return

    def _accept(self) -> None:
        cycle, place, beats, last = self._waiting.popleft()
        self._handed = max(cycle + 1, self._slot)
        self._burst, self._served = (place, beats, last), 0
        if self._waiting:
            self._hand(self._waiting[0][0])

    def _hand(self, cycle: int) -> None:
        """A burst that was taken in `cycle` leaves the AW register, as the one before it has been accepted."""
        self._free = max(cycle, self._handed) + 1

    def _take(self) -> bool:
        """Take the next burst into the register; False when it is not known when."""
        store = self._stores[0]
        cycle = max(store.earliest, self._free)
        behind = self._taken - self._outstanding
        if behind >= len(self._responses):
            return False
        if behind >= 0:
            cycle = max(cycle, self._responses[behind] + 2)
        place, beats = store.bursts.popleft()
        self._taken += 1
        if not self._waiting:
            self._hand(cycle)
        self._data.append((cycle + FIRST_BEAT, beats))
        self._sample()
        self._waiting.append((cycle, place, beats, not store.bursts))
        store.earliest = cycle
        if not store.bursts:
            self._stores.popleft()
            if not self._stores:
                self.ready = cycle + 1
        return True

    def _sample(self) -> None:
        """Sample beats as far as is known: each stays on the bus until there is room."""
        while self._data:
            first, left = self._data[0]
            sampled = max(self._next, first)
            behind = self._all_sampled - self._room
            if behind >= self._all_served:
                return
            if behind >= 0:
                sampled = max(sampled, self._decided[behind - self._all_served] + 1)
            self._next = sampled + 1
            self._beats.append(sampled)
            self._all_sampled += 1
            if left > 1:
                self._data[0] = (first, left - 1)
            else:
                self._data.popleft()


class Chip:
    """The arbiter of the SDRAM: which beat has the chip next, and when."""

    def __init__(self, config: AccelConfig, memory: MemoryModel) -> None:
        assert memory.sdram is not None
        self._sdram = sdram = memory.sdram
        self.reads = SdramReads(config, sdram, memory.latency)
        self.writes = SdramWrites(config, sdram)
        self._cycles = sdram.beat_cycles(config)
        self._bus_bytes = config.bus_bytes
        self._rows = [_CLOSED] * sdram.banks
        # the beat that had the chip last: its first cycle, direction, bank, whether its burst goes on
        self._issued = -(1 << 20)
        self._direction = _READ
        self._bank = 0
        self._goes_on = False
        # first cycle in which the next beat may be chosen; that of the next refresh
        self._next = 0
        self._refresh = NEVER

    @property
    def time(self) -> int:
        """Cycle of the next decision as far as is known."""
        return max(self._next, min(self.reads.ready, self.writes.ready_beat))

    def decide(self) -> None:
        """Give the chip away in `time`: a beat is chosen as early as the one before it has begun."""
        read, write = self.reads.ready, self.writes.ready_beat
        cycle = max(self._next, min(read, write))
        if self._refresh == NEVER and self.reads.first != NEVER:
            self._refresh = self.reads.first + self._sdram.refresh_every
        direction = self._direction
        if read > cycle or write > cycle:
            direction = _READ if read <= cycle else _WRITE
        elif not self._goes_on:
            direction = _WRITE if direction == _READ else _READ
        if direction == _WRITE:
            self._goes_on = self.writes.serve(cycle, self._issue(cycle, direction, self.writes.place))
        else:
            self._read(cycle)

    def _read(self, cycle: int) -> None:
        """Give it to the next read beat, decided in `cycle`, and to those that nothing can come between: the rest of
        its burst in the same row, before the next refresh, while there is room."""
        place, row_bytes = self.reads.place, self._sdram.row_bytes
        issued = self._issue(cycle, _READ, place)
        in_row = (row_bytes - 1 - place % row_bytes) // self._bus_bytes
        unrefreshed = (self._refresh - 1 - issued) // self._cycles
        behind, decided, self._next = self.reads.behind(min(in_row, unrefreshed), cycle, self._next, issued)
        self._issued = issued + behind * self._cycles
        self._goes_on = self.reads.serve(decided, issued, 1 + behind)

    def _issue(self, cycle: int, direction: int, place: int) -> int:
        """First cycle with the chip of a beat at `place` that is chosen in `cycle`."""
        s = self._sdram
        bank, row = place // s.row_bytes % s.banks, place // s.row_bytes // s.banks
        behind = self._refreshed(cycle, self._issued + self._cycles)
        self._next = max(behind, cycle + 1)
        issued = behind if bank == self._bank else behind + s.bank_switch
        if direction != self._direction:
            cycle += s.turn
            issued += s.turn
            if direction == _READ:
                issued = max(issued, behind + s.write_to_read)
        issued = max(issued, cycle)
        found = self._rows[bank]
        if found != row:
            if found != _CLOSED:
                if self._direction == _WRITE and bank == self._bank:
                    issued = max(issued, behind + s.recovery)
                issued += s.rp
            issued += 1 + s.rcd
            self._rows[bank] = row
        self._issued, self._direction, self._bank = issued, direction, bank
        return issued

    def _refreshed(self, cycle: int, behind: int) -> int:
        """First cycle behind the last beat and the refreshes that are due by then, or by `cycle`."""
        while self._refresh <= max(cycle, behind):
            behind = max(self._refresh, behind) + self._sdram.refresh
            self._refresh += self._sdram.refresh_every
            self._rows = [_CLOSED] * self._sdram.banks
        return behind
