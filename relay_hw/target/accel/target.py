"""The target `accel`: an accelerator configuration, a memory model, and optionally a board.

In: names of a configuration, a memory and a board. Out: `AccelTarget`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from relay_hw import tensorize
from relay_hw.accel.isa.config import AccelConfig, load_config
from relay_hw.accel.isa.errors import AccelError, ProgramError
from relay_hw.accel.isa.program import Program
from relay_hw.accel.isa.stream import decode_instructions
from relay_hw.accel.sim.dram_timing import MemoryModel, memory_model
from relay_hw.errors import ArtifactError, InputError
from relay_hw.ir.expr import Function
from relay_hw.target.accel.board import on_board
from relay_hw.target.accel.clock import STANDARD, target_of
from relay_hw.target.accel.devices import DEVICES, open_device
from relay_hw.target.accel.layers import layer_rows
from relay_hw.target.accel.regions import Builder, Segments
from relay_hw.target.accel.residency import Footprints
from relay_hw.target.accel.rules import AccelOperators
from relay_hw.target.accel.session import AccelSession
from relay_hw.target.accel.steady import steady
from relay_hw.target.accel.tune import Tuner
from relay_hw.target.base import Region, Request
from relay_hw.target.records import Facts, LayerInfo, PartitionRecord, RegionInfo
from relay_hw.tensorize.refine import Refiner
from relay_hw.tensorize.schedule.plan import Chooser

# The accelerator of programs that are made for none by name.
DEFAULT = "default"


@dataclass(frozen=True)
class AccelTarget(AccelOperators):
    """See `Target`. `memory`: the name of the memory model that programs are made for; `board`: whose it is."""

    config: AccelConfig
    memory: str = STANDARD
    board: str | None = None

    @cached_property
    def timed(self) -> tensorize.Target:
        """Sizes, memory and timing model in the tensorizer's form."""
        return target_of(self.config, self.memory_model)

    @cached_property
    def memory_model(self) -> MemoryModel:
        """The model of the memory behind the bus."""
        return memory_model(self.memory)

    @property
    def multiplier_bits(self) -> int:
        """Bits of the output stage's multipliers."""
        return self.config.multiplier_bits

    @property
    def devices(self) -> tuple[str, ...]:
        """Simulators, the Verilog, a board."""
        return tuple(kind.name for kind in DEVICES)

    @property
    def sizes(self) -> AccelConfig:
        """The configuration."""
        return self.config

    def why_not(self, composite: Function) -> str | None:
        """Why a configuration cannot run a composite."""
        return tensorize.why_not(composite, self.timed)

    def compile(self, functions: Mapping[str, Function], request: Request) -> Segments:
        """Compile the fastest programs for all regions together. Raises TensorizeError."""
        choosers: list[Chooser] = [Refiner()]
        if request.tune:
            tuner = Tuner(self.timed, request.cache)
            tuner.search(functions.values(), request.tune, request.progress)
            choosers.append(tuner)
        builder = Builder(self.timed, self.memory_model, choosers, request.progress, request.validate)
        return builder.segments(functions, request.resident, request.calls)

    def layers(self, records: Sequence[PartitionRecord], regions: Mapping[str, Region]) -> tuple[LayerInfo, ...]:
        """Rows with the cycles and bytes of each layer."""
        return layer_rows(records, segments_of(regions), self.config)

    def facts(self, regions: Mapping[str, Region], calls: Sequence[str]) -> Facts:
        """Sizes, memory, board, and constants that each inference reloads."""
        segments = segments_of(regions)
        programs = {name: segment.program for name, segment in segments.items()}
        reloads = steady(Footprints(self.config), programs, calls)
        return Facts(
            variant=self.config.name,
            config=self.config,
            memory_model=self.memory,
            board=self.board,
            reload_cycles=reloads.reload_cycles(self.config, programs, self.memory_model),
            memory={name: _memory_map(program) for name, program in programs.items()},
            proofs=tuple(segment.certificate for segment in segments.values() if segment.certificate),
        )

    def check(self, row: RegionInfo, program: bytes) -> None:
        """Raise ArtifactError if a build's program is not for this configuration, or has other ports."""
        check_ports(row, read_program(program, self.config))

    def open(self, device: str, regions: Sequence[RegionInfo], programs: Mapping[str, bytes]) -> AccelSession:
        """Open a device with default options. Raises InputError, UnsupportedError, AccelError."""
        read = {name: read_program(data, self.config) for name, data in programs.items()}
        return AccelSession(regions, read, open_device(device, self.config))


def accel_target(
    config: AccelConfig | str | None = None, memory: str | None = None, board: str | None = None
) -> AccelTarget:
    """The target of these names. Raises InputError for a board with another memory, ConfigError."""
    if board is None:
        sizes = config if isinstance(config, AccelConfig) else load_config(config or DEFAULT)
        return AccelTarget(sizes, memory or STANDARD)
    if memory is not None:
        raise InputError(f"memory must be that of board {board}, not {memory}: leave one of them out")
    place = on_board(board, config.name if isinstance(config, AccelConfig) else config)
    sizes = config if isinstance(config, AccelConfig) else load_config(place.config)
    return AccelTarget(sizes, place.memory, board)


def segments_of(regions: Mapping[str, Region]) -> Segments:
    """The regions as the tensorizer's segments."""
    return {name: region for name, region in regions.items() if isinstance(region, tensorize.Segment)}


def read_program(data: bytes, config: AccelConfig) -> Program:
    """Read a program and check that all instructions are legal. Raises ArtifactError."""
    try:
        program = Program.from_bytes(data, config)
        for stream in (program.code, program.resident):
            if stream is not None:
                decode_instructions(stream.data or b"")
    except AccelError as error:
        raise ArtifactError(str(error)) from None
    return program


def check_ports(row: RegionInfo, program: Program) -> None:
    """Raise ArtifactError if a region's ports are not those of its program."""
    for port in (*row.inputs, *row.outputs):
        try:
            slot = program.tensor(port.tensor)
        except ProgramError as error:
            raise ArtifactError(f"region {row.name}: {error}") from None
        if prod(slot.shape) != prod(port.shape):
            told = f"{prod(port.shape):,} elements of {list(port.shape)}, not {list(slot.shape)}"
            raise ArtifactError(f"tensor {port.tensor} of region {row.name} must hold the {told}")


def _memory_map(program: Program) -> dict[str, Any]:
    sections = [{"name": s.name, "kind": s.kind.value, "offset": s.offset, "bytes": s.size} for s in program.sections]
    return {"window_bytes": program.window_bytes, "sections": sections}
