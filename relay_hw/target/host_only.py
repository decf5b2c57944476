"""Partition rules that keep every operator on the host, for one reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from relay_hw.ir.expr import Call, Function
from relay_hw.target.base import QuantizerRules
from relay_hw.transform.base import Pass
from relay_hw.transform.sequential import Pipeline

_NO_NAME: Final = "none"


@dataclass(frozen=True, slots=True)
class HostOnly:
    """See `PartitionRules`. `reason`: why everything stays on the host."""

    reason: str

    @property
    def name(self) -> str:
        """No function has it."""
        return _NO_NAME

    @property
    def anchors(self) -> frozenset[str]:
        """None."""
        return frozenset()

    def composites(self) -> Pass:
        """A pass that changes nothing."""
        return Pipeline([])

    def why_not(self, composite: Function) -> str | None:
        """The reason."""
        return self.reason

    def why_on_host(self, call: Call, rules: QuantizerRules) -> str:
        """The reason."""
        return self.reason

    def takes_in(self, call: Call, composite: str) -> bool:
        """Never."""
        return False
