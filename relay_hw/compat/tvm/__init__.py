"""TVM's names that Relay scripts use: `from relay_hw.compat import tvm` for `import tvm`. README.md lists them."""

from relay_hw.compat.tvm import _ffi, contrib, instrument, ir, nd, parser, relay, runtime, target, testing, transform
from relay_hw.compat.tvm.byoc.registry import get_global_func, register_func
from relay_hw.compat.tvm.device import Device, cpu, cuda, device, ext_dev, gpu, opencl
from relay_hw.compat.tvm.module import IRModule
from relay_hw.errors import RelayHwError as TVMError

__all__ = [
    "Device",
    "IRModule",
    "TVMError",
    "_ffi",
    "contrib",
    "cpu",
    "cuda",
    "device",
    "ext_dev",
    "get_global_func",
    "gpu",
    "instrument",
    "ir",
    "nd",
    "opencl",
    "parser",
    "register_func",
    "relay",
    "runtime",
    "target",
    "testing",
    "transform",
]
