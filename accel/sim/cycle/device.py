"""The cycle simulator as a device: exact cycles and counters, and data where wanted.

In: a program. Out: the window after its launch (from the functional simulator) and the counters of the Verilog.
"""

from __future__ import annotations

import time

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.errors import AccelError
from relay_hw.accel.isa.program import Program, SectionKind
from relay_hw.accel.sim.cycle.timing import Timing, time_code
from relay_hw.accel.sim.device import Bytes, LaunchStats
from relay_hw.accel.sim.dram_timing import MemoryModel
from relay_hw.accel.sim.functional import FunctionalDevice


class CycleDevice:
    """Timing of every launch to the cycle; `data` False leaves the window as it is and computes timing only.

    Time does not depend on data: a program that is launched again costs only its data.
    """

    def __init__(self, config: AccelConfig, memory: MemoryModel | None = None, data: bool = True) -> None:
        self._functional = FunctionalDevice(config)
        self._memory = memory or MemoryModel()
        self._data = data
        self._program: Program | None = None
        # instruction bytes that were timed last
        self._words = b""
        self._timing: Timing | None = None

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
        """See `Device.launch`. Faults are those of the functional simulator; without data only EncodeError comes.

        Two units in one accumulator bank at once, a fault of the hardware, are not seen: programs keep them apart by
        tokens, which `tensorize/emit/check.py` proves of those that are compiled.
        """
        if self._program is None:
            raise AccelError("a program must be loaded before it is launched")
        begin = time.perf_counter()
        code = self._program.stream(stream)
        words = self._functional.read(code.offset, code.size).tobytes()
        if self._data:
            self._functional.launch(stream)
        if self._timing is None or self._words != words:
            self._timing = time_code(self.config, self._memory, code.offset, words)
            self._words = words
        counters = dict(self._timing.counters)
        return LaunchStats(counters["CYCLES"], counters, time.perf_counter() - begin)

    @property
    def timing(self) -> Timing:
        """When each instruction of the last launch started and ended. Raises AccelError before any launch."""
        if self._timing is None:
            raise AccelError("a program must be launched before its timing can be read")
        return self._timing
