"""Drives the accelerator through its registers: launch, wait, read counters, reset; for boards and simulated Verilog.

In: two functions that write and read registers from a byte offset on. Out: launches, counters, faults.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay_hw.accel.isa.config import INSTRUCTION_BYTES, AccelConfig
from relay_hw.accel.isa.errors import AccelError, Fault, FaultCode, ProgramError
from relay_hw.accel.isa.program import Section
from relay_hw.accel.isa.registers import REGISTER, REGISTERS
from relay_hw.accel.isa.spec import DEVICE_MAGIC, ISA_VERSION

_FIRST_COUNTER = REGISTER["CYCLES"].offset
COUNTERS = tuple(register.name for register in REGISTERS if register.offset >= _FIRST_COUNTER)
_LAUNCH, _RESET = 1, 2
# Of STATUS.
BUSY_BIT, DONE_BIT, _FAULT_BIT = 1, 2, 4
# Register reads that a stopped core may take to finish its bursts.
_IDLE_POLLS = 100_000


class ProtocolError(AccelError):
    """The hardware broke a rule of its interface, or stopped answering: a bug of the hardware, not of the program."""


class Core:
    """One accelerator behind its registers. `write` and `read`: words of registers that follow one another."""

    def __init__(self, write: Callable[[int, Sequence[int]], None], read: Callable[[int, int], list[int]]) -> None:
        self._write = write
        self._read = read

    def check(self, config: AccelConfig) -> None:
        """Raise ProgramError unless the hardware is what `config` says."""
        expected = (("MAGIC", DEVICE_MAGIC), ("VERSION", ISA_VERSION), ("CONFIG_HASH", config.hash32))
        for name, value in expected:
            found = self.get(name)
            if found != value:
                raise ProgramError(f"core register {name} must be {value:#010x}, not {found:#010x}")

    def window(self, base: int, size: int) -> None:
        """Let DMA touch `size` bytes from bus address `base` on, and nothing else."""
        self.put("WINDOW_BASE", base, size)

    def launch(self, code: Section, watchdog: int) -> None:
        """Start a stream of instructions that is a fault after `watchdog` cycles."""
        self.put("PROGRAM", code.offset, code.size // INSTRUCTION_BYTES, min(watchdog, 0xFFFF_FFFF))
        self.put("CONTROL", _LAUNCH)

    @property
    def busy(self) -> bool:
        """Whether a launch is under way."""
        return bool(self.get("STATUS") & BUSY_BIT)

    def is_done(self) -> bool:
        """Whether the last launch has ended. Raises Fault where it ended so; the core is reset then."""
        status = self.get("STATUS")
        if status & _FAULT_BIT:
            raise self._fault(status)
        return bool(status & DONE_BIT)

    def counters(self) -> dict[str, int]:
        """The counters of the launch that ended."""
        values = self._read(_FIRST_COUNTER, len(COUNTERS))
        return dict(zip(COUNTERS, values, strict=True))

    def reset(self) -> None:
        """Stop whatever runs. A stopped core stays busy, and deaf to registers, until its last burst has ended."""
        self.put("CONTROL", _RESET)
        for _ in range(_IDLE_POLLS):
            if not self.busy:
                return
        status = self.get("STATUS")
        raise ProtocolError(f"core must be idle after a reset, not STATUS {status:#x}: the bus never ended its bursts")

    def put(self, register: str, *values: int) -> None:
        """Write a register, and those behind it where there are more values."""
        self._write(REGISTER[register].offset, values)

    def get(self, register: str) -> int:
        """Read a register."""
        return self._read(REGISTER[register].offset, 1)[0]

    def _fault(self, status: int) -> Fault:
        """The fault as an error; resets the core so that the next launch finds it idle."""
        index = self.get("FAULT_INDEX")
        self.reset()
        number = status >> 8 & 0xFF
        if number not in FaultCode._value2member_map_:
            return Fault(FaultCode.NONE, index, f"the core reports unknown fault {number}")
        return Fault(FaultCode(number), index, "reported by the core")
