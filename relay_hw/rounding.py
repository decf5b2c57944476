"""How a shift rounds, by name: what halves become; `floor` never goes up. Operators and strategies name them."""

from __future__ import annotations

from typing import Final

ROUNDINGS: Final = ("half_up", "half_even", "half_away", "floor")
