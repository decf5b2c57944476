"""FPGA parts that the open tools place and route, Lattice ECP5 and Gowin, with what each holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from relay_hw.accel.isa.errors import AccelError
from relay_hw.support.names import one_of


class FlowError(AccelError):
    """A part, board or tool for bitstreams is unknown or missing, or refused its input."""


class Family(Enum):
    """Makes of parts that tools of their own place and route; `families.py` says which."""

    ECP5 = "ecp5"
    GOWIN = "gowin"


# Cells of ECP5 that fill a tile of their own and so have few sites.
BLOCK_RAM: Final = "DP16KD"
MULTIPLIER: Final = "MULT18X18D"
MACROS: Final = (BLOCK_RAM, MULTIPLIER)
# Names of the four sites of a group, and the columns between it and the group's first.
_BLOCK_RAMS: Final = (("EBR0", 0), ("EBR1", 2), ("EBR2", 4), ("EBR3", 6))
_MULTIPLIERS: Final = (("MULT18_0", 0), ("MULT18_1", 1), ("MULT18_4", 4), ("MULT18_5", 5))


@dataclass(frozen=True, slots=True)
class Site:
    """A place for one of MACROS: nextpnr's name of it, its column and row."""

    kind: str
    bel: str
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Part:
    """An FPGA, and what it holds.

    `flag` names the part to nextpnr, on Gowin the family that `package`, the part's full name, is of; `luts` counts
    LUT4, `block_rams` those of 18 kbit, `multipliers` those of 18 by 18 bits.

    `clock_pin`: a pin of the package with a way to the clock network of its own. `groups`: columns where four block
    RAMs or multipliers begin, in each of `ram_rows` and `multiplier_rows`, on parts whose floorplan is chosen here.
    """

    name: str
    flag: str
    package: str
    speed: int
    luts: int
    block_rams: int
    multipliers: int
    clock_pin: str
    groups: tuple[int, ...]
    ram_rows: tuple[int, ...]
    multiplier_rows: tuple[int, ...]
    # Not in the text that keys of bitstreams are made of: `flag` says the same there.
    family: Family = field(default=Family.ECP5, repr=False)
    # Pins of the SoC for a part by port, where the tools choose none themselves.
    pins: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def sites(self) -> tuple[Site, ...]:
        """All sites of block RAMs, then those of multipliers."""
        layout = zip(MACROS, (_BLOCK_RAMS, _MULTIPLIERS), (self.ram_rows, self.multiplier_rows), strict=True)
        return tuple(
            Site(kind, f"X{begin + step}/Y{y}/{name}", begin + step, y)
            for kind, names, rows in layout
            for y in rows
            for begin in self.groups
            for name, step in names
        )

    def holds(self, luts: int, block_rams: int, multipliers: int) -> bool:
        """Whether a design of this size has room."""
        return luts <= self.luts and block_rams <= self.block_rams and multipliers <= self.multipliers


# Family data sheet FPGA-DS-02012 (Lattice), table 1.1; columns and rows as nextpnr 0.11 lists them. The smallest first.
ECP5_PARTS: Final = (
    Part(
        *("lfe5u-25f", "25k", "CABGA381", 6, 24288, 56, 28, "G2"),
        groups=(4, 13, 22, 33, 42, 51, 60),
        ram_rows=(25, 37),
        multiplier_rows=(13,),
    ),
    Part(
        *("lfe5u-45f", "45k", "CABGA381", 6, 43848, 108, 72, "G2"),
        groups=(4, 13, 22, 31, 42, 51, 60, 69, 78),
        ram_rows=(10, 34, 58),
        multiplier_rows=(22, 46),
    ),
    Part(
        *("lfe5u-85f", "85k", "CABGA381", 6, 83640, 208, 156, "G2"),
        groups=(4, 13, 22, 31, 40, 49, 58, 69, 78, 87, 96, 105, 114),
        ram_rows=(22, 46, 70, 82),
        multiplier_rows=(10, 34, 58),
    ),
)
# Data sheet DS226 (Gowin), table 1-1. The part of the Tang Nano 20K: clock, serial line and light are where that
# board has them, reset is on its header.
_GW2A_18C: Final = Part(
    *("gw2a-18c", "GW2A-18C", "GW2AR-LV18QN88C8/I7", 8, 20736, 46, 48, "4"),
    groups=(),
    ram_rows=(),
    multiplier_rows=(),
    family=Family.GOWIN,
    pins=(("clk_i", "4"), ("rst_ni", "86"), ("rx_i", "70"), ("tx_o", "69"), ("done_o", "15")),
)
# Data sheet DS1103 (Gowin), table 1-1: half of its 298 blocks of 27 by 18 bits is a multiplier of 12 by 12. The part of
# the Tang Mega 138K: clock, serial line and light are where that board has them, reset is where it has another light.
_GW5AST_138C: Final = Part(
    *("gw5ast-138c", "GW5AST-138C", "GW5AST-LV138FPG676AC1/I0", 1, 138240, 340, 298, "P16"),
    groups=(),
    ram_rows=(),
    multiplier_rows=(),
    family=Family.GOWIN,
    pins=(("clk_i", "P16"), ("rst_ni", "N23"), ("rx_i", "N16"), ("tx_o", "P15"), ("done_o", "J14")),
)
PARTS: Final = (*ECP5_PARTS, _GW2A_18C, _GW5AST_138C)


def find_part(name: str) -> Part:
    """The part called `name`. Raises FlowError."""
    for part in PARTS:
        if part.name == name.lower():
            return part
    raise FlowError(one_of("part", [part.name for part in PARTS], name))
