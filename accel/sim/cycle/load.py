"""Timing of LOAD's data: beats of the R channel, in order, into scratchpads, beside padding and GATHER's windows.

In: bursts as the address register took them, LOADs as they started, the edges at which OUTPUT writes INP. Out: the
cycle of each LOAD's last step, the beats of fetch. Steps into INP give way to OUTPUT, so they wait until that is known.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from relay_hw.accel.isa.spec import Mem
from relay_hw.accel.sim.cycle.channels import NEVER, ReadChannel
from relay_hw.accel.sim.cycle.sdram import SdramReads
from relay_hw.accel.sim.cycle.unit_work import Windows, Work
from relay_hw.accel.sim.cycle.writes import DEPTH, InpWrites

# A step of LOAD writes INP this many cycles later, a read of GATHER's row buffer this many.
STEP_AHEAD, READ_AHEAD = 2, 3


@dataclass(slots=True)
class LoadData:
    """Of the beats to come, in `read.line`, those of LOADs.

    `fetched`: first cycle and beats of resolved bursts of fetch; `finished`: (work, cycle of its start, cycle of its
    last step) of LOADs that ended; the engine empties both. `follow`: cycle in which the data side took up each LOAD.
    `need`: last cycle of OUTPUT's writes that must be known before another step can be decided.
    """

    read: ReadChannel | SdramReads
    # whether OUTPUT writes INP at all
    shared: bool
    writes: InpWrites = field(default_factory=InpWrites)
    fetched: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    finished: list[tuple[Work, int, int]] = field(default_factory=list[tuple[Work, int, int]])
    follow: list[int] = field(default_factory=list[int])
    need: int = NEVER
    memory: int = 0
    # LOADs that have started and not ended; the first one has the data side, once `_active`
    _loads: deque[tuple[Work, int]] = field(default_factory=deque[tuple[Work, int]])
    _active: bool = False
    _held: bool = False
    _end: int = -1
    _known: int = NEVER
    # next step or fill, steps of padding before the next beat, beats left of the run (GATHER: row) and of the burst
    _position: int = 0
    _pad: int = 0
    _left: int = 0
    _run: int = 0
    _first: int = 0
    _beats: int = 0
    # GATHER: rows in all, reads left of the row that is read, first cycle of the next one; cycle after each row was
    # filled, cycle of its last read
    _rows: int = 0
    _reads: int = 0
    _read_from: int = 0
    _filled: list[int] = field(default_factory=list[int])
    _released: list[int] = field(default_factory=list[int])

    def start(self, work: Work, cycle: int) -> None:
        """A LOAD that starts in `cycle`."""
        self._loads.append((work, cycle))

    def advance(self, known: int) -> None:
        """Decide all that can be decided; `known`: last cycle for which OUTPUT's writes are known."""
        line, self._known = self.read.line, known
        while True:
            while line and line[0][2] and not self._beats:
                first, beats = self._next_beats()
                self._end_burst(first + beats - 1)
                self.fetched.append((first, beats))
            if not self._active:
                if not self._loads:
                    self.need = NEVER
                    return
                self._take_up()
            work, start = self._loads[0]
            self.need = NEVER
            ended = self._steps(work) if work.windows is None else self._windows(work.windows)
            if ended:
                self._loads.popleft()
                self._active = False
                self.finished.append((work, start, self._end))
                if self.shared:
                    self._seen(self._end)
            elif not line or not line[0][2] or self._beats:
                return

    def _end_burst(self, last: int) -> None:
        self.read.finish(last)
        if self.shared:
            self._seen(last)

    def _seen(self, cycle: int) -> None:
        """Other units may act on what happened in `cycle`, and so start another REQUANT from the next one on."""
        if cycle + 1 + DEPTH < self._known:
            self._known = cycle + 1 + DEPTH

    def _take_up(self) -> None:
        work, start = self._loads[0]
        begin = max(start + 1, self._end)
        self.follow.append(begin)
        self._active = True
        self._held = self.shared and work.mem is Mem.INP
        self._position, self._run, self._beats = begin + 1, 0, 0
        self._pad = self._left = 0
        if work.windows is not None:
            self._left = work.windows.beats
            self._rows = work.beats // work.windows.beats
            self._reads, self._read_from = work.windows.above, begin + 1
            self._filled, self._released = [], []

    def _steps(self, work: Work) -> bool:
        """Steps of a LOAD as far as they can be decided; True when it has ended."""
        runs, held = work.runs, self._held
        while True:
            if self._pad:
                made, self._position = self._take(self._position, self._pad)
                self._pad -= made
                if self._pad:
                    self.need = self._position + STEP_AHEAD
                    return False
            if not self._left:
                if self._run > len(runs):
                    self._end = self._position - 1
                    return True
                # Behind the last run there is padding alone.
                self._pad, self._left = runs[self._run] if self._run < len(runs) else (work.tail, 0)
                self._run += 1
                continue
            if not self._beats:
                if not held and self._take_apart():
                    continue
                if not self._next_burst():
                    return False
            if self._position < self._first and not self._wait():
                break
            count = self._beats if self._beats < self._left else self._left
            made = count
            if held:
                made, self._position = self._take(self._position, count)
            else:
                self._position += count
            self._beats -= made
            self._left -= made
            if not self._beats:
                self._end_burst(self._position - 1)
            if made < count:
                break
        self.need = self._position + STEP_AHEAD
        return False

    def _wait(self) -> bool:
        """Wait for the burst's next beat; False where it is not known whether the cycles before it are held."""
        first = self._first
        if not self._held:
            self.memory += first - self._position
            self._position = first
            return True
        until = min(first, self._known + 1 - STEP_AHEAD)
        if until > self._position:
            self.memory += self.writes.take(self._position + STEP_AHEAD, until, until - 1 + STEP_AHEAD)[0]
            self._position = until
        return self._position == first

    def _next_burst(self) -> bool:
        """Take LOAD's next burst from the line, if it is the next of all."""
        line = self.read.line
        if not line or line[0][2]:
            return False
        self._first, self._beats = self._next_beats()
        return True

    def _next_beats(self) -> tuple[int, int]:
        """Of the line: the first cycle of the next beats that are finished together, and their number."""
        taken, beats, fetch, apart = self.read.line.popleft()
        if apart and beats > 1:
            self.read.line.appendleft((taken + apart, beats - 1, fetch, apart))
            beats = 1
        return self.read.address(taken), beats

    def _take_apart(self) -> bool:
        """Take beats of the run that come some cycles apart, each as it comes: false where they do not, or wait."""
        line = self.read.line
        if not line or line[0][2] or not line[0][3]:
            return False
        first, beats, fetch, apart = line[0]
        if first < self._position or self.read.address(first) > first:
            return False
        line.popleft()
        taken = min(beats, self._left)
        if taken < beats:
            line.appendleft((first + taken * apart, beats - taken, fetch, apart))
        end = first + (taken - 1) * apart + 1
        self.memory += end - self._position - taken
        self._position = end
        self._left -= taken
        self.read.finish(end - 1, taken)
        if self.shared:
            self._seen(first)
        return True

    def _take(self, cycle: int, count: int, ahead: int = STEP_AHEAD) -> tuple[int, int]:
        """`count` steps from `cycle` on: how many are decided, and the first cycle that is not used up."""
        if not self._held:
            return count, cycle + count
        made, seen = self.writes.take(cycle + ahead, count, self._known)
        return made, max(cycle, seen - ahead)

    def _windows(self, windows: Windows) -> bool:
        """Fills and reads of a GATHER's row buffers as far as they can be decided; True when it has ended.

        Fills go first: what the end of their burst sets free may lead to a write before a later read.
        """
        while True:
            while self._fill(windows):
                pass
            if not self._read_row(windows):
                return False
            if len(self._released) > self._rows:
                self._end = self._read_from
                return True

    def _read_row(self, windows: Windows) -> bool:
        """Read a row that is filled, or padding behind all rows; False where it is not there, or not known when.

        Padding above is read with the first row, as nothing lies between.
        """
        row = len(self._released)
        while not self._run > row or self._reads:
            if self._reads:
                made, self._read_from = self._take(self._read_from, self._reads, READ_AHEAD)
                self._reads -= made
                if self._reads:
                    self.need = self._read_from + READ_AHEAD
                    return False
            elif row == self._rows:
                # `_run` counts the rows whose reads have begun; one more stands for the padding below.
                self._run, self._reads = row + 1, windows.below
            elif row < len(self._filled):
                self._run, self._reads = row + 1, windows.reads
                self._read_from = max(self._read_from, self._filled[row])
            else:
                return False
        self._released.append(self._read_from - 1)
        return True

    def _fill(self, windows: Windows) -> bool:
        """Beats into the row buffer that is free; False where there is no beat or no buffer."""
        row = len(self._filled)
        if row == self._rows or (row >= 2 and len(self._released) <= row - 2):
            return False
        if row >= 2 and self._left == windows.beats:
            self._position = max(self._position, self._released[row - 2] + 1)
        if not self._beats and not self._next_burst():
            return False
        begin = max(self._position, self._first)
        self.memory += begin - self._position
        count = min(self._beats, self._left)
        self._position = self._first = begin + count
        self._beats -= count
        self._left -= count
        if not self._beats:
            self._end_burst(self._position - 1)
        if not self._left:
            self._filled.append(self._position)
            self._left = windows.beats
        return True
