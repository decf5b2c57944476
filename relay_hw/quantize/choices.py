"""Enums of a strategy's options. Values are their names in TOML files and reports."""

from __future__ import annotations

from enum import Enum


class Calibration(Enum):
    """How the range of an activation is chosen from what calibration data shows."""

    MIN_MAX = "min_max"
    PERCENTILE = "percentile"
    KL = "kl"
    MSE = "mse"
    MOVING_AVERAGE = "moving_average"
    OUTLIER = "outlier"
    GLOBAL = "global"  # every tensor holds [-global_scale, global_scale]


class WeightRange(Enum):
    """How the range of a weight is chosen: its largest magnitude, or the clip of least squared error."""

    MAX = "max"
    MSE = "mse"


class WeightRounding(Enum):
    """How weights are rounded: by a rule, at random, or so that the layer's output changes least."""

    HALF_EVEN = "half_even"
    HALF_UP = "half_up"
    HALF_AWAY = "half_away"
    FLOOR = "floor"
    STOCHASTIC = "stochastic"
    ADAROUND = "adaround"
    GPTQ = "gptq"

    @property
    def is_learned(self) -> bool:
        """Whether it rounds by what the layer meets."""
        return self in (WeightRounding.ADAROUND, WeightRounding.GPTQ)


class NumberFormat(Enum):
    """The number format: integers, or formats that are simulated in floating point."""

    INTEGER = "integer"
    FP8_E4M3 = "fp8_e4m3"
    FP8_E5M2 = "fp8_e5m2"
    MXINT8 = "mxint8"
    MXFP8 = "mxfp8"
    MXFP6 = "mxfp6"
    MXFP4 = "mxfp4"


class LayerPolicy(Enum):
    """Policy for the first, last or dense layers: like all others, 8 bits, or float on the host."""

    SAME = "same"
    INT8 = "int8"
    FLOAT = "float"


class Budget(Enum):
    """The budget of mixed precision: bytes of weights, or cycles of the accelerator."""

    BYTES = "bytes"
    CYCLES = "cycles"
