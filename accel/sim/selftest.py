"""The self-test of a device: registers, memory, programs, counters and faults must do what the manual says.

In: a device. Out: a finding a test. The reference for programs is the functional simulator.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from relay_hw.accel.isa.config import INSTRUCTION_BYTES
from relay_hw.accel.isa.errors import AccelError, DeadlockError, Fault, FaultCode
from relay_hw.accel.isa.program import Program, Section, SectionKind, WindowPlan
from relay_hw.accel.isa.randprog import random_program
from relay_hw.accel.isa.spec import DEVICE_MAGIC, ISA_VERSION, Op
from relay_hw.accel.sim.device import Bytes, Device
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.accel.sim.registers import Core
from relay_hw.support.progress import SILENT, Progress

# Bytes of a block of the memory test; of the window where the memory itself is out of reach.
_BLOCK: Final = 4096
_WINDOW: Final = 16 * _BLOCK
# Lengths of random programs, the first whose window fits.
_LENGTHS: Final = (40, 20, 10, 5, 2, 1)
# Registers that can be written and read back, with the bits that they keep.
_WRITABLE: Final = {
    "WINDOW_BASE": 0xFFFF_F000,
    "WINDOW_BYTES": 0xFFFF_FFFF,
    "PROGRAM": 0xFFFF_FFE0,
    "COUNT": 0xFFFF_FFFF,
    "WATCHDOG": 0xFFFF_FFFF,
}
_PATTERNS: Final = (0x0000_0000, 0xFFFF_FFFF, 0x5555_5555, 0xAAAA_AAAA, 0x0123_4567, 0xFEDC_BA98)


@dataclass(frozen=True, slots=True)
class Finding:
    """One test. `ok` is None where it could not run; `detail` says why, or what differs; `figures` are its numbers."""

    name: str
    ok: bool | None
    detail: str
    seconds: float = 0.0
    figures: Mapping[str, Any] = field(default_factory=dict[str, Any])


@runtime_checkable
class HasCore(Protocol):
    """A device whose registers can be reached."""

    core: Core


@runtime_checkable
class HasMemory(Protocol):
    """A device whose memory can be reached beside the window: `memory_bytes` of it."""

    @property
    def memory_bytes(self) -> int: ...
    def poke(self, offset: int, data: Bytes) -> None: ...
    def peek(self, offset: int, size: int) -> Bytes: ...


class _Failed(Exception):
    """A test that found what must not be."""


class _Unable(Exception):
    """A test that this device cannot run."""


Figures = dict[str, Any]


def self_test(device: Device, programs: int = 20, seed: int = 0, progress: Progress = SILENT) -> list[Finding]:
    """Run every test, in order; a device that stops answering ends it, and what is left could not run."""
    tests: tuple[tuple[str, Callable[[], tuple[str, Figures]]], ...] = (
        ("identity", lambda: _identity(device)),
        ("registers", lambda: _registers(device)),
        ("memory", lambda: _memory(device, seed)),
        ("programs", lambda: _programs(device, programs, seed, progress)),
        ("counters", lambda: _counters(device, seed)),
        ("faults", lambda: _faults(device, seed)),
    )
    findings: list[Finding] = []
    silent = ""
    for name, test in tests:
        if silent:
            findings.append(Finding(name, None, silent))
            continue
        progress.started(f"self-test: {name}")
        begin = time.perf_counter()
        figures: Figures = {}
        try:
            detail, figures = test()
            ok: bool | None = True
        except _Unable as reason:
            ok, detail = None, str(reason)
        except (_Failed, Fault, DeadlockError) as reason:
            ok, detail = False, str(reason)
        except AccelError as error:
            ok, detail = False, str(error)
            silent = f"not run: {name} ended with an error"
        findings.append(Finding(name, ok, detail, round(time.perf_counter() - begin, 3), figures))
    return findings


def passed(findings: Iterable[Finding]) -> bool:
    """Whether no test failed; one that could not run did not."""
    return all(finding.ok is not False for finding in findings)


def _identity(device: Device) -> tuple[str, Figures]:
    """What the hardware says of itself, against the configuration."""
    config = device.config
    if isinstance(device, HasCore):
        device.core.check(config)
        if device.core.busy:
            raise _Failed("the core must be idle, not busy")
    else:
        device.load(_empty(device))
    facts = {"magic": DEVICE_MAGIC, "isa_version": ISA_VERSION, "config_hash": config.hash32}
    return f"{config.name}, instruction set {ISA_VERSION}, hash {config.hash32:#010x}", facts


def _registers(device: Device) -> tuple[str, Figures]:
    """Patterns in every register that keeps what is written; those that say what the core is must not change."""
    if not isinstance(device, HasCore):
        raise _Unable("this device has no registers")
    core = device.core
    for name, mask in _WRITABLE.items():
        for pattern in (*_PATTERNS, *(1 << bit for bit in range(32))):
            core.put(name, pattern & mask)
            found = core.get(name)
            if found != pattern & mask:
                raise _Failed(f"register {name} must keep {pattern & mask:#010x}, not {found:#010x}")
    for number, name in enumerate(_WRITABLE):
        core.put(name, _own_value(number, name))
    for number, name in enumerate(_WRITABLE):
        if core.get(name) != _own_value(number, name):
            raise _Failed(f"register {name} must keep its value while others are written")
    core.check(device.config)
    return f"{len(_WRITABLE)} registers keep what is written", {"registers": len(_WRITABLE)}


def _own_value(number: int, name: str) -> int:
    return (0x1111_1111 * (number + 1)) & _WRITABLE[name]


def _memory(device: Device, seed: int) -> tuple[str, Figures]:
    """Every address bit once, then blocks of random bytes and of their inverse."""
    if isinstance(device, HasMemory):
        size, write, read = device.memory_bytes, device.poke, device.peek
    else:
        device.load(_empty(device, _WINDOW))
        size, write, read = _WINDOW, device.write, device.read
    marks = [0, *(1 << bit for bit in range(2, size.bit_length()) if 1 << bit < size), size - 4]
    values = {offset: np.frombuffer(int(~offset & 0xFFFF_FFFF).to_bytes(4, "little"), np.uint8) for offset in marks}
    for offset, value in values.items():
        write(offset, value)
    for offset, value in values.items():
        _same(read(offset, 4), value, offset)
    begin, moved = time.perf_counter(), 0
    rng = np.random.default_rng(seed)
    last = size - min(size, _BLOCK)
    for offset in sorted({0, last // 8 * 4, last}):
        block = rng.integers(0, 256, size - last, np.uint8)
        for data in (block, ~block):
            write(offset, data)
            _same(read(offset, data.size), data, offset)
            moved += 2 * data.size
    seconds = time.perf_counter() - begin
    figures = {"memory_bytes": size, "address_marks": len(marks), "bytes_per_second": round(moved / max(seconds, 1e-9))}
    return f"{size:,} bytes, {moved:,} bytes moved", figures


def _same(found: Bytes, expected: Bytes, offset: int) -> None:
    wrong = np.flatnonzero(found != expected)
    if wrong.size:
        at = int(wrong[0])
        value = f"{int(expected[at]):#04x}, not {int(found[at]):#04x}"
        raise _Failed(f"byte {offset + at:#x} must be {value} ({wrong.size} of {expected.size} bytes differ)")


def _programs(device: Device, count: int, seed: int, progress: Progress) -> tuple[str, Figures]:
    """Random programs, each launched twice: every byte of the window as the functional simulator leaves it."""
    cycles: list[int] = []
    instructions = 0
    progress.started("self-test: programs", count)
    for number, program in enumerate(_random_programs(device, count, seed)):
        progress.advanced("self-test: programs", number)
        expected = FunctionalDevice(device.config)
        for _ in range(2):
            expected.load(program)
            expected.launch()
            device.load(program)
            spent = device.launch().cycles
            try:
                _same(device.read(0, program.window_bytes), expected.read(0, program.window_bytes), 0)
            except _Failed as reason:
                raise _Failed(f"program {number} of seed {seed}: {reason}") from None
            cycles += [] if spent is None else [spent]
        instructions += program.count
    return f"{count} programs, {instructions} instructions", {"instructions": instructions, "cycles": cycles}


def _counters(device: Device, seed: int) -> tuple[str, Figures]:
    """Counters of work must be what the program asks for; those of time must fit into the launch."""
    (program,) = _random_programs(device, 1, seed + 1_000_000)
    expected = FunctionalDevice(device.config)
    for each in (expected, device):
        each.load(program)
    work = expected.launch().counters
    found = dict(device.launch().counters)
    for name, value in work.items():
        if found.get(name, 0) != value:
            raise _Failed(f"counter {name} must be {value}, not {found.get(name, 0)}")
    for name, value in found.items():
        if name.endswith(("_BUSY", "_TOKEN", "_MEMORY")) and value > found["CYCLES"]:
            raise _Failed(f"counter {name} must be at most {found['CYCLES']} cycles, not {value}")
    return f"{len(work)} counters as expected", {"counters": found}


def _faults(device: Device, seed: int) -> tuple[str, Figures]:
    """Programs that must be refused, each followed by a good one."""
    good = next(_random_programs(device, 1, seed + 2_000_000))
    expected = FunctionalDevice(device.config)
    expected.load(good)
    expected.launch()
    for name, bad, codes, index in _bad_programs(device):
        try:
            device.load(bad)
            device.launch()
        except Fault as fault:
            where = fault.index if index is not None else None
            if fault.code not in codes or where != index:
                raise _Failed(f"{name} must be fault {codes[0].name} at {index}, not {fault}") from None
        except DeadlockError:
            if FaultCode.WATCHDOG not in codes:
                raise
        else:
            raise _Failed(f"{name} must be fault {codes[0].name}, not a launch that ends well")
        device.load(good)
        device.launch()
        _same(device.read(0, good.window_bytes), expected.read(0, good.window_bytes), 0)
    return "faults are told, and the next program runs", {}


def _bad_programs(device: Device) -> Iterator[tuple[str, Program, tuple[FaultCode, ...], int | None]]:
    finish = (Op.FINISH, {})
    load = {"z": 1, "y": 1, "x": 1}
    two = Program.build(device.config, [(Op.LOAD, load), finish])
    yield "an unknown opcode", _with_byte(two, 0, 0xFF), (FaultCode.ILLEGAL_OPCODE,), 0
    outside = Program.build(device.config, [(Op.LOAD, load), (Op.LOAD, load | {"dram": 1 << 20}), finish])
    yield "a load outside the window", outside, (FaultCode.DRAM_RANGE,), 1
    waits = Program.build(device.config, [(Op.LOAD, load | {"wait": 1}), finish])
    yield "a token that nobody gives", waits, (FaultCode.WATCHDOG,), None


def _with_byte(program: Program, at: int, value: int) -> Program:
    """The program with one byte of its code changed."""

    def changed(section: Section) -> Section:
        if section.kind is not SectionKind.PROGRAM or section.data is None:
            return section
        data = bytearray(section.data)
        data[at] = value
        return replace(section, data=bytes(data))

    return replace(program, sections=tuple(changed(section) for section in program.sections))


def _random_programs(device: Device, count: int, seed: int) -> Iterator[Program]:
    """Programs whose windows fit the device. Raises _Unable where none does."""
    room = device.memory_bytes if isinstance(device, HasMemory) else 1 << 32
    for number in range(count):
        sizes = (random_program(device.config, seed + number, length) for length in _LENGTHS)
        program = next((program for program in sizes if program.window_bytes <= room), None)
        if program is None:
            raise _Unable(f"random programs of {device.config.name} must have more memory than {room:,} bytes")
        yield program


def _empty(device: Device, window_bytes: int = INSTRUCTION_BYTES) -> Program:
    """A program that ends at once, with a window of at least so many bytes."""
    room = Section("room", SectionKind.SCRATCH, 0, window_bytes)
    return Program.build(device.config, [(Op.FINISH, {})], WindowPlan([room]))
