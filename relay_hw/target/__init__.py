"""The target interface: what an accelerator implements to be compiled for, and the registry of targets.

`register` makes one known. Names are loaded when first used, so that the command line starts at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relay_hw.target.base import (
        Answer,
        Measured,
        PartitionRules,
        Port,
        QuantizerRules,
        Region,
        Request,
        Session,
        Stats,
        Target,
        TensorPort,
    )
    from relay_hw.target.pipeline import partition_pipeline
    from relay_hw.target.records import Facts, LayerInfo, PartitionRecord, PortInfo, RegionInfo, host_row
    from relay_hw.target.registry import find_target, register, target_names, unregister

_HOMES = {
    "base": (
        *("Answer", "Measured", "PartitionRules", "Port", "QuantizerRules", "Region", "Request"),
        *("Session", "Stats", "Target", "TensorPort"),
    ),
    "pipeline": ("partition_pipeline",),
    "records": ("Facts", "LayerInfo", "PartitionRecord", "PortInfo", "RegionInfo", "host_row"),
    "registry": ("find_target", "register", "target_names", "unregister"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Answer",
    "Facts",
    "LayerInfo",
    "Measured",
    "PartitionRecord",
    "PartitionRules",
    "Port",
    "PortInfo",
    "QuantizerRules",
    "Region",
    "RegionInfo",
    "Request",
    "Session",
    "Stats",
    "Target",
    "TensorPort",
    "find_target",
    "host_row",
    "partition_pipeline",
    "register",
    "target_names",
    "unregister",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
