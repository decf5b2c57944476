"""Marks layers that stayed float, because quantization lost their signal, in the rows of a build."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from relay_hw.quantize.held_back import Kept
from relay_hw.target.partition import HOST
from relay_hw.target.records import LayerInfo


def with_kept(layers: Sequence[LayerInfo], kept: Sequence[Kept]) -> tuple[LayerInfo, ...]:
    """Give the reason for layers that the host computes in float because quantization lost their signal."""
    reasons = {" #".join(one.layer.rsplit("#", 1)): one.reason for one in kept}
    return tuple(
        replace(row, reason=f"kept in float: {reasons[row.name]}") if row.where == HOST and row.name in reasons else row
        for row in layers
    )
