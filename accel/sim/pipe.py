"""Serves a device over a pipe, as memory and registers. `python -m relay_hw.accel.sim.pipe CONFIG [DEVICE]`.

In: requests on standard input, each a letter and two 32-bit numbers, little-endian: `w` address size and then bytes,
`r` address size, `p` register value, `g` register 0. Out: bytes for `r`, four bytes for `g`. Ends with its input.
"""

from __future__ import annotations

import argparse
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np

from relay_hw.accel.isa.config import INSTRUCTION_BYTES, AccelConfig, config_from_dict, load_config
from relay_hw.accel.isa.errors import AccelError, ConfigError, DeadlockError, Fault, FaultCode
from relay_hw.accel.isa.program import WINDOW_ALIGN, Program, Section, SectionKind
from relay_hw.accel.isa.registers import REGISTER, REGISTERS
from relay_hw.accel.isa.spec import DEVICE_MAGIC, ISA_VERSION
from relay_hw.accel.sim.device import Device
from relay_hw.accel.sim.names import CYCLE, FUNCTIONAL
from relay_hw.support import durable
from relay_hw.support.documents import MOST_SETTINGS, DocumentError, parse_json, reason
from relay_hw.support.quote import line

REQUEST = struct.Struct("<cII")
NUMBER = struct.Struct("<I")
DONE, FAULT = 2, 4
_BY_OFFSET = {register.offset: register for register in REGISTERS}
_WRITABLE = frozenset(register.offset for register in REGISTERS if register.access == "rw")


class Bus:
    """A device with the registers of the accelerator, and memory that grows as it is written."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._memory = bytearray()
        self._registers = dict.fromkeys(_BY_OFFSET, 0)
        self._set("MAGIC", DEVICE_MAGIC)
        self._set("VERSION", ISA_VERSION)
        self._set("CONFIG_HASH", device.config.hash32)

    def write(self, address: int, data: bytes) -> None:
        """Bytes at a bus address."""
        self._grow(address + len(data))
        self._memory[address : address + len(data)] = data

    def read(self, address: int, size: int) -> bytes:
        """Bytes at a bus address; 0 where nothing was written."""
        self._grow(address + size)
        return bytes(self._memory[address : address + size])

    def put(self, register: int, value: int) -> None:
        """Write a register; the launch bit of CONTROL runs the program to its end."""
        if register in _WRITABLE:
            self._registers[register] = value
        elif register == REGISTER["CONTROL"].offset:
            if value & 2:
                self._set("STATUS", 0)
            elif value & 1:
                self._launch()

    def get(self, register: int) -> int:
        """Read a register; 0 for one that does not exist."""
        return self._registers.get(register, 0)

    def _grow(self, size: int) -> None:
        if size > len(self._memory):
            self._memory += bytes(size - len(self._memory))

    def _set(self, name: str, value: int) -> None:
        self._registers[REGISTER[name].offset] = value & 0xFFFF_FFFF

    def _value(self, name: str) -> int:
        return self._registers[REGISTER[name].offset]

    def _launch(self) -> None:
        try:
            self._run()
        except Fault as fault:
            self._fail(fault.code, fault.index)
        except DeadlockError:
            self._fail(FaultCode.WATCHDOG, 0)

    def _fail(self, code: FaultCode, index: int) -> None:
        self._set("STATUS", FAULT | code << 8)
        self._set("FAULT_INDEX", index)

    def _run(self) -> None:
        """The window becomes a program for the device, and the device's window becomes memory again."""
        base, size = self._value("WINDOW_BASE"), self._value("WINDOW_BYTES")
        offset, length = self._value("PROGRAM"), self._value("COUNT") * INSTRUCTION_BYTES
        if base % WINDOW_ALIGN or not length or offset % INSTRUCTION_BYTES or offset + length > size:
            raise Fault(FaultCode.DRAM_RANGE, 0, "the program must lie in its window")
        window = self.read(base, size)
        config = self._device.config
        section = Section("program", SectionKind.PROGRAM, offset, length, window[offset : offset + length])
        self._device.load(Program(config.name, config.hash32, size, (section,)))
        self._device.write(0, np.frombuffer(window, np.uint8))
        stats = self._device.launch()
        self.write(base, self._device.read(0, size).tobytes())
        self._set("STATUS", DONE)
        self._set("CYCLES", stats.cycles or 0)
        for name, value in stats.counters.items():
            if name in REGISTER:
                self._set(name, value)


def serve(bus: Bus, requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer requests until they end. Raises AccelError for one that cannot be understood."""
    while header := requests.read(REQUEST.size):
        if len(header) < REQUEST.size:
            raise AccelError(f"a request must be {REQUEST.size} bytes, not {len(header)}")
        letter, a, b = REQUEST.unpack(header)
        match letter:
            case b"w":
                bus.write(a, requests.read(b))
            case b"r":
                replies.write(bus.read(a, b))
            case b"p":
                bus.put(a, b)
            case b"g":
                replies.write(NUMBER.pack(bus.get(a)))
            case _:
                raise AccelError(f"a request must be w, r, p or g, not {letter!r}")
        replies.flush()


def _functional(config: AccelConfig) -> Device:
    from relay_hw.accel.sim.functional import FunctionalDevice

    return FunctionalDevice(config)


def _cycle(config: AccelConfig) -> Device:
    from relay_hw.accel.sim.cycle import CycleDevice
    from relay_hw.accel.sim.dram_timing import memory_model

    return CycleDevice(config, memory_model("standard"))


DEVICES: dict[str, Callable[[AccelConfig], Device]] = {FUNCTIONAL: _functional, CYCLE: _cycle}


def read_config(name: str) -> AccelConfig:
    """A configuration by name or file; an exported one holds its own name. Raises ConfigError."""
    path = Path(name)
    if path.is_file():
        try:
            row = parse_json(durable.read_given(path, MOST_SETTINGS))
        except (OSError, DocumentError) as error:
            raise ConfigError(f"configuration file {path} must be JSON: {reason(error)}") from None
        if isinstance(row, dict) and "name" in row:
            return config_from_dict(row, row.pop("name"))
    return load_config(name)


def main() -> int:
    """The command: 2 with one line on standard error for what cannot be served."""
    parser = argparse.ArgumentParser(
        prog="python -m relay_hw.accel.sim.pipe", description="An accelerator behind a pipe."
    )
    parser.add_argument("config", help="name or file of a configuration")
    parser.add_argument("device", nargs="?", choices=sorted(DEVICES), default=FUNCTIONAL)
    args = parser.parse_args()
    try:
        serve(Bus(DEVICES[args.device](read_config(args.config))), sys.stdin.buffer, sys.stdout.buffer)
    except AccelError as error:
        print(f"error: {line(error)}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
