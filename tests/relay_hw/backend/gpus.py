"""The GPU hosts that tests run kernels on, each with the reason why it cannot run here."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from relay_hw.backend.gpu import cuda, opencl
from relay_hw.backend.tvm.target import HostTarget, parse_host
from relay_hw.errors import UnsupportedError


def _missing(find: Callable[[], object]) -> str:
    """Why `find` finds no device; empty where it does."""
    try:
        find()
    except UnsupportedError as error:
        return str(error)
    return ""


_NO_OPENCL = _missing(opencl.find_device)
_NO_NVCC = "" if cuda.find_nvcc() else "nvcc is not on PATH"
_NO_CUDA = _missing(cuda.find_gpu) or _NO_NVCC
needs_opencl = pytest.mark.skipif(bool(_NO_OPENCL), reason=_NO_OPENCL)
needs_nvcc = pytest.mark.skipif(bool(_NO_NVCC), reason=_NO_NVCC)
needs_cuda = pytest.mark.skipif(bool(_NO_CUDA), reason=_NO_CUDA)
# Parameters of tests that run kernels.
HOSTS = (pytest.param("opencl", marks=needs_opencl), pytest.param("cuda", marks=needs_cuda))


def host_target(kind: str) -> HostTarget:
    """The device of `kind` that is here."""
    return parse_host(kind, cuda.find_gpu() if kind == "cuda" else None)
