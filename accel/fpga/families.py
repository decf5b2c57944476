"""Families of FPGA parts: the open tools that make a bitstream for each, and what its cells take of a part.

In: a part. Out: its `Toolchain`. What only one family needs lies in modules of its own: passes over ECP5's netlists
and its routing, `gowin.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from typing_extensions import assert_never

from relay_hw.accel.fpga.parts import BLOCK_RAM, MULTIPLIER, Family, Part


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells of a part by what they take: `luts` LUT4 a cell, logic and memory; `multipliers` halves of a block."""

    luts: Mapping[str, int]
    memory: str
    flip_flops: tuple[str, ...]
    block_rams: tuple[str, ...]
    multipliers: Mapping[str, int]

    def resources(self, counts: Mapping[str, int]) -> dict[str, int]:
        """What numbers of cells, by type, take of a part."""
        halves = sum(counts.get(cell, 0) * weight for cell, weight in self.multipliers.items())
        return {
            "luts": sum(counts.get(cell, 0) * weight for cell, weight in self.luts.items()),
            "luts_as_memory": counts.get(self.memory, 0) * self.luts[self.memory],
            "flip_flops": sum(counts.get(cell, 0) for cell in self.flip_flops),
            "block_rams": sum(counts.get(cell, 0) for cell in self.block_rams),
            "multipliers": -(-halves // 2),
        }


@dataclass(frozen=True, slots=True)
class Toolchain:
    """The open tools for a family of parts, and how they are used.

    `tools`: yosys, the one that places and routes, the one that packs; `synthesis`: yosys's commands for a top.

    `constraints`, `placed`, `suffix`: the file of pins and clocks, what comes of a seed, the end of a bitstream's name.
    `derate`: of nextpnr's clocks what is believed; `untimed`: what it has no times of; `maps`: Verilog that `synthesis`
    names, what it makes some cells of.
    """

    tools: tuple[str, str, str]
    synthesis: tuple[str, ...]
    constraints: str
    placed: str
    suffix: str
    cells: Cells
    derate: float = 1.0
    untimed: tuple[str, ...] = ()
    maps: tuple[Path, ...] = ()


# Reads and writes of one memory word at one edge never matter here: users are kept apart by tokens or forwarding.
# Multiplexers of several LUTs must lie side by side: without them the logic is smaller by 4 % and free to move.
# The last part of ECP5's, which names cells, takes longer than all before it and is left out.
_SYNTHESIS: Final = "-nowidelut -no-rw-check -top {top}"
_ECP5: Final = Toolchain(
    tools=("yosys", "nextpnr-ecp5", "ecppack"),
    synthesis=(f"synth_ecp5 {_SYNTHESIS} -run :check",),
    constraints="design.lpf",
    placed="design-{seed}.config",
    suffix=".bit",
    cells=Cells(
        luts={"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 4},
        memory="TRELLIS_DPR16X4",
        flip_flops=("TRELLIS_FF",),
        block_rams=(BLOCK_RAM,),
        multipliers={MULTIPLIER: 2},
    ),
)
# A memory of LUTs keeps its whole tile of eight. nextpnr's clocks for Gowin are a fifth too high (nextpnr issue 1345).
_GW2A: Final = Toolchain(
    tools=("yosys", "nextpnr-himbaechel-gowin", "gowin_pack"),
    synthesis=(f"synth_gowin -family gw2a {_SYNTHESIS}",),
    constraints="design.cst",
    placed="placed-{seed}.json",
    suffix=".fs",
    cells=Cells(
        luts={**{f"LUT{size}": 1 for size in range(1, 5)}, "ALU": 1, "RAM16SDP4": 8},
        memory="RAM16SDP4",
        flip_flops=tuple(f"DFF{kind}" for kind in ("", "E", "R", "RE", "S", "SE", "C", "CE", "P", "PE")),
        block_rams=("SDPB", "SDPX9B", "DPB", "DPX9B", "SP", "SPX9", "pROM", "pROMX9"),
        multipliers={"MULT9X9": 1, "MULT12X12": 1, "MULT18X18": 2, "MULT36X36": 8},
    ),
    derate=0.8,
    untimed=("block RAMs", "multipliers"),
)
# yosys infers no multiplier on Arora V (yosys issue 6033): products are cut to 12 bits before it adds them up.
_PRODUCTS: Final = Path(__file__).parent / "maps" / "gw5a_products.v"
_GW5A_SYNTHESIS: Final = f"synth_gowin -family gw5a {_SYNTHESIS}"
_CUT: Final = ("A_MAXWIDTH=12", "B_MAXWIDTH=12", "A_MINWIDTH=4", "B_MINWIDTH=4", "SIGNEDONLY=1", "NAME=$__MUL12X12")
_GW5A: Final = replace(
    _GW2A,
    synthesis=(
        f"{_GW5A_SYNTHESIS} -run begin:coarse",
        *("proc", "flatten", "opt_expr", "opt_clean", "opt -nodffe -nosdff", "wreduce", "peepopt", "opt_clean"),
        f"techmap -map +/mul2dsp.v {' '.join(f'-D DSP_{word}' for word in _CUT)}",
        "chtype -set $mul t:$__soft_mul",
        f"techmap -map {_PRODUCTS.name}",
        f"{_GW5A_SYNTHESIS} -run coarse:",
    ),
    maps=(_PRODUCTS,),
)
# Gowin's by the name that nextpnr has for a part.
_GOWIN: Final[Mapping[str, Toolchain]] = {"GW2A-18C": _GW2A, "GW5AST-138C": _GW5A}


def toolchain(part: Part) -> Toolchain:
    """The tools of a part."""
    match part.family:
        case Family.ECP5:
            return _ECP5
        case Family.GOWIN:
            return _GOWIN[part.flag]
        case _:
            assert_never(part.family)
