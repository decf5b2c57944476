"""Design-space exploration: compiles one network for many accelerators, finds the Pareto front of cycles, area, energy.

In: a float module, axes. Out: an `Exploration`. Above `compare`, whose measures it takes. The page is written by
templates/.
"""

from relay_hw.explore.exploration import Exploration
from relay_hw.explore.main import explore
from relay_hw.explore.options import ExploreOptions
from relay_hw.explore.space import Axis, Point, Space

__all__ = ["Axis", "Exploration", "ExploreOptions", "Point", "Space", "explore"]
