"""Compiles Relax modules to shared libraries, and loads them as callable functions, by TVM's virtual machine.

In: a lowered module. Out: a library file that is the same for the same functions; loaded, a function from arrays to
arrays for each host function.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.backend.flat import FlatFunction, Value, evaluate
from relay_hw.backend.tvm.api import relax, tvm
from relay_hw.backend.tvm.lower import Lowered
from relay_hw.backend.tvm.machine import GENERIC, X86_LEVELS, Machine, machine
from relay_hw.backend.tvm.schedule import pipeline
from relay_hw.backend.tvm.target import HostTarget
from relay_hw.errors import ArtifactError, InputError, UnsupportedError
from relay_hw.support.child import run_child


def build_cpu(target: HostTarget) -> str:
    """The CPU that code is compiled for: a common feature level, or `architecture:name`."""
    if target.is_native and not target.mcpu and _here() == "x86_64":
        return next(level for level, features in X86_LEVELS if all(map(_has, features)))
    return f"{target.arch or _here()}:{target.mcpu or GENERIC}"


def _here() -> str:
    """This machine's architecture under LLVM's name."""
    name = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)


def _has(feature: str) -> bool:
    cpu = tvm.target.codegen.llvm_get_system_cpu()
    return bool(tvm.target.codegen.llvm_cpu_has_features(feature, tvm.target.Target({"kind": "llvm", "mcpu": cpu})))


def check_cpu(cpu: str) -> None:
    """Raise ArtifactError unless this machine runs code for `cpu`, as `build_cpu` names it."""
    arch = cpu.partition(":")[0] if ":" in cpu else "x86_64"
    if arch != _here() or not all(map(_has, dict(X86_LEVELS).get(cpu, ()))):
        raise ArtifactError(f"the host library must be made for this CPU, not for {cpu}: compile the model here")


def processor(cpu: str) -> Machine:
    """The description of a CPU that `build_cpu` names."""
    arch, _, name = cpu.rpartition(":")
    return machine(name, arch or "x86_64")


def export(lowered: Lowered, target: HostTarget, cpu: str, path: Path) -> None:
    """Compile and link to `path`. Raises UnsupportedError without a linker for the target."""
    linker = find_linker(target)
    level = cpu.rpartition(":")[2]
    row: dict[str, Any] = {"kind": "llvm"}
    row |= {} if level == GENERIC else {"mcpu": level}
    row |= {"mtriple": target.triple} if target.triple else {}
    row |= {"mattr": list(target.mattr)} if target.mattr else {}
    wanted = tvm.target.Target(row)
    executable = relax.build(lowered.module, wanted, relax_pipeline=pipeline(wanted, processor(cpu)))
    executable.export_library(str(path), fcompile=_linking(linker))


def _linking(linker: Sequence[str]) -> Any:
    """What TVM calls with object files to make a shared library of them."""

    def link(output: str, objects: Sequence[str] | str, **_options: Any) -> None:
        files = [objects] if isinstance(objects, str) else list(objects)
        done = run_child([*linker, "-shared", "-fPIC", "-o", output, *files])
        if done.returncode:
            reason = (done.stderr.strip() or "it failed").splitlines()[-1]
            raise UnsupportedError(f"{linker[0]} must link host operators: {reason}")

    link.output_format = "so"  # type: ignore[attr-defined]
    return link


def find_linker(target: HostTarget) -> tuple[str, ...]:
    """A command that links shared libraries for the target. Raises UnsupportedError if there is none."""
    if target.is_native or target.arch == _here():
        names = ("g++", "gcc", "clang++", "clang", "cc", "c++")
        found = next((tool for tool in names if shutil.which(tool)), None)
        if found is None:
            raise UnsupportedError("a C++ compiler must be on PATH to link host operators: install g++")
        return (found,)
    for tool in (f"{target.triple}-g++", f"{target.triple}-gcc"):
        if shutil.which(tool):
            return (tool,)
    if shutil.which("clang") and shutil.which("ld.lld"):
        return ("clang", f"--target={target.triple}", "-fuse-ld=lld", "-nostdlib")
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc", "-target", target.triple)
    tools = f"{target.triple}-gcc, or clang with lld, or package ziglang"
    raise UnsupportedError(f"a linker for {target.triple} must be installed to compile for it: {tools}")


class Library:
    """Loaded host functions. `packed` maps names of packed functions to what they compute; `threads`: of all calls."""

    def __init__(self, path: Path, level: str, packed: Mapping[str, FlatFunction], threads: int | None = None) -> None:
        check_cpu(level)
        for name, function in packed.items():
            tvm.register_global_func(name, _packed(function), override=True)
        use_threads(threads)
        self._machine = _machine(path)

    def call(self, name: str, args: Sequence[Value]) -> Value:
        """Run a host function: arrays and tuples of them in and out."""
        return _from_tvm(self._machine[name](*map(_to_tvm, args)))

    def prepared(self, name: str, args: Sequence[Value]) -> Callable[[], Any]:
        """A call of a host function for these values, which gives TVM's result: what measures its speed."""
        function, given = self._machine[name], [_to_tvm(value) for value in args]
        return lambda: function(*given)


def _machine(path: Path) -> Any:
    try:
        return relax.VirtualMachine(tvm.runtime.load_module(str(path)), tvm.cpu())
    except Exception as error:  # ValueError, RuntimeError and TVM's own, by what the file is
        reason = str(error).strip().splitlines()[-1][:200] if str(error).strip() else type(error).__name__
        raise ArtifactError(f"host library {path.name} must be one that TVM can load: {reason}") from None


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
