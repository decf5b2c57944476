"""Comparing quantization strategies: accuracy beside cycles, bytes, energy and area.

In: a float module, data, strategies. Out: a `Comparison`. Above `runtime`, which costs them.
"""

from relay_hw.compare.comparison import Comparison
from relay_hw.compare.main import compare

__all__ = ["Comparison", "compare"]
