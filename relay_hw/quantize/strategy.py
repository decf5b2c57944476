"""Quantization strategies: all options of a quantization, each independent of the others.

In: values from Python or a TOML file. Out: a frozen, checked `Strategy`; `for_layer` gives what one layer uses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from enum import Enum
from fnmatch import fnmatchcase
from typing import Any, Final

from relay_hw.errors import QuantizeError
from relay_hw.quantize.choices import Budget, Calibration, LayerPolicy, NumberFormat, WeightRange, WeightRounding
from relay_hw.quantize.layer_rule import ActivationRule, LayerRule, WeightRule, largest_factor, largest_integer
from relay_hw.rounding import ROUNDINGS
from relay_hw.support.names import one_of

MIN_BITS: Final = 2
MOST_GROUP: Final = 4096
MAX_BITS: Final = 8
MIN_MULTIPLIER_BITS: Final = 8
MAX_MULTIPLIER_BITS: Final = 31


@dataclass(frozen=True, slots=True)
class LayerChoice:
    """Exceptions for one layer, or for layers whose name matches a pattern with `*`; None: like all others.

    `quantized` False leaves the layer in float, on the host. Raises QuantizeError for a value out of range.
    """

    layer: str
    weight_bits: int | None = None
    activation_bits: int | None = None
    per_channel: bool | None = None
    calibration: Calibration | None = None
    weight_range: WeightRange | None = None
    weight_rounding: WeightRounding | None = None
    weight_group: int | None = None
    quantized: bool = True

    def __post_init__(self) -> None:
        where = f"layer {self.layer}"
        for key in ("weight_bits", "activation_bits"):
            if getattr(self, key) is not None:
                _check_int(where, key, getattr(self, key), MIN_BITS, MAX_BITS)
        if self.weight_group is not None:
            _check_int(where, "weight_group", self.weight_group, 0, MOST_GROUP)

    def matches(self, layer: str) -> bool:
        """Whether this choice is for the layer of that name."""
        return layer == self.layer or fnmatchcase(layer, self.layer)

    @property
    def values(self) -> dict[str, Any]:
        """Fields of `Strategy` that are set here."""
        given = ((key.name, getattr(self, key.name)) for key in fields(self))
        return {key: value for key, value in given if value is not None and key not in ("layer", "quantized")}


@dataclass(frozen=True, slots=True)
class Place:
    """The kinds of a layer that strategies make exceptions for: first or last linear layer, dense, depthwise."""

    is_first: bool = False
    is_last: bool = False
    is_dense: bool = False
    is_depthwise: bool = False


@dataclass(frozen=True, slots=True)
class Strategy:
    """All options of a quantization. Raises QuantizeError for a bad value.

    Numbers: `weight_bits` and `activation_bits` 2 to 8; `per_channel`: each output channel of a weight has a scale of
    its own; `symmetric`: activations have zero point 0; `power_of_two`: every scale is rounded up to a power of two,
    `power_of_two_weights`: those of weights alone; `rounding`: of every requantization; `multiplier_bits`: width of
    requantization multipliers; `bias_bits`: 32 as the accumulator, or fewer with one power-of-two scale.
    Ranges: `calibration` of activations with `percentile` (percent of the values that are held), `momentum` (moving
    average over samples), `global_scale`; `weight_range` of weights.
    Weights: `weight_group`: so many neighbouring inputs share a factor, by which weights of at most 4 bits are
    multiplied (0: none do); `weight_rounding` with `seed`; `equalize`, `twins`, `bias_correction`; `steps` of AdaRound;
    `augment`: methods that fit weights to data get this many additional samples per given one.
    Exceptions: `first_layer`, `last_layer`, `dense_layers`, `depthwise_layers`, `layers`.
    Search: `budget` and `budget_share` of what int8 takes, `mixed_bits` to choose from; `candidates`: names of
    strategies, of which the one with the least noise on held-out calibration data is taken.
    Training: `epochs` over the calibration data with `learning_rate`.
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
    bias_bits: int = 32
    power_of_two_weights: bool = False
    momentum: float = 0.9
    global_scale: float = 8.0
    weight_range: WeightRange = WeightRange.MAX
    weight_rounding: WeightRounding = WeightRounding.HALF_EVEN
    weight_group: int = 0
    seed: int = 0
    steps: int = 400
    equalize: bool = False
    twins: bool = False
    augment: int = 0
    bias_correction: bool = False
    number_format: NumberFormat = NumberFormat.INTEGER
    first_layer: LayerPolicy = LayerPolicy.SAME
    last_layer: LayerPolicy = LayerPolicy.SAME
    dense_layers: LayerPolicy = LayerPolicy.SAME
    depthwise_layers: LayerPolicy = LayerPolicy.SAME
    layers: tuple[LayerChoice, ...] = ()
    budget: Budget | None = None
    budget_share: float = 0.6
    mixed_bits: tuple[int, ...] = (4, 8)
    candidates: tuple[str, ...] = ()
    epochs: int = 0
    learning_rate: float = 1e-4

    def __post_init__(self) -> None:
        where = f"strategy {self.name}"
        _check_int(where, "weight_bits", self.weight_bits, MIN_BITS, MAX_BITS)
        _check_int(where, "activation_bits", self.activation_bits, MIN_BITS, MAX_BITS)
        _check_int(where, "multiplier_bits", self.multiplier_bits, MIN_MULTIPLIER_BITS, MAX_MULTIPLIER_BITS)
        _check_int(where, "bias_bits", self.bias_bits, 8, 32)
        _check_int(where, "seed", self.seed, 0, 2**63 - 1)
        _check_int(where, "steps", self.steps, 1, 100_000)
        _check_int(where, "augment", self.augment, 0, 100)
        _check_int(where, "epochs", self.epochs, 0, 10_000)
        _check_int(where, "weight_group", self.weight_group, 0, MOST_GROUP)
        if self.weight_group and (self.epochs or self.budget is not None):
            what = "epochs" if self.epochs else "budget"
            raise QuantizeError(f"{where}: weight_group must be 0 with {what}, not {self.weight_group}")
        _check_number(where, "percentile", self.percentile, 50, 100, "more than 50 and at most 100")
        _check_number(where, "momentum", self.momentum, 0, 1, "more than 0 and at most 1")
        _check_number(where, "budget_share", self.budget_share, 0, 1, "more than 0 and at most 1")
        _check_number(where, "global_scale", self.global_scale, 0, math.inf, "positive and finite")
        _check_number(where, "learning_rate", self.learning_rate, 0, 1, "more than 0 and at most 1")
        if self.rounding not in ROUNDINGS:
            raise QuantizeError(one_of(f"{where}: rounding", ROUNDINGS, self.rounding))
        for key, kind in ENUMS.items():
            value = getattr(self, key)
            if not isinstance(value, kind) and not (key == "budget" and value is None):
                raise QuantizeError(f"{where}: {key} must be one of {_words(kind)}, not {value}")
        if not self.mixed_bits:
            raise QuantizeError(f"{where}: mixed_bits must hold at least one width, not none")
        for bits in self.mixed_bits:
            _check_int(where, "mixed_bits", bits, MIN_BITS, MAX_BITS)

    @property
    def activations(self) -> ActivationRule:
        """How activations become integers, exceptions left out."""
        high = largest_integer(self.activation_bits)
        return ActivationRule(
            bits=self.activation_bits,
            low=-high - 1,
            high=high,
            beyond=self._beyond,
            symmetric=self.symmetric,
            power_of_two=self.power_of_two,
            calibration=self.calibration,
            percentile=self.percentile,
            momentum=self.momentum,
            global_scale=self.global_scale,
        )

    @property
    def weights(self) -> WeightRule:
        """How weights become integers, exceptions left out."""
        return WeightRule(
            limit=largest_integer(self.weight_bits),
            beyond=self._beyond,
            most_factor=largest_factor(self.weight_bits, self.weight_group),
            group=self.weight_group,
            per_channel=self.per_channel,
            power_of_two=self.power_of_two or self.power_of_two_weights,
            range=self.weight_range,
            rounding=self.weight_rounding,
            seed=self.seed,
            steps=self.steps,
            bias_bits=self.bias_bits,
            bias_correction=self.bias_correction,
        )

    @property
    def _beyond(self) -> int:
        """A global range ends one step after its largest integer."""
        return int(self.calibration is Calibration.GLOBAL)

    @property
    def needs_data(self) -> bool:
        """Whether calibration data is read."""
        if self.number_format is not NumberFormat.INTEGER:
            return self.number_format in (NumberFormat.FP8_E4M3, NumberFormat.FP8_E5M2)
        searched = self.budget is not None or bool(self.candidates) or self.epochs > 0
        rounded = self.bias_correction or any(one.is_learned for one in self._each("weight_rounding"))
        seen = any(one is not Calibration.GLOBAL for one in self._each("calibration"))
        return seen or rounded or self.equalize or self.twins or searched

    def _each(self, key: str) -> list[Any]:
        """The value of a field and those of the exceptions from it."""
        others = (getattr(choice, key) for choice in self.layers)
        return [getattr(self, key), *(value for value in others if value is not None)]

    @property
    def simulated(self) -> str:
        """Why no accelerator here supports this strategy's number format; empty if one does."""
        if self.number_format is not NumberFormat.INTEGER:
            return f"{self.number_format.value} has no hardware here: simulated in float32"
        return ""

    def largest(self, bits: int) -> int:
        """Largest magnitude of integer weights of `bits` bits, multiplied by their group factors."""
        return largest_integer(bits) * largest_factor(bits, self.weight_group)

    def for_layer(self, layer: str, place: Place | None = None) -> LayerRule:
        """What one layer uses, with the exceptions that hold for it; later entries of `layers` win."""
        values: dict[str, Any] = {}
        if LayerPolicy.INT8 in self._policies(place):
            values |= {"weight_bits": MAX_BITS, "activation_bits": MAX_BITS}
        for choice in self.layers:
            if choice.matches(layer):
                values |= choice.values
        own = replace(self, layers=(), **values)
        return LayerRule(own.activations, own.weights)

    def is_quantized(self, layer: str, place: Place | None = None) -> bool:
        """Whether the layer is quantized at all; later entries of `layers` win over the kinds of layers."""
        answer = LayerPolicy.FLOAT not in self._policies(place)
        for choice in self.layers:
            if choice.matches(layer):
                answer = choice.quantized
        return answer

    def _policies(self, place: Place | None) -> list[LayerPolicy]:
        """The policies of the kinds that a layer belongs to."""
        if place is None:
            return []
        kinds = (
            (place.is_first, self.first_layer),
            (place.is_last, self.last_layer),
            (place.is_dense, self.dense_layers),
            (place.is_depthwise, self.depthwise_layers),
        )
        return [edge for holds, edge in kinds if holds]


ENUMS: Final[dict[str, type[Enum]]] = {
    "calibration": Calibration,
    "weight_range": WeightRange,
    "weight_rounding": WeightRounding,
    "number_format": NumberFormat,
    "first_layer": LayerPolicy,
    "last_layer": LayerPolicy,
    "dense_layers": LayerPolicy,
    "depthwise_layers": LayerPolicy,
    "budget": Budget,
}


def _words(kind: type[Enum]) -> str:
    return ", ".join(member.value for member in kind)


def _check_int(where: str, key: str, value: object, low: int, high: int) -> None:
    if type(value) is not int or not low <= value <= high:
        raise QuantizeError(f"{where}: {key} must be an integer from {low} to {high}, not {value}")


def _check_number(where: str, key: str, value: object, above: float, most: float, sentence: str) -> None:
    number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    if not above < number <= most or not math.isfinite(number):
        raise QuantizeError(f"{where}: {key} must be {sentence}, not {value}")
