"""The file that tells a driver about a SoC: addresses of memory and registers, its link, how to initialise memory.

In and out: `soc.json`, a file beside each bitstream.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from relay_hw.accel.fpga.parts import FlowError
from relay_hw.support import durable
from relay_hw.support.documents import MOST_SETTINGS, DocumentError, parse_json, read_record, reason

# Bus addresses that every SoC of this room uses.
MEMORY_BASE: Final = 0x4000_0000
REGISTERS_BASE: Final = 0xB000_0000
SOC_FILE: Final = "soc.json"


@dataclass(frozen=True, slots=True)
class SetupStep:
    """Words written in order, as pairs of address and value, and the time that must pass after them."""

    what: str
    writes: tuple[tuple[int, int], ...]
    pause_us: int


@dataclass(frozen=True, slots=True)
class MemorySetup:
    """How a host makes the memory ready: `address` holds `ready` when it has been done, by the last of the steps."""

    address: int
    ready: int
    steps: tuple[SetupStep, ...]


@dataclass(frozen=True, slots=True)
class SocMap:
    """One SoC. `clock_hz`: the accelerator's clock; `baud`: bits a second of its serial line, 0 without one.

    `address`: where the board is found unless somebody says otherwise, as `open_link` takes it. `setup`:
    what the memory must be told before its first use; None where it is ready by itself.
    """

    board: str
    config: str
    config_hash: int
    clock_hz: int
    memory_bytes: int
    baud: int
    memory_base: int = MEMORY_BASE
    registers_base: int = REGISTERS_BASE
    setup: MemorySetup | None = None
    address: str = ""

    def to_json(self) -> str:
        """The text of the file."""
        return json.dumps(asdict(self), indent=2, sort_keys=True) + "\n"


def load_map(path: Path) -> SocMap:
    """Read the file, or the one in the folder of a bitstream. Raises FlowError."""
    file = path / SOC_FILE if path.is_dir() else path
    try:
        found = read_record(SocMap, parse_json(durable.read_given(file, MOST_SETTINGS)), SOC_FILE)
    except (OSError, DocumentError) as error:
        raise FlowError(f"{file} must be the soc.json of `relay-hw bitstream`: {reason(error)}") from None
    _check(found, file)
    return found


def _check(found: SocMap, file: Path) -> None:
    """Addresses and words are 32 bits wide; nothing is negative."""
    words = [found.config_hash, found.memory_base, found.registers_base]
    if found.setup is not None:
        words += [found.setup.address, found.setup.ready]
        words += [word for step in found.setup.steps for pair in step.writes for word in pair]
        words += [step.pause_us for step in found.setup.steps]
    for word in (*words, found.clock_hz, found.memory_bytes, found.baud):
        if not 0 <= word < 1 << 32:
            raise FlowError(f"{file} must hold numbers of 32 bits, not {word}")
