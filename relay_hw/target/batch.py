"""Adds to a target's rules the reason why samples of a batch cannot run one by one."""

from __future__ import annotations

from dataclasses import dataclass

from relay_hw.ir.expr import Call, Function
from relay_hw.target.base import PartitionRules, QuantizerRules
from relay_hw.transform.base import Pass
from relay_hw.transform.graph import shape_of
from relay_hw.transform.one_sample import IMAGE_AXES


@dataclass(frozen=True, slots=True)
class BatchRules:
    """See `PartitionRules`. `mixes`: why samples of a batch cannot run one by one."""

    target: PartitionRules
    mixes: str

    @property
    def name(self) -> str:
        """The target's name."""
        return self.target.name

    @property
    def anchors(self) -> frozenset[str]:
        """The target's."""
        return self.target.anchors

    def composites(self) -> Pass:
        """The target's."""
        return self.target.composites()

    def why_not(self, composite: Function) -> str | None:
        """The target's reason, plus that of a batch of images."""
        reason = self.target.why_not(composite)
        is_batch = any(len(shape := shape_of(var) or ()) == IMAGE_AXES and shape[0] > 1 for var in composite.params)
        return f"{reason}; {self.mixes}" if reason and is_batch else reason

    def why_on_host(self, call: Call, rules: QuantizerRules) -> str:
        """The target's."""
        return self.target.why_on_host(call, rules)

    def takes_in(self, call: Call, composite: str) -> bool:
        """The target's."""
        return self.target.takes_in(call, composite)
