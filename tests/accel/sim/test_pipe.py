"""The device behind a pipe: registers as ISA.md says, memory that keeps what launches leave, faults as status."""

from __future__ import annotations

import io
import struct
import subprocess
import sys

import numpy as np
import pytest

from relay_hw.accel.isa.asm import assemble
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.errors import AccelError, FaultCode
from relay_hw.accel.isa.registers import REGISTER
from relay_hw.accel.isa.spec import DEVICE_MAGIC, ISA_VERSION
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.accel.sim.pipe import REQUEST, Bus, serve

TINY = load_config("tiny")


def bus() -> Bus:
    return Bus(FunctionalDevice(TINY))


def register(name: str) -> int:
    return REGISTER[name].offset


def talk(target: Bus, *requests: bytes) -> bytes:
    replies = io.BytesIO()
    serve(target, io.BytesIO(b"".join(requests)), replies)
    return replies.getvalue()


def ask(letter: bytes, a: int, b: int = 0, data: bytes = b"") -> bytes:
    return REQUEST.pack(letter, a, b) + data


def test_identity_and_registers() -> None:
    replies = talk(bus(), *(ask(b"g", register(name)) for name in ("MAGIC", "VERSION", "CONFIG_HASH", "STATUS")))
    assert struct.unpack("<4I", replies) == (DEVICE_MAGIC, ISA_VERSION, TINY.hash32, 0)
    target = bus()
    target.put(register("WATCHDOG"), 77)
    target.put(register("MAGIC"), 1)
    assert (target.get(register("WATCHDOG")), target.get(register("MAGIC"))) == (77, DEVICE_MAGIC)
    assert target.get(0xFFC) == 0


def test_memory() -> None:
    replies = talk(bus(), ask(b"w", 100, 4, b"abcd"), ask(b"r", 98, 8))
    assert replies == b"\0\0abcd\0\0"


def finish_at(target: Bus, base: int, data: bytes) -> int:
    target.write(base + 64, data)
    for name, value in (("WINDOW_BASE", base), ("WINDOW_BYTES", 4096), ("PROGRAM", 64), ("COUNT", len(data) // 32)):
        target.put(register(name), value)
    target.put(register("CONTROL"), 1)
    return target.get(register("STATUS"))


def test_a_program_runs_and_a_wrong_one_faults() -> None:
    program = assemble(".config tiny\nfinish\n")
    code = program.code.data
    assert code is not None
    target = bus()
    assert finish_at(target, 8192, code) == 2
    assert target.get(register("INSTRUCTIONS")) == 1
    assert finish_at(target, 8192, b"\xff" * 32 + code) == 4 | FaultCode.ILLEGAL_OPCODE << 8
    assert target.get(register("FAULT_INDEX")) == 0
    target.put(register("CONTROL"), 2)
    assert target.get(register("STATUS")) == 0
    target.put(register("COUNT"), 1000)
    target.put(register("CONTROL"), 1)
    assert target.get(register("STATUS")) == 4 | FaultCode.DRAM_RANGE << 8


def test_what_is_no_request() -> None:
    with pytest.raises(AccelError, match="a request must be w, r, p or g, not b'x'"):
        talk(bus(), ask(b"x", 0))
    with pytest.raises(AccelError, match="a request must be 9 bytes, not 3"):
        talk(bus(), b"g\0\0")


def test_the_command() -> None:
    command = [sys.executable, "-m", "relay_hw.accel.sim.pipe", "tiny"]
    done = subprocess.run(command, input=ask(b"g", register("MAGIC")), capture_output=True, check=True)
    assert np.frombuffer(done.stdout, "<u4").tolist() == [DEVICE_MAGIC]
    done = subprocess.run([*command[:-1], "none"], input=b"", capture_output=True)
    assert done.returncode == 2 and b"error: configuration" in done.stderr
