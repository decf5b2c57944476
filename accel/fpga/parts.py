"""FPGA parts that the open tools place and route: Lattice ECP5, with what each holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from accel.isa.errors import AccelError


class FlowError(AccelError):
    """A part, board or tool of the way to a bitstream that is missing, or refused its input."""


@dataclass(frozen=True, slots=True)
class Part:
    """`flag` names the part to nextpnr; `luts` counts LUT4, `block_rams` DP16KD, `multipliers` MULT18X18D.

    `clock_pin`: a pin of the package with a way to the clock network of its own.
    """

    name: str
    flag: str
    package: str
    speed: int
    luts: int
    block_rams: int
    multipliers: int
    clock_pin: str

    def holds(self, luts: int, block_rams: int, multipliers: int) -> bool:
        """Whether a design of this size has room."""
        return luts <= self.luts and block_rams <= self.block_rams and multipliers <= self.multipliers


# Family data sheet FPGA-DS-02012 (Lattice), table 1.1; the smallest first.
PARTS: Final = (
    Part("lfe5u-25f", "25k", "CABGA381", 6, 24288, 56, 28, "G2"),
    Part("lfe5u-45f", "45k", "CABGA381", 6, 43848, 108, 72, "G2"),
    Part("lfe5u-85f", "85k", "CABGA381", 6, 83640, 208, 156, "G2"),
)


def find_part(name: str) -> Part:
    """The part of a name. Raises FlowError."""
    for part in PARTS:
        if part.name == name.lower():
            return part
    raise FlowError(f"part must be one of {', '.join(part.name for part in PARTS)}, not {name}")
