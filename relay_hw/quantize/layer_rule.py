"""How one layer becomes integers: what a strategy and its exceptions decide for the layer, as plain numbers.

In: nothing; `Strategy.for_layer` makes these records once. Out: what observers, scales and weights are computed by.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from relay_hw.quantize.choices import Calibration, WeightRange, WeightRounding

# The largest factor of weights by their bits: 7 times 1 fits 4 bits, 16 times 7 fits 8.
MOST_FACTOR: Final = {2: 7, 3: 16, 4: 16}


@dataclass(frozen=True, slots=True)
class ActivationRule:
    """How an activation tensor gets its range, and integers from `low` to `high`.

    `beyond`: how many steps the end of a range lies above its largest integer, 0 or 1.
    """

    bits: int
    low: int
    high: int
    beyond: int
    symmetric: bool
    power_of_two: bool
    calibration: Calibration
    percentile: float
    momentum: float
    global_scale: float


@dataclass(frozen=True, slots=True)
class WeightRule:
    """How a layer's weights and bias become integers.

    `limit`: largest magnitude of a weight; the range is symmetric, so that negation is always exact; `beyond`: as of
    activations; `most_factor`: the largest factor of a group of `group` weights, 1 without groups; `steps` of AdaRound.
    """

    limit: int
    beyond: int
    most_factor: int
    group: int
    per_channel: bool
    power_of_two: bool
    range: WeightRange
    rounding: WeightRounding
    seed: int
    steps: int
    bias_bits: int
    bias_correction: bool

    def at_width(self, bits: int) -> WeightRule:
        """The same for weights of `bits` bits."""
        return replace(self, limit=largest_integer(bits), most_factor=largest_factor(bits, self.group))

    @property
    def needs_statistics(self) -> bool:
        """Whether the integers depend on the layer's calibration activations."""
        return self.bias_correction or self.rounding.is_learned


@dataclass(frozen=True, slots=True)
class LayerRule:
    """What a strategy decides for one layer: for the tensor that it makes, and for its weights."""

    activations: ActivationRule
    weights: WeightRule


def largest_integer(bits: int) -> int:
    """The largest signed integer of `bits` bits."""
    return (1 << (bits - 1)) - 1


def largest_factor(bits: int, group: int) -> int:
    """The largest factor of a group of weights of `bits` bits; 1 without groups."""
    return MOST_FACTOR.get(bits, 1) if group else 1
