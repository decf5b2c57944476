"""Quantization: turns a float network and calibration data into a network of integer operators.

In: a typed float module. Out: a module whose integer part is exact; see `quantize`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from relay_hw.quantize.choices import Budget, Calibration, LayerPolicy, NumberFormat, WeightRange, WeightRounding
    from relay_hw.quantize.entry import quantize
    from relay_hw.quantize.main import realize_module
    from relay_hw.quantize.recipes import STRATEGIES, strategy_names
    from relay_hw.quantize.relay_recipe import QConfig, current_qconfig, qconfig
    from relay_hw.quantize.stages import annotate, calibrate, partition, realize
    from relay_hw.quantize.strategy import LayerChoice, Strategy
    from relay_hw.quantize.strategy_file import find_strategy, load_strategy, strategy_values

# Where each name is.
_HOME: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(
            ("Budget", "Calibration", "LayerPolicy", "NumberFormat", "WeightRange", "WeightRounding"),
            "relay_hw.quantize.choices",
        ),
        **dict.fromkeys(("LayerChoice", "Strategy"), "relay_hw.quantize.strategy"),
        **dict.fromkeys(("QConfig", "current_qconfig", "qconfig"), "relay_hw.quantize.relay_recipe"),
        **dict.fromkeys(("STRATEGIES", "strategy_names"), "relay_hw.quantize.recipes"),
        **dict.fromkeys(("annotate", "calibrate", "partition", "realize"), "relay_hw.quantize.stages"),
        **dict.fromkeys(("find_strategy", "load_strategy", "strategy_values"), "relay_hw.quantize.strategy_file"),
        "quantize": "relay_hw.quantize.entry",
        "realize_module": "relay_hw.quantize.main",
    }
)

__all__ = [
    "STRATEGIES",
    "Budget",
    "Calibration",
    "LayerChoice",
    "LayerPolicy",
    "NumberFormat",
    "QConfig",
    "Strategy",
    "WeightRange",
    "WeightRounding",
    "annotate",
    "calibrate",
    "current_qconfig",
    "find_strategy",
    "load_strategy",
    "partition",
    "qconfig",
    "quantize",
    "realize",
    "realize_module",
    "strategy_names",
    "strategy_values",
]


def __getattr__(name: str) -> Any:
    """Each name when it is first asked for: names of strategies are known before anything else is loaded."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__} has no attribute {name}")


def __dir__() -> list[str]:
    return sorted(__all__)
