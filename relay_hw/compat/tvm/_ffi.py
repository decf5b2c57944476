"""TVM's `tvm._ffi`: the registry of global functions."""

from relay_hw.compat.tvm.byoc import registry
from relay_hw.compat.tvm.byoc.registry import get_global_func, register_func, remove_global_func

__all__ = ["get_global_func", "register_func", "registry", "remove_global_func"]
