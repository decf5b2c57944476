"""A compiled region: its checked program, its tensors, and a row for each layer.

In: values from `compile`. Out: `Segment`, `Layer`, `Port`.
"""

from __future__ import annotations

from dataclasses import dataclass

from relay_hw.accel.isa.program import Program, TensorLayout
from relay_hw.ir.expr import Function
from relay_hw.tensorize.certificate import Certificate
from relay_hw.tensorize.target import Launch


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output: its tensor of the program and its Relay shape ([1, C, H, W] or [1, C]), int8.

    `layout.pack_activation`, given `layout`, and `layout.unpack_activation` convert between the shape and the tensor's
    bytes. Inputs that GATHER unfolds lie as `rows`.
    """

    name: str
    section: str
    offset: int
    shape: tuple[int, ...]
    layout: TensorLayout = TensorLayout.NHWC


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of the program.

    `ranges`: instructions [begin, end) that belong to it; layers that overlap in time have several.
    `macs` counts products of the model, without padding; bytes are those that its loads and stores move. `reason` says
    why the tile was chosen.
    """

    name: str
    composite: Function
    ranges: tuple[tuple[int, int], ...]
    macs: int
    tile: str
    bytes_read: int
    bytes_written: int
    reason: str = ""

    @property
    def begin(self) -> int:
        """First instruction."""
        return self.ranges[0][0]

    @property
    def end(self) -> int:
        """One past the last instruction; instructions of other layers may lie in between."""
        return self.ranges[-1][1]


@dataclass(frozen=True, slots=True)
class Segment:
    """One launch. Ports are in the order of the function's parameters and results.

    `owners`: for each instruction the number of its layer (FINISH: the last one's). `schedule`: the steps as text.
    `launch`: as the target's clock timed it. `certificate`: what the program was proved to compute, if it was.
    """

    name: str
    program: Program
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    layers: tuple[Layer, ...]
    owners: tuple[int, ...]
    schedule: str
    launch: Launch
    certificate: Certificate | None = None

    @property
    def cycles(self) -> int:
        """Cycles of a launch."""
        return self.launch.cycles

    def to_bytes(self) -> bytes:
        """The program as a file."""
        return self.program.to_bytes()
