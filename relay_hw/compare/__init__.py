"""Compares quantization strategies of a network by accuracy, cycles, bytes, energy and area.

In: a float module, data, strategies. Out: a `Comparison`. Strategies are measured on held-out data: every fourth
calibration sample is held back, the best strategy is chosen there and never on test data, and each image is compared
with float pair by pair. The page is written by templates/.
"""

from relay_hw.compare.comparison import Comparison
from relay_hw.compare.main import compare
from relay_hw.compare.options import CompareOptions

__all__ = ["CompareOptions", "Comparison", "compare"]
