"""Records of a compiled network: regions with their ports, layers, and facts of the whole build.

In: values from a target. Out: frozen records that a build's manifest holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.sim.cycle.traffic import NO_TRAFFIC, Traffic
from relay_hw.tensorize.certificate import Certificate

Json = Any


@dataclass(frozen=True, slots=True)
class PortInfo:
    """A tensor at the border of a region: its name in the program and its shape in Relay."""

    tensor: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RegionInfo:
    """A function that runs on the target: one program, one launch."""

    name: str
    program: str
    inputs: tuple[PortInfo, ...]
    outputs: tuple[PortInfo, ...]


@dataclass(frozen=True, slots=True)
class LayerInfo:
    """One operator of the partitioned model.

    `where`: the name of the target, or `host`. `ranges`: its instructions [begin, end) in the function's program (none
    on the host). `traffic`: bytes that they move in a launch; `output_slots`, `row_slots`: cycles for which they occupy
    the output stage and the row unit; `roofline_cycles`: the least that the array needs for the MACs; `cycles`: those
    of a launch that are this layer's, by the build's own memory.
    """

    name: str
    operator: str
    where: str
    function: str
    reason: str = ""
    shape: str = ""
    tile: str = ""
    ranges: tuple[tuple[int, int], ...] = ()
    macs: int = 0
    traffic: Traffic = NO_TRAFFIC
    output_slots: int = 0
    row_slots: int = 0
    roofline_cycles: int = 0
    cycles: int = 0


@dataclass(frozen=True, slots=True)
class Facts:
    """A target's facts about a whole build.

    `variant`: which of its kind it is, in the words that make it again; `config`: sizes, of our accelerator alone.
    `memory_model` and `board`: what programs are made for; `reload_cycles`: of loads that come again in each inference;
    `memory`: sections of each region's memory; `proofs`: what its programs were proved to compute.
    """

    variant: str = ""
    config: AccelConfig | None = None
    memory_model: str = ""
    board: str | None = None
    reload_cycles: int = 0
    memory: Mapping[str, Json] = field(default_factory=dict)
    proofs: tuple[Certificate, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionRecord:
    """Where an operator was placed: `where` is the target's name or `host`, `function` the global function.

    `reason`: why it is on the host. `macs`: multiply-accumulates of one run of it.
    """

    name: str
    operator: str
    where: str
    function: str
    reason: str = ""
    macs: int = 0


def host_row(record: PartitionRecord) -> LayerInfo:
    """The row of a layer on the host."""
    return LayerInfo(record.name, record.operator, record.where, record.function, record.reason, macs=record.macs)
