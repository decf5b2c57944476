"""From a float network and calibration data to a network of named integer operations.

In: a typed float module. Out: a module whose integer part is exact; see `quantize`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from relay_hw.quantize.choices import Budget, Calibration, Edge, NumberFormat, WeightRange, WeightRounding
from relay_hw.quantize.entry import quantize
from relay_hw.quantize.main import realize_module
from relay_hw.quantize.recipes import STRATEGIES, find_strategy, strategy_names
from relay_hw.quantize.relay_recipe import QConfig, current_qconfig, qconfig
from relay_hw.quantize.strategy import LayerChoice, Strategy
from relay_hw.quantize.strategy_file import load_strategy, strategy_values

__all__ = [
    "STRATEGIES",
    "Budget",
    "Calibration",
    "Edge",
    "LayerChoice",
    "NumberFormat",
    "QConfig",
    "Strategy",
    "WeightRange",
    "WeightRounding",
    "current_qconfig",
    "find_strategy",
    "load_strategy",
    "qconfig",
    "quantize",
    "realize_module",
    "strategy_names",
    "strategy_values",
]


def __getattr__(name: str) -> Any:
    """`compare` and `Comparison` of the room above, which runs what this one makes; loaded when first used."""
    if name in ("compare", "Comparison"):
        return getattr(import_module("relay_hw.compare"), name)
    raise AttributeError(f"module {__name__} has no attribute {name}")
