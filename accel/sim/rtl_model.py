"""Python binding of the Verilator harness: one vta_top with its clock, registers and AXI memory.

In: a library made by `relay_hw.accel.sim.verilator`, a window, a memory model. Out: register values, cycles,
protocol errors.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.errors import AccelError
from relay_hw.accel.sim.dram_timing import MemoryModel
from relay_hw.accel.sim.registers import ProtocolError

_U8, _U32, _U64, _HANDLE = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p
_RUNNING, _DONE = 0, 1
# Cycles between two looks at pending signals such as Ctrl-C.
_CHUNK = 1 << 20


# Sizes that the harness takes as they are, and those that follow from the bus and the latency.
_CHIP = (
    *("row_bytes", "banks", "rp", "rcd", "recovery", "bank_switch", "turn", "write_to_read", "response"),
    *("refresh", "refresh_every"),
)
_FOLLOW = ("beat_cycles", "beat_bytes", "latency", "read_room", "write_room")


class _SdramSettings(ctypes.Structure):
    """Mirror of vta::SdramSettings in harness/sdram.h."""

    _fields_ = tuple((name, _U32) for name in (*_FOLLOW, *_CHIP))


class _Settings(ctypes.Structure):
    """Mirror of vta::Settings in harness/axi_memory.h."""

    _fields_ = (
        ("window", _U8),
        ("window_bytes", _U64),
        ("window_base", _U64),
        ("stall_seed", _U64),
        ("power_seed", _U64),
        ("error_address", _U64),
        ("error_answer", _U32),
        ("silent", _U32),
        ("latency", _U32),
        ("read_outstanding", _U32),
        ("write_outstanding", _U32),
        ("core_reads", _U32),
        ("core_writes", _U32),
        ("burst_beats", _U32),
        ("write_order", _U32),
        ("arguments", ctypes.c_char_p),
        ("settle", _U32),
        ("sdram", _SdramSettings),
    )


class Answer(IntEnum):
    """How the memory answers a beat that it is told to answer badly. Mirrored in harness/axi_memory.h."""

    WRONG_ID = 1
    SLVERR = 2
    DECERR = 3


class Channel(IntFlag):
    """Channels of the AXI port. Mirrored in harness/axi_memory.h."""

    AR = 1
    R = 2
    AW = 4
    W = 8
    B = 16


@dataclass(frozen=True, slots=True)
class Seeds:
    """Of what a simulation draws, each at least 1 or None: delays of the AXI channels, the state at power-on."""

    stalls: int | None = None
    power: int | None = None

    def __post_init__(self) -> None:
        for name, seed in (("stall_seed", self.stalls), ("power_seed", self.power)):
            if seed is not None and not 1 <= seed < 1 << 31:
                raise AccelError(f"{name} must be from 1 to {(1 << 31) - 1}, not {seed}")


@dataclass(frozen=True, slots=True)
class RunResult:
    """Whether the core was done, and how many bursts were in flight when it said so."""

    done: bool
    in_flight: int


class RtlModel:
    """One simulated core. Not thread-safe; several may live in one process.

    `settle` evaluates the model on both edges of the clock in every cycle: slower, and no different for a master whose
    AXI outputs are registers. `arguments` are what a command line would give the model.
    """

    def __init__(
        self,
        library: Path,
        config: AccelConfig,
        memory: MemoryModel,
        seeds: Seeds,
        settle: bool = False,
        arguments: Sequence[str] = (),
    ) -> None:
        if sys.byteorder != "little":
            raise AccelError(f"host byte order must be little for the Verilog simulation, not {sys.byteorder}")
        self.library = library
        self._lib = _bind(library)
        settings = _Settings(
            stall_seed=seeds.stalls or 0,
            power_seed=seeds.power or 0,
            latency=memory.latency,
            read_outstanding=memory.read_outstanding,
            write_outstanding=memory.write_outstanding,
            core_reads=config.read_outstanding,
            core_writes=config.write_outstanding,
            burst_beats=config.burst_beats,
            write_order=memory.write_order,
            arguments=" ".join(arguments).encode(),
            settle=settle,
            sdram=_sdram_settings(config, memory),
        )
        self._window: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._handle: int | None = self._lib.vta_open(ctypes.byref(settings))
        self._check()

    def close(self) -> None:
        """Free the model and finish its waves. Further calls do nothing."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._lib.vta_close(handle)

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()

    @property
    def clock_cycles(self) -> int:
        """Clock edges since the model was made."""
        return self._lib.vta_cycle(self._handle)

    def window(self, window: NDArray[np.uint8], base: int) -> None:
        """Let the memory be `window` (uint8, kept alive here) at bus address `base`."""
        self._window = window
        self._lib.vta_window(self._handle, window.ctypes.data, window.size, base)

    def inject_error(self, address: int | None, answer: Answer = Answer.SLVERR) -> None:
        """Give `answer` to accesses of the beat at bus `address`; None ends it."""
        self._lib.vta_inject(self._handle, 0 if address is None else answer, address or 0)

    def silence(self, channels: Channel) -> None:
        """Let the memory do nothing on `channels` from now on: no ready, no new valid. `Channel(0)` ends it."""
        self._lib.vta_silence(self._handle, channels)

    def reset(self) -> None:
        """Hold the reset input of core and memory for a few cycles."""
        self._lib.vta_reset(self._handle)
        self._check()

    def write_register(self, offset: int, value: int) -> None:
        """One AXI-Lite write. Raises ProtocolError."""
        self._lib.vta_write(self._handle, offset, value)
        self._check()

    def read_register(self, offset: int) -> int:
        """One AXI-Lite read. Raises ProtocolError."""
        value = _U32()
        self._lib.vta_read(self._handle, offset, ctypes.byref(value))
        self._check()
        return value.value

    def write_registers(self, offset: int, values: Sequence[int]) -> None:
        """Registers that follow one another. Raises ProtocolError."""
        for k, value in enumerate(values):
            self.write_register(offset + 4 * k, value)

    def read_registers(self, offset: int, count: int) -> list[int]:
        """Registers that follow one another. Raises ProtocolError."""
        return [self.read_register(offset + 4 * k) for k in range(count)]

    def run(self, limit: int) -> RunResult:
        """Clock until done, at most `limit` cycles. Raises ProtocolError."""
        while limit > 0:
            status = self._lib.vta_run(self._handle, min(limit, _CHUNK))
            self._check()
            if status == _DONE:
                return RunResult(True, self._lib.vta_in_flight_at_done(self._handle))
            limit -= _CHUNK
        return RunResult(False, 0)

    def advance(self, cycles: int) -> None:
        """Clock without looking at done."""
        self._lib.vta_advance(self._handle, cycles)
        self._check()

    def open_waves(self, path: Path) -> None:
        """Write waves to `path` from now on. Raises AccelError."""
        try:
            path.write_bytes(b"")
        except OSError as error:
            raise AccelError(f"wave file {path} must be writable: {error.strerror}") from None
        if not self._lib.vta_waves(self._handle, str(path).encode()):
            raise AccelError(f"RTL library {self.library} must be built with waves to write {path}")

    def flush_waves(self) -> None:
        """Make what was traced so far readable."""
        self._lib.vta_flush(self._handle)

    def _check(self) -> None:
        text = self._lib.vta_error(self._handle)
        if text:
            self._lib.vta_clear_error(self._handle)
            raise ProtocolError(text.decode())


