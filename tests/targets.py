"""Targets for tests that call the tensorizer: a configuration, a memory, and the exact engine as their clock."""

from __future__ import annotations

from relay_hw.accel.isa.config import AccelConfig, load_config
from relay_hw.accel.sim.dram_timing import memory_model
from relay_hw.target.accel.clock import target_of
from relay_hw.tensorize.target import Target


def target_for(config: AccelConfig | str, memory: str = "standard") -> Target:
    """The target of that configuration, by itself or by name."""
    return target_of(load_config(config) if isinstance(config, str) else config, memory_model(memory))
