"""Nobody here has loaded this on a board. Runs a program of VTA on a PYNQ, as VTA's own runtime would.

`python board.py FOLDER DATA.npz OUT.npz` on the board, for a folder that `python -m relay_hw.vta` wrote. It needs
numpy, the package pynq, and VTA's bitstream for the same vta_config.json as vta.bit in FOLDER. It is written from
published register maps, imports nothing of relay-hw, and fills in addresses of the memory that it is given.
"""

from __future__ import annotations

import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

PAGE = 4096
# Control blocks of fetch, load, compute and store on a PYNQ, and their registers.
FETCH, LOAD, COMPUTE, STORE = (0x43C00000 + 0x1000 * number for number in range(4))
BLOCK_BYTES = 0x1000
CONTROL, COUNT, INSTRUCTIONS, DONE, UOPS = 0x00, 0x10, 0x18, 0x18, 0x20
# Physical bases that addresses of instructions are added to: they are whole addresses, so all bases are 0.
BASES = ((LOAD, 0x10), (LOAD, 0x18), (COMPUTE, UOPS), (COMPUTE, 0x28), (STORE, 0x10))
# Bits of Xilinx' block control: begin; begin again by itself.
START, RESTART = 0x01, 0x81
SECONDS = 10.0


def rows(path: Path) -> list[list[str]]:
    """Words of each line."""
    return [line.split() for line in path.read_text().splitlines()]


def place(folder: Path, base: int) -> tuple[Any, dict[str, int], int]:
    """Instructions with physical addresses, where sections begin behind `base`, and bytes of all together."""
    words = np.fromfile(folder / "insn.bin", "<u8").reshape(-1, 2)
    used = np.fromfile(folder / "used.bin", "<i4")
    begins, end = dict[str, int](), 0
    for number, (name, size, entry, _) in enumerate(rows(folder / "sections.txt")):
        begins[name] = end
        words[used == number, 0] += np.uint64((base + end) // int(entry) << 26)
        end += -(-int(size) // PAGE) * PAGE
    begins["insn"] = end
    return words, begins, end + -(-words.nbytes // PAGE) * PAGE


def pack(array: Any, dims: list[int], batch: int, block: int) -> Any:
    """Data as [N/b, C/c, H, W, b, c], filled up with zeros."""
    n, c, h, w = dims
    full = np.zeros((-(-n // batch) * batch, -(-c // block) * block, h, w), np.int8)
    full[:n, :c] = np.asarray(array, np.int8).reshape(dims)
    return full.reshape(-1, batch, full.shape[1] // block, block, h, w).transpose(0, 2, 4, 5, 1, 3)


def unpack(data: Any, dims: list[int], batch: int, block: int) -> Any:
    """Inverse of `pack`."""
    n, c, h, w = dims
    split = data.reshape(-(-n // batch), -(-c // block), h, w, batch, block).transpose(0, 4, 1, 5, 2, 3)
    return split.reshape(split.shape[0] * batch, -1, h, w)[:n, :c]


def launch(pynq: Any, address: int, count: int) -> None:
    """Start the four modules and wait until compute is done. Raises TimeoutError."""
    blocks = {base: pynq.MMIO(base, BLOCK_BYTES) for base in (FETCH, LOAD, COMPUTE, STORE)}
    blocks[FETCH].write(COUNT, count)
    blocks[FETCH].write(INSTRUCTIONS, address)
    for base, register in BASES:
        blocks[base].write(register, 0)
    for base in (LOAD, COMPUTE, STORE):
        blocks[base].write(CONTROL, RESTART)
    blocks[FETCH].write(CONTROL, START)
    end = time.monotonic() + SECONDS
    while not blocks[COMPUTE].read(DONE):
        if time.monotonic() > end:
            raise TimeoutError(f"VTA must be done within {SECONDS:g} seconds")


def run(folder: Path, inputs: Any) -> dict[str, Any]:
    """The results of a program by their names."""
    pynq = import_module("pynq")
    pynq.Overlay(str(folder / "vta.bit"))
    batch, block = (int(word) for word in rows(folder / "sizes.txt")[0])
    _, begins, size = place(folder, 0)
    memory = pynq.allocate((size,), np.uint8)
    base = memory.physical_address
    words, _, _ = place(folder, base)
    memory[:] = 0
    memory[begins["insn"] :][: words.nbytes] = words.view(np.uint8).reshape(-1)
    for name, length, _, kind in rows(folder / "sections.txt"):
        if kind == "constant":
            memory[begins[name] :][: int(length)] = np.fromfile(folder / f"{name}.bin", np.uint8)
    ports = [(kind, name, section, [*map(int, dims)]) for kind, name, section, *dims in rows(folder / "ports.txt")]
    for kind, name, section, dims in ports:
        if kind == "input":
            data = pack(inputs[name], dims, batch, block).reshape(-1).view(np.uint8)
            memory[begins[section] :][: len(data)] = data
    memory.flush()
    launch(pynq, base + begins["insn"], len(words))
    memory.invalidate()
    lengths = {name: int(length) for name, length, *_ in rows(folder / "sections.txt")}
    return {
        name: unpack(np.array(memory[begins[section] :][: lengths[section]]).view(np.int8), dims, batch, block)
        for kind, name, section, dims in ports
        if kind == "output"
    }


def main() -> None:
    """Command line on the board."""
    folder, data, out = map(Path, sys.argv[1:4])
    with np.load(data) as inputs:
        results = run(folder, inputs)
    with out.open("wb") as stream:
        np.savez(stream, **results)


if __name__ == "__main__":
    main()