def _sdram_settings(config: AccelConfig, memory: MemoryModel) -> _SdramSettings:
    """The chip as the harness counts it; all zero without one."""
    sdram = memory.sdram
    if sdram is None:
        return _SdramSettings()
    return _SdramSettings(
        **{key: getattr(sdram, key) for key in _CHIP},
        beat_cycles=sdram.beat_cycles(config),
        beat_bytes=config.bus_bytes,
        latency=memory.latency,
        read_room=sdram.read_room(config),
        write_room=sdram.write_room(config),
    )


def _bind(path: Path) -> ctypes.CDLL:
    try:
        lib = ctypes.CDLL(str(path))
    except OSError as error:
        raise AccelError(f"RTL library {path} must load: {error}") from None
    pointer = ctypes.POINTER(_U32)
    signatures: tuple[tuple[str, object, list[object]], ...] = (
        ("vta_settings_bytes", _U32, []),
        ("vta_open", _HANDLE, [ctypes.POINTER(_Settings)]),
        ("vta_close", None, [_HANDLE]),
        ("vta_reset", None, [_HANDLE]),
        ("vta_write", ctypes.c_int, [_HANDLE, _U32, _U32]),
        ("vta_read", ctypes.c_int, [_HANDLE, _U32, pointer]),
        ("vta_run", ctypes.c_int, [_HANDLE, _U64]),
        ("vta_advance", None, [_HANDLE, _U64]),
        ("vta_cycle", _U64, [_HANDLE]),
        ("vta_in_flight_at_done", _U32, [_HANDLE]),
        ("vta_error", ctypes.c_char_p, [_HANDLE]),
        ("vta_clear_error", None, [_HANDLE]),
        ("vta_waves", ctypes.c_int, [_HANDLE, ctypes.c_char_p]),
        ("vta_flush", None, [_HANDLE]),
        ("vta_window", None, [_HANDLE, _U8, _U64, _U64]),
        ("vta_inject", None, [_HANDLE, _U32, _U64]),
        ("vta_silence", None, [_HANDLE, _U32]),
    )
    for name, result, arguments in signatures:
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    if lib.vta_settings_bytes() != ctypes.sizeof(_Settings):
        raise AccelError(f"RTL library {path} must take settings of {ctypes.sizeof(_Settings)} bytes")
    return lib
