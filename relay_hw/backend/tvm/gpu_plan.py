"""Extracts plans from TVM's output: kernels that a TIR function launches, TIR functions that a Relax function calls.

In: TIR as it looks to the host, Relax of calls and tuples. Out: the steps of a plan, with a buffer for each tensor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relay_hw.backend.gpu.plan import Dims, KernelLaunch, NumpyCall, PlanFunction, PlanTensor, Tree, place
from relay_hw.backend.store import ConstantPool
from relay_hw.backend.tvm.api import relax
from relay_hw.errors import UnsupportedError

AXES = ("x", "y", "z")


@dataclass(frozen=True, slots=True)
class Launches:
    """Kernels of one TIR function. Arguments count its `params` first, then its temporaries (dtype, elements)."""

    params: int
    temporaries: tuple[tuple[str, int], ...]
    kernels: tuple[KernelLaunch, ...]


def read_launches(function: Any) -> Launches:
    """The kernels that a TIR function launches, in order. Raises UnsupportedError for any other work on the host."""
    reader = _Launches(function)
    reader.statement(function.body)
    return Launches(len(function.params), tuple(reader.temporaries), tuple(reader.kernels))


def buffer_size(buffer: Any) -> tuple[str, int]:
    """Type and number of the elements of a TIR buffer."""
    return str(buffer.dtype), int(np.prod([int(size) for size in buffer.shape]))


class _Launches:
    def __init__(self, function: Any) -> None:
        self.count = len(function.params)
        self.numbers: dict[Any, int] = {param: i for i, param in enumerate(function.params)}
        self.temporaries: list[tuple[str, int]] = []
        self.kernels: list[KernelLaunch] = []

    def statement(self, stmt: Any) -> None:
        match type(stmt).__name__:
            case "SeqStmt":
                for part in stmt.seq:
                    self.statement(part)
            case "DeclBuffer":
                self.numbers[stmt.buffer] = self._buffer(stmt.data)
            case "AllocBuffer":
                self.numbers[stmt.buffer] = self.count + len(self.temporaries)
                self.temporaries.append(buffer_size(stmt.buffer))
            case "Evaluate" if _is_kernel(stmt.value):
                self.kernels.append(self._kernel(stmt.value))
            case "AttrStmt":
                self.statement(stmt.body)
            case kind:
                raise UnsupportedError(f"a TIR function must launch kernels only, not hold {kind}")

    def _buffer(self, pointer: Any) -> int:
        if type(pointer).__name__ == "Call" and pointer.op.name.endswith("buffer_data"):
            return self.numbers[pointer.args[0]]
        raise UnsupportedError(f"a kernel must take buffers, not {pointer}")

    def _kernel(self, call: Any) -> KernelLaunch:
        names = [str(name) for name in call.attrs.launch_params]
        args = list(call.args)
        split = len(args) - len(names)
        sizes = {name: int(value) for name, value in zip(names, args[split:], strict=True)}
        shared = sizes.pop("tirx.use_dyn_shared_memory", 0)
        return KernelLaunch(
            str(args[0].value),
            _dims(sizes, "blockIdx"),
            _dims(sizes, "threadIdx"),
            tuple(self._buffer(arg) for arg in args[1:split]),
            shared,
        )


def _is_kernel(value: Any) -> bool:
    return type(value).__name__ == "Call" and value.op.name.endswith("call_ffi_kernel")


def _dims(sizes: Mapping[str, int], kind: str) -> Dims:
    x, y, z = (sizes.get(f"{kind}.{axis}", 1) for axis in AXES)
    return x, y, z


def read_function(function: Any, launches: Mapping[str, Launches], pool: ConstantPool) -> PlanFunction:
    """The plan of a Relax function; its constants go to `pool`. Raises UnsupportedError for anything but calls."""
    reader = _Function(launches, pool)
    inputs = [reader.declare(param, param.ty) for param in function.params]
    for block in function.body.blocks:
        for binding in block.bindings:
            reader.values[binding.var] = reader.value(binding.value, binding.var.ty)
    result = reader.value(function.body.body, None)
    return reader.finish(str(function.attrs["global_symbol"]), [i for tree in inputs for i in _leaves(tree)], result)


class _Function:
    def __init__(self, launches: Mapping[str, Launches], pool: ConstantPool) -> None:
        self.launches = launches
        self.pool = pool
        self.values: dict[Any, Tree] = {}
        self.constants: dict[Any, int] = {}
        self.tensors: list[PlanTensor] = []
        self.steps: list[KernelLaunch | NumpyCall] = []

    def declare(self, var: Any, ty: Any) -> Tree:
        """New tensors of a type, as the value of `var`."""
        self.values[var] = self._new(ty)
        return self.values[var]

    def _new(self, ty: Any) -> Tree:
        if isinstance(ty, relax.TupleType):
            return tuple(self._new(item) for item in ty.fields)
        return self._tensor(PlanTensor(str(ty.dtype), tuple(int(size) for size in ty.shape)))

    def _tensor(self, tensor: PlanTensor) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def value(self, expr: Any, ty: Any) -> Tree:
        """The tensors of an expression; calls become steps."""
        match type(expr).__name__:
            case "Var" | "DataflowVar":
                return self.values[expr]
            case "GenericConst" | "Constant":
                return self._constant(expr)
            case "Tuple":
                return tuple(self.value(item, None) for item in expr.fields)
            case "TupleGetItem":
                return self.value(expr.tuple_value, None)[int(expr.index)]
            case "Call":
                return self._call(expr, ty)
            case kind:
                raise UnsupportedError(f"a GPU function must hold calls and tuples only, not {kind}")

    def _constant(self, expr: Any) -> int:
        if expr not in self.constants:
            array = expr.value.numpy()
            row = self.pool.add(array)
            self.constants[expr] = self._tensor(PlanTensor(str(array.dtype), array.shape, constant=row))
        return self.constants[expr]

    def _call(self, call: Any, ty: Any) -> Tree:
        name = str(getattr(call.op, "name", call.op))
        if name not in ("relax.call_tir", "relax.call_dps_packed") or len(call.args) != 2:
            raise UnsupportedError(f"a GPU function must call kernels only, not {name}")
        args = [i for field in call.args[1].fields for i in _leaves(self.value(field, None))]
        results = self._new(ty)
        tensors = (*args, *_leaves(results))
        if name == "relax.call_dps_packed":
            self.steps.append(NumpyCall(str(call.args[0].global_symbol), tuple(args), tuple(_leaves(results))))
        else:
            self._launch(self.launches[call.args[0].name_hint], tensors)
        return results

    def _launch(self, launches: Launches, tensors: Sequence[int]) -> None:
        given = [*tensors]
        given += [self._tensor(PlanTensor(dtype, (count,))) for dtype, count in launches.temporaries]
        for kernel in launches.kernels:
            args = tuple(given[i] for i in kernel.args)
            self.steps.append(KernelLaunch(kernel.kernel, kernel.grid, kernel.block, args, kernel.shared))

    def finish(self, name: str, inputs: Sequence[int], result: Tree) -> PlanFunction:
        """The plan, a slot given to each tensor."""
        sizes = [None if t.constant is not None else t.size for t in self.tensors]
        used = [(*step.args, *step.results) if isinstance(step, NumpyCall) else step.args for step in self.steps]
        slots, places = place(sizes, used, inputs, _leaves(result))
        tensors = [
            t if t.constant is not None else PlanTensor(t.dtype, t.shape, places[i]) for i, t in enumerate(self.tensors)
        ]
        return PlanFunction(name, tuple(tensors), tuple(slots), tuple(inputs), tuple(self.steps), result)


def _leaves(tree: Tree) -> list[int]:
    return [leaf for item in tree for leaf in _leaves(item)] if isinstance(tree, tuple) else [tree]
