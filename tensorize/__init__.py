"""From fused Relay functions to checked accelerator programs: `why_not` and `compile_function`."""

from tensorize.compile import compile_function
from tensorize.match import why_not
from tensorize.segment import Layer, Port, Segment

__all__ = ["Layer", "Port", "Segment", "compile_function", "why_not"]
