"""The Verilog as a device: runs programs on vta_top under Verilator, cycle by cycle, in front of the AXI memory model.

In: a program. Out: the window after its launch, cycles and every counter register.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.errors import AccelError, ProgramError
from relay_hw.accel.isa.program import Program, Section, SectionKind
from relay_hw.accel.sim.bounds import cycle_bound
from relay_hw.accel.sim.device import Bytes, LaunchStats, Window
from relay_hw.accel.sim.dram_timing import MemoryModel
from relay_hw.accel.sim.registers import Core, ProtocolError
from relay_hw.accel.sim.rtl_model import Answer, RtlModel, Seeds
from relay_hw.accel.sim.verilator import RTL_DIR, Build, Form, Start, Waves, build_library
from relay_hw.support.progress import SILENT, Progress

# Not zero, so that hardware which forgets to add the base is found out.
WINDOW_BASE = 0x4000_0000
# What random stalls may cost: bounds are for programs that never end, not for slow ones.
_STALL_FACTOR = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """Options of the Verilog simulation.

    `waves`: file ending in .fst or .vcd that receives every signal. `stall_seed`: at least 1, delays every AXI channel
    at random, so that cycles mean nothing. `power_seed`: at least 1, draws what the chip holds at power-on, in a
    build of its own; None is zeros. `watchdog`: cycles after which a launch is a fault; None takes a bound on what the
    program can need. `settle`: see `RtlModel`.
    """

    waves: str | Path | None = None
    stall_seed: int | None = None
    power_seed: int | None = None
    arguments: tuple[str, ...] = ()
    watchdog: int | None = None
    settle: bool = False


@dataclass(frozen=True, slots=True)
class Sources:
    """The Verilog that is run. `form`: see `Form`; bytes and cycles are the same."""

    rtl: Path = RTL_DIR
    form: Form = Form.FAST


SOURCES: Final = Sources()
PLAIN: Final = Simulation()


class RtlDevice:
    """Runs programs on the Verilog. The model is built once a configuration and kept in the user's cache folder.

    `model`: its sources, or the library that was built of them already. Raises ToolError, ConfigError.
    """

    def __init__(
        self,
        config: AccelConfig,
        memory: MemoryModel | None = None,
        run: Simulation = PLAIN,
        model: Sources | Path = SOURCES,
        progress: Progress = SILENT,
    ) -> None:
        self._config = config
        self._memory = memory or MemoryModel()
        self._stalls = run.stall_seed is not None
        self._watchdog = run.watchdog
        kind = _waves_kind(run.waves)
        if isinstance(model, Sources):
            start = Start.ZEROS if run.power_seed is None else Start.DRAWN
            model = build_library(Build.of(config, kind, model.rtl, model.form, start), progress=progress)
        self._model = RtlModel(
            model, config, self._memory, Seeds(run.stall_seed, run.power_seed), run.settle, run.arguments
        )
        self.core = Core(self._model.write_registers, self._model.read_registers)
        if run.waves is not None:
            self._model.open_waves(Path(run.waves))
        self._window = Window()
        self._program: Program | None = None

    def close(self) -> None:
        """Free the model and finish its waves."""
        self._model.close()

    @property
    def config(self) -> AccelConfig:
        """Sizes of the accelerator."""
        return self._config

    @property
    def model(self) -> RtlModel:
        """The core itself, for tests and debugging."""
        return self._model

    def load(self, program: Program) -> None:
        """See `Device.load`; also checks that the core is what the configuration says."""
        self.core.check(self._config)
        if WINDOW_BASE + program.window_bytes > 1 << 32:
            limit = (1 << 32) - WINDOW_BASE
            raise ProgramError(f"window must be at most {limit} bytes for the RTL device, not {program.window_bytes}")
        self._window.load(self._config, program)
        self._program = program
        self._model.window(self._window.bytes, WINDOW_BASE)
        self.core.window(WINDOW_BASE, program.window_bytes)

    def write(self, offset: int, data: Bytes) -> None:
        """See `Device.write`."""
        self._window.write(offset, data)

    def read(self, offset: int, size: int) -> Bytes:
        """See `Device.read`."""
        return self._window.read(offset, size)

    def inject_error(self, offset: int | None, answer: Answer = Answer.SLVERR) -> None:
        """Let the memory give `answer` at byte `offset` of the window; None ends it."""
        self._model.inject_error(None if offset is None else WINDOW_BASE + offset, answer)

    def launch(self, stream: SectionKind = SectionKind.PROGRAM) -> LaunchStats:
        """See `Device.launch`. A launch that hangs is a WATCHDOG fault. Raises ProtocolError for broken hardware."""
        if self._program is None:
            raise AccelError("a program must be loaded before it is launched")
        begin = time.perf_counter()
        code = self._program.stream(stream)
        limit = self._limit(code)
        self.core.launch(code, limit)
        # The watchdog ends a launch that hangs; only broken hardware gets past it.
        result = self._model.run(limit + 1_000_000)
        self._model.flush_waves()
        if not result.done:
            raise ProtocolError(f"core must be done or faulted within {limit} cycles, but is not")
        if not self.core.is_done():
            raise ProtocolError(f"core must be done or faulted, not STATUS {self.core.get('STATUS'):#x}")
        counters = self.core.counters()
        if result.in_flight:
            raise ProtocolError(f"core must be idle when done, not have {result.in_flight} bursts in flight")
        return LaunchStats(counters["CYCLES"], counters, time.perf_counter() - begin)

    def _limit(self, section: Section) -> int:
        if self._watchdog is not None:
            return self._watchdog
        code = self._window.read(section.offset, section.size).tobytes()
        return cycle_bound(self._config, self._memory, code) * (_STALL_FACTOR if self._stalls else 1)


def _waves_kind(path: str | Path | None) -> Waves:
    if path is None:
        return Waves.NONE
    suffix = Path(path).suffix
    if suffix not in (".fst", ".vcd"):
        raise AccelError(f"wave file must end in .fst or .vcd, not {path}")
    return Waves.FST if suffix == ".fst" else Waves.VCD
