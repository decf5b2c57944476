"""Chooses a bit width for each layer: the least noise within a budget, and the Pareto front (an integer program).

In: options by layer, a budget. Out: one option a layer. Solved as an integer program by HiGHS, through scipy.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from relay_hw.errors import QuantizeError, UnsupportedError

# Of two choices with the same noise the cheaper one counts: its whole cost weighs less than any noise that is measured.
_CHEAPER: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Option:
    """One layer at one width: `noise` is the share of the output's power that it costs when it alone is narrow."""

    layer: str
    bits: int
    noise: float
    cost: float


Options = Mapping[str, Sequence[Option]]


def require_solver() -> None:
    """Raise UnsupportedError, with the command that helps, unless scipy is installed."""
    if importlib.util.find_spec("scipy") is None:
        raise UnsupportedError("scipy must be installed to choose widths of layers: pip install 'relay-hw[mixed]'")


def least(options: Options) -> float:
    """The smallest possible cost."""
    return sum(min(one.cost for one in some) for some in options.values())


def widest(options: Options) -> list[Option]:
    """Every layer at its widest."""
    return [max(some, key=lambda one: one.bits) for some in options.values()]


def quietest(options: Options, allowed: float) -> list[Option]:
    """The choice of one option per layer with the least noise whose cost is at most `allowed`.

    Raises QuantizeError for none, UnsupportedError without scipy.
    """
    require_solver()
    from scipy.optimize import Bounds, LinearConstraint, milp

    rows = [one for some in options.values() for one in some]
    if not rows:
        return []
    noise, cost = np.array([one.noise for one in rows]), np.array([one.cost for one in rows])
    owner = np.repeat(np.arange(len(options)), [len(some) for some in options.values()])
    each = (owner == np.arange(len(options))[:, None]).astype(float)
    # Numbers of one size: the solver's tolerances are absolute.
    unit, most = cost.max() or 1.0, noise.max() or 1.0
    found = milp(
        noise / most + _CHEAPER * cost / unit,
        integrality=np.ones(len(rows)),
        bounds=Bounds(0, 1),
        constraints=[LinearConstraint(each, 1, 1), LinearConstraint(cost / unit, -np.inf, allowed / unit)],
        options={"mip_rel_gap": 0},
    )
    if found.x is None:
        raise QuantizeError(f"a budget must allow at least {least(options):,.0f}, not {allowed:,.0f}")
    return [one for one, taken in zip(rows, found.x, strict=True) if taken > 0.5]


def front(options: Options, points: int) -> list[list[Option]]:
    """Choices from the cheapest to the quietest, for `points` evenly spaced budgets, without duplicates."""
    low, high = least(options), sum(one.cost for one in quietest(options, np.inf))
    found: list[list[Option]] = []
    for allowed in np.linspace(low, high, points):
        # Check the budget by the options' exact numbers, not by the solver's float sum.
        choice = quietest(options, float(allowed) * (1 + 1e-12))
        if choice not in found:
            found.append(choice)
    return found
