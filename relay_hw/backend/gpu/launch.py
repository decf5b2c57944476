"""Executes a plan: uploads arguments, launches kernels, runs operators without kernel on numpy, downloads results.

In: a plan and a launcher. Out: functions from arrays to arrays, as `relay_hw.backend.tvm.library` gives them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from relay_hw.backend.flat import FlatFunction, Value, evaluate
from relay_hw.backend.gpu.plan import KernelLaunch, NumpyCall, Plan, PlanFunction, PlanTensor, Tree
from relay_hw.backend.store import ConstantPool

Buffer = Any


class Launcher(Protocol):
    """A device that holds buffers and runs the kernels of one source, in the order of the calls."""

    def allocate(self, size: int) -> Buffer:
        """A buffer of at least `size` bytes."""
        ...

    def upload(self, buffer: Buffer, array: NDArray[Any]) -> None:
        """Copy a contiguous array to the start of a buffer."""
        ...

    def download(self, buffer: Buffer, array: NDArray[Any]) -> None:
        """Fill a contiguous array from the start of a buffer, after all launches so far."""
        ...

    def launch(self, step: KernelLaunch, buffers: Sequence[Buffer]) -> None:
        """Run a kernel; it need not have finished on return."""
        ...


class PlanLibrary:
    """Loaded host functions. `packed` maps names of packed functions to what they compute."""

    def __init__(self, plan: Plan, launcher: Launcher, packed: Mapping[str, FlatFunction], folder: Path) -> None:
        self._launcher = launcher
        self._packed = packed
        pool = ConstantPool((folder / plan.constants).read_bytes())
        self._functions = {name: _Loaded(function, launcher, pool) for name, function in plan.functions.items()}

    def call(self, name: str, args: Sequence[Value]) -> Value:
        """Run a host function: arrays and tuples of them in and out."""
        loaded = self._functions[name]
        plan = loaded.plan
        leaves = [leaf for arg in args for leaf in _leaves(arg)]
        for index, leaf in zip(plan.inputs, leaves, strict=True):
            self._launcher.upload(loaded.buffers[index], np.ascontiguousarray(leaf, plan.tensors[index].dtype))
        for step in plan.steps:
            if isinstance(step, KernelLaunch):
                self._launcher.launch(step, [loaded.buffers[index] for index in step.args])
            else:
                self._compute(loaded, step)
        return self._value(loaded, plan.result)

    def _compute(self, loaded: _Loaded, step: NumpyCall) -> None:
        args = [self._array(loaded, index) for index in step.args]
        results = _leaves(evaluate(self._packed[step.function], args))
        for index, result in zip(step.results, results, strict=True):
            self._launcher.upload(loaded.buffers[index], np.ascontiguousarray(result, loaded.plan.tensors[index].dtype))

    def _value(self, loaded: _Loaded, tree: Tree) -> Value:
        if isinstance(tree, tuple):
            return tuple(self._value(loaded, item) for item in tree)
        return self._array(loaded, tree)

    def _array(self, loaded: _Loaded, index: int) -> NDArray[Any]:
        tensor = loaded.plan.tensors[index]
        array = np.empty(tensor.shape, tensor.dtype)
        if array.size:
            self._launcher.download(loaded.buffers[index], array)
        return array


class _Loaded:
    """A function with a buffer for each of its tensors; tensors with disjoint lifetimes share one."""

    def __init__(self, plan: PlanFunction, launcher: Launcher, pool: ConstantPool) -> None:
        self.plan = plan
        slots = [launcher.allocate(max(size, 1)) for size in plan.slots]
        self.buffers = [_buffer(tensor, slots, launcher, pool) for tensor in plan.tensors]


def _buffer(tensor: PlanTensor, slots: Sequence[Buffer], launcher: Launcher, pool: ConstantPool) -> Buffer:
    if tensor.slot is not None:
        return slots[tensor.slot]
    buffer = launcher.allocate(max(tensor.size, 1))
    if tensor.size:
        launcher.upload(buffer, np.ascontiguousarray(pool.get(tensor.constant)))
    return buffer


def _leaves(value: Value) -> list[Any]:
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, tuple) else [value]
