"""The passes that divide a quantized network between a target and the host."""

from __future__ import annotations

from relay_hw.target.base import NO_RULES, PartitionRules, QuantizerRules
from relay_hw.target.partition import PartitionDevice
from relay_hw.transform.base import Pass
from relay_hw.transform.batch_fragments import BatchFragments
from relay_hw.transform.common_subexpr import EliminateCommonSubexpr
from relay_hw.transform.fragments import OutlineFragments
from relay_hw.transform.graph import dtype_of
from relay_hw.transform.sequential import Pipeline


def partition_pipeline(target: PartitionRules, rules: QuantizerRules = NO_RULES, batch_calls: int = 1) -> Pass:
    """Passes that split a quantized network into target functions, host functions and a `main` that calls them.

    `rules`: what operators need to be quantized, for the reasons of those that stay; None if nothing is quantized.
    `batch_calls`: for how many calls at once each fragment of rows gets a form beside it, none for 1.
    """
    forms = [BatchFragments(batch_calls)] if batch_calls > 1 else []
    return Pipeline(
        [share_accumulators(), OutlineFragments(), *forms, target.composites(), PartitionDevice(target, rules)]
    )


def share_accumulators() -> Pass:
    """A pass by which equal accumulators become one: what two layers scale in their own way belongs to both."""
    return EliminateCommonSubexpr(lambda call: dtype_of(call) == "int32")
