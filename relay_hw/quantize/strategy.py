"""Strategies: what a quantization decides once for a whole network. A new strategy is one entry of `STRATEGIES`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from relay_hw.errors import QuantizeError

MIN_BITS: Final = 2
MAX_BITS: Final = 8
MIN_MULTIPLIER_BITS: Final = 8
MAX_MULTIPLIER_BITS: Final = 31
ROUNDINGS: Final = ("half_up", "half_even", "half_away", "floor")


def _check_range(name: str, key: str, value: int, low: int, high: int) -> None:
    if type(value) is not int or not low <= value <= high:
        raise QuantizeError(f"strategy {name}: {key} must be an integer from {low} to {high}, not {value}")


class Calibration(Enum):
    """How the range of an activation is chosen from what calibration data shows."""

    MIN_MAX = "min_max"
    PERCENTILE = "percentile"


@dataclass(frozen=True, slots=True)
class Strategy:
    """Everything that calibration and realization need to know.

    `per_channel` gives each output channel of a weight its own scale. `symmetric` fixes activation zero points at 0.
    `power_of_two` rounds every scale up to a power of two. `percentile` is the share of values, in percent, that the
    range of an activation holds. `rounding` is the rounding of every requantization. Raises QuantizeError for a value
    out of range.
    """

    name: str
    weight_bits: int = 8
    activation_bits: int = 8
    per_channel: bool = True
    symmetric: bool = False
    power_of_two: bool = False
    rounding: str = "half_up"
    calibration: Calibration = Calibration.MIN_MAX
    percentile: float = 99.99
    multiplier_bits: int = 31
    summary: str = ""

    def __post_init__(self) -> None:
        _check_range(self.name, "weight_bits", self.weight_bits, MIN_BITS, MAX_BITS)
        _check_range(self.name, "activation_bits", self.activation_bits, MIN_BITS, MAX_BITS)
        _check_range(self.name, "multiplier_bits", self.multiplier_bits, MIN_MULTIPLIER_BITS, MAX_MULTIPLIER_BITS)
        if self.rounding not in ROUNDINGS:
            known = ", ".join(ROUNDINGS)
            raise QuantizeError(f"strategy {self.name}: rounding must be one of {known}, not {self.rounding}")
        if not 50 < self.percentile <= 100:
            raise QuantizeError(
                f"strategy {self.name}: percentile must be more than 50 and at most 100, not {self.percentile}"
            )

    @property
    def activation_range(self) -> tuple[int, int]:
        """Smallest and largest integer of an activation."""
        high = (1 << (self.activation_bits - 1)) - 1
        return -high - 1, high

    @property
    def weight_limit(self) -> int:
        """Largest magnitude of an integer weight; the range is symmetric, so that negation is always exact."""
        return (1 << (self.weight_bits - 1)) - 1


STRATEGIES: Final[tuple[Strategy, ...]] = (
    Strategy("int8", summary="int8 weights per channel, int8 activations with zero point, min-max ranges"),
    Strategy("int8-symmetric", symmetric=True, summary="as int8, activation zero points fixed at 0"),
    Strategy(
        "int8-percentile",
        calibration=Calibration.PERCENTILE,
        summary="as int8, ranges hold 99.99 % of the calibration values",
    ),
    Strategy(
        "int8-pow2",
        symmetric=True,
        power_of_two=True,
        summary="as int8-symmetric, scales are powers of two: requantization is a shift",
    ),
)


def strategy_names() -> tuple[str, ...]:
    """Names that `find_strategy` knows, the default first."""
    return tuple(strategy.name for strategy in STRATEGIES)


def find_strategy(strategy: str | Strategy) -> Strategy:
    """The named strategy; a Strategy is returned as it is. Raises QuantizeError for an unknown name."""
    if isinstance(strategy, Strategy):
        return strategy
    for known in STRATEGIES:
        if known.name == strategy:
            return known
    raise QuantizeError(f"strategy must be one of {', '.join(strategy_names())}, not {strategy}")
