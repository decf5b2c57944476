"""The cycle simulator as a device: exact cycles and counters, and data where wanted.

In: a program. Out: the window after its launch (from the functional simulator) and the counters of the Verilog.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from accel.isa.config import AccelConfig
from accel.isa.errors import AccelError
from accel.isa.program import Program, SectionKind, decode_instructions
from accel.sim.cycle.engine import Engine, Span
from accel.sim.cycle.work import work_of
from accel.sim.device import Bytes, LaunchStats
from accel.sim.functional import FunctionalDevice
from accel.sim.memory import MemoryModel


class CycleDevice:
    """Timing of every launch to the cycle; `data` False leaves the window as it is and computes timing only.

    Time does not depend on data: a program that is launched again costs only its data.
    """

    def __init__(self, config: AccelConfig, memory: MemoryModel | None = None, data: bool = True) -> None:
        self._functional = FunctionalDevice(config)
        self._memory = memory or MemoryModel()
        self._data = data
        self._program: Program | None = None
        # instruction bytes that were timed last, their counters and spans
        self._timed: tuple[bytes, Mapping[str, int], tuple[Span, ...]] = (b"", {}, ())

    @property
    def config(self) -> AccelConfig:
        """Sizes of the accelerator."""
        return self._functional.config

    def load(self, program: Program) -> None:
        """See `Device.load`."""
        self._functional.load(program)
        self._program = program

    def write(self, offset: int, data: Bytes) -> None:
        """See `Device.write`."""
        self._functional.write(offset, data)

    def read(self, offset: int, size: int) -> Bytes:
        """See `Device.read`."""
        return self._functional.read(offset, size)

    def launch(self, stream: SectionKind = SectionKind.PROGRAM) -> LaunchStats:
        """See `Device.launch`. Faults are those of the functional simulator; without data only EncodeError comes."""
        if self._program is None:
            raise AccelError("a program must be loaded before it is launched")
        begin = time.perf_counter()
        code = self._program.stream(stream)
        words = self._functional.read(code.offset, code.size).tobytes()
        if self._data:
            self._functional.launch(stream)
        if self._timed[0] != words:
            self._timed = (words, *self._time(code.offset, words))
        counters = self._timed[1]
        return LaunchStats(counters["CYCLES"], dict(counters), time.perf_counter() - begin)

    @property
    def spans(self) -> tuple[Span, ...]:
        """When each instruction of the last launch started and ended, in program order; cycle 0 follows the launch."""
        return self._timed[2]

    def _time(self, offset: int, words: bytes) -> tuple[Mapping[str, int], tuple[Span, ...]]:
        works = [work_of(self.config, op, values) for op, values in decode_instructions(words)]
        engine = Engine(self.config, self._memory, offset, works)
        return engine.run(), tuple(engine.spans())
