"""Predicts a board's speed: its driver runs on the functional simulator and on a link that only keeps time.

In: a configuration, the map of a SoC, cycles of launches. Out: a `Device` whose link keeps the time of all that a
host and the board exchange.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from relay_hw.accel.fpga.device import FpgaDevice
from relay_hw.accel.fpga.soc_map import SocMap
from relay_hw.accel.fpga.timed_stream import TimedStream
from relay_hw.accel.fpga.uartbone import UartboneLink
from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.errors import AccelError
from relay_hw.accel.isa.program import Program, SectionKind
from relay_hw.accel.sim.device import Bytes, Done, Job, LaunchStats, run_jobs
from relay_hw.accel.sim.functional import FunctionalDevice

# Cycles of a launch of a program's stream.
LaunchCycles = Callable[[Program, SectionKind], int]


class TimedBoard:
    """A device that runs the driver of boards on a timed link; its bytes come from the functional simulator."""

    def __init__(self, config: AccelConfig, soc: SocMap, cycles: LaunchCycles) -> None:
        self._cycles = cycles
        self._data = FunctionalDevice(config)
        self.stream = TimedStream(config, soc)
        self._driver = FpgaDevice(config, UartboneLink(self.stream, soc.board), soc, timer=self.stream)
        self._program: Program | None = None

    @property
    def config(self) -> AccelConfig:
        """Sizes of the accelerator."""
        return self._data.config

    def load(self, program: Program) -> None:
        """See `Device.load`."""
        self._driver.load(program)
        self._data.load(program)
        self._program = program

    def write(self, offset: int, data: Bytes) -> None:
        """See `Device.write`."""
        self._driver.write(offset, data)
        self._data.write(offset, data)

    def read(self, offset: int, size: int) -> Bytes:
        """See `Device.read`."""
        self._driver.read(offset, size)
        return self._data.read(offset, size)

    def launch(self, stream: SectionKind = SectionKind.PROGRAM) -> LaunchStats:
        """See `Device.launch`; cycles are those that were told."""
        self._tell(stream)
        seconds = self._driver.launch(stream).seconds
        self._data.launch(stream)
        return LaunchStats(self.stream.launch_cycles, seconds=seconds)

    def launches(self, jobs: Iterable[Job]) -> Iterator[Done]:
        """See `Overlapping.launches`, as it is where many have gone before."""
        self._tell(SectionKind.PROGRAM)
        self._driver.double()
        given: deque[Job] = deque()

        def noted() -> Iterator[Job]:
            for job in jobs:
                given.append(job)
                yield job

        for timed in self._driver.launches(noted()):
            for done in run_jobs(self._data, [given.popleft()]):
                yield Done(done.found, timed.stats)

    def _tell(self, stream: SectionKind) -> None:
        """Tell the link how long launches of a stream take."""
        if self._program is None:
            raise AccelError("a program must be loaded before it is launched")
        self.stream.launch_cycles = self._cycles(self._program, stream)
