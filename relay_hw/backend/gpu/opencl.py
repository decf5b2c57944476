"""Launches OpenCL kernels through pyopencl, on the first platform that has a device.

In: OpenCL C source and launches. Out: buffers of that device.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.backend.gpu.plan import KernelLaunch
from relay_hw.errors import UnsupportedError

PACKAGES = "pip install pyopencl; Debian: apt-get install pocl-opencl-icd"


def find_device() -> Any:
    """The first GPU of any platform, else its first device. Raises UnsupportedError, with the commands that help."""
    if find_spec("pyopencl") is None:
        raise UnsupportedError(f"pyopencl must be installed to run host operators compiled for opencl: {PACKAGES}")
    cl: Any = import_module("pyopencl")
    try:
        found = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    except cl.Error:
        found = []
    if not found:
        raise UnsupportedError(
            f"an OpenCL device must be at hand to run host operators compiled for opencl: {PACKAGES}"
        )
    return next((device for device in found if device.type & cl.device_type.GPU), found[0])


class OpenClLauncher:
    """One device, one queue that runs in order."""

    def __init__(self, source: str) -> None:
        """Raises UnsupportedError without a device, or where the device cannot compile the kernels."""
        device = find_device()
        self._cl: Any = import_module("pyopencl")
        self._context = self._cl.Context([device])
        self._queue = self._cl.CommandQueue(self._context, device)
        try:
            program = self._cl.Program(self._context, source).build(cache_dir=False)
        except self._cl.Error as error:
            reason = str(error).strip().splitlines()[0]
            raise UnsupportedError(f"{device.name} must be able to compile the host operators: {reason}") from None
        self._kernels = {kernel.function_name: kernel for kernel in program.all_kernels()}

    def allocate(self, size: int) -> Any:
        """A buffer of `size` bytes."""
        return self._cl.Buffer(self._context, self._cl.mem_flags.READ_WRITE, size)

    def upload(self, buffer: Any, array: NDArray[Any]) -> None:
        """Copy an array to a buffer."""
        if array.nbytes:
            self._cl.enqueue_copy(self._queue, buffer, array.view(np.uint8) if array.ndim else array, is_blocking=True)

    def download(self, buffer: Any, array: NDArray[Any]) -> None:
        """Fill an array from a buffer."""
        self._cl.enqueue_copy(self._queue, array, buffer, is_blocking=True)

    def launch(self, step: KernelLaunch, buffers: Sequence[Any]) -> None:
        """Queue one kernel."""
        size = tuple(grid * block for grid, block in zip(step.grid, step.block, strict=True))
        self._kernels[step.kernel](self._queue, size, step.block, *buffers)
