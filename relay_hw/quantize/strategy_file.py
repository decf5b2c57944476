"""Strategies by name, or as TOML files: the fields of `Strategy`, `base` to start from a named one, `[[layer]]`.

In: a name or a file. Out: a checked `Strategy`; every refusal names the file and the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from enum import Enum
from pathlib import Path
from typing import Any, Final

from relay_hw.errors import QuantizeError
from relay_hw.quantize.recipes import STRATEGIES, strategy_names
from relay_hw.quantize.strategy import ENUMS, LayerChoice, Strategy
from relay_hw.support import durable
from relay_hw.support.documents import MOST_SETTINGS, DocumentError, parse_toml, reason
from relay_hw.support.names import one_of

_TUPLES: Final = ("mixed_bits", "candidates")
_FLOATS: Final = ("percentile", "momentum", "global_scale", "budget_share", "learning_rate")
_BOOLS: Final = (
    "per_channel",
    "symmetric",
    "power_of_two",
    "power_of_two_weights",
    "equalize",
    "twins",
    "bias_correction",
    "quantized",
)
_STRINGS: Final = ("name", "rounding", "summary", "layer")


def find_strategy(strategy: str | Strategy) -> Strategy:
    """The named strategy, or that of a `.toml` file; a Strategy is returned as it is.

    Raises QuantizeError for an unknown name and for a file that cannot be read.
    """
    if isinstance(strategy, Strategy):
        return strategy
    if strategy.endswith(".toml"):
        return load_strategy(Path(strategy))
    for known in STRATEGIES:
        if known.name == strategy:
            return known
    raise QuantizeError(one_of("strategy", [*strategy_names(), "a .toml file"], strategy))


def load_strategy(path: str | Path) -> Strategy:
    """The strategy of a TOML file; its name is that of the file unless it says another. Raises QuantizeError."""
    file = Path(path)
    try:
        values = parse_toml(durable.read_given_text(file, MOST_SETTINGS))
    except (OSError, UnicodeDecodeError) as error:
        raise QuantizeError(f"strategy file {file} must be readable: {reason(error)}") from None
    except DocumentError as error:
        raise QuantizeError(f"strategy file {file} must be TOML: {error}") from None
    return strategy_from(values, str(file), file.stem)


def strategy_from(values: Mapping[str, Any], where: str, name: str) -> Strategy:
    """The strategy of a table as TOML or JSON give it. `where` starts every refusal. Raises QuantizeError."""
    given = dict(values)
    base = given.pop("base", None)
    start = Strategy(name) if base is None else replace(_base(base, where), name=name, summary="")
    choices = given.pop("layer", [])
    if not isinstance(choices, list) or not all(isinstance(choice, Mapping) for choice in choices):
        raise QuantizeError(f"{where}: layer must be a list of tables ([[layer]]), not {choices}")
    layers = tuple(_layer(choice, f"{where}, layer {number}") for number, choice in enumerate(choices, 1))
    known = {field.name for field in fields(Strategy)} - {"layers"}
    new = {key: _value(key, value, where, known | {"base", "layer"}) for key, value in given.items()}
    try:
        return replace(start, **new, layers=start.layers + layers)
    except QuantizeError as error:
        raise QuantizeError(f"{where}: {error}") from None


def strategy_values(strategy: Strategy) -> dict[str, Any]:
    """The strategy as a table that `strategy_from` reads back: fields that differ from the defaults."""
    default = asdict(Strategy(strategy.name))
    table: dict[str, Any] = {"name": strategy.name}
    for key, value in asdict(strategy).items():
        if key != "layers" and value != default[key]:
            table[key] = _plain(value)
    if strategy.layers:
        table["layer"] = [_layer_values(choice) for choice in strategy.layers]
    return table


def _layer_values(choice: LayerChoice) -> dict[str, Any]:
    given = {key: _plain(value) for key, value in asdict(choice).items() if value is not None}
    return {key: value for key, value in given.items() if key != "quantized" or not value}


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    return list(value) if isinstance(value, tuple) else value


def _base(base: object, where: str) -> Strategy:
    if not isinstance(base, str):
        raise QuantizeError(f"{where}: base must be the name of a strategy, not {base}")
    try:
        return find_strategy(base)
    except QuantizeError as error:
        raise QuantizeError(f"{where}: base: {error}") from None


def _layer(choice: Mapping[str, Any], where: str) -> LayerChoice:
    known = {field.name for field in fields(LayerChoice)}
    if "layer" not in choice:
        raise QuantizeError(f'{where}: must say which layer (layer = "name or pattern")')
    new = {key: _value(key, value, where, known) for key, value in choice.items()}
    try:
        return LayerChoice(**new)
    except QuantizeError as error:
        raise QuantizeError(f"{where}: {error}") from None


def _value(key: str, value: Any, where: str, known: set[str]) -> Any:
    """A TOML value converted to the type of field `key`; the records check ranges themselves."""
    if key not in known:
        raise QuantizeError(one_of(f"{where}: key", sorted(known), key))
    if key in ENUMS:
        words = [member.value for member in ENUMS[key]]
        if value not in words:
            raise QuantizeError(one_of(f"{where}: {key}", words, value))
        return ENUMS[key](value)
    if key in _TUPLES:
        if not isinstance(value, list):
            raise QuantizeError(f"{where}: {key} must be a list, not {value}")
        return tuple(value)
    if key in _BOOLS and not isinstance(value, bool):
        raise QuantizeError(f"{where}: {key} must be true or false, not {value}")
    if key in _STRINGS and not isinstance(value, str):
        raise QuantizeError(f"{where}: {key} must be a string, not {value}")
    return float(value) if key in _FLOATS and type(value) is int else value
