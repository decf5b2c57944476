"""TVM's `relay.op.contrib`: tables of the patterns that compilers take."""

from relay_hw.compat.tvm.relay.op.contrib import register
from relay_hw.compat.tvm.relay.op.contrib.register import get_pattern_table, register_pattern_table

__all__ = ["get_pattern_table", "register", "register_pattern_table"]
