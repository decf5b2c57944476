"""Relax modules to shared libraries and back to callable functions, with TVM's virtual machine.

In: a lowered module. Out: a library file that is the same for the same functions; loaded, a function from arrays to
arrays for each host function.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.backend.flat import FlatFunction, Value, evaluate
from relay_hw.backend.tvm.api import relax, tvm
from relay_hw.backend.tvm.lower import Lowered
from relay_hw.backend.tvm.machine import GENERIC, X86_LEVELS, machine
from relay_hw.backend.tvm.schedule import pipeline
from relay_hw.errors import ArtifactError, InputError, UnsupportedError


def build_cpu() -> str:
    """The CPU level to compile for: the same on all machines of the same kind, so that a build can travel."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return GENERIC
    return next((level for level, features in X86_LEVELS if all(map(_has, features))), GENERIC)


def _has(feature: str) -> bool:
    cpu = tvm.target.codegen.llvm_get_system_cpu()
    return bool(tvm.target.codegen.llvm_cpu_has_features(feature, tvm.target.Target({"kind": "llvm", "mcpu": cpu})))


def check_cpu(level: str) -> None:
    """Raise ArtifactError unless this machine runs code for `level`."""
    if not all(map(_has, dict(X86_LEVELS).get(level, ()))):
        raise ArtifactError(f"the host library must be made for this CPU, not for {level}: compile the model here")


def export(lowered: Lowered, level: str, path: Path) -> None:
    """Compile and link to `path`. Raises UnsupportedError without a linker."""
    if not any(shutil.which(tool) for tool in ("g++", "gcc", "clang++", "clang", "cc", "c++")):
        raise UnsupportedError("a C++ compiler must be on PATH to link host operators: install g++")
    row = {"kind": "llvm"} | ({} if level == GENERIC else {"mcpu": level})
    target = tvm.target.Target(row)
    executable = relax.build(lowered.module, target, relax_pipeline=pipeline(target, machine(level)))
    executable.export_library(str(path))


class Library:
    """Loaded host functions. `packed` maps names of packed functions to what they compute; `threads`: of all calls."""

    def __init__(self, path: Path, level: str, packed: Mapping[str, FlatFunction], threads: int | None = None) -> None:
        check_cpu(level)
        for name, function in packed.items():
            tvm.register_global_func(name, _packed(function), override=True)
        use_threads(threads)
        self._machine = relax.VirtualMachine(tvm.runtime.load_module(str(path)), tvm.cpu())

    def call(self, name: str, args: Sequence[Value]) -> Value:
        """Run a host function: arrays and tuples of them in and out."""
        return _from_tvm(self._machine[name](*map(_to_tvm, args)))


def use_threads(count: int | None = None) -> int:
    """Let compiled code use `count` threads of the process, TVM_NUM_THREADS or all its processors; how many it uses.

    Without this, TVM takes half of the processors for hyper-threads. Raises InputError for less than one.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # Read once, when the first thread is started.
    wanted = os.environ.setdefault("TVM_NUM_THREADS", str(cores))
    number = count if count is not None else int(wanted) if wanted.isdigit() else cores
    if number < 1:
        raise InputError(f"number of threads must be at least 1, not {number}")
    tvm.get_global_func("runtime.config_threadpool")(1, min(number, cores))
    return min(number, cores)


def _to_tvm(value: Value) -> Any:
    if isinstance(value, tuple):
        return tuple(_to_tvm(item) for item in value)
    return tvm.runtime.tensor(np.ascontiguousarray(value).reshape(np.shape(value)))


def _from_tvm(value: Any) -> Value:
    return value.numpy() if isinstance(value, tvm.runtime.Tensor) else tuple(_from_tvm(item) for item in value)


def _packed(function: FlatFunction) -> Any:
    count = len(function.params)

    def run(*tensors: Any) -> None:
        values = [np.from_dlpack(item) for item in tensors]
        result = evaluate(function, values[:count])
        results = _leaves(result)
        for target, source in zip(values[count:], results, strict=True):
            target[...] = source

    return run


def _leaves(value: Value) -> list[NDArray[Any]]:
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, tuple) else [value]
