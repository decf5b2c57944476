#!/usr/bin/env python3
"""Runs on the board: lets a host reach the accelerator's registers and memory, as `relay-hw --device fpga` asks.

In: board.json beside this file; one host at a time on a TCP port, in the protocol of LiteX's UARTBone. Needs nothing
but Python 3.7, and pynq on boards that have it.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import select
import socket
import struct
import sys
import time
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

WRITE, READ = 1, 2
REGISTER_BYTES = 4096
WINDOW_BASE = 0x18


class Bus:
    """Words of the accelerator's memory and registers, at the addresses that the host's driver knows.

    `memory`: a memoryview of 32-bit words, seen by the accelerator at `physical`; `read`, `write`: a register by its
    byte offset. The register WINDOW_BASE is translated, because only this side knows where the memory lies.
    """

    def __init__(
        self,
        memory: memoryview,
        physical: int,
        read: Callable[[int], int],
        write: Callable[[int, int], None],
        memory_base: int,
        registers_base: int,
    ) -> None:
        self.memory = memory
        self.shift = physical - memory_base
        self.read_register = read
        self.write_register = write
        self.memory_base = memory_base
        self.registers_base = registers_base

    def read(self, address: int, count: int) -> list[int]:
        """`count` words from byte `address` on; zeros where there is nothing."""
        at = self._place(address, count)
        if at is not None:
            return self.memory[at : at + count].tolist()
        return [self._read_one(address + 4 * k) for k in range(count)]

    def write(self, address: int, words: Sequence[int]) -> None:
        """Write `words` from byte `address` on; what lies nowhere is lost."""
        at = self._place(address, len(words))
        if at is not None:
            self.memory[at : at + len(words)] = memoryview(array("I", words))
            return
        for k, word in enumerate(words):
            self._write_one(address + 4 * k, word)

    def _place(self, address: int, count: int) -> int | None:
        at = (address - self.memory_base) // 4
        return at if at >= 0 and at + count <= len(self.memory) else None

    def _read_one(self, address: int) -> int:
        offset = address - self.registers_base
        if not 0 <= offset < REGISTER_BYTES:
            return 0
        value = self.read_register(offset)
        return (value - self.shift) % (1 << 32) if offset == WINDOW_BASE else value

    def _write_one(self, address: int, value: int) -> None:
        offset = address - self.registers_base
        if 0 <= offset < REGISTER_BYTES:
            moved = (value + self.shift) % (1 << 32) if offset == WINDOW_BASE else value
            self.write_register(offset, moved)


def open_pynq(facts: dict[str, Any], folder: Path) -> tuple[Any, ...]:
    """Load the bitstream with pynq and take memory from it."""
    import pynq  # pyright: ignore[reportMissingImports]

    pynq.Overlay(str(folder / facts["bitstream"]))
    buffer = pynq.allocate(shape=(facts["memory_bytes"] // 4,), dtype="u4")
    core = pynq.MMIO(facts["registers"], REGISTER_BYTES)
    physical = buffer.physical_address
    if physical % 4096 or physical + facts["memory_bytes"] > 1 << 32:
        sys.exit(f"memory must be 4 KiB aligned and below 4 GiB, not at {physical:#x}")
    return memoryview(buffer).cast("B").cast("I"), physical, core.read, core.write


def open_devmem(facts: dict[str, Any], device: str) -> tuple[Any, ...]:
    """Map registers and memory that Linux leaves alone; the bitstream is loaded already."""
    handle = os.open(device, os.O_RDWR | os.O_SYNC)
    registers = memoryview(mmap.mmap(handle, REGISTER_BYTES, offset=facts["registers"])).cast("I")
    memory = memoryview(mmap.mmap(handle, facts["memory_bytes"], offset=facts["memory"])).cast("I")
    os.close(handle)

    def read(offset: int) -> int:
        return registers[offset // 4]

    def write(offset: int, value: int) -> None:
        registers[offset // 4] = value

    return memory, facts["memory"], read, write


def serve(bus: Bus, bind: str, port: int, patience: float) -> None:
    """Answer hosts, one after the other, for ever. `patience`: seconds that one may take for a command, and that it may
    say nothing while another one waits."""
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((bind, port))
    server.listen(1)
    print(f"listening on {server.getsockname()[0]} port {server.getsockname()[1]}", flush=True)
    while True:
        host = server.accept()[0]
        try:
            host.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            talk(bus, Connection(host, server, patience))
        except OSError as error:
            print(f"host left: {error}", flush=True)
        finally:
            host.close()


class Connection:
    """The connection of one host, which must not keep the others away for ever."""

    def __init__(self, host: socket.socket, server: socket.socket, patience: float) -> None:
        self.host = host
        self.server = server
        self.patience = patience
        self.end = 0.0

    def begin(self) -> None:
        """Wait for a command. Raises OSError where the host says nothing and another one waits."""
        since = time.monotonic()
        while not select.select([self.host], [], [], min(self.patience, 1.0))[0]:
            others = select.select([self.server], [], [], 0)[0]
            if others and time.monotonic() - since > self.patience:
                raise OSError(f"it said nothing for {self.patience:g} s, and another host waits")
        self.end = time.monotonic() + self.patience

    def _wait(self) -> None:
        left = self.end - time.monotonic()
        if left <= 0:
            raise OSError(f"a command must be whole after {self.patience:g} s")
        self.host.settimeout(left)

    def receive(self, size: int) -> bytes:
        """The next bytes; fewer where the host leaves. Raises OSError."""
        data = b""
        while len(data) < size:
            self._wait()
            chunk = self.host.recv(size - len(data))
            if not chunk:
                break
            data += chunk
        return data

    def send(self, data: bytes) -> None:
        """Raises OSError where the host does not take them."""
        self._wait()
        self.host.sendall(data)


def talk(bus: Bus, connection: Connection) -> None:
    """Commands of one host until it leaves, or sends what is none. Each is of at most 1,026 bytes."""
    while True:
        connection.begin()
        head = connection.receive(6)
        if len(head) < 6:
            return
        command, count, word = struct.unpack(">BBI", head)
        address = 4 * word % (1 << 32)
        if command == READ:
            connection.send(struct.pack(f">{count}I", *bus.read(address, count)))
        elif command == WRITE:
            data = connection.receive(4 * count)
            if len(data) < 4 * count:
                return
            bus.write(address, struct.unpack(f">{count}I", data))
        else:
            print(f"host sent command {command}, which is none", flush=True)
            return


def main() -> None:
    """Read board.json, open the board, serve."""
    folder = Path(__file__).resolve().parent
    facts = json.loads((folder / "board.json").read_text())
    parser = argparse.ArgumentParser(description="lets a host reach the accelerator of this board")
    text = "address to listen on (default 127.0.0.1: reach it by `ssh -L`; 0.0.0.0: everybody in the network)"
    parser.add_argument("--bind", default="127.0.0.1", help=text)
    parser.add_argument("--port", type=int, default=2000, help="TCP port (default 2000)")
    text = "seconds for a command, and for a host that says nothing while another one waits (default 10)"
    parser.add_argument("--patience", type=float, default=10.0, help=text)
    parser.add_argument("--device", default="/dev/mem", help="memory device (default /dev/mem; not for pynq)")
    args = parser.parse_args()
    try:
        opened = open_devmem(facts, args.device) if facts["memory"] is not None else open_pynq(facts, folder)
        bus = Bus(*opened, memory_base=facts["memory_base"], registers_base=facts["registers_base"])
        serve(bus, args.bind, args.port, args.patience)
    except (ImportError, OSError) as error:
        sys.exit(f"serve.py must run as root on the board: {error}")
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
