"""TVM's `relay.op.contrib.register`."""

from relay_hw.compat.tvm.byoc.registry import get_pattern_table, register_pattern_table

__all__ = ["get_pattern_table", "register_pattern_table"]
