"""Compiles fused Relay functions to accelerator programs: `why_not` and `compile_function`, `Plan` for several."""

from relay_hw.tensorize.compile import Plan, compile_function
from relay_hw.tensorize.lower.tile import why_not
from relay_hw.tensorize.segment import Layer, Port, Segment
from relay_hw.tensorize.target import Target

__all__ = ["Layer", "Plan", "Port", "Segment", "Target", "compile_function", "why_not"]
