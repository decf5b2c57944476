"""The self-test: it passes on devices that are right, and names what is wrong with those that are not."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from relay_hw.accel.isa.config import config_names, load_config
from relay_hw.accel.isa.errors import AccelError, Fault, FaultCode, ProgramError
from relay_hw.accel.isa.program import Program, SectionKind
from relay_hw.accel.isa.registers import REGISTER
from relay_hw.accel.isa.spec import DEVICE_MAGIC, ISA_VERSION
from relay_hw.accel.sim.cycle import CycleDevice
from relay_hw.accel.sim.device import Bytes, LaunchStats
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.accel.sim.registers import Core
from relay_hw.accel.sim.rtl_device import RtlDevice
from relay_hw.accel.sim.selftest import Finding, HasCore, HasMemory, self_test
from tests.told import told

TINY = load_config("tiny")
NAMES = ["identity", "registers", "memory", "programs", "counters", "faults"]


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    assert [finding.name for finding in findings] == NAMES
    return {finding.name: finding for finding in findings}


def failed(findings: list[Finding]) -> list[str]:
    return [finding.name for finding in findings if finding.ok is False]


class Registers:
    """Registers as hardware has them. `stuck`: bits of one register that stay 0; `join`: a register that is another."""

    def __init__(self, stuck: dict[str, int] | None = None, join: dict[str, str] | None = None) -> None:
        fixed = {"MAGIC": DEVICE_MAGIC, "VERSION": ISA_VERSION, "CONFIG_HASH": TINY.hash32}
        self.values = {REGISTER[name].offset: value for name, value in fixed.items()}
        self.stuck = {REGISTER[name].offset: bits for name, bits in (stuck or {}).items()}
        self.join = {REGISTER[a].offset: REGISTER[b].offset for a, b in (join or {}).items()}
        self.core = Core(self.write, self.read)

    def write(self, offset: int, values: Sequence[int]) -> None:
        for at, value in enumerate(values):
            place = self.join.get(offset + 4 * at, offset + 4 * at)
            self.values[place] = value & ~self.stuck.get(place, 0)

    def read(self, offset: int, count: int) -> list[int]:
        return [self.values.get(self.join.get(at, at), 0) for at in range(offset, offset + 4 * count, 4)]


class Sound(FunctionalDevice):
    """The functional simulator with registers and a memory; what is wrong is added below."""

    def __init__(self, registers: Registers | None = None, memory_bytes: int = 1 << 16) -> None:
        super().__init__(TINY)
        self.core = (registers or Registers()).core
        self._room = np.zeros(memory_bytes, np.uint8)

    @property
    def memory_bytes(self) -> int:
        return self._room.size

    def poke(self, offset: int, data: Bytes) -> None:
        self._room[offset : offset + data.size] = data

    def peek(self, offset: int, size: int) -> Bytes:
        return self._room[offset : offset + size].copy()


def test_what_the_sound_device_is() -> None:
    device = Sound()
    assert isinstance(device, HasCore) and isinstance(device, HasMemory)
    assert not isinstance(FunctionalDevice(TINY), (HasCore, HasMemory))
    assert all(finding.ok for finding in self_test(device, 2))


@pytest.mark.parametrize("name", config_names())
def test_simulators_pass(name: str) -> None:
    said: list[str] = []
    for device in (FunctionalDevice(load_config(name)), CycleDevice(load_config(name))):
        found = by_name(self_test(device, 2, progress=told(said)))
        assert [finding.name for finding in found.values() if finding.ok is not True] == ["registers"]
        assert found["registers"].detail == "this device has no registers"
    assert "self-test: programs: 1 of 2" in said
    assert len(found["programs"].figures["cycles"]) == 4


def test_the_verilog_passes() -> None:
    device = RtlDevice(TINY)
    try:
        found = self_test(device, 4, seed=7)
    finally:
        device.close()
    assert all(finding.ok for finding in found), found


@pytest.mark.parametrize(
    ("register", "bit"), [("WINDOW_BASE", 12), ("WINDOW_BYTES", 0), ("PROGRAM", 17), ("COUNT", 31), ("WATCHDOG", 8)]
)
def test_a_bit_of_a_register_that_stays_0(register: str, bit: int) -> None:
    found = by_name(self_test(Sound(Registers(stuck={register: 1 << bit})), 1))
    assert failed(list(found.values())) == ["registers"]
    assert f"register {register} must keep 0x" in found["registers"].detail


def test_two_registers_that_are_one() -> None:
    found = by_name(self_test(Sound(Registers(join={"COUNT": "WATCHDOG"})), 1))
    assert found["registers"].detail == "register COUNT must keep its value while others are written"


def test_another_accelerator_ends_the_test() -> None:
    registers = Registers()
    registers.values[REGISTER["CONFIG_HASH"].offset] = 1
    found = by_name(self_test(Sound(registers), 1))
    assert "core register CONFIG_HASH must be 0x" in found["identity"].detail
    assert [found[name].ok for name in NAMES] == [False, None, None, None, None, None]
    assert found["faults"].detail == "not run: identity ended with an error"


def test_a_busy_core() -> None:
    registers = Registers()
    registers.values[REGISTER["STATUS"].offset] = 1
    assert by_name(self_test(Sound(registers), 1))["identity"].detail == "the core must be idle, not busy"


@pytest.mark.parametrize("bit", [2, 12, 15])
def test_an_address_line_that_hangs(bit: int) -> None:
    class Hanging(Sound):
        def poke(self, offset: int, data: Bytes) -> None:
            for k in range(0, data.size, 4):
                super().poke((offset + k) & ~(1 << bit), data[k : k + 4])

        def peek(self, offset: int, size: int) -> Bytes:
            parts = [super(Hanging, self).peek((offset + k) & ~(1 << bit), 4) for k in range(0, size, 4)]
            return np.concatenate(parts)

    found = self_test(Hanging(), 1)
    assert failed(found) == ["memory"]
    assert "must be 0x" in by_name(found)["memory"].detail


@pytest.mark.parametrize("bit", [0, 7])
def test_a_data_line_that_hangs(bit: int) -> None:
    class Hanging(Sound):
        def peek(self, offset: int, size: int) -> Bytes:
            return super().peek(offset, size) | np.uint8(1 << bit)

    assert failed(self_test(Hanging(), 1)) == ["memory"]


class Wrong(FunctionalDevice):
    """A simulator whose launches end otherwise than they should."""

    def __init__(self, change: Callable[[Wrong, LaunchStats], LaunchStats]) -> None:
        super().__init__(TINY)
        self._change = change

    def launch(self, stream: SectionKind = SectionKind.PROGRAM) -> LaunchStats:
        stats = super().launch(stream)
        stats = LaunchStats(100, {**stats.counters, "CYCLES": 100})
        return self._change(self, stats)


def test_a_byte_that_differs() -> None:
    def flip(device: Wrong, stats: LaunchStats) -> LaunchStats:
        device.write(0x123, device.read(0x123, 1) ^ np.uint8(0x10))
        return stats

    found = by_name(self_test(Wrong(flip), 3, seed=5))
    assert found["programs"].ok is False and found["faults"].ok is False
    assert found["programs"].detail.startswith("program 0 of seed 5: byte 0x123 must be 0x")
    assert found["programs"].detail.endswith("bytes differ)")


@pytest.mark.parametrize(
    ("counter", "message"),
    [
        ("READ_BYTES", r"counter READ_BYTES must be \d+, not 7"),
        ("LOAD_BUSY", None),
        ("STORE_TOKEN", "counter STORE_TOKEN must be at most 100 cycles, not 107"),
    ],
)
def test_counters_that_are_wrong(counter: str, message: str | None) -> None:
    value = {"READ_BYTES": 7, "LOAD_BUSY": 100, "STORE_TOKEN": 107}[counter]
    device = Wrong(lambda _device, stats: replace(stats, counters={**stats.counters, counter: value}))
    found = self_test(device, 1)
    assert failed(found) == ([] if message is None else ["counters"])
    if message is not None:
        assert re.search(message, by_name(found)["counters"].detail)


class Faulty(FunctionalDevice):
    """A simulator that tells faults otherwise."""

    def __init__(self, change: Callable[[Fault], Fault | None]) -> None:
        super().__init__(TINY)
        self._change = change

    def launch(self, stream: SectionKind = SectionKind.PROGRAM) -> LaunchStats:
        try:
            return super().launch(stream)
        except Fault as fault:
            told = self._change(fault)
            if told is None:
                return LaunchStats(None)
            raise told from None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: None, "an unknown opcode must be fault ILLEGAL_OPCODE, not a launch that ends well"),
        (lambda f: Fault(f.code, f.index + 1, ""), "an unknown opcode must be fault ILLEGAL_OPCODE at 0, not instr"),
        (lambda f: Fault(FaultCode.AXI_READ, f.index, ""), "an unknown opcode must be fault ILLEGAL_OPCODE at 0, not"),
        (lambda f: f if f.index == 0 else None, "a load outside the window must be fault DRAM_RANGE, not a launch"),
    ],
)
def test_faults_that_are_told_wrongly(change: Any, message: str) -> None:
    found = by_name(self_test(Faulty(change), 1))
    assert found["faults"].ok is False and message in found["faults"].detail


def test_a_device_that_falls_silent() -> None:
    class Silent(Sound):
        def load(self, program: Program) -> None:
            raise AccelError("link ttyUSB0 must give 4 bytes in time, not 0; is the board connected?")

    found = by_name(self_test(Silent(), 1))
    assert [found[name].ok for name in NAMES] == [True, True, True, False, None, None]
    assert "is the board connected?" in found["programs"].detail
    assert found["counters"].detail == "not run: programs ended with an error"


def test_a_memory_too_small_for_programs() -> None:
    found = by_name(self_test(Sound(memory_bytes=4096), 1))
    assert [found[name].ok for name in NAMES] == [True, True, True, None, None, None]
    assert found["programs"].detail == "random programs of tiny must have more memory than 4,096 bytes"


def test_programs_are_shortened_to_fit() -> None:
    class Small(Sound):
        def load(self, program: Program) -> None:
            if program.window_bytes > 8192:
                raise ProgramError(f"window must fit 8192 bytes, not {program.window_bytes}")
            super().load(program)

    assert failed(self_test(Small(memory_bytes=8192), 6)) == []
