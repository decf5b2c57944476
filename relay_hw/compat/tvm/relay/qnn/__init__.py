"""TVM's `relay.qnn`: `op` builds operators, `transform` lowers them."""

from relay_hw.compat.tvm.relay.qnn import transform
from relay_hw.op import qnn as op

__all__ = ["op", "transform"]
