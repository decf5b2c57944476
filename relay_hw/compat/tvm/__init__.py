"""TVM's names that Relay scripts use: `from relay_hw.compat import tvm` for `import tvm`. README.md lists them."""

from relay_hw.compat.tvm import contrib, instrument, ir, nd, parser, relay, runtime, target, testing, transform
from relay_hw.compat.tvm.device import Device, cpu, cuda, device, gpu, opencl
from relay_hw.compat.tvm.module import IRModule
from relay_hw.errors import RelayHwError as TVMError

__all__ = [
    "Device",
    "IRModule",
    "TVMError",
    "contrib",
    "cpu",
    "cuda",
    "device",
    "gpu",
    "instrument",
    "ir",
    "nd",
    "opencl",
    "parser",
    "relay",
    "runtime",
    "target",
    "testing",
    "transform",
]
