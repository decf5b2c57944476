"""Mixed precision: the Pareto front of 4- and 8-bit layer widths in predicted noise and exact cycles.

In: a network with calibration data, places. Out: strategies, from the fewest cycles to the least noise. Noise is that
of each layer alone, so what all of them do together is measured like that of any other strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from numpy.typing import NDArray

from relay_hw.compare.hardware_cost import with_strategy_bits
from relay_hw.compare.network_work import NIBBLE
from relay_hw.compare.places import Place
from relay_hw.errors import InputError
from relay_hw.ir.module import IRModule
from relay_hw.quantize import Strategy, find_strategy
from relay_hw.quantize.main import reference_of
from relay_hw.quantize.methods.knapsack import Option, Options, front, require_solver, widest
from relay_hw.quantize.methods.mixed import LayerCost, measure_all, with_widths
from relay_hw.runtime.compile import timed_layers
from relay_hw.runtime.prices import layer_prices
from relay_hw.target.accel.target import AccelTarget

Array = NDArray[Any]
Judge = Callable[[Strategy], float]  # decibels of signal-to-noise
# Widths to choose from, methods for choices with narrow layers, whose candidates are those for choices without.
BASE: Final = "mixed-cycles"
NARROW: Final = ("w4a8-gptq", "w4a8-twins", "w4a8-mixed")
WIDE: Final = "int8-best"
LEAST, MOST = 2, 32  # of points


def check_points(points: int) -> None:
    """Raise InputError for a number of points that is out of range."""
    if not LEAST <= points <= MOST:
        raise InputError(f"points of a mixed front must be from {LEAST} to {MOST}, not {points}")


@dataclass(frozen=True, slots=True)
class _Way:
    """The strategies that make integers once widths are chosen: with narrow layers, and without. `decibels`: what was
    judged, with all layers narrow and with all wide."""

    narrow: Strategy
    wide: Strategy
    decibels: tuple[float, float]

    def of(self, chosen: Sequence[Option]) -> Strategy:
        """The strategy for a choice of widths."""
        return self.narrow if any(one.bits <= NIBBLE for one in chosen) else self.wide


@dataclass(frozen=True, slots=True)
class _Priced:
    """A way on a place: cycles of its layers there, and totals with all layers narrowest and widest."""

    way: _Way
    options: Options
    cycles: tuple[float, float]

    def beats(self, other: _Priced) -> bool:
        """Whether at both ends it is better in noise or cycles and no worse in the other."""
        pairs = list(zip(self.way.decibels, other.way.decibels, strict=True))
        pairs += [(-own, -others) for own, others in zip(self.cycles, other.cycles, strict=True)]
        return all(own >= others for own, others in pairs) and any(own > others for own, others in pairs)


def mixed_front(
    mod: IRModule,
    calibration: Mapping[str, Array],
    places: Sequence[Place],
    points: int,
    judge: Judge | None = None,
) -> list[Strategy]:
    """Up to `points` strategies for each place and worthwhile way. Raises InputError if `points` is out of range.

    `judge` says how good a strategy is on samples that none saw: the methods are those that it finds best, at the
    narrowest widths and at the widest; without it the first ones. With twins layers may take longer, so that with and
    without them are two ways, of which one is left out where the other beats it.
    """
    check_points(points)
    require_solver()
    reference, base = reference_of(mod), replace(find_strategy(BASE), budget=None)
    noise = measure_all(reference, base, calibration)
    ways = _ways(noise, judge)
    found: list[Strategy] = []
    for place in places:
        priced = [_priced(mod, way, noise, calibration, place) for way in ways]
        kept = [one for one in priced if not any(other.beats(one) for other in priced)]
        choices = [(one, chosen) for one in kept for chosen in _choices(one.options, points)]
        found += [_strategy(one, place, number, chosen) for number, (one, chosen) in enumerate(choices, 1)]
    return found


def _choices(options: Options, points: int) -> list[list[Option]]:
    """The front, plus the choice with every layer at its widest."""
    choices = front(options, points)
    return choices if widest(options) in choices else [*choices, widest(options)]


def _priced(mod: IRModule, way: _Way, noise: Options, calibration: Mapping[str, Array], place: Place) -> _Priced:
    cost = prices_at(mod, way.narrow, calibration, place)
    options = {name: [replace(one, cost=cost(name, one.bits)) for one in some] for name, some in noise.items()}
    ends = (_narrowest(options), widest(options))
    return _Priced(way, options, (sum(one.cost for one in ends[0]), sum(one.cost for one in ends[1])))


def _narrowest(options: Options) -> list[Option]:
    return [min(some, key=lambda one: one.bits) for some in options.values()]


def _ways(options: Options, judge: Judge | None) -> list[_Way]:
    """Without twins and with them."""
    narrow, wide = NARROW, find_strategy(WIDE).candidates
    found: list[_Way] = []
    for twins in (False, True):
        first, low = _best(narrow, twins, _narrowest(options), judge)
        second, high = _best(wide, twins, widest(options), judge)
        found.append(_Way(first, second, (low, high)))
    return found


def _best(names: Sequence[str], twins: bool, chosen: Sequence[Option], judge: Judge | None) -> tuple[Strategy, float]:
    """The best of the named strategies for a choice of widths, and its signal-to-noise ratio."""
    bases = [replace(found, budget=None) for found in map(find_strategy, names) if found.twins == twins]
    rated = [(one, judge(with_widths(one, chosen)) if judge is not None else 0.0) for one in bases]
    return max(rated, key=lambda pair: pair[1])


def prices_at(mod: IRModule, strategy: Strategy, calibration: Mapping[str, Array] | None, place: Place) -> LayerCost:
    """Cycles of layers on a place."""
    build = partial(timed_layers, mod=mod, target=AccelTarget(place.config, place.memory))
    return layer_prices(mod, with_strategy_bits(strategy, [place]), calibration, build)


def _strategy(priced: _Priced, place: Place, number: int, chosen: Sequence[Option]) -> Strategy:
    """The strategy of a choice; its summary has its cycles as a share of those with 8-bit layers."""
    share = sum(one.cost for one in chosen) / max(priced.cycles[1], 1)
    narrow = sum(one.bits <= NIBBLE for one in chosen)
    where = f"{place.config.name} on {place.board or place.memory}"
    base = priced.way.of(chosen)
    text = f"{narrow} of {len(chosen)} layers with 4-bit weights, as {base.name}: {share:.0%} of the cycles of 8-bit "
    return replace(
        with_widths(base, chosen), name=f"mixed-{place.config.name}-{number}", summary=f"{text}layers on {where}"
    )
