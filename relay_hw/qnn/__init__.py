"""The QNN dialect under Relay's names: `relay.qnn.op.quantize` and so on."""

from relay_hw.op import qnn as op

__all__ = ["op"]
