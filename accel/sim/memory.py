"""Timing of the DRAM behind the AXI port, shared by the cycle simulator and the RTL harness.

AXI4 with independent read and write channels, in order. A read burst accepted at edge t presents its first beat so
that it is sampled at edge t + latency at the earliest; a write response comes latency edges after the last W beat.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from accel.isa.errors import ConfigError


@dataclass(frozen=True, slots=True)
class MemoryModel:
    """Latency in clock edges, read beats a cycle (1), bursts in flight at most on each side. Raises ConfigError."""

    latency: int = 100
    beats_per_cycle: int = 1
    read_outstanding: int = 16
    write_outstanding: int = 16

    def __post_init__(self) -> None:
        if self.beats_per_cycle != 1:
            raise ConfigError(f"memory model: beats_per_cycle must be 1, not {self.beats_per_cycle}")
        for key in ("latency", "read_outstanding", "write_outstanding"):
            value: int = getattr(self, key)
            if not 1 <= value <= 65535:
                raise ConfigError(f"memory model: {key} must be from 1 to 65535, not {value}")


MEMORY_MODELS: Mapping[str, MemoryModel] = MappingProxyType(
    {
        "standard": MemoryModel(),
        "narrow": MemoryModel(read_outstanding=4, write_outstanding=4),
    }
)


def memory_model(name: str) -> MemoryModel:
    """Named model. Raises ConfigError."""
    if name not in MEMORY_MODELS:
        raise ConfigError(f"memory model must be one of {', '.join(sorted(MEMORY_MODELS))}, not {name}")
    return MEMORY_MODELS[name]
