"""Writes a program as plain files for a board: instructions, micro-ops, packed weights, and a script that runs them.

In: a program, an address or none. Out: a folder. Nobody here has loaded such files on a board, and each text says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from relay_hw.support.durable import new_folder, write_file
from relay_hw.vta import board
from relay_hw.vta.isa import decode, decode_uops, show
from relay_hw.vta.program import Program

WARNING: Final = "Nobody here has loaded these files on a board.\n"


def files(program: Program, address: int | None = None) -> Mapping[str, bytes]:
    """Contents by name. With an address, `placed.bin` has the instructions for sections from there on."""
    head = program.head
    geometry = head.geometry
    kinds = ["constant" if section.constant else "tensor" for section in head.sections]
    sections = [
        f"{section.name} {section.size} {section.entry_bytes} {kind}"
        for section, kind in zip(head.sections, kinds, strict=True)
    ]
    both = [("input", port) for port in head.inputs] + [("output", port) for port in head.outputs]
    ports = [f"{kind} {p.name} {head.sections[p.section].name} {' '.join(map(str, p.dims))}" for kind, p in both]
    found = {
        "insn.bin": program.words.astype("<u8").tobytes(),
        "used.bin": program.used.astype("<i4").tobytes(),
        "sections.txt": _lines(sections),
        "ports.txt": _lines(ports),
        "sizes.txt": _lines([f"{geometry.batch} {geometry.block}"]),
        "README.txt": (WARNING + _about(program, address)).encode(),
        "listing.txt": (WARNING + listing(program)).encode(),
        "board.py": Path(board.__file__).read_bytes(),
    }
    if address is not None:
        found["placed.bin"] = program.placed(program.addresses(address)).astype("<u8").tobytes()
    return found | {f"{head.sections[k].name}.bin": data for k, data in program.data.items()}


def write(program: Program, folder: Path, address: int | None = None) -> None:
    """Write the files into a new folder. Raises OSError."""
    with new_folder(folder) as work:
        for name, content in files(program, address).items():
            write_file(work / name, content)


def listing(program: Program) -> str:
    """A line for each instruction, with the section that its address counts from; then micro-ops of each layer."""
    head, lines = program.head, list[str]()
    begins = {layer.begin: number for number, layer in enumerate(head.layers)}
    for number, insn in enumerate(decode(program.words, head.geometry)):
        if number in begins:
            lines.append(f"layer {begins[number]}: tile {head.layers[begins[number]].tile}")
        used = int(program.used[number])
        lines.append(f"{number:6} {show(insn)}" + (f" @{head.sections[used].name}" if used >= 0 else ""))
    for number, data in program.data.items():
        if head.sections[number].name.startswith("uop"):
            lines.append(f"micro-ops {head.sections[number].name}: acc inp wgt")
            words = np.frombuffer(data, "<u4")
            lines += [f"{k:6} {a} {x} {w}" for k, (a, x, w) in enumerate(decode_uops(words, head.geometry))]
    return "\n".join(lines) + "\n"


def _about(program: Program, address: int | None) -> str:
    head = program.head
    text = (
        f"A program of {head.instructions} instructions for VTA {head.geometry.title}, target {head.geometry.name}.\n"
    )
    text += "insn.bin: two 64-bit words each, addresses in entries from the begin of the section in used.bin.\n"
    text += "Physical addresses: add the section's address / entry bytes << 26 to the first word (board.py does).\n"
    if address is not None:
        places = program.addresses(address)
        text += "placed.bin has them filled in for these sections:\n"
        text += "".join(f"{place:#010x} {one.name}\n" for place, one in zip(places[:-1], head.sections, strict=True))
    return text


def _lines(rows: list[str]) -> bytes:
    return "".join(f"{row}\n" for row in rows).encode()
