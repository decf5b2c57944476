"""Writes down what LiteX has built for a board: Verilog without its date, and constraints.

In: LiteX's text, and the pins that it resolved. Out: the same Verilog every time, and an LPF file.
"""

from __future__ import annotations

import re
from typing import Any

from relay_hw.accel.fpga.boards import Board


def without_comments(text: str) -> str:
    """LiteX dates its files in comments."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    lines = (line.rstrip() for line in text.splitlines() if not line.lstrip().startswith("//"))
    body = "\n".join(line for line in lines if line)
    return f"// Written by relay_hw's bitstream flow with LiteX: a board's SoC around the accelerator.\n{body}\n"


def constraints(board: Board, pins: list[Any]) -> str:
    """An LPF file: place and electrical standard of each pin, and the frequency of what comes in as a clock."""
    clocks = dict(board.data_clocks)
    lines: list[str] = []
    for name, places, others, resource in sorted(pins, key=lambda row: row[0]):
        settings = " ".join(word for word in map(_setting, others) if word)
        for index, place in enumerate(places):
            port = f"{name}[{index}]" if len(places) > 1 else name
            lines += [f'LOCATE COMP "{port}" SITE "{place}";', f'IOBUF PORT "{port}" {settings};']
        mhz = board.input_mhz if resource[0] == board.clock_pin else clocks.get(name)
        lines += [] if mhz is None else [f'FREQUENCY PORT "{name}" {mhz:g} MHZ;']
    return "\n".join(lines) + "\n"


def _setting(other: Any) -> str:
    match type(other).__name__:
        case "IOStandard":
            return f"IO_TYPE={other.name}"
        case "Misc":
            return str(other.misc)
        case _:
            return ""
