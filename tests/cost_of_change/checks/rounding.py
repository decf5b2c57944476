"""A rounding mode by its name: weights go up to the next integer."""

import numpy as np

from relay_hw.quantize.choices import WeightRounding
from relay_hw.quantize.number import quantize_weight
from relay_hw.quantize.strategy import Strategy

rule = Strategy("s", weight_rounding=WeightRounding("ceiling")).weights
found = quantize_weight(np.array([[0.5, 1.25, -0.5, -1.75, 500.0]]), np.ones(1), rule)
assert found.tolist() == [[1, 2, 0, -1, 127]], found
print("as wanted")
