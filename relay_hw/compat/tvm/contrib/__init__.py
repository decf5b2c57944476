"""TVM's `tvm.contrib`, what scripts use of it."""

from relay_hw.compat.tvm.contrib import graph_executor, utils

# Its name before TVM 0.8.
graph_runtime = graph_executor

__all__ = ["graph_executor", "graph_runtime", "utils"]
