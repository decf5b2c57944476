"""From a float network and calibration data to a network of named integer operations.

In: a typed float module. Out: a module whose integer part is exact; see `quantize`.
"""

from __future__ import annotations

from relay_hw.quantize.main import quantize, realize_module
from relay_hw.quantize.strategy import STRATEGIES, Strategy, find_strategy, strategy_names

__all__ = ["STRATEGIES", "Strategy", "find_strategy", "quantize", "realize_module", "strategy_names"]
