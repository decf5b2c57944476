"""TVM's `relay.build_module`."""

from relay_hw.build_module import bind_params_by_name
from relay_hw.compat.tvm.factory import build

__all__ = ["bind_params_by_name", "build"]
