"""From fused Relay functions to checked accelerator programs: `why_not` and `compile_function`, `Plan` for several."""

from tensorize.compile import Plan, compile_function
from tensorize.match import why_not
from tensorize.segment import Layer, Port, Segment
from tensorize.target import Target

__all__ = ["Layer", "Plan", "Port", "Segment", "Target", "compile_function", "why_not"]
