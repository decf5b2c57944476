"""TVM's `tvm.runtime`: arrays, devices, saved libraries and parameters."""

from relay_hw.compat.tvm.device import Device, cpu, cuda, device
from relay_hw.compat.tvm.factory import load_module
from relay_hw.compat.tvm.nd import NDArray
from relay_hw.compat.tvm.params import (
    load_param_dict,
    load_param_dict_from_file,
    save_param_dict,
    save_param_dict_to_file,
)
from relay_hw.interp import Closure, ConstructorValue, RefValue

__all__ = [
    "Closure",
    "ConstructorValue",
    "Device",
    "NDArray",
    "RefValue",
    "cpu",
    "cuda",
    "device",
    "load_module",
    "load_param_dict",
    "load_param_dict_from_file",
    "save_param_dict",
    "save_param_dict_to_file",
]
