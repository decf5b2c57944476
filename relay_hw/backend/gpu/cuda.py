"""Launches CUDA kernels through the driver's own library, without TVM's runtime or the CUDA toolkit.

In: a binary that nvcc made, and launches. Out: buffers of the first GPU.
"""

from __future__ import annotations

import ctypes
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from relay_hw.backend.gpu.plan import KernelLaunch, Plan
from relay_hw.backend.tvm.target import HostTarget
from relay_hw.errors import UnsupportedError
from relay_hw.support.child import run_child

DRIVER = "libcuda.so.1"
# Shared memory of a block by default; more needs an attribute of the kernel.
PLAIN_SHARED_BYTES = 48 * 1024
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR


def find_nvcc() -> str | None:
    """The CUDA compiler on PATH."""
    return shutil.which("nvcc")


def compile_source(source: Path, binary: Path, target: HostTarget) -> None:
    """`source` to a binary for the GPU of `target`, with code for later ones. Raises UnsupportedError with nvcc's word.

    nvcc must be on PATH.
    """
    nvcc = find_nvcc()
    assert nvcc is not None
    number = target.gpu.removeprefix("sm_")
    codes = f"arch=compute_{number},code=[sm_{number},compute_{number}]"
    command = [nvcc, "-fatbin", "-O3", "-gencode", codes, source.name, "-o", str(binary.resolve())]
    done = run_child(command, source.parent)
    if done.returncode:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        reason = next(
            (line for line in lines if "error" in line or "fatal" in line), lines[0] if lines else "no reason"
        )
        raise UnsupportedError(f"nvcc must be able to compile the host operators for {target.gpu}: {reason.strip()}")


def find_gpu() -> str:
    """The architecture of the first GPU, such as `sm_90`. Raises UnsupportedError without a driver or a GPU."""
    driver = _open_driver()
    device, major, minor = _first_gpu(driver), ctypes.c_int(), ctypes.c_int()
    _check(driver, "cuDeviceGetAttribute", ctypes.byref(major), CAPABILITY_MAJOR, device)
    _check(driver, "cuDeviceGetAttribute", ctypes.byref(minor), CAPABILITY_MINOR, device)
    return f"sm_{major.value}{minor.value}"


class CudaLauncher:
    """The first GPU, its default stream."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        """Raises UnsupportedError without a driver, a GPU, or code for it."""
        self._driver = _open_driver()
        device = _first_gpu(self._driver)
        context = ctypes.c_void_p()
        self._check("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._check("cuCtxSetCurrent", context)
        self._module = ctypes.c_void_p()
        self._check("cuModuleLoadData", ctypes.byref(self._module), _binary(plan, folder))
        self._kernels: dict[str, Any] = {}

    def allocate(self, size: int) -> Any:
        """Device memory of `size` bytes; it is freed with the process."""
        pointer = ctypes.c_uint64()
        self._check("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
        return pointer

    def upload(self, buffer: Any, array: NDArray[Any]) -> None:
        """Copy an array to device memory."""
        if array.nbytes:
            self._check("cuMemcpyHtoD_v2", buffer, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes))

    def download(self, buffer: Any, array: NDArray[Any]) -> None:
        """Fill an array from device memory."""
        self._check("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), buffer, ctypes.c_size_t(array.nbytes))

    def launch(self, step: KernelLaunch, buffers: Sequence[Any]) -> None:
        """Queue one kernel."""
        pointers = (ctypes.c_void_p * len(buffers))(*(ctypes.addressof(buffer) for buffer in buffers))
        sizes = [ctypes.c_uint(count) for count in (*step.grid, *step.block, step.shared)]
        self._check("cuLaunchKernel", self._kernel(step), *sizes, None, pointers, None)

    def _kernel(self, step: KernelLaunch) -> Any:
        if step.kernel not in self._kernels:
            found = ctypes.c_void_p()
            self._check("cuModuleGetFunction", ctypes.byref(found), self._module, step.kernel.encode())
            if step.shared > PLAIN_SHARED_BYTES:
                self._check("cuFuncSetAttribute", found, MAX_DYNAMIC_SHARED, step.shared)
            self._kernels[step.kernel] = found
        return self._kernels[step.kernel]

    def _check(self, name: str, *args: Any) -> None:
        _check(self._driver, name, *args)


def _open_driver() -> Any:
    try:
        return ctypes.CDLL(DRIVER)
    except OSError:
        raise UnsupportedError(
            "an NVIDIA GPU and its driver must be at hand to run host operators compiled for cuda; "
            f"{DRIVER} is not found: compile the model with --host llvm"
        ) from None


def _first_gpu(driver: Any) -> ctypes.c_int:
    _check(driver, "cuInit", 0)
    device = ctypes.c_int()
    _check(driver, "cuDeviceGet", ctypes.byref(device), 0)
    return device


def _check(driver: Any, name: str, *args: Any) -> None:
    status = getattr(driver, name)(*args)
    if status:
        text = ctypes.c_char_p()
        driver.cuGetErrorString(status, ctypes.byref(text))
        reason = text.value.decode() if text.value else f"error {status}"
        raise UnsupportedError(f"the GPU must be able to run host operators compiled for cuda: {name}: {reason}")


def _binary(plan: Plan, folder: Path) -> bytes:
    """The build's own binary, or one made now from its source."""
    if plan.binary is not None:
        return (folder / plan.binary).read_bytes()
    if find_nvcc() is None:
        raise UnsupportedError(
            f"{plan.source} must be compiled by nvcc, which was not on PATH when the model was compiled, and is not now"
        )
    with tempfile.TemporaryDirectory() as work:
        binary = Path(work) / "host.fatbin"
        compile_source(folder / plan.source, binary, plan.target)
        return binary.read_bytes()
