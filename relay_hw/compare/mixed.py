"""Choices of 4- and 8-bit layers that nothing beats in predicted noise and exact cycles, for each accelerator.

In: a network with calibration data, a place. Out: strategies, from the fewest cycles to the least noise. Noise is that
of each layer alone, so what all of them do together is measured like that of any other strategy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from numpy.typing import NDArray

from relay_hw.compare.cost import with_strategy_bits
from relay_hw.compare.places import Place
from relay_hw.compare.work import NIBBLE
from relay_hw.errors import InputError
from relay_hw.ir.module import IRModule
from relay_hw.quantize import Strategy, find_strategy
from relay_hw.quantize.layers import plan_layers
from relay_hw.quantize.main import reference_of
from relay_hw.quantize.methods.knapsack import Option, Options, front, widest
from relay_hw.quantize.methods.mixed import LayerCost, measure, with_widths
from relay_hw.runtime.compile import timed_layers
from relay_hw.runtime.prices import layer_prices
from relay_hw.transform.pieces import is_graph

Array = NDArray[Any]
# What the choices have in common, and the least and most of them.
BASE: Final = "mixed-cycles"
LEAST, MOST = 2, 32


def check_points(points: int) -> None:
    """Raise InputError for a number that no front has."""
    if not LEAST <= points <= MOST:
        raise InputError(f"points of a mixed front must be from {LEAST} to {MOST}, not {points}")


def mixed_front(
    mod: IRModule, calibration: Mapping[str, Array], places: Sequence[Place], points: int
) -> list[Strategy]:
    """Up to `points` strategies for each place. Raises InputError for another number, or for control flow."""
    check_points(points)
    base, reference = find_strategy(BASE), reference_of(mod)
    if not is_graph(reference):
        raise InputError("a mixed front must be of a network without control flow: its layers have no fixed order")
    layers = plan_layers(reference["main"].body, replace(base, budget=None))
    noise = measure(reference, layers, calibration, lambda _layer, _bits: 0.0)
    found: list[Strategy] = []
    for place in places:
        cost = prices_at(mod, base, calibration, place)
        options = {name: [replace(one, cost=cost(name, one.bits)) for one in some] for name, some in noise.items()}
        choices = front(options, points)
        found += [_strategy(base, place, number, one, options) for number, one in enumerate(choices, 1)]
    return found


def prices_at(mod: IRModule, strategy: Strategy, calibration: Mapping[str, Array] | None, place: Place) -> LayerCost:
    """Cycles of layers at a place."""
    build = partial(timed_layers, mod=mod, config=place.config, memory=place.memory)
    return layer_prices(mod, with_strategy_bits(strategy, [place]), calibration, build)


def _strategy(base: Strategy, place: Place, number: int, chosen: Sequence[Option], options: Options) -> Strategy:
    """A choice; its summary says what share of the cycles of 8-bit layers it takes."""
    share = sum(one.cost for one in chosen) / max(sum(one.cost for one in widest(options)), 1)
    narrow = sum(one.bits <= NIBBLE for one in chosen)
    where = f"{place.config.name} on {place.board or place.memory}"
    text = f"{narrow} of {len(chosen)} layers with 4-bit weights: {share:.0%} of the cycles of 8-bit layers on {where}"
    return replace(with_widths(base, chosen), name=f"mixed-{place.config.name}-{number}", summary=text)
