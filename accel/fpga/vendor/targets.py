"""Boards for which a project can be written: their part, where registers and memory lie, what the part holds.

In: the name of a board. Out: `Target`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from relay_hw.accel.fpga.parts import FlowError
from relay_hw.support.names import one_of


class Form(Enum):
    """Whose tool a project is for."""

    VIVADO = "vivado"
    QUARTUS = "quartus"


@dataclass(frozen=True, slots=True)
class Target:
    """One board with a processor beside its fabric.

    `family` names it to yosys. `registers`: where the processor sees the accelerator's registers. `memory`: bus address
    of memory that the board's Linux leaves alone, None where it gives some when asked. `config`, `mhz`: what is built
    unless somebody asks for something else. `available`: cells of the part, named as estimates name them.
    """

    name: str
    title: str
    form: Form
    family: str
    part: str
    registers: int
    memory: int | None
    memory_bytes: int
    config: str
    mhz: float
    available: Mapping[str, int]


TARGETS: Final = (
    # Xilinx DS190, table 1; Digilent's reference manual of the board.
    Target(
        name="pynq-z1",
        title="Digilent PYNQ-Z1 (Zynq-7000 XC7Z020)",
        form=Form.VIVADO,
        family="xc7",
        part="xc7z020clg400-1",
        registers=0x43C0_0000,
        memory=None,
        memory_bytes=1 << 24,
        config="ecp5",
        mhz=50.0,
        available={"luts": 53200, "flip_flops": 106400, "block_rams": 140, "multipliers": 220},
    ),
    # Xilinx DS891, table 1; Avnet's hardware guide of the board.
    Target(
        name="ultra96",
        title="Avnet Ultra96 (Zynq UltraScale+ XCZU3EG)",
        form=Form.VIVADO,
        family="xcup",
        part="xczu3eg-sbva484-1-e",
        registers=0xA000_0000,
        memory=None,
        memory_bytes=1 << 24,
        config="ecp5",
        mhz=75.0,
        available={"luts": 70560, "flip_flops": 141120, "block_rams": 216, "multipliers": 360},
    ),
    # Intel CV-51001, tables 13 and 14; Terasic's user manual of the board. Linux gets the lower 768 of 1024 MB.
    Target(
        name="de10nano",
        title="Terasic DE10-Nano (Cyclone V SoC 5CSEBA6)",
        form=Form.QUARTUS,
        family="cyclonev",
        part="5CSEBA6U23I7",
        registers=0xFF24_0000,
        memory=0x3000_0000,
        memory_bytes=1 << 24,
        config="ecp5",
        mhz=40.0,
        available={"luts": 41910, "flip_flops": 167640, "block_rams": 553, "multipliers": 112},
    ),
)


def find_target(name: str, form: Form) -> Target:
    """The board of a name, if the form is its own. Raises FlowError."""
    names = [target.name for target in TARGETS if target.form is form]
    for target in TARGETS:
        if target.name == name.lower() and target.form is form:
            return target
    raise FlowError(one_of(f"board for {form.value}", names, name))
