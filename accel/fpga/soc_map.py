"""What a driver must know of a System: where memory and registers lie, how fast the line is.

In and out: `soc.json`, a file beside each bitstream.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from accel.fpga.parts import FlowError

# Bus addresses that every System of this room uses.
MEMORY_BASE: Final = 0x4000_0000
REGISTERS_BASE: Final = 0xB000_0000
SOC_FILE: Final = "soc.json"


@dataclass(frozen=True, slots=True)
class SocMap:
    """One System. `clock_hz`: the accelerator's clock; `baud`: bits a second of its serial line."""

    board: str
    config: str
    config_hash: int
    clock_hz: int
    memory_bytes: int
    baud: int
    memory_base: int = MEMORY_BASE
    registers_base: int = REGISTERS_BASE

    def to_json(self) -> str:
        """The text of the file."""
        return json.dumps(asdict(self), indent=2, sort_keys=True) + "\n"


def load_map(path: Path) -> SocMap:
    """Read the file, or the one in the folder of a bitstream. Raises FlowError."""
    file = path / SOC_FILE if path.is_dir() else path
    try:
        row: dict[str, Any] = json.loads(file.read_text())
        return SocMap(**row)
    except (OSError, ValueError, TypeError) as error:
        raise FlowError(f"{file} must be the soc.json of `relay-hw bitstream`: {error}") from None
