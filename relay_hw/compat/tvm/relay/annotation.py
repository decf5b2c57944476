"""TVM's `relay.annotation`."""

from relay_hw.op.annotation import compiler_begin, compiler_end, on_device, stop_fusion

__all__ = ["compiler_begin", "compiler_end", "on_device", "stop_fusion"]
