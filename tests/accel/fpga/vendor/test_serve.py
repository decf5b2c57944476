"""The script that runs on boards: the driver reaches the Verilog through it, as if it were a board with PYNQ."""

from __future__ import annotations

import os
import random
import socket
import struct
import subprocess
import sys
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from relay_hw.accel.fpga.device import FpgaDevice
from relay_hw.accel.fpga.open_link import open_link
from relay_hw.accel.fpga.soc_map import MEMORY_BASE, REGISTERS_BASE, load_map
from relay_hw.accel.fpga.vendor.project import project_files
from relay_hw.accel.fpga.vendor.serve import WINDOW_BASE, Bus
from relay_hw.accel.fpga.vendor.targets import TARGETS
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.registers import REGISTER
from relay_hw.accel.isa.spec import DEVICE_MAGIC
from relay_hw.accel.sim.selftest import self_test

pytest.importorskip("serial", reason="pyserial (extra fpga) is not installed")

TINY = load_config("tiny")
ROOT = Path(__file__).parents[4]
PATIENCE = 30

# Stands in for the package of that name: registers and memory of a simulated accelerator.
FAKE_PYNQ = """
import numpy as np
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.registers import REGISTER
from relay_hw.accel.sim.dram_timing import MemoryModel
from relay_hw.accel.sim.rtl_model import RtlModel, Seeds
from relay_hw.accel.sim.verilator import Build, build_library

CONFIG = load_config("tiny")
MODEL = RtlModel(build_library(Build.of(CONFIG)), CONFIG, MemoryModel(), Seeds())
PHYSICAL = 0x16800000
KEEP = []

class Overlay:
    def __init__(self, path):
        open(path, "rb").close()

class Buffer(np.ndarray):
    physical_address = PHYSICAL

def allocate(shape, dtype):
    buffer = np.zeros(shape, dtype).view(Buffer)
    KEEP.append(buffer)
    MODEL.window(np.frombuffer(buffer.data, np.uint8), PHYSICAL)
    return buffer

class MMIO:
    def __init__(self, base, size):
        assert (base, size) == (0x43C00000, 4096), (base, size)
    def read(self, offset):
        return MODEL.read_register(offset)
    def write(self, offset, value):
        MODEL.write_register(offset, value)
        if offset == REGISTER["CONTROL"].offset and value & 1:
            MODEL.run(10_000_000)
"""


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[str]:
    """serve.py of a project as a process; the address that it listens on."""
    command = [sys.executable, str(folder / "serve.py"), "--port", "0", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            words = process.stdout.readline().split()
            assert words[:1] == ["listening"], words
            yield f"socket://{words[2]}:{words[4]}"
        finally:
            process.kill()


def project(folder: Path, name: str) -> Path:
    target = next(target for target in TARGETS if target.name == name)
    for path, data in project_files(target, TINY, target.mhz).items():
        if "/" not in path:
            (folder / path).write_bytes(data)
    return folder


def test_the_self_test_passes_through_pynq(tmp_path: Path) -> None:
    folder = project(tmp_path, "pynq-z1")
    (folder / "pynq.py").write_text(FAKE_PYNQ)
    (folder / "relay_hw.bit").touch()
    soc = load_map(folder)
    with serving(folder) as address:
        device = FpgaDevice(TINY, open_link(address, soc.baud, PATIENCE), soc)
        found = self_test(device, 3)
        device.close()
        assert all(finding.ok for finding in found), found
        # The next host finds a board that works.
        again = FpgaDevice(TINY, open_link(address, soc.baud, PATIENCE), soc)
        again.core.check(TINY)
        assert again.core.get("WINDOW_BASE") == soc.memory_base
        again.close()


def test_memory_that_linux_leaves_alone(tmp_path: Path) -> None:
    folder = project(tmp_path, "de10nano")
    target = next(target for target in TARGETS if target.name == "de10nano")
    device = tmp_path / "mem"
    with device.open("wb") as stream:
        stream.truncate(target.registers + 4096)
        stream.seek(target.registers)
        stream.write(struct.pack("<I", DEVICE_MAGIC))
    with serving(folder, "--device", str(device)) as address:
        link = open_link(address, 1, PATIENCE)
        assert link.read(REGISTERS_BASE, 1) == [DEVICE_MAGIC]
        words = list(range(1, 1000))
        link.write(MEMORY_BASE + 8, words)
        assert link.read(MEMORY_BASE + 4, 1001) == [0, *words, 0]
        link.write(REGISTERS_BASE + WINDOW_BASE, [MEMORY_BASE + 0x5000])
        assert link.read(REGISTERS_BASE + WINDOW_BASE, 1) == [MEMORY_BASE + 0x5000]
        link.close()
    assert target.memory is not None
    with device.open("rb") as stream:
        stream.seek(target.memory + 8)
        assert array("I", stream.read(4 * len(words))).tolist() == words
        stream.seek(target.registers + WINDOW_BASE)
        assert struct.unpack("<I", stream.read(4))[0] == target.memory + 0x5000


def test_a_device_that_is_none(tmp_path: Path) -> None:
    folder = project(tmp_path, "de10nano")
    command = [sys.executable, str(folder / "serve.py"), "--device", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "serve.py must run as root on the board: " in done.stderr
    folder = project(tmp_path, "pynq-z1")
    done = subprocess.run([sys.executable, str(folder / "serve.py")], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "serve.py must run as root on the board: No module named 'pynq'" in done.stderr


def test_commands_that_are_none_end_the_line_and_nothing_else(tmp_path: Path) -> None:
    folder = project(tmp_path, "de10nano")
    device = tmp_path / "mem"
    with device.open("wb") as stream:
        stream.truncate(0xFF24_1000)
    with serving(folder, "--device", str(device)) as address:
        host, port = address.removeprefix("socket://").split(":")
        for bad in (b"\x07\x01\0\0\0\0", b"\x01\x02\x10\0\0\0half", b"\x02"):
            with socket.create_connection((host, int(port)), timeout=PATIENCE) as line:
                line.sendall(bad)
                line.shutdown(socket.SHUT_WR)
                assert line.recv(1) == b""
        link = open_link(address, 1, PATIENCE)
        assert link.read(MEMORY_BASE, 2) == [0, 0]
        link.close()


def lines_of(address: str) -> socket.socket:
    host, port = address.removeprefix("socket://").split(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE)


def open_device(tmp_path: Path) -> tuple[Path, str]:
    """A project with memory and registers in a file."""
    folder, device = project(tmp_path, "de10nano"), tmp_path / "mem"
    with device.open("wb") as stream:
        stream.truncate(0xFF24_1000)
    return folder, str(device)


def test_a_host_that_says_nothing_keeps_no_other_away(tmp_path: Path) -> None:
    folder, device = open_device(tmp_path)
    with serving(folder, "--device", device, "--patience", "0.3") as address:
        assert address.startswith("socket://127.0.0.1:")
        # One says nothing, one half a command, one takes no answers.
        with lines_of(address) as idle, lines_of(address) as half, lines_of(address) as deaf:
            half.sendall(b"\x01\xff\x10\0")
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.setblocking(False)
            with pytest.raises(BlockingIOError):
                while True:
                    deaf.send(b"\x02\xff\x10\0\0\0" * 1000)
            link = open_link(address, 1, PATIENCE)
            assert link.read(MEMORY_BASE, 2) == [0, 0]
            link.close()
            assert idle.recv(1) == b"" and half.recv(1) == b""


def test_a_host_that_is_alone_may_think(tmp_path: Path) -> None:
    folder, device = open_device(tmp_path)
    with serving(folder, "--device", device, "--patience", "0.1") as address:
        link = open_link(address, 1, PATIENCE)
        link.write(MEMORY_BASE, [7])
        time.sleep(1.5)
        assert link.read(MEMORY_BASE, 1) == [7]
        link.close()


def broken_request(rng: random.Random) -> bytes:
    count, place = rng.choice((0, 1, 2, 255)), rng.choice((0x1000_0000, 0x2C00_0000, rng.getrandbits(32)))
    head = struct.pack(">BBI", rng.choice((1, 2, 2, 0, 3, 255)), count, place)
    return head + rng.randbytes(rng.choice((0, 3, 4 * count)))


@pytest.mark.parametrize("hosts", [100, pytest.param(300, marks=pytest.mark.long)])
def test_broken_requests_over_loopback(tmp_path: Path, hosts: int) -> None:
    """Hosts that send bytes by chance; afterwards one that means it is served."""
    folder, device = open_device(tmp_path)
    rng = random.Random(5)
    with serving(folder, "--device", device, "--patience", "5") as address:
        for _ in range(hosts):
            data = b"".join(broken_request(rng) for _ in range(rng.randrange(4)))
            # The board hangs up where it is sent what is no command.
            with lines_of(address) as line, suppress(OSError):
                line.sendall(data)
                line.shutdown(socket.SHUT_WR)
                if rng.random() < 0.5:
                    while line.recv(1 << 16):
                        pass
        link = open_link(address, 1, PATIENCE)
        link.write(MEMORY_BASE + 64, [1, 2])
        assert link.read(MEMORY_BASE + 64, 2) == [1, 2]
        link.close()


def bus() -> tuple[Bus, dict[int, int], np.ndarray]:
    registers: dict[int, int] = {}
    memory = np.zeros(64, np.uint32)
    made = Bus(
        memoryview(memory),
        0x1000_0000,
        lambda offset: registers.get(offset, 0),
        registers.__setitem__,
        MEMORY_BASE,
        REGISTERS_BASE,
    )
    return made, registers, memory


def test_addresses_of_nothing() -> None:
    made, registers, memory = bus()
    for address in (0, MEMORY_BASE - 4, MEMORY_BASE + 256, REGISTERS_BASE - 4, REGISTERS_BASE + 4096):
        made.write(address, [5])
        assert made.read(address, 1) == [0]
    assert not registers and not memory.any()
    # A run that leaves the memory is lost whole.
    made.write(MEMORY_BASE + 252, [1, 2])
    assert not memory.any() and made.read(MEMORY_BASE + 252, 2) == [0, 0]


def test_only_the_base_of_the_window_is_translated() -> None:
    made, registers, _ = bus()
    assert REGISTER["WINDOW_BASE"].offset == WINDOW_BASE
    for register in REGISTER.values():
        made.write(REGISTERS_BASE + register.offset, [MEMORY_BASE])
        assert made.read(REGISTERS_BASE + register.offset, 1) == [MEMORY_BASE]
        expected = 0x1000_0000 if register.name == "WINDOW_BASE" else MEMORY_BASE
        assert registers[register.offset] == expected
    for value in (0, 0xFFFF_F000):
        made.write(REGISTERS_BASE + WINDOW_BASE, [value])
        assert made.read(REGISTERS_BASE + WINDOW_BASE, 1) == [value]
