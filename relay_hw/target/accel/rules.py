"""Partition rules of the accelerator: its composites, and why other operators stay on the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.ir.expr import Call, Function
from relay_hw.target.accel.composites import COMPOSITES, Legal, MergeDeviceComposites, is_front
from relay_hw.target.accel.reasons import reason_for
from relay_hw.target.base import QuantizerRules
from relay_hw.transform.base import Pass

NAME: Final = "accel"
# A clip alone has no name worth keeping: it goes by its composite's.
ANCHORS: Final = frozenset(composite.anchor for composite in COMPOSITES) - {"clip"}


class AccelOperators:
    """The part of `PartitionRules` that every configuration of the accelerator shares: all but `why_not`."""

    @property
    def name(self) -> str:
        """The target's name."""
        return NAME

    @property
    def anchors(self) -> frozenset[str]:
        """Operators that a layer takes its name from."""
        return ANCHORS

    def composites(self) -> Pass:
        """The pass that groups integer operators."""
        return MergeDeviceComposites(self.why_not, self.sizes)

    @property
    def sizes(self) -> AccelConfig | None:
        """The configuration, where there is one."""
        return None

    def why_not(self, composite: Function) -> str | None:
        """Why a configuration cannot run a composite."""
        raise NotImplementedError

    def why_on_host(self, call: Call, rules: QuantizerRules) -> str:
        """Why an operator is part of no composite."""
        return reason_for(call, rules)

    def takes_in(self, call: Call, composite: str) -> bool:
        """Pads and reshapes join the layer behind them."""
        return is_front(call, composite)


@dataclass(frozen=True)
class AccelRules(AccelOperators):
    """Rules without a configuration. `legal`: why a composite cannot run; without it all can."""

    legal: Legal | None = None

    def why_not(self, composite: Function) -> str | None:
        """The answer of `legal`."""
        return None if self.legal is None else self.legal(composite)
