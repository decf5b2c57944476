"""TVM's `relay.op`: builders of operators, `nn`, `annotation`."""

from relay_hw.compat.tvm.relay import annotation as _annotation
from relay_hw.compat.tvm.relay.op import contrib
from relay_hw.op import *  # noqa: F403
from relay_hw.op import __all__

# The operators' own module of that name has no stop_fusion.
annotation = _annotation
__all__ = [*__all__, "annotation", "contrib"]
