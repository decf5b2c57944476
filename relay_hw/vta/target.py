"""VTA as a target: what it takes, its programs, who runs them.

In: composites, functions of them. Out: reasons, programs, sessions on the simulator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from relay_hw.errors import ArtifactError, InputError
from relay_hw.ir.expr import Call, Function
from relay_hw.target import Facts, LayerInfo, PartitionRecord, QuantizerRules, RegionInfo, Request, host_row
from relay_hw.transform import Pass
from relay_hw.transform.graph import op_name
from relay_hw.vta.geometry import Geometry, load_geometry
from relay_hw.vta.kernel import Kernel
from relay_hw.vta.match import ANCHORS, NAME, composites, kernel_of, reason_on_host
from relay_hw.vta.program import Program, read_program
from relay_hw.vta.region import compile_region
from relay_hw.vta.session import Simulated
from relay_hw.vta.tiles import can_tile

DEVICE = "simulator"


@dataclass(frozen=True)
class VtaTarget:
    """See `relay_hw.target.Target`. `variant`: the configuration as the user named it."""

    geometry: Geometry
    variant: str = ""
    name: str = NAME
    anchors: frozenset[str] = ANCHORS
    # A power of two is a multiplier of any length.
    multiplier_bits: int = 31
    devices: tuple[str, ...] = field(default=(DEVICE,))

    def composites(self) -> Pass:
        """Layers that VTA has instructions for."""
        return composites()

    def why_not(self, composite: Function) -> str | None:
        """What VTA, or this one, lacks."""
        kernel = kernel_of(composite, self.geometry.block)
        if not isinstance(kernel, Kernel):
            return kernel
        return (
            None
            if can_tile(kernel, self.geometry)
            else f"one result needs more than half of a buffer of {self.geometry.title}"
        )

    def why_on_host(self, call: Call, rules: QuantizerRules) -> str:
        """Why an operator is part of no layer."""
        return reason_on_host(call, rules)

    def takes_in(self, call: Call, composite: str) -> bool:
        """LOAD pads."""
        return composite == "vta.conv2d" and op_name(call) == "nn.pad"

    def compile(self, functions: Mapping[str, Function], request: Request) -> Mapping[str, Program]:
        """A program for each function."""
        return {name: compile_region(function, self.geometry) for name, function in functions.items()}

    def layers(self, records: Sequence[PartitionRecord], regions: Mapping[str, Program]) -> tuple[LayerInfo, ...]:
        """Instructions of each layer, and cycles that the array needs for its products."""
        left = {name: list(program.head.layers) for name, program in regions.items()}
        rows: list[LayerInfo] = []
        for record in records:
            row = host_row(record)
            if record.where == NAME:
                code = left[record.function].pop(0)
                least = -(-record.macs // (self.geometry.batch * self.geometry.block**2))
                row = LayerInfo(
                    record.name,
                    record.operator,
                    NAME,
                    record.function,
                    tile=code.tile,
                    ranges=((code.begin, code.end),),
                    macs=record.macs,
                    roofline_cycles=least,
                )
            rows.append(row)
        return tuple(rows)

    def facts(self, regions: Mapping[str, Program], calls: Sequence[str]) -> Facts:
        """The configuration."""
        return Facts(variant=self.variant)

    def check(self, row: RegionInfo, program: bytes) -> None:
        """Whether a file is a program for this configuration with the ports of its row. Raises ArtifactError."""
        found = read_program(program)
        if found.head.geometry != self.geometry:
            raise ArtifactError(f"region {row.name} must be for {self.geometry.title} of {self.geometry.name}")
        shapes = [port.shape for port in (*row.inputs, *row.outputs)]
        if shapes != [port.shape for port in (*found.inputs, *found.outputs)]:
            raise ArtifactError(f"region {row.name} must have the ports of its program")

    def open(self, device: str, regions: Sequence[RegionInfo], programs: Mapping[str, bytes]) -> Simulated:
        """The simulator. Raises InputError."""
        if device not in self.devices:
            raise InputError(f"device must be {DEVICE} for target {NAME}, not {device}")
        return Simulated({name: read_program(data) for name, data in programs.items()})


def make(variant: str = "") -> VtaTarget:
    """The target of a configuration by name, or of a `vta_config.json`. Raises InputError."""
    return VtaTarget(load_geometry(variant), variant)
