"""Result of a point: its measurements, or the reason why it has none.

In: measurements. Out: frozen records, their JSON, and back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

from relay_hw.compare.energy import Energy
from relay_hw.explore.design import Placed
from relay_hw.explore.space import Point


@dataclass(frozen=True, slots=True)
class Measured:
    """One steady-state inference on the cycle simulator, and its estimated energy.

    `dram_bytes`: moved in it; `resident_bytes`: once before. Of `macs` in all, `accel_macs` run on the accelerator;
    `host`: the first layer with products that does not, and why. `refused`: why it cannot be compiled at all.
    """

    cycles: int = 0
    launches: int = 0
    dram_bytes: int = 0
    resident_bytes: int = 0
    macs: int = 0
    accel_macs: int = 0
    energy: Energy = field(default_factory=lambda: Energy(0, 0, 0, 0, 0, 0))
    host: str = ""
    refused: str = ""

    @property
    def host_macs(self) -> int:
        """Multiply-accumulates on the host, outside of the cycles."""
        return self.macs - self.accel_macs


def measured_content(measured: Measured) -> dict[str, Any]:
    """The whole record, in the form that the journal stores."""
    return asdict(measured)


def read_measured(content: Mapping[str, Any]) -> Measured:
    """The record of `measured_content`. Raises KeyError, TypeError for other content."""
    return Measured(**{**content, "energy": Energy(**content["energy"])})


class State(Enum):
    """The state of a point: measured, skipped or refused."""

    DONE = "measured"
    SKIPPED = "skipped"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Row:
    """One point. `reason`: why it was skipped or refused. `accuracy`: of its strategy, where there are test data."""

    point: Point
    state: State
    reason: str = ""
    placed: Placed | None = None
    measured: Measured | None = None
    accuracy: float | None = None

    @property
    def number(self) -> int:
        """The number of the point in the grid."""
        return self.point.number

    @property
    def milliseconds(self) -> float | None:
        """Milliseconds of an inference at the assumed clock."""
        if self.placed is None or self.measured is None or not self.placed.design.clock_hz:
            return None
        return 1000 * self.measured.cycles / self.placed.design.clock_hz
