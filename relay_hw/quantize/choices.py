"""The closed sets that a strategy chooses from. Values are the words of TOML files and reports."""

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
    """How weights become integers: by a rule, at random, or so that the layer's output stays."""

    HALF_EVEN = "half_even"
    HALF_UP = "half_up"
    HALF_AWAY = "half_away"
    FLOOR = "floor"
    STOCHASTIC = "stochastic"
    ADAROUND = "adaround"
    GPTQ = "gptq"


class NumberFormat(Enum):
    """What stands for a number: integers, or formats that are simulated in floating point."""

    INTEGER = "integer"
    FP8_E4M3 = "fp8_e4m3"
    FP8_E5M2 = "fp8_e5m2"
    MXINT8 = "mxint8"
    MXFP8 = "mxfp8"
    MXFP6 = "mxfp6"
    MXFP4 = "mxfp4"


class Edge(Enum):
    """What the first, the last, or a dense layer does: as all others, 8 bits, or float on the host."""

    SAME = "same"
    INT8 = "int8"
    FLOAT = "float"


class Budget(Enum):
    """What mixed precision saves: bytes of weights, or cycles of the accelerator."""

    BYTES = "bytes"
    CYCLES = "cycles"
