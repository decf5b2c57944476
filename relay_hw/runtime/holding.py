"""Which constants the scratchpads hold while programs take turns on a device.

In: programs. Out: the entries that their streams load, and whether a program's resident constants are still there.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from accel.isa.config import AccelConfig
from accel.isa.program import Program, Section, decode_instructions
from accel.isa.rules import transfer_shape
from accel.isa.spec import Mem, Op
from accel.isa.state import element_bytes

Entries = Mapping[Mem, NDArray[np.bool_]]
# Scratchpads that hold constants; only LOAD writes them.
CONSTANTS = (Mem.WGT, Mem.UOP, Mem.PRM)


def loaded(config: AccelConfig, stream: Section | None) -> Entries:
    """Entries of each memory of constants that a stream loads."""
    depths = {Mem.WGT: config.wgt_depth, Mem.UOP: config.uop_depth, Mem.PRM: config.prm_depth}
    found = {mem: np.zeros(depths[mem], np.bool_) for mem in CONSTANTS}
    for op, values in decode_instructions(stream.data or b"") if stream is not None else ():
        if op is Op.LOAD and values["mem"] in CONSTANTS:
            mem = Mem(values["mem"])
            rows, runs, run = transfer_shape(config, values)
            entries = -(-rows * runs * run // element_bytes(config, mem))
            found[mem][values["sram"] : values["sram"] + entries] = True
    return found


def stays_alone(config: AccelConfig, program: Program) -> Mapping[Mem, int]:
    """One past the last resident entry of each memory, where launches load no constants at all; else nothing.

    Programs whose resident constants lie behind those of one another can take turns without loading them again.
    """
    if program.resident is None or any(mask.any() for mask in loaded(config, program.code).values()):
        return {}
    kept = loaded(config, program.resident)
    return {mem: int(np.flatnonzero(mask)[-1]) + 1 if mask.any() else 0 for mem, mask in kept.items()}


class Holding:
    """What the device's scratchpads hold, by `Program.resident_hash`."""

    def __init__(self, config: AccelConfig) -> None:
        self._config = config
        self._held: dict[str, Entries] = {}

    def needs(self, program: Program) -> bool:
        """True where the program's resident stream must be launched before it."""
        wanted = program.resident_hash()
        return wanted is not None and wanted not in self._held

    def take(self, program: Program) -> None:
        """The program's streams will run: what they overwrite is lost until `hold` says otherwise."""
        wanted = program.resident_hash()
        streams = [program.code, *([program.resident] if self.needs(program) else [])]
        written = [loaded(self._config, stream) for stream in streams]
        self._held = {
            name: kept
            for name, kept in self._held.items()
            if name == wanted or not any(bool((kept[mem] & own[mem]).any()) for own in written for mem in CONSTANTS)
        }

    def hold(self, program: Program) -> None:
        """The program's resident stream has run, now or before."""
        wanted = program.resident_hash()
        if wanted is not None:
            self._held[wanted] = loaded(self._config, program.resident)
